// Stands for: structured-grid solvers. Nearest-neighbour access, each thread owns a band of rows
// and reads one row of each neighbour; a barrier ends every sweep.
//
// Jacobi relaxation on a square with cold edges. The start is the lowest sine mode, which a sweep
// multiplies by cos(pi / (n + 1)) and leaves otherwise alone: the exact answer is known.
#include "kernel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace {

constexpr unsigned kSweeps = 160;

using Grid = std::vector<double>;

void relax(const Grid& from, Grid& to, std::size_t width, kernel::Share rows) {
  for (std::size_t i = rows.begin + 1; i <= rows.end; ++i) {
    const double* above = &from[(i - 1) * width];
    const double* here = &from[i * width];
    const double* below = &from[(i + 1) * width];
    double* out = &to[i * width];
    for (std::size_t j = 1; j + 1 < width; ++j) {
      out[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1]);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 1400, .quick = 40});
  const std::size_t width = options.size + 2;
  const double step = std::numbers::pi / static_cast<double>(options.size + 1);
  const auto mode = [&](std::size_t i, std::size_t j) {
    return std::sin(step * static_cast<double>(i)) * std::sin(step * static_cast<double>(j));
  };

  Grid grids[2] = {Grid(width * width), Grid(width * width)};
  for (std::size_t i = 1; i + 1 < width; ++i) {
    for (std::size_t j = 1; j + 1 < width; ++j) grids[0][i * width + j] = mode(i, j);
  }

  kernel::Barrier barrier(options.threads);
  kernel::run(options.threads, [&](unsigned id) {
    const kernel::Share rows(options.size, options.threads, id);
    for (unsigned sweep = 0; sweep < kSweeps; ++sweep) {
      relax(grids[sweep % 2], grids[(sweep + 1) % 2], width, rows);
      barrier.wait();
    }
  });

  const Grid& result = grids[kSweeps % 2];
  const double amplitude = std::pow(std::cos(step), kSweeps);
  double worst = 0;
  for (std::size_t i = 1; i + 1 < width; ++i) {
    for (std::size_t j = 1; j + 1 < width; ++j) {
      worst = std::max(worst, std::abs(result[i * width + j] - amplitude * mode(i, j)));
    }
  }
  return kernel::verdict("stencil", options, worst < 1e-9);
}
