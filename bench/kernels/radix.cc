// Stands for: integer sorting and other scatter-heavy integer code. Threads share two big arrays
// and write to addresses that depend on the data; barriers separate the phases and no lock is
// taken.
//
// Least-significant-digit radix sort, eight bits a pass. Every thread counts the digits of its
// share of the keys; the counts, summed digit by digit and thread by thread, tell each thread where
// in the other array its keys of each digit go, so the scatter needs no synchronisation.
#include "kernel.h"

namespace {

constexpr unsigned kBits = 8;
constexpr unsigned kDigits = 1u << kBits;
constexpr unsigned kPasses = 32 / kBits;

struct Sorter {
  Sorter(unsigned thread_count, std::size_t size)
      : threads(thread_count),
        from(size),
        to(size),
        counts(thread_count * kDigits),
        barrier(thread_count) {}

  void work(unsigned id) {
    const kernel::Share share(from.size(), threads, id);
    for (unsigned pass = 0; pass < kPasses; ++pass) {
      const unsigned shift = pass * kBits;
      count(share, shift, id);
      barrier.wait();
      scatter(share, shift, id);
      barrier.wait();
      if (id == 0) from.swap(to);
      barrier.wait();
    }
  }

  void count(kernel::Share share, unsigned shift, unsigned id) {
    std::uint32_t* mine = &counts[id * kDigits];
    std::memset(mine, 0, kDigits * sizeof *mine);
    for (std::size_t i = share.begin; i < share.end; ++i) ++mine[from[i] >> shift & (kDigits - 1)];
  }

  void scatter(kernel::Share share, unsigned shift, unsigned id) {
    std::uint32_t next[kDigits];
    std::uint32_t sum = 0;
    for (unsigned digit = 0; digit < kDigits; ++digit) {
      for (unsigned thread = 0; thread < threads; ++thread) {
        if (thread == id) next[digit] = sum;
        sum += counts[thread * kDigits + digit];
      }
    }
    for (std::size_t i = share.begin; i < share.end; ++i) {
      const std::uint32_t key = from[i];
      to[next[key >> shift & (kDigits - 1)]++] = key;
    }
  }

  unsigned threads;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> to;
  std::vector<std::uint32_t> counts;
  kernel::Barrier barrier;
};

}  // namespace

int main(int argc, char** argv) {
  const kernel::Options options = kernel::parse(argc, argv, {.full = 20'000'000, .quick = 20'000});
  Sorter sorter(options.threads, options.size);
  kernel::Random random(1);
  std::uint64_t sum_before = 0;
  for (std::uint32_t& key : sorter.from) {
    key = static_cast<std::uint32_t>(random.next());
    sum_before += key;
  }

  kernel::run(options.threads, [&](unsigned id) { sorter.work(id); });

  std::uint64_t sum_after = 0;
  bool sorted = true;
  for (std::size_t i = 0; i < sorter.from.size(); ++i) {
    sum_after += sorter.from[i];
    if (i > 0 && sorter.from[i - 1] > sorter.from[i]) sorted = false;
  }
  return kernel::verdict("radix", options, sorted && sum_before == sum_after);
}
