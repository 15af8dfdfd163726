#include "detect/svd/page_pool.h"

#include "base/check.h"

#include <cstring>

#include <sys/mman.h>

namespace heddle::svd {

PagePool::~PagePool() {
  for (void* const chunk : chunks_) munmap(chunk, kChunk);
}

void* PagePool::take() {
  if (free_.empty()) {
    void* const chunk =
        mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HEDDLE_CHECK(chunk != MAP_FAILED);
    chunks_.push_back(chunk);
    for (std::size_t end = kChunk; end != 0; end -= kBytes)
      free_.push_back(static_cast<std::byte*>(chunk) + end - kBytes);
  }
  void* const page = free_.back();
  free_.pop_back();
  return page;
}

void PagePool::give_back(void* page) {
  if (madvise(page, kBytes, MADV_DONTNEED) != 0) std::memset(page, 0, kBytes);
  free_.push_back(page);
}

}  // namespace heddle::svd
