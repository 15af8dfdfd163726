#include "detect/svd/random_program.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

namespace heddle::svd {
namespace {

constexpr Address kBase = 0x1000;
constexpr std::uint32_t kSize = 4;  // of a variable
constexpr int kMask = 0xffff;       // values stay small, so that sums cannot overflow

// Where an access goes: a variable, the one of the thread's that a register selects, or one further
// on in every round of a loop; perhaps together with its neighbour, as one access of twice the
// size.
struct Target {
  int variable = 0;
  int pointer = -1;  // register, or none
  bool walks = false;
  bool wide = false;
};

struct Statement {
  enum Op { kLoad, kStore, kUpdate, kAdd, kIf, kLoop, kCall, kLibrary } op{};
  int target = 0;  // register that is set; condition of an if or loop
  int left = 0;    // registers that are used; arguments of a call
  int right = 0;
  Target from;  // loads, updates, library reads
  Target to;    // stores, library writes
  std::vector<Statement> body;
};

// What the interpreter executes: statements in line, with the segments' beginnings between them.
struct Instruction {
  enum Op {
    kBegin,
    kLoad,
    kStore,
    kUpdate,
    kAdd,
    kIf,
    kEndIf,
    kLoop,
    kGoto,
    kPhi,
    kCall,
    kLibraryRead,
    kLibraryWrite,
    kReturn
  } op{};
  Statement at{};
  SegmentId segment = 0;    // kBegin
  SiteId site = 0;          // accesses
  std::size_t go_to = 0;    // kIf and kLoop not taken, kGoto
  std::vector<int> merged;  // kPhi: registers
  std::size_t callee = 0;   // kCall: number of the code
};

using Code = std::vector<Instruction>;

void add_assigned(const std::vector<Statement>& body, std::set<int>& out) {
  for (const Statement& statement : body) {
    if (statement.op == Statement::kIf || statement.op == Statement::kLoop) {
      add_assigned(statement.body, out);
    } else if (statement.op != Statement::kStore) {
      out.insert(statement.target);
    }
  }
}

std::vector<int> assigned_in(const std::vector<Statement>& body) {
  std::set<int> out;
  add_assigned(body, out);
  return {out.begin(), out.end()};
}

class Generator {
 public:
  Generator(std::mt19937_64& random, const RandomProgramOptions& options, int thread)
      : random_(random), options_(options), thread_(thread) {}

  std::vector<Statement> statements(int count, int depth) {
    std::vector<Statement> out;
    out.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) out.push_back(statement(depth));
    return out;
  }

 private:
  Statement statement(int depth) {
    Statement out;
    out.op = op(depth);
    out.target = pick(options_.registers);
    out.left = pick(options_.registers);
    out.right = pick(options_.registers);
    out.from = target();
    out.to = target();
    if (out.op == Statement::kIf || out.op == Statement::kLoop || out.op == Statement::kCall)
      out.body = statements(1 + pick(3), depth - 1);
    return out;
  }

  Statement::Op op(int depth) {
    if (options_.walks && depth > 0 && pick(3) == 0) return Statement::kLoop;
    const int dice = pick(20);
    if (dice < 7) return Statement::kLoad;
    if (dice < 13) return Statement::kStore;
    if (dice < 15 || depth == 0) return Statement::kAdd;
    if (dice < 17 || options_.plain) return Statement::kIf;
    constexpr Statement::Op kRich[] = {Statement::kLoop, Statement::kCall, Statement::kLibrary,
                                       Statement::kUpdate};
    return kRich[pick(4)];
  }

  Target target() {
    Target out;
    const int variable = pick(options_.shared_variables + options_.own_variables);
    out.variable = variable < options_.shared_variables
                       ? variable
                       : variable + thread_ * options_.own_variables;
    if (options_.plain) return out;
    if (options_.walks && pick(4) != 0) {
      out.walks = true;
      return out;
    }
    if (pick(4) == 0) out.pointer = pick(options_.registers);
    out.wide = pick(5) == 0;
    return out;
  }

  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }

  std::mt19937_64& random_;
  const RandomProgramOptions& options_;
  int thread_;
};

