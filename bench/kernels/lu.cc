// Stands for: dense linear algebra. Regular loops over doubles that a compiler vectorises, a small
// working set per block, and very little synchronisation for very many accesses.
//
// Blocked LU factorisation in place, without pivoting (the matrix is diagonally dominant). In step
// k the owner of the diagonal block factors it; then row k and column k of blocks are solved; then
// the blocks to the right and below are updated. Blocks are dealt to threads like cards.
#include "kernel.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr std::size_t kBlock = 16;

class Matrix {
 public:
  explicit Matrix(std::size_t order) : order_(order), cells_(order * order) {}
  double* row(std::size_t i) { return &cells_[i * order_]; }
  const double* row(std::size_t i) const { return &cells_[i * order_]; }
  std::size_t order() const { return order_; }

 private:
  std::size_t order_;
  std::vector<double> cells_;
};

// The square of a matrix that starts at row `i`, column `j`.
struct Corner {
  std::size_t i;
  std::size_t j;
};

void factor_diagonal(Matrix& a, std::size_t at) {
  for (std::size_t k = at; k < at + kBlock; ++k) {
    for (std::size_t i = k + 1; i < at + kBlock; ++i) {
      const double factor = a.row(i)[k] /= a.row(k)[k];
      for (std::size_t j = k + 1; j < at + kBlock; ++j) a.row(i)[j] -= factor * a.row(k)[j];
    }
  }
}

// Row of blocks: U = L^-1 A, with the unit lower triangle of the diagonal block.
void solve_row_block(Matrix& a, std::size_t diagonal, std::size_t column) {
  for (std::size_t k = diagonal; k < diagonal + kBlock; ++k) {
    for (std::size_t i = k + 1; i < diagonal + kBlock; ++i) {
      const double factor = a.row(i)[k];
      for (std::size_t j = column; j < column + kBlock; ++j) a.row(i)[j] -= factor * a.row(k)[j];
    }
  }
}

// Column of blocks: L = A U^-1, with the upper triangle of the diagonal block.
void solve_column_block(Matrix& a, std::size_t diagonal, std::size_t row) {
  for (std::size_t i = row; i < row + kBlock; ++i) {
    for (std::size_t k = diagonal; k < diagonal + kBlock; ++k) {
      const double factor = a.row(i)[k] /= a.row(k)[k];
      for (std::size_t j = k + 1; j < diagonal + kBlock; ++j) a.row(i)[j] -= factor * a.row(k)[j];
    }
  }
}

void update_block(Matrix& a, std::size_t diagonal, Corner corner) {
  for (std::size_t i = corner.i; i < corner.i + kBlock; ++i) {
    double* target = a.row(i) + corner.j;
    for (std::size_t k = diagonal; k < diagonal + kBlock; ++k) {
      const double factor = a.row(i)[k];
      const double* source = a.row(k) + corner.j;
      for (std::size_t j = 0; j < kBlock; ++j) target[j] -= factor * source[j];
    }
  }
}

void factor(Matrix& a, kernel::Barrier& barrier, unsigned threads, unsigned id) {
  const std::size_t n = a.order();
  const auto mine = [&](Corner c) { return (c.i / kBlock + c.j / kBlock) % threads == id; };
  for (std::size_t d = 0; d < n; d += kBlock) {
    if (mine({d, d})) factor_diagonal(a, d);
    barrier.wait();
    for (std::size_t b = d + kBlock; b < n; b += kBlock) {
      if (mine({d, b})) solve_row_block(a, d, b);
      if (mine({b, d})) solve_column_block(a, d, b);
    }
    barrier.wait();
    for (std::size_t i = d + kBlock; i < n; i += kBlock) {
      for (std::size_t j = d + kBlock; j < n; j += kBlock) {
        if (mine({i, j})) update_block(a, d, {i, j});
      }
    }
    barrier.wait();
  }
}

using Vector = std::vector<double>;

Vector times(const Matrix& a, const Vector& x) {
  Vector result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) result[i] += a.row(i)[j] * x[j];
  }
  return result;
}

// L (U x), both factors taken out of the one array.
Vector times_factors(const Matrix& lu, const Vector& x) {
  const std::size_t n = x.size();
  Vector upper(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) upper[i] += lu.row(i)[j] * x[j];
  }
  Vector result = upper;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) result[i] += lu.row(i)[j] * upper[j];
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  kernel::Options options = kernel::parse(argc, argv, {.full = 1024, .quick = 64});
  options.size = std::max<std::size_t>(options.size / kBlock, 1) * kBlock;

  Matrix a(options.size);
  kernel::Random random(2);
  for (std::size_t i = 0; i < options.size; ++i) {
    for (std::size_t j = 0; j < options.size; ++j) a.row(i)[j] = random.unit();
    a.row(i)[i] += static_cast<double>(options.size);
  }
  Vector x(options.size);
  for (double& value : x) value = random.unit();
  const Vector expected = times(a, x);

  kernel::Barrier barrier(options.threads);
  kernel::run(options.threads, [&](unsigned id) { factor(a, barrier, options.threads, id); });

  const Vector actual = times_factors(a, x);
  double worst = 0;
  for (std::size_t i = 0; i < options.size; ++i) {
    worst = std::max(worst, std::abs(actual[i] - expected[i]) / std::abs(expected[i]));
  }
  return kernel::verdict("lu", options, worst < 1e-9);
}
