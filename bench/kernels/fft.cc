// Stands for: spectral methods. Strided floating-point access over a shared array whose sharing
// pattern changes from stage to stage: what one thread wrote, all read after the next barrier.
//
// Stockham's radix-2 FFT: log2(n) stages, each reads one array and writes the other in sorted
// order, so no bit reversal is needed. The kernel transforms forth and back and must find its input
// again.
#include "kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

namespace {

using Complex = std::complex<double>;

// (a + bi)(c + di), without the care for infinities that std::complex must take.
Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

struct Transform {
  Transform(unsigned thread_count, std::size_t size)
      : threads(thread_count), data(size), scratch(size), roots(size / 2), barrier(thread_count) {
    for (std::size_t k = 0; k < roots.size(); ++k) {
      roots[k] = std::polar(
          1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size));
    }
  }

  // One thread's part of a transform of `data` in place; all threads call it together.
  void work(unsigned id, bool inverse) {
    const std::size_t half = data.size() / 2;
    const kernel::Share share(half, threads, id);
    Complex* from = data.data();
    Complex* to = scratch.data();
    for (std::size_t stride = 1; stride <= half; stride *= 2) {
      for (std::size_t i = share.begin; i < share.end; ++i) {
        const std::size_t low = i & (stride - 1);
        const std::size_t high = i - low;
        const Complex root = inverse ? std::conj(roots[high]) : roots[high];
        const Complex a = from[i];
        const Complex b = from[i + half];
        to[2 * high + low] = a + b;
        to[2 * high + low + stride] = product(a - b, root);
      }
      barrier.wait();
      std::swap(from, to);
    }
    if (from != data.data()) {
      const kernel::Share all(data.size(), threads, id);
      std::copy(from + all.begin, from + all.end, to + all.begin);
      barrier.wait();
    }
  }

  unsigned threads;
  std::vector<Complex> data;
  std::vector<Complex> scratch;
  std::vector<Complex> roots;
  kernel::Barrier barrier;
};

double energy(const std::vector<Complex>& values) {
  double sum = 0;
  for (const Complex& value : values) sum += std::norm(value);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  kernel::Options options = kernel::parse(argc, argv, {.full = 1u << 21, .quick = 1u << 10});
  options.size = std::bit_ceil(std::max<std::size_t>(options.size, 2));

  Transform transform(options.threads, options.size);
  kernel::Random random(3);
  for (Complex& value : transform.data) value = {random.unit() - 0.5, random.unit() - 0.5};
  const std::vector<Complex> input = transform.data;

  kernel::run(options.threads, [&](unsigned id) { transform.work(id, false); });
  const double scale = static_cast<double>(options.size);
  const bool parseval =
      std::abs(energy(transform.data) / scale - energy(input)) < 1e-9 * energy(input);

  kernel::run(options.threads, [&](unsigned id) { transform.work(id, true); });
  double worst = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    worst = std::max(worst, std::abs(transform.data[i] / scale - input[i]));
  }
  return kernel::verdict("fft", options, parseval && worst < 1e-9);
}