// Compiles one function; the functions it calls are compiled by compilers of their own.
class Compiler {
 public:
  Compiler(Catalog& catalog, std::vector<Code>& codes, int registers, std::uint32_t parameters)
      : catalog_(catalog), codes_(codes), sources_(static_cast<std::size_t>(registers)) {
    function_ = static_cast<FunctionId>(catalog_.functions.size());
    Function function;
    function.linkage_name = catalog_.strings.intern("f" + std::to_string(function_));
    function.parameters = parameters;
    catalog_.functions.push_back(function);
    for (std::uint32_t i = 0; i < parameters; ++i) sources_[i] = {next_register_++};
    begin_block({});
  }

  // Returns the number of the code.
  std::size_t compile(const std::vector<Statement>& program) {
    body(program, {});
    current().end = SegmentEnd::kReturn;
    current().end_from = list(of(0));
    emit(Instruction::kReturn, {});
    catalog_.functions[function_].registers = next_register_;
    codes_.push_back(std::move(code_));
    return codes_.size() - 1;
  }

 private:
  Segment& current() { return catalog_.segments[current_]; }
  Instruction& emit(Instruction::Op op, const Statement& statement) {
    Instruction& out = code_.emplace_back();
    out.op = op;
    out.at = statement;
    out.at.body.clear();
    return out;
  }

  void begin_segment(std::uint32_t block, std::uint32_t index, std::vector<std::uint32_t> parents) {
    Segment segment;
    segment.function = function_;
    segment.block = block;
    segment.index = index;
    segment.control_parents = std::move(parents);
    current_ = catalog_.segments.size();
    catalog_.segments.push_back(std::move(segment));
    emit(Instruction::kBegin, {}).segment = static_cast<SegmentId>(current_);
  }
  void begin_block(std::vector<std::uint32_t> parents) {
    begin_segment(next_block_++, 0, std::move(parents));
  }

  void body(const std::vector<Statement>& statements, const std::vector<std::uint32_t>& parents) {
    for (const Statement& statement : statements) one(statement, parents);
  }

  void one(const Statement& statement, const std::vector<std::uint32_t>& parents) {
    switch (statement.op) {
      case Statement::kLoad:
      case Statement::kStore:
      case Statement::kUpdate:
        access(statement);
        break;
      case Statement::kAdd: {
        const std::set<Register> sum = both(statement);
        of(statement.target) = sum;
        emit(Instruction::kAdd, statement);
        break;
      }
      case Statement::kIf:
        if_then(statement, parents);
        break;
      case Statement::kLoop:
        loop(statement, parents);
        break;
      case Statement::kCall:
      case Statement::kLibrary:
        call(statement, parents);
        break;
    }
  }

  void access(const Statement& statement) {
    const bool load = statement.op == Statement::kLoad;
    const bool store = statement.op == Statement::kStore;
    const Target& target = store ? statement.to : statement.from;
    AccessItem item;
    item.site = site(load ? EventKind::kRead : store ? EventKind::kWrite : EventKind::kRmw);
    if (target.pointer >= 0) item.address_from = list(of(target.pointer));
    if (!load) item.value_from = list(both(statement));
    if (!store) item.defines = next_register_++;
    emit(load    ? Instruction::kLoad
         : store ? Instruction::kStore
                 : Instruction::kUpdate,
         statement)
        .site = item.site;
    if (!store) of(statement.target) = {item.defines};
    current().items.push_back(std::move(item));
  }

  void if_then(const Statement& statement, const std::vector<std::uint32_t>& parents) {
    current().end = SegmentEnd::kBranch;
    current().end_from = list(of(statement.target));
    const std::uint32_t condition_block = current().block;
    const std::vector<int> assigned = assigned_in(statement.body);
    const std::size_t branch_at = code_.size();
    emit(Instruction::kIf, statement);
    const std::vector<std::set<Register>> before = sources_;
    begin_block({condition_block});
    body(statement.body, {condition_block});
    const std::uint32_t body_end = current().block;
    const std::vector<std::set<Register>> after = sources_;
    emit(Instruction::kPhi, {}).merged = assigned;
    emit(Instruction::kEndIf, {});
    const std::size_t over_at = code_.size();
    emit(Instruction::kGoto, {});
    code_[branch_at].go_to = code_.size();
    emit(Instruction::kPhi, {}).merged = assigned;
    code_[over_at].go_to = code_.size();
    begin_block(parents);
    for (const int reg : assigned) {
      const auto at = static_cast<std::size_t>(reg);
      const Register defined = next_register_++;
      current().phis.push_back(
          {defined, {{condition_block, list(before[at])}, {body_end, list(after[at])}}});
      sources_[at] = {defined};
    }
  }

