// A detector of your own, against Heddle's public headers: which bytes were written by more than
// one thread, and from where? Reads any trace that `heddle record` or `heddle import` makes, a
// trace in the text notation, or STD.
//
//   write_shared run.heddle
//
// The pattern is that of all detectors: a class that is shown every event in order and asked at the
// end; what events refer to by number is looked up in the catalog.
#include "trace/source.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>

class WriteShared {
 public:
  void on(const heddle::Event& event) {
    if (!heddle::is_write(event.kind)) return;
    for (heddle::Address byte = event.address; byte < event.address + event.size; ++byte) {
      Writers& writers = bytes_[byte];
      writers.threads.insert(event.thread);
      writers.sites.insert(event.site);
    }
  }

  // Neighbours with the same writers are one line.
  void print(const heddle::Catalog& catalog) const {
    for (auto at = bytes_.begin(); at != bytes_.end();) {
      const auto& [first, writers] = *at;
      heddle::Address end = first;
      for (; at != bytes_.end() && at->first == end && at->second == writers; ++at) ++end;
      if (writers.threads.size() < 2) continue;
      std::printf("%s, %llu bytes: written by %zu threads at", name(first, catalog).c_str(),
                  static_cast<unsigned long long>(end - first), writers.threads.size());
      for (const heddle::SiteId id : writers.sites) {
        const heddle::Site& site = catalog.site(id);
        std::printf(" %s:%u", std::string(catalog.text(site.file)).c_str(), site.line);
      }
      std::printf("\n");
    }
  }

 private:
  static std::string name(heddle::Address address, const heddle::Catalog& catalog) {
    for (const heddle::Symbol& symbol : catalog.symbols) {
      if (address - symbol.address >= symbol.size) continue;
      return std::string(catalog.text(symbol.name)) + "+" +
             std::to_string(address - symbol.address);
    }
    return "address " + std::to_string(address);
  }

  struct Writers {
    std::set<heddle::ThreadId> threads;
    std::set<heddle::SiteId> sites;
    bool operator==(const Writers&) const = default;
  };
  std::map<heddle::Address, Writers> bytes_;
};

int main(int argc, char** argv) {
  auto source = heddle::open_trace(argc > 1 ? argv[1] : "");
  if (!source.ok()) return std::fprintf(stderr, "%s\n", source.error().message.c_str()), 2;
  WriteShared detector;
  while (true) {
    auto batch = (*source)->next();
    if (!batch.ok()) return std::fprintf(stderr, "%s\n", batch.error().message.c_str()), 2;
    if (batch->empty()) break;
    for (const heddle::Event& event : *batch) detector.on(event);
  }
  detector.print((*source)->catalog());
  return 0;
}
