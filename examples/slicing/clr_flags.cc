// Microsoft's CLR, a test case: two attributes of an object are found out on demand and cached, in
// four bits of one byte. Slicing-2008 figure 7. The story is in clr_flags.md.
#include "../example.h"

#include <memory>

namespace {

constexpr unsigned char kAValid = 1;
constexpr unsigned char kAValue = 2;
constexpr unsigned char kBValid = 4;
constexpr unsigned char kBValue = 8;

struct Object {
  bool attribute_a = true;
  bool attribute_b = true;
  unsigned char flags = 0;
};

bool is_a(Object* object) {
  if ((object->flags & kAValid) == 0) {   // heddle: bug
    unsigned char flags = object->flags;  // heddle: P
    flags |= object->attribute_a ? kAValid | kAValue : kAValid;
    object->flags = flags;  // heddle: P R I
  }
  return (object->flags & kAValue) != 0;  // heddle: I
}

bool is_b(Object* object) {
  if ((object->flags & kBValid) == 0) {   // heddle: bug
    unsigned char flags = object->flags;  // heddle: P
    flags |= object->attribute_b ? kBValid | kBValue : kBValid;
    object->flags = flags;  // heddle: P R I
  }
  return (object->flags & kBValue) != 0;  // heddle: I
}

}  // namespace

int main(int argc, char** argv) {
  const int count = example::rounds(argc, argv, 4);
  const auto objects = std::make_unique<Object[]>(count);
  int wrong_a = 0;
  int wrong_b = 0;
  example::in_parallel(
      [&] {
        for (int i = 0; i < count; ++i) wrong_a += !is_a(&objects[i]);
      },
      [&] {
        for (int i = 0; i < count; ++i) wrong_b += !is_b(&objects[i]);
      });

  if (wrong_a + wrong_b > 0) {
    example::fail("of %d objects that are both, %d were said not to be A, %d not to be B", count,
                  wrong_a, wrong_b);
  }
}
