// Double-checked initialisation, with the acquire and the release it needs. Correct under every
// schedule and on weak hardware: who sees the pointer sees what it points to.
#include "../example.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace {

struct Config {
  int port = 0;
  int workers = 0;
};

class LazyConfig {
 public:
  const Config& get() {
    Config* config = published_.load(std::memory_order_acquire);
    if (config == nullptr) {
      const std::lock_guard guard(lock_);
      config = published_.load(std::memory_order_relaxed);
      if (config == nullptr) {
        owner_ = std::make_unique<Config>();
        owner_->port = 8080;
        owner_->workers = 4;
        ++loads_;
        config = owner_.get();
        published_.store(config, std::memory_order_release);
      }
    }
    return *config;
  }

  int loads() const { return loads_; }

 private:
  std::mutex lock_;
  std::atomic<Config*> published_{nullptr};
  std::unique_ptr<Config> owner_;
  int loads_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 2);
  LazyConfig config;
  int wrong[3] = {0, 0, 0};
  const auto use = [&](int* mistakes) {
    for (int i = 0; i < rounds; ++i) {
      const Config& seen = config.get();
      if (seen.port != 8080 || seen.workers != 4) ++*mistakes;
    }
  };
  example::in_parallel([&] { use(&wrong[0]); }, [&] { use(&wrong[1]); }, [&] { use(&wrong[2]); });

  if (wrong[0] + wrong[1] + wrong[2] > 0) example::fail("a configuration was seen half made");
  if (config.loads() != 1) example::fail("the configuration was loaded %d times", config.loads());
}
