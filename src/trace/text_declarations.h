// One line of the text notation being read: the tokens that events and declarations share, and the
// declarations themselves, which spell out the entries of a catalog.
#pragma once

#include "trace/catalog.h"
#include "trace/text_cursor.h"
#include "trace/text_names.h"

#include <string>
#include <string_view>

namespace heddle::text {

class LineReader {
 public:
  explicit LineReader(Catalog& catalog) : names_(catalog) {}

  void start(std::string_view line) { cursor_ = Cursor(line); }
  Cursor& cursor() { return cursor_; }
  Names& names() { return names_; }
  const std::string& error() const { return error_; }

  // Whether an event stands here (`t7:` …), or else a declaration.
  bool at_event() const { return starts_event(cursor_.rest()); }
  bool declaration();
  static bool starts_line(std::string_view line);

 protected:
  // All return false when something else was found, and then error() says so.
  bool fail(std::string_view expected);
  bool fail_found(std::string_view found, std::string_view expected);
  bool end_of_line();
  void rewind(std::string_view rest) { cursor_ = Cursor(rest); }

  bool thread(ThreadId& id);
  bool name(std::string_view& text) { return cursor_.name(text, buffer_); }
  bool string(StringId& id, std::string_view expected);
  bool function(FunctionId& id);
  // @file:line:column#id in function; `id` stays kNone when it is not given.
  bool site_place(Names::SiteKey& key, SiteId& id);
  Site automatic_site(const Names::SiteKey& key, const Event& event) const;
  static bool unknown_kind(std::string_view verb, std::uint32_t& number);

 private:
  static bool starts_event(std::string_view line);

  bool number32(std::uint32_t& value, std::string_view expected);
  bool next_id(std::string_view table, std::size_t expected);
  // key=value pairs up to the end of the line or something else.
  bool attribute(std::string_view& key);
  bool flags(std::uint16_t& value, const EnumWord* words, std::size_t count);
  template <typename Table>
  bool enumerator(const Table& table, std::uint32_t& value, std::string_view expected);

  bool declare_variable();
  bool declare_thread();
  bool declare_module();
  bool declare_function();
  bool declare_site();
  bool declare_segment();
  bool declare_phi();
  bool declare_access();
  bool declare_end();
  bool reg(Register& value);
  bool sources(Sources& list);
  bool need_segment();

  Names names_;
  Cursor cursor_{{}};
  std::string buffer_;
  std::string error_;
};

}  // namespace heddle::text
