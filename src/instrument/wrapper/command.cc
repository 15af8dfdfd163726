#include "instrument/wrapper/command.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace heddle::wrapper {
namespace {

using std::string_view;

constexpr unsigned kResponseDepth = 8;  // response files may name response files

// Options whose value is the next argument.
constexpr auto kTakesValue = std::to_array<string_view>({
    "-o",
    "-I",
    "-L",
    "-D",
    "-U",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-isysroot",
    "-iprefix",
    "-iwithprefix",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-x",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-target",
    "-T",
    "-u",
    "-z",
    "-e",
    "-l",
    "-B",
    "-F",
    "-mllvm",
    "--param",
    "-dumpdir",
    "-dumpbase",
    "-A",
    "-G",
    "-arch",
    "--target",
    "--sysroot",
    "-ivfsoverlay",
    "-include-pch",
    "-install_name",
    "-rpath",
    "-serialize-diagnostics",
});

// No code is made, or nothing at all.
constexpr auto kNoCode = std::to_array<string_view>({
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--version",
    "-dumpversion",
    "-dumpmachine",
    "--help",
    "-###",
    "--help-hidden",
    "-print-search-dirs",
    "--precompile",
    "--analyze",
});

constexpr auto kNoLink =
    std::to_array<string_view>({"-c", "-S", "-r", "--relocatable", "-emit-llvm"});

constexpr auto kHeaderSuffixes =
    std::to_array<string_view>({".h", ".hh", ".hp", ".hpp", ".hxx", ".h++", ".H"});
constexpr auto kCSuffixes = std::to_array<string_view>({".c", ".i"});
constexpr auto kCppSuffixes = std::to_array<string_view>(
    {".cc", ".cpp", ".cxx", ".c++", ".C", ".CC", ".CPP", ".cp", ".ii", ".cppm", ".ixx", ".tcc"});

template <std::size_t N>
bool is_one_of(string_view text, const std::array<string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

template <std::size_t N>
bool ends_with_one_of(string_view text, const std::array<string_view, N>& list) {
  return std::any_of(list.begin(), list.end(),
                     [text](string_view suffix) { return text.ends_with(suffix); });
}

// GNU rules: white space separates, quotes group, a backslash takes the next character as it is.
std::vector<std::string> split_response(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      word.push_back(text[++i]);
      inside = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (inside) out.push_back(word);
      word.clear();
      inside = false;
    } else {
      word.push_back(c);
      inside = true;
    }
  }
  if (inside) out.push_back(word);
  return out;
}

std::vector<std::string> expand(const std::vector<std::string>& arguments,
                                const ReadFile& read_file, unsigned depth) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments) {
    if (argument.size() > 1 && argument[0] == '@' && depth < kResponseDepth) {
      if (const std::optional<std::string> text = read_file(argument.substr(1))) {
        const std::vector<std::string> inner = expand(split_response(*text), read_file, depth + 1);
        out.insert(out.end(), inner.begin(), inner.end());
        continue;
      }
    }
    out.push_back(argument);
  }
  return out;
}

bool prints_something(string_view argument) {
  return argument.starts_with("-print-") || argument.starts_with("--print-");
}

}  // namespace

Intent intent_of(const std::vector<std::string>& arguments, bool cpp, const ReadFile& read_file) {
  Intent intent;
  bool makes_code = true;
  bool may_link = true;
  bool has_input = false;
  bool has_source = false;
  std::string language;  // of -x
  const std::vector<std::string> all = expand(arguments, read_file, 0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& argument = all[i];
    if (argument.size() > 1 && argument[0] == '-') {
      if (is_one_of(argument, kNoCode) || prints_something(argument)) makes_code = false;
      if (is_one_of(argument, kNoLink)) may_link = false;
      if (argument == "-static" || argument == "-static-pie") intent.wants_static = true;
      if (argument == "-m32" || argument == "-mx32" || argument == "-m16" ||
          (argument.starts_with("--target=") && !argument.starts_with("--target=x86_64"))) {
        intent.other_target = true;
      }
      if (argument == "-x" && i + 1 < all.size()) language = all[i + 1];
      if (argument.starts_with("-x") && argument.size() > 2) language = argument.substr(2);
      if (argument == "-target" && i + 1 < all.size() && !all[i + 1].starts_with("x86_64")) {
        intent.other_target = true;
      }
      if (argument == "-l" || argument.starts_with("-l")) has_input = true;
      if (is_one_of(argument, kTakesValue)) ++i;
      continue;
    }
    // A header is compiled for later, by itself: nothing of it is linked.
    const bool by_suffix = language.empty() || language == "none";
    if (by_suffix ? ends_with_one_of(argument, kHeaderSuffixes) : language.ends_with("-header")) {
      continue;
    }
    has_input = true;
    if (by_suffix) {
      const bool is_cpp = ends_with_one_of(argument, kCppSuffixes);
      const bool is_c = ends_with_one_of(argument, kCSuffixes);
      has_source |= is_cpp || is_c || argument == "-";
      intent.cpp |= is_cpp || (is_c && cpp);
    } else {
      // Assembly has no accesses we could know.
      has_source |= language == "c" || language == "c++" || language == "cpp-output" ||
                    language == "c++-cpp-output" || language == "c++-module" || language == "ir";
      intent.cpp |= language.starts_with("c++");
    }
  }
  intent.compiles = makes_code && has_source && !intent.other_target;
  intent.links = makes_code && may_link && has_input;
  return intent;
}

std::vector<std::string> command_for(const std::vector<std::string>& arguments,
                                     const Intent& intent, const Installation& installation) {
  std::vector<std::string> out{installation.compiler};
  const bool links = intent.links && !intent.other_target;
  if (intent.compiles || links) {
    // Not every one of these is used in every call; that is not worth a warning.
    out.emplace_back("--start-no-unused-arguments");
    if (intent.compiles) {
      // First, so that a -g of the user's own has the last word.
      out.emplace_back("-g");
      // Elsewhere-defined classes are named in full, too: their members are what is reported.
      if (intent.cpp) out.emplace_back("-fstandalone-debug");
      out.push_back("-fpass-plugin=" + installation.plugin);
    }
    if (links) {
      out.push_back("-Wl,--push-state,--no-as-needed," + installation.runtime + ",--pop-state");
      out.push_back("-Wl,-rpath," + installation.runtime_folder);
    }
    out.emplace_back("--end-no-unused-arguments");
  }
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

}  // namespace heddle::wrapper
