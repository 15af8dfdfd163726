// The text of source lines, where the files can be found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace heddle::report {

class SourceText {
 public:
  // `roots`: folders to look in when a path of the trace does not exist here; the path's leading
  // folders are dropped one by one until a file is found.
  explicit SourceText(std::vector<std::string> roots = {}) : roots_(std::move(roots)) {}

  // Without surrounding blanks; empty when the file or the line is not there.
  const std::string& line(const std::string& file, std::uint32_t number);

 private:
  const std::vector<std::string>& lines(const std::string& file);
  std::string find(const std::string& file) const;

  std::vector<std::string> roots_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace heddle::report
