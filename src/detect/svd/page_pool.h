// Memory in pages of the processor, for arrays that are replaced by larger ones after a while: what
// is given back goes back to the system at once. In the heap each would leave a hole that nothing
// else fits into, and that is too small to be given back.
#pragma once

#include <cstddef>
#include <vector>

namespace heddle::svd {

class PagePool {
 public:
  static constexpr std::size_t kBytes = 4096;  // of a page

  PagePool() = default;
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  void* take();  // zeros
  void give_back(void* page);

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  std::vector<void*> chunks_;
  std::vector<void*> free_;
};

}  // namespace heddle::svd
