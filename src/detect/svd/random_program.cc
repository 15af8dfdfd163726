#include "detect/svd/random_program.h"

#include <map>
#include <set>

namespace heddle::svd {
namespace {

struct Statement {
  enum Op { kLoad, kStore, kAdd, kIf } op{};
  int target = 0;  // register of a load or add; condition of an if
  int left = 0;    // registers of a store or add
  int right = 0;
  int variable = 0;
  std::vector<Statement> body;
};

// What the interpreter executes: statements in line, with the segments' beginnings between them.
struct Instruction {
  enum Op { kBegin, kLoad, kStore, kAdd, kBranch, kEndIf } op{};
  int target = 0;
  int left = 0;
  int right = 0;
  int variable = 0;
  SegmentId segment = 0;    // kBegin
  SiteId site = 0;          // accesses
  std::size_t skip_to = 0;  // kBranch not taken
};

constexpr Address kBase = 0x1000;
constexpr std::uint32_t kSize = 4;

Address address_of(int variable) {
  return kBase + static_cast<Address>(variable) * kSize;
}

class Generator {
 public:
  Generator(std::mt19937_64& random, const RandomProgramOptions& options, int thread)
      : random_(random), options_(options), thread_(thread) {}

  std::vector<Statement> statements(int count, int depth) {
    std::vector<Statement> out;
    for (int i = 0; i < count; ++i) {
      Statement statement;
      const int dice = pick(depth > 0 ? 10 : 8);
      statement.op = dice < 4   ? Statement::kLoad
                     : dice < 7 ? Statement::kStore
                     : dice < 8 ? Statement::kAdd
                                : Statement::kIf;
      statement.target = pick(options_.registers);
      statement.left = pick(options_.registers);
      statement.right = pick(options_.registers);
      const int variable = pick(options_.shared_variables + options_.own_variables);
      statement.variable = variable < options_.shared_variables
                               ? variable
                               : variable + thread_ * options_.own_variables;
      if (statement.op == Statement::kIf) statement.body = statements(1 + pick(3), depth - 1);
      out.push_back(std::move(statement));
    }
    return out;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }

  std::mt19937_64& random_;
  const RandomProgramOptions& options_;
  int thread_;
};

class Compiler {
 public:
  Compiler(Catalog& catalog, int registers)
      : catalog_(catalog), sources_(static_cast<std::size_t>(registers)) {
    function_ = static_cast<FunctionId>(catalog_.functions.size());
    catalog_.functions.emplace_back();
    begin_block({});
  }

  std::vector<Instruction> compile(const std::vector<Statement>& program) {
    body(program, {});
    current().end = SegmentEnd::kReturn;
    catalog_.functions[function_].registers = next_register_;
    return std::move(code_);
  }

 private:
  Segment& current() { return catalog_.segments.back(); }

  void begin_block(std::vector<std::uint32_t> parents) {
    Segment segment;
    segment.function = function_;
    segment.block = next_block_++;
    segment.control_parents = std::move(parents);
    catalog_.segments.push_back(std::move(segment));
    Instruction begin;
    begin.op = Instruction::kBegin;
    begin.segment = static_cast<SegmentId>(catalog_.segments.size() - 1);
    code_.push_back(begin);
  }

  void body(const std::vector<Statement>& statements, const std::vector<std::uint32_t>& parents) {
    for (const Statement& statement : statements) one(statement, parents);
  }

  void one(const Statement& statement, const std::vector<std::uint32_t>& parents) {
    Instruction out;
    out.target = statement.target;
    out.left = statement.left;
    out.right = statement.right;
    out.variable = statement.variable;
    switch (statement.op) {
      case Statement::kLoad: {
        out.op = Instruction::kLoad;
        out.site = site(EventKind::kRead);
        const Register defined = next_register_++;
        current().items.push_back({out.site, defined, {}, {}});
        of(statement.target) = {defined};
        code_.push_back(out);
        break;
      }
      case Statement::kStore:
        out.op = Instruction::kStore;
        out.site = site(EventKind::kWrite);
        current().items.push_back({out.site, kNoRegister, {}, list(both(statement))});
        code_.push_back(out);
        break;
      case Statement::kAdd:
        out.op = Instruction::kAdd;
        of(statement.target) = both(statement);
        code_.push_back(out);
        break;
      case Statement::kIf:
        branch(statement, out, parents);
        break;
    }
  }

  void branch(const Statement& statement, Instruction out,
              const std::vector<std::uint32_t>& parents) {
    out.op = Instruction::kBranch;
    current().end = SegmentEnd::kBranch;
    current().end_from = list(of(statement.target));
    const std::uint32_t condition_block = current().block;
    const std::size_t branch_at = code_.size();
    code_.push_back(out);
    const std::vector<std::set<Register>> before = sources_;
    begin_block({condition_block});
    body(statement.body, {condition_block});
    const std::uint32_t body_end = current().block;
    const std::vector<std::set<Register>> after = sources_;
    Instruction end;
    end.op = Instruction::kEndIf;
    code_.push_back(end);
    code_[branch_at].skip_to = code_.size();
    begin_block(parents);
    for (std::size_t reg = 0; reg < sources_.size(); ++reg) {
      if (before[reg] == after[reg]) continue;
      const Register defined = next_register_++;
      current().phis.push_back(
          {defined, {{condition_block, list(before[reg])}, {body_end, list(after[reg])}}});
      sources_[reg] = {defined};
    }
  }

