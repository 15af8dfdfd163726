// heddle man: the manual pages, made from the same table as the help. The build runs it.
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/trace_verbs.h"

#include <memory>
#include <string>

#include <fmt/format.h>

namespace heddle::cli {
namespace {

constexpr std::string_view kExitStatus =
    "0 nothing new, 1 findings, 2 wrong use or an error, 3 a replay diverged.";

// What a page says; the two writers below only differ in markup.
class Page {
 public:
  virtual ~Page() = default;
  virtual void title(std::string_view name, std::string_view summary) = 0;
  virtual void section(std::string_view heading) = 0;
  virtual void paragraph(std::string_view text) = 0;
  virtual void code(std::string_view text) = 0;
  virtual void item(std::string_view term, std::string_view text) = 0;

  std::string take() { return std::move(out_); }

 protected:
  std::string out_;
};

class MarkdownPage : public Page {
 public:
  void title(std::string_view name, std::string_view summary) override {
    out_ += fmt::format("# {}\n\n{}.\n", name, summary);
  }
  void section(std::string_view heading) override { out_ += fmt::format("\n## {}\n\n", heading); }
  void paragraph(std::string_view text) override { out_ += wrapped(text, 0, 100); }
  void code(std::string_view text) override {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out_ += fmt::format("    {}\n", text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  void item(std::string_view term, std::string_view text) override {
    out_ += fmt::format("- `{}`: {}\n", term, text);
  }
};

class GroffPage : public Page {
 public:
  void title(std::string_view name, std::string_view summary) override {
    std::string upper(name);
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    out_ += fmt::format(".TH {} 1 \"\" \"heddle {}\" \"Heddle\"\n.SH NAME\n{} \\- {}\n", upper,
                        HEDDLE_VERSION, escaped(name), escaped(summary));
  }
  void section(std::string_view heading) override {
    std::string upper(heading);
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    out_ += fmt::format(".SH {}\n", escaped(upper));
  }
  void paragraph(std::string_view text) override { out_ += escaped(text) + "\n"; }
  void code(std::string_view text) override { out_ += ".nf\n" + escaped(text) + "\n.fi\n"; }
  void item(std::string_view term, std::string_view text) override {
    out_ += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(term), escaped(text));
  }

 private:
  static std::string escaped(std::string_view text) {
    std::string out;
    bool at_start = true;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (at_start && (c == '.' || c == '\'')) out += "\\&";
      at_start = c == '\n';
      if (c == '\\') {
        out += "\\e";
      } else if (c == '-') {
        out += "\\-";
      } else if (static_cast<unsigned char>(c) < 0x80) {
        out += c;
      } else {
        out += character(text, i);
      }
    }
    return out;
  }

