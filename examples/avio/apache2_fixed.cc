// Apache httpd, mod_mem_cache.c: the last user of a cached object cleans it up.
// AVIO table 3, Apache #2. Corrected: decrement and test are one
// atomic step.
#include "../example.h"

#include <atomic>
#include <memory>

namespace {

struct Body {
  int length;
};

struct CacheObject {
  std::atomic<int> refcount{2};  // the request that serves it, and the cache
  Body* body = new Body{4096};
  int freed_bytes = 0;
};

void cleanup(CacheObject* object) {
  Body* body = object->body;
  object->body = nullptr;
  object->freed_bytes += body->length;
  delete body;
}

void decrement_refcount(CacheObject* object) {
  if (object->refcount.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    cleanup(object);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int objects = example::rounds(argc, argv, 3);
  const auto cache = std::make_unique<CacheObject[]>(objects);
  const auto release_all = [&] {
    for (int i = 0; i < objects; ++i) decrement_refcount(&cache[i]);
  };
  example::in_parallel(release_all, release_all);

  for (int i = 0; i < objects; ++i) {
    const CacheObject& object = cache[i];
    if (object.freed_bytes != 4096) {
      example::fail("object %d: freed %d bytes of 4096, reference count %d", i, object.freed_bytes,
                    object.refcount.load());
    }
  }
}
