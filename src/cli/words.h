// Words for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::cli {

// `text` in lines of at most `width`, each behind `indent` blanks, paragraphs kept.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 80);

// The word of `known` that somebody who wrote `word` may have meant; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace heddle::cli