  void loop(const Statement& statement, const std::vector<std::uint32_t>& parents) {
    const std::vector<int> assigned = assigned_in(statement.body);
    const std::uint32_t before_block = current().block;
    const std::uint32_t header_block = next_block_;
    emit(Instruction::kPhi, {}).merged = assigned;
    const std::size_t header_at = code_.size();
    std::vector<std::uint32_t> header_parents = parents;
    header_parents.push_back(header_block);
    begin_block(std::move(header_parents));
    const std::size_t header = current_;
    for (const int reg : assigned) {
      const Register defined = next_register_++;
      current().phis.push_back({defined, {{before_block, list(of(reg))}}});
      of(reg) = {defined};
    }
    current().end = SegmentEnd::kBranch;
    current().end_from = list(of(statement.target));
    const std::size_t branch_at = code_.size();
    emit(Instruction::kLoop, statement);
    const std::vector<std::set<Register>> at_header = sources_;
    begin_block({header_block});
    body(statement.body, {header_block});
    Segment& top = catalog_.segments[header];
    for (std::size_t i = 0; i < assigned.size(); ++i)
      top.phis[i].incoming.push_back({current().block, list(of(assigned[i]))});
    emit(Instruction::kPhi, {}).merged = assigned;
    emit(Instruction::kGoto, {}).go_to = header_at;
    code_[branch_at].go_to = code_.size();
    sources_ = at_header;
    begin_block(parents);
  }

  void call(const Statement& statement, const std::vector<std::uint32_t>& parents) {
    const std::uint32_t block = current().block;
    const std::uint32_t index = current().index;
    current().end = SegmentEnd::kCall;
    current().arguments = {list(of(statement.left)), list(of(statement.right))};
    const Register result = next_register_++;
    current().defines = result;
    if (statement.op == Statement::kCall) {
      const std::size_t caller = current_;
      Compiler callee(catalog_, codes_, static_cast<int>(sources_.size()), 2);
      catalog_.segments[caller].callee = catalog_.functions[callee.function_].linkage_name;
      emit(Instruction::kCall, statement).callee = callee.compile(statement.body);
    } else {
      current().callee = catalog_.strings.intern("copy");
      emit(Instruction::kLibraryRead, statement).site = site(EventKind::kRead);
      emit(Instruction::kLibraryWrite, statement).site = site(EventKind::kWrite);
    }
    of(statement.target) = {result};
    begin_segment(block, index + 1, parents);
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
  std::vector<Code>& codes_;
  FunctionId function_ = 0;
  std::size_t current_ = 0;
  std::uint32_t next_block_ = 0;
  Register next_register_ = 0;
  std::vector<std::set<Register>> sources_;  // by machine register
  Code code_;
};

class Interpreter {
 public:
  Interpreter(RandomRun& run, std::vector<int>& memory, const std::vector<Code>& codes,
              const RandomProgramOptions& options, ThreadId thread, std::size_t code)
      : run_(run), memory_(memory), codes_(codes), options_(options), thread_(thread) {
    push(code);
  }

  bool done() const { return frames_.empty(); }

  // One access and everything up to the next; the first step goes to the first access.
  void step() {
    bool accessed = false;
    while (!done()) {
      const Instruction& now = codes_[frames_.back().code][frames_.back().at];
      const bool access = is_one_access(now.op);
      if (access && (accessed || !started_)) break;
      accessed |= access;
      ++frames_.back().at;
      execute(now);
    }
    started_ = true;
  }

 private:
  using Nodes = std::set<NodeId>;

  struct Frame {
    std::size_t code = 0;
    std::size_t at = 0;
    SegmentId segment = 0;
    std::vector<int> values;
    std::vector<Nodes> from;
    int returns_to = 0;
    std::map<SegmentId, int> iterations;  // of the loops being executed
    int round = 0;                        // of the one that went on last
    Nodes library;                        // what the running library call has read
  };

  static bool is_one_access(Instruction::Op op) {
    return op == Instruction::kLoad || op == Instruction::kStore || op == Instruction::kUpdate ||
           op == Instruction::kLibraryRead || op == Instruction::kLibraryWrite;
  }

