// The text notation: traces that a person can write, and read.
//
//   # the lost update of AVIO, figure 1
//   t0: fork t1
//   t1: acq m @bank.c:10
//   t1: r balance = 100 @bank.c:11 in deposit
//   t1: rel m
//   t2: w balance = 50 @bank.c:21
//   t1: w balance = 110 @bank.c:12 in deposit
//
// One event per line, in the total order of the trace; docs/text-notation.md has the grammar. Three
// rules make short traces short. A variable is a name: the first mention gives it an address of its
// own. A site is a place in a source file: the first mention of `@file:line` by an event of some
// kind makes the site. A function is a name likewise. Whatever of a catalog cannot be said that way
// (the field that a site accesses, the descriptor of a segment) is said in declaration lines.
//
// Parser and printer share their tables (trace/text_grammar.h) and their idea of what a name means
// (trace/text_names.h). For every trace T, parse(print(T)) has the same events, and a catalog with
// the same entries under the same ids, except that the ids of strings follow their first mention.
#pragma once

#include "base/result.h"
#include "trace/catalog.h"
#include "trace/event.h"
#include "trace/file.h"
#include "trace/memory.h"
#include "trace/source.h"

#include <memory>
#include <string>
#include <string_view>

namespace heddle {

// `name` stands for the file in error messages.
Result<Trace> parse_text(std::string_view text, std::string_view name = "trace");

// For tests: a text that is wrong ends the program with the message.
Trace trace_from_text(std::string_view text);

std::string print_text(const Trace& trace);

// Reads a line at a time into a catalog that grows with it.
class TextParser {
 public:
  enum class Line { kEvent, kOther, kError };

  explicit TextParser(Catalog& catalog);
  ~TextParser();
  TextParser(const TextParser&) = delete;
  TextParser& operator=(const TextParser&) = delete;

  // `line` has no line feed. After kEvent, `event` is it; after kError, error() says what was found
  // and what was expected.
  Line parse(std::string_view line, Event& event);
  const std::string& error() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Prints events as they come. The catalog may grow between events, as an EventSource's does.
class TextPrinter {
 public:
  explicit TextPrinter(const Catalog& catalog);
  ~TextPrinter();
  TextPrinter(const TextPrinter&) = delete;
  TextPrinter& operator=(const TextPrinter&) = delete;

  // Appends the event's line, and before it the declarations it needs.
  void print(const Event& event, std::string& out);
  // Appends declarations of whatever no event referred to.
  void finish(std::string& out);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Reads a file of the notation, in memory bounded by its distinct names and declarations.
std::unique_ptr<EventSource> text_source(InputFile file, const OpenOptions& options = {});

// Whether a file that begins like this can be meant as the text notation: its first line that is
// not blank or a comment starts an event or a declaration.
bool looks_like_text(std::string_view head);

}  // namespace heddle