  // The UTF-8 sequence at `i`, which is left at its last byte, in groff's own words.
  static std::string character(std::string_view text, std::size_t& i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    std::uint32_t code = lead & (0x3fu >> more);
    for (int k = 0; k < more && i + 1 < text.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fu);
    }
    return fmt::format("\\[u{:04X}]", code);
  }
};

std::string term_of(const OptionFacts& o) {
  std::string term;
  for (const std::string& name : o.names) term += (term.empty() ? "" : ", ") + name;
  if (!o.positional && !o.value.empty()) term += " " + o.value;
  return term;
}

void write_options(const CLI::App& app, Page& page) {
  for (const OptionFacts& o : options_of(app)) {
    std::string text = o.description;
    if (!o.default_value.empty()) text += fmt::format(" (default: {})", o.default_value);
    page.item(term_of(o), text);
  }
}

void write_verb(const CLI::App& app, const Verb& verb, Page& page) {
  page.title(fmt::format("heddle-{}", verb.name), verb.summary);
  page.section("Synopsis");
  page.code(fmt::format("heddle {} {}", verb.name, usage_of(app)));
  page.section("Description");
  page.paragraph(verb.description);
  page.section("Options");
  write_options(app, page);
  for (const CLI::App* action : actions_of(app)) {
    page.section(fmt::format("heddle {} {}", verb.name, action->get_name()));
    page.paragraph(action->get_description());
    page.code(fmt::format("heddle {} {} {}", verb.name, action->get_name(), usage_of(*action)));
    write_options(*action, page);
  }
  page.section("Examples");
  page.code(verb.example);
  page.section("Exit status");
  page.paragraph(kExitStatus);
}

void write_command(const CLI::App& app, Page& page) {
  page.title("heddle", "Finds, explains and reproduces atomicity violations in C and C++ programs");
  page.section("Synopsis");
  page.code("heddle VERB [OPTIONS] ...");
  page.section("Verbs");
  for (const Verb& verb : verbs()) {
    if (!verb.hidden)
      page.item(verb.name, fmt::format("{}. See heddle-{}(1).", verb.summary, verb.name));
  }
  page.section("Options");
  write_options(app, page);
  page.section("Exit status");
  page.paragraph(kExitStatus);
}

struct Options {
  std::string verb;
  std::string format = "markdown";
  std::string all;
};

std::unique_ptr<Page> new_page(const std::string& format) {
  if (format == "groff") return std::make_unique<GroffPage>();
  return std::make_unique<MarkdownPage>();
}

Status write_file(const std::string& path, const std::string& text) {
  Result<Output> out = Output::create(path);
  if (!out.ok()) return out.error();
  out->write(text);
  return out->finish();
}

// Every page in both formats, and the completion's verbs cannot be forgotten: this is what the
// build installs.
Status write_all(const CLI::App& command, const std::string& folder) {
  for (const auto& [format, ending] :
       {std::pair<std::string, std::string>{"markdown", ".md"}, {"groff", ".1"}}) {
    std::unique_ptr<Page> page = new_page(format);
    write_command(command, *page);
    if (Status s = write_file(fmt::format("{}/heddle{}", folder, ending), page->take()); !s.ok())
      return s;
    for (const Verb& verb : verbs()) {
      if (verb.hidden) continue;
      page = new_page(format);
      write_verb(*command.get_subcommand(std::string(verb.name)), verb, *page);
      const std::string path = fmt::format("{}/heddle-{}{}", folder, verb.name, ending);
      if (Status s = write_file(path, page->take()); !s.ok()) return s;
    }
  }
  return Done{};
}

int run(const CLI::App& command, const Options& options) {
  if (!options.all.empty()) {
    const Status done = write_all(command, options.all);
    return done.ok() ? static_cast<int>(kNothingNew) : fail(done.error());
  }
  std::unique_ptr<Page> page = new_page(options.format);
  if (options.verb.empty()) {
    write_command(command, *page);
  } else {
    const Verb* verb = find_verb(options.verb);
    if (verb == nullptr)
      return fail(Error{fmt::format("man: there is no verb `{}`", options.verb)});
    write_verb(*command.get_subcommand(options.verb), *verb, *page);
  }
  Output out;
  out.write(page->take());
  const Status written = out.finish();
  return written.ok() ? static_cast<int>(kNothingNew) : fail(written.error());
}

std::function<int()> declare(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("VERB", options->verb, "the verb; without one, the page of heddle itself");
  app.add_option("-f,--format", options->format, "the markup")
      ->check(CLI::IsMember({"markdown", "groff"}))
      ->capture_default_str();
  app.add_option("--all", options->all, "write every page in both formats to this folder")
      ->type_name("FOLDER");
  return [options, &app] { return run(*app.get_parent(), *options); };
}

}  // namespace

const Verb kManVerb = {
    .name = "man",
    .summary = "Prints a manual page",
    .description = "Prints the manual page of a verb, made from its options and its help.",
    .example = "heddle man show --format groff | man -l -",
    .declare = declare,
    .hidden = true,
};

}  // namespace heddle::cli
