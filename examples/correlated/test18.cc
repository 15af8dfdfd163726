// correlated-2014, test 18: append to a buffer without locks (the paper's figure 15, Apache's log).
// One race on the set {outCnt, outBuf}, where a race detector reports one per variable and byte.
#include "../example.h"

#include <cstring>

namespace {

constexpr int kBufferSize = 64;

int outCnt = 0;
char outBuf[kBufferSize];

char message_a[] = "alpha;";
char message_b[] = "beta;";

int length_of(const char* str) {
  int ctr = 0;
  while (str[ctr] != '\0') ++ctr;
  return ctr;
}

void buffer_append(const char* str) {
  const int len = length_of(str);
  if (len + outCnt >= kBufferSize) {  // heddle: P
    outCnt = 0;                       // where the original flushes
  }
  for (int i = 0; i < len; ++i) {
    outBuf[outCnt + i] = str[i];  // heddle: P R I
  }
  outCnt = outCnt + len;  // heddle: P R I
}

}  // namespace

int main() {
  example::in_parallel([] { buffer_append(message_a); }, [] { buffer_append(message_b); });
  if (std::strcmp(outBuf, "alpha;beta;") != 0 && std::strcmp(outBuf, "beta;alpha;") != 0) {
    example::fail("the buffer holds \"%s\"", outBuf);
  }
  if (outCnt != 11) example::fail("11 bytes appended, %d counted", outCnt);
}
