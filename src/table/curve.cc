#include "table/curve.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace heddle::table {
namespace {

constexpr int kWidth = 640, kHeight = 360, kLeft = 56, kRight = 170, kTop = 24, kBottom = 48;
constexpr const char* kColours[] = {"#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
                                    "#d68910", "#16a085", "#7f8c8d", "#2c3e50"};

unsigned highest(const std::vector<Curve>& curves) {
  unsigned out = 1;
  for (const Curve& curve : curves) {
    for (const unsigned value : curve.alarms) out = std::max(out, value);
  }
  return out;
}

// Training is drawn on a logarithmic axis: most happens in the first few runs.
double x_of(unsigned runs, unsigned most) {
  const double part = most <= 1 ? 0 : std::log(runs) / std::log(most);
  return kLeft + part * (kWidth - kLeft - kRight);
}

double y_of(unsigned value, unsigned most) {
  return kHeight - kBottom - static_cast<double>(value) / most * (kHeight - kTop - kBottom);
}

}  // namespace

std::string curve_as_text(const std::vector<unsigned>& runs, const std::vector<unsigned>& total) {
  constexpr unsigned kColumns = 50;
  unsigned most = 1;
  for (const unsigned value : total) most = std::max(most, value);
  std::string out = "training runs   static false alarms of avio\n";
  for (std::size_t i = 0; i < total.size() && i < runs.size(); ++i) {
    const unsigned length = (total[i] * kColumns + most - 1) / most;
    std::string bar;
    for (unsigned n = 0; n < length; ++n) bar += "█";
    out += fmt::format("{:>13}   {} {}\n", runs[i], bar, total[i]);
  }
  return out;
}

std::string curve_as_svg(const std::vector<unsigned>& runs, const std::vector<Curve>& curves) {
  const unsigned most_runs = runs.empty() ? 1 : runs.back();
  const unsigned most = highest(curves);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  const unsigned step = std::max(1u, (most + 4) / 5);
  for (unsigned value = 0; value <= most; value += step) {
    const double y = y_of(value, most);
    out += fmt::format(
        "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, y, kWidth - kRight, y, kLeft - 6, y + 4, value);
  }
  for (const unsigned at : runs) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       x_of(at, most_runs), kHeight - kBottom + 16, at);
  }
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">training runs</text>\n"
      "<text x=\"14\" y=\"{}\" transform=\"rotate(-90 14 {})\" text-anchor=\"middle\">static "
      "false alarms</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 10, kHeight / 2, kHeight / 2);
  for (std::size_t n = 0; n < curves.size(); ++n) {
    const char* const colour = kColours[n % std::size(kColours)];
    std::string points;
    for (std::size_t i = 0; i < curves[n].alarms.size() && i < runs.size(); ++i) {
      points +=
          fmt::format("{:.1f},{:.1f} ", x_of(runs[i], most_runs), y_of(curves[n].alarms[i], most));
    }
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n"
        "<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n",
        points, colour, kWidth - kRight + 12, kTop + 12 + 16 * n, colour, curves[n].name);
  }
  return out + "</svg>\n";
}

}  // namespace heddle::table