  void push(std::size_t code) {
    Frame frame;
    frame.code = code;
    frame.values.assign(static_cast<std::size_t>(options_.registers),
                        static_cast<int>(thread_) + 1);
    frame.from.resize(static_cast<std::size_t>(options_.registers));
    frames_.push_back(std::move(frame));
  }

  Nodes& from(int reg) { return frames_.back().from[static_cast<std::size_t>(reg)]; }
  int& value(int reg) { return frames_.back().values[static_cast<std::size_t>(reg)]; }
  Nodes both(const Statement& at) {
    Nodes out = from(at.left);
    out.insert(from(at.right).begin(), from(at.right).end());
    return out;
  }

  int own_or_shared(int number) const {
    const int count = options_.shared_variables + options_.own_variables;
    const int chosen = ((number % count) + count) % count;
    return chosen < options_.shared_variables
               ? chosen
               : chosen + static_cast<int>(thread_) * options_.own_variables;
  }

  // The variables that an access touches.
  std::vector<int> touched(const Target& target) {
    int variable = target.variable;
    if (target.pointer >= 0) variable = own_or_shared(value(target.pointer));
    if (target.walks) variable = own_or_shared(target.variable + frames_.back().round);
    if (!target.wide) return {variable};
    return {variable & ~1, variable | 1};
  }

  void execute(const Instruction& now) {
    const Statement& at = now.at;
    switch (now.op) {
      case Instruction::kBegin: {
        frames_.back().segment = now.segment;
        Event event;
        event.kind = EventKind::kSegment;
        event.thread = thread_;
        event.value = now.segment;
        run_.events.push_back(event);
        break;
      }
      case Instruction::kLoad:
        access(now, EventKind::kRead, at.from, true);
        set(at.target, memory_value(at.from), {last_node()});
        break;
      case Instruction::kStore: {
        const int sum = value(at.left) + value(at.right);
        FlowNode& node = access(now, EventKind::kWrite, at.to, true);
        node.data = list(both(at));
        write(at.to, sum);
        break;
      }
      case Instruction::kUpdate: {
        const int sum = value(at.left) + value(at.right);
        FlowNode& node = access(now, EventKind::kRmw, at.from, true);
        node.data = list(both(at));
        const int old = memory_value(at.from);
        write(at.from, old + sum);
        set(at.target, old, {last_node()});
        break;
      }
      case Instruction::kAdd: {
        const Nodes sources = both(at);
        set(at.target, value(at.left) + value(at.right), sources);
        break;
      }
      case Instruction::kIf:
      case Instruction::kLoop:
        branch(now);
        break;
      case Instruction::kEndIf:
        controls_.pop_back();
        break;
      case Instruction::kGoto:
        frames_.back().at = now.go_to;
        break;
      case Instruction::kPhi:
        if (control() != kNoNode) {
          for (const int reg : now.merged) from(reg).insert(control());
        }
        break;
      case Instruction::kCall: {
        frames_.back().returns_to = at.target;
        const int left = value(at.left);
        const int right = value(at.right);
        const Nodes left_from = from(at.left);
        const Nodes right_from = from(at.right);
        push(now.callee);
        mark(EventKind::kEnter, codes_[now.callee].front().segment);
        set(0, left, left_from);
        set(1, right, right_from);
        break;
      }
      case Instruction::kLibraryRead:
        access(now, EventKind::kRead, at.from, false);
        frames_.back().library = both(at);
        frames_.back().library.insert(last_node());
        break;
      case Instruction::kLibraryWrite: {
        const int copied = memory_value(at.from);
        FlowNode& node = access(now, EventKind::kWrite, at.to, false);
        node.data = list(frames_.back().library);
        write(at.to, copied);
        set(at.target, copied, frames_.back().library);
        break;
      }
      case Instruction::kReturn: {
        const int result = value(0);
        const Nodes sources = from(0);
        const SegmentId segment = frames_.back().segment;
        frames_.pop_back();
        if (done()) break;
        mark(EventKind::kLeave, segment);
        set(frames_.back().returns_to, result, sources);
        break;
      }
    }
  }

  // The function of the segment is entered or left.
  void mark(EventKind kind, SegmentId segment) {
    if (!options_.marks) return;
    Event event;
    event.kind = kind;
    event.thread = thread_;
    event.value = run_.catalog.segments[segment].function;
    run_.events.push_back(event);
  }

