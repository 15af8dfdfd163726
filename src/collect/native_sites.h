// Return addresses into sites.
//
// The runtime's own events (locks, threads, memory) carry the return address of the intercepted
// call. This finds its source by libdw: the chain of inlined functions at that address, and of it
// the first frame that is not in a system header, because the lock() that matters is the program's
// line and not the line in <mutex>. Every address is looked up once. What the object of such a call
// is called, the compiler noted at that place.
#pragma once

#include "trace/catalog.h"
#include "trace/event.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/container/flat_hash_map.h>

namespace heddle::collect {

class NativeSites {
 public:
  explicit NativeSites(Catalog& catalog);
  ~NativeSites();
  NativeSites(const NativeSites&) = delete;
  NativeSites& operator=(const NativeSites&) = delete;

  // Code of `path` is at [first, last), moved by `bias` from where the file says.
  void add_module(const std::string& path, Address bias, Address first, Address last);

  // The site of the call that returns to `return_address`.
  SiteId site(Address return_address, EventKind kind) {
    Recent& recent = recent_[(return_address ^ static_cast<Address>(kind)) % recent_.size()];
    if (recent.return_address != return_address || recent.kind != kind) {
      recent = {return_address, kind, find_site(return_address, kind)};
    }
    return recent.site;
  }

  // "function file:line" for a stack in a text; the address when nothing is known.
  std::string describe(Address return_address);

  // Whether the call is made by the runtime itself.
  bool in_runtime(Address return_address) const;

 private:
  struct Place;
  struct Modules;

  SiteId find_site(Address return_address, EventKind kind);
  SiteId look_up(Address return_address, EventKind kind);
  Place find(Address return_address);
  FunctionId function_of(const Place& place);
  static std::uint64_t key_of(const Place& place, EventKind kind);
  void name_object(Site& site);

  Catalog& catalog_;
  std::unique_ptr<Modules> modules_;
  absl::flat_hash_map<std::pair<Address, EventKind>, SiteId> sites_;
  // Calls that were asked for lately: a program locks in few places at a time.
  struct Recent {
    Address return_address{};
    EventKind kind{};
    SiteId site{};
  };
  std::array<Recent, 64> recent_{};
  // "file:line:column" of calls that the compiler noted, to their sites; 0 where objects of
  // different names are meant.
  absl::flat_hash_map<std::string, SiteId> noted_;
  std::size_t seen_sites_ = 1;
};

}  // namespace heddle::collect