  std::set<Register>& of(int reg) { return sources_[static_cast<std::size_t>(reg)]; }
  std::set<Register> both(const Statement& statement) {
    std::set<Register> out = of(statement.left);
    out.insert(of(statement.right).begin(), of(statement.right).end());
    return out;
  }
  static Sources list(const std::set<Register>& set) { return {set.begin(), set.end()}; }

  SiteId site(EventKind kind) {
    Site out;
    out.function = function_;
    out.kind = kind;
    out.size = kSize;
    out.line = static_cast<std::uint32_t>(catalog_.sites.size());
    catalog_.sites.push_back(out);
    return static_cast<SiteId>(catalog_.sites.size() - 1);
  }

  Catalog& catalog_;
  FunctionId function_ = 0;
  std::uint32_t next_block_ = 0;
  Register next_register_ = 0;
  std::vector<std::set<Register>> sources_;  // by machine register
  std::vector<Instruction> code_;
};

class Interpreter {
 public:
  Interpreter(RandomRun& run, std::vector<int>& memory, ThreadId thread,
              std::vector<Instruction> code, int registers)
      : run_(run),
        memory_(memory),
        thread_(thread),
        code_(std::move(code)),
        values_(static_cast<std::size_t>(registers), static_cast<int>(thread) + 1),
        from_(static_cast<std::size_t>(registers)) {}

  bool done() const { return at_ == code_.size(); }

  // One access and everything up to the next; the first step goes to the first access.
  void step() {
    bool accessed = false;
    while (!done()) {
      const Instruction& now = code_[at_];
      const bool access = now.op == Instruction::kLoad || now.op == Instruction::kStore;
      if (access && (accessed || !started_)) break;
      accessed |= access;
      ++at_;
      execute(now);
    }
    started_ = true;
  }

 private:
  std::set<NodeId>& from(int reg) { return from_[static_cast<std::size_t>(reg)]; }
  int& value(int reg) { return values_[static_cast<std::size_t>(reg)]; }

  void execute(const Instruction& now) {
    switch (now.op) {
      case Instruction::kBegin: {
        Event event;
        event.kind = EventKind::kSegment;
        event.thread = thread_;
        event.value = now.segment;
        run_.events.push_back(event);
        break;
      }
      case Instruction::kLoad: {
        FlowNode& node = access(now, EventKind::kRead);
        if (const auto writer = last_writer_.find(now.variable); writer != last_writer_.end()) {
          node.memory = {writer->second};
        }
        value(now.target) = memory_[static_cast<std::size_t>(now.variable)];
        from(now.target) = {last_node()};
        break;
      }
      case Instruction::kStore: {
        FlowNode& node = access(now, EventKind::kWrite);
        std::set<NodeId> sources = from(now.left);
        sources.insert(from(now.right).begin(), from(now.right).end());
        node.data.assign(sources.begin(), sources.end());
        memory_[static_cast<std::size_t>(now.variable)] = value(now.left) + value(now.right);
        last_writer_[now.variable] = last_node();
        break;
      }
      case Instruction::kAdd: {
        std::set<NodeId> sources = from(now.left);
        sources.insert(from(now.right).begin(), from(now.right).end());
        from(now.target) = std::move(sources);
        value(now.target) = value(now.left) + value(now.right);
        break;
      }
      case Instruction::kBranch: {
        FlowNode& node = run_.truth.emplace_back();
        node.kind = EventKind::kBranch;
        node.thread = thread_;
        node.data.assign(from(now.target).begin(), from(now.target).end());
        node.control = control();
        if (value(now.target) % 2 != 0) {
          controls_.push_back(last_node());
        } else {
          at_ = now.skip_to;
        }
        break;
      }
      case Instruction::kEndIf:
        controls_.pop_back();
        break;
    }
  }

  FlowNode& access(const Instruction& now, EventKind kind) {
    Event event;
    event.kind = kind;
    event.thread = thread_;
    event.site = now.site;
    event.address = address_of(now.variable);
    event.size = kSize;
    run_.events.push_back(event);
    FlowNode& node = run_.truth.emplace_back();
    node.kind = kind;
    node.thread = thread_;
    node.site = now.site;
    node.address = event.address;
    node.size = kSize;
    node.ordinal = run_.events.size() - 1;
    node.control = control();
    return node;
  }
  NodeId control() const { return controls_.empty() ? kNoNode : controls_.back(); }
  NodeId last_node() const { return static_cast<NodeId>(run_.truth.size() - 1); }

  RandomRun& run_;
  std::vector<int>& memory_;
  ThreadId thread_;
  std::vector<Instruction> code_;
  std::size_t at_ = 0;
  bool started_ = false;
  std::vector<int> values_;
  std::vector<std::set<NodeId>> from_;
  std::map<int, NodeId> last_writer_;
  std::vector<NodeId> controls_;
};

}  // namespace

RandomRun run_random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  std::mt19937_64 random(seed);
  RandomRun run;
  std::vector<int> memory(
      static_cast<std::size_t>(options.shared_variables + options.threads * options.own_variables),
      1);
  std::vector<Interpreter> threads;
  for (int thread = 0; thread < options.threads; ++thread) {
    const std::vector<Statement> program =
        Generator(random, options, thread).statements(options.statements, 2);
    threads.emplace_back(run, memory, static_cast<ThreadId>(thread),
                         Compiler(run.catalog, options.registers).compile(program),
                         options.registers);
  }
  std::vector<std::size_t> ready(threads.size());
  for (std::size_t i = 0; i < ready.size(); ++i) ready[i] = i;
  while (!ready.empty()) {
    const std::size_t chosen = random() % ready.size();
    Interpreter& thread = threads[ready[chosen]];
    thread.step();
    if (thread.done()) ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return run;
}

}  // namespace heddle::svd