  void branch(const Instruction& now) {
    const int reg = now.at.target;
    int& iterations = frames_.back().iterations[frames_.back().segment];
    FlowNode& node = run_.truth.emplace_back();
    node.kind = EventKind::kBranch;
    node.thread = thread_;
    node.segment = frames_.back().segment;
    node.data = list(from(reg));
    node.control = control();
    const bool again = now.op == Instruction::kLoop && iterations > 0;
    if (again) controls_.pop_back();  // the branch that let this iteration happen
    const bool taken =
        value(reg) % 2 != 0 && (now.op == Instruction::kIf || iterations < options_.iterations);
    if (taken) {
      controls_.push_back(last_node());
      if (now.op == Instruction::kLoop) frames_.back().round = ++iterations;
    } else {
      iterations = 0;
      frames_.back().at = now.go_to;
    }
  }

  void set(int reg, int new_value, Nodes sources) {
    value(reg) = new_value & kMask;
    from(reg) = std::move(sources);
  }
  int memory_value(const Target& target) {
    int sum = 0;
    for (const int variable : touched(target)) sum += memory_[static_cast<std::size_t>(variable)];
    return sum;
  }
  void write(const Target& target, int new_value) {
    for (const int variable : touched(target)) {
      memory_[static_cast<std::size_t>(variable)] = new_value & kMask;
      last_writer_[variable] = last_node();
    }
  }

  FlowNode& access(const Instruction& now, EventKind kind, const Target& target,
                   bool depends_on_pointer) {
    const std::vector<int> variables = touched(target);
    Event event;
    event.kind = kind;
    event.thread = thread_;
    event.site = now.site;
    event.address = kBase + static_cast<Address>(variables.front()) * kSize;
    event.size = variables.size() == 2 ? 2 * kSize : kSize;
    run_.events.push_back(event);
    FlowNode& node = run_.truth.emplace_back();
    node.kind = kind;
    node.thread = thread_;
    node.site = now.site;
    node.address = event.address;
    node.size = event.size;
    node.ordinal = run_.events.size() - 1;
    node.control = control();
    if (depends_on_pointer && target.pointer >= 0) node.address_of = list(from(target.pointer));
    if (is_read(kind)) {
      Nodes writers;
      for (const int variable : variables) {
        if (last_writer_.contains(variable)) writers.insert(last_writer_[variable]);
      }
      node.memory = list(writers);
    }
    return node;
  }

  static std::vector<NodeId> list(const Nodes& nodes) { return {nodes.begin(), nodes.end()}; }
  NodeId control() const { return controls_.empty() ? kNoNode : controls_.back(); }
  NodeId last_node() const { return static_cast<NodeId>(run_.truth.size() - 1); }

  RandomRun& run_;
  std::vector<int>& memory_;
  const std::vector<Code>& codes_;
  const RandomProgramOptions& options_;
  ThreadId thread_;
  bool started_ = false;
  std::vector<Frame> frames_;
  std::map<int, NodeId> last_writer_;
  std::vector<NodeId> controls_;
};

}  // namespace

RandomRun run_random_program(std::uint64_t seed, const RandomProgramOptions& options) {
  std::mt19937_64 random(seed);
  RandomRun run;
  std::vector<int> memory(
      static_cast<std::size_t>(options.shared_variables + options.threads * options.own_variables) +
          1,
      1);
  std::vector<Code> codes;
  std::vector<std::size_t> mains;
  for (int thread = 0; thread < options.threads; ++thread) {
    const std::vector<Statement> program =
        Generator(random, options, thread).statements(options.statements, 2);
    mains.push_back(Compiler(run.catalog, codes, options.registers, 0).compile(program));
  }
  std::vector<Interpreter> threads;
  threads.reserve(mains.size());
  for (int thread = 0; thread < options.threads; ++thread) {
    threads.emplace_back(run, memory, codes, options, static_cast<ThreadId>(thread),
                         mains[static_cast<std::size_t>(thread)]);
  }
  std::vector<std::size_t> ready(threads.size());
  for (std::size_t i = 0; i < ready.size(); ++i) ready[i] = i;
  while (!ready.empty()) {
    const std::size_t chosen = random() % ready.size();
    Interpreter& thread = threads[ready[chosen]];
    const int steps = options.turn == 1 ? 1 : 1 + static_cast<int>(random() % options.turn);
    for (int i = 0; i < steps && !thread.done(); ++i) thread.step();
    if (thread.done()) ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return run;
}

}  // namespace heddle::svd
