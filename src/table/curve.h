// The learning curve (AVIO's figure 10): false alarms over training runs, as text and as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::table {

struct Curve {
  std::string name;
  std::vector<unsigned> alarms;  // per amount of training
};

std::string curve_as_text(const std::vector<unsigned>& runs, const std::vector<unsigned>& total);

std::string curve_as_svg(const std::vector<unsigned>& runs, const std::vector<Curve>& curves);

}  // namespace heddle::table
