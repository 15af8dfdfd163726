// Apache httpd 2.0.48, mod_log_config.c: ap_buffered_log_writer() appends to a shared buffer.
// AVIO figure 4 and table 3, Apache #1. The story is in apache1.md.
#include "../example.h"

#include <cstddef>
#include <cstring>
#include <memory>

namespace {

constexpr std::size_t kRecordSize = 8;  // "t0 0042\n"

struct BufferedLog {
  explicit BufferedLog(std::size_t size) : outbuf(new char[size]()) {}
  std::size_t outcnt = 0;
  std::unique_ptr<char[]> outbuf;
};

void buffered_log_writer(BufferedLog* buf, const char* str, std::size_t len) {
  char* base = buf->outbuf.get();
  char* s = &base[buf->outcnt];                // heddle: P
  std::memcpy(s, str, len);                    // heddle: bug
  const std::size_t temp = buf->outcnt + len;  // heddle: P I
  buf->outcnt = temp;                          // heddle: R I
}

void serve(BufferedLog* log, char client, int requests) {
  for (int request = 0; request < requests; ++request) {
    char record[kRecordSize + 1];
    std::snprintf(record, sizeof record, "t%c %04d\n", client, request % 10000);
    buffered_log_writer(log, record, kRecordSize);
  }
}

// How many records of `client` stand in the log, whole and in order.
int records_of(const BufferedLog& log, char client) {
  int next = 0;
  for (std::size_t at = 0; at + kRecordSize <= log.outcnt; at += kRecordSize) {
    char expected[kRecordSize + 1];
    std::snprintf(expected, sizeof expected, "t%c %04d\n", client, next % 10000);
    if (std::memcmp(&log.outbuf[at], expected, kRecordSize) == 0) ++next;
  }
  return next;
}

}  // namespace

int main(int argc, char** argv) {
  const int requests = example::rounds(argc, argv, 4);
  BufferedLog log(2 * kRecordSize * requests);
  example::in_parallel([&] { serve(&log, '0', requests); }, [&] { serve(&log, '1', requests); });

  for (const char client : {'0', '1'}) {
    const int found = records_of(log, client);
    if (found != requests) {
      example::fail("access log: client %c sent %d requests, the log has %d", client, requests,
                    found);
    }
  }
}
