// Apache httpd, mod_mem_cache.c: the last user of a cached object cleans it up.
// AVIO table 3, Apache #2. The story is in apache2.md.
#include "../example.h"

#include <memory>

namespace {

struct Body {
  int length;
};

struct CacheObject {
  int refcount = 2;  // the request that serves it, and the cache
  Body* body = new Body{4096};
  int freed_bytes = 0;
};

void cleanup(CacheObject* object) {
  Body* body = object->body;            // heddle: bug
  object->body = nullptr;               // heddle: bug
  object->freed_bytes += body->length;  // heddle: bug
  delete body;                          // heddle: bug
}

void decrement_refcount(CacheObject* object) {
  object->refcount = object->refcount - 1;  // heddle: P R I
  if (object->refcount == 0) {              // heddle: I
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
                    object.refcount);
    }
  }
}
