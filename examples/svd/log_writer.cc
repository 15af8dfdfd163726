// Apache httpd, mod_log_config.c: the whole of ap_buffered_log_writer(), with its flush.
// SVD figure 2. The story is in log_writer.md; avio/apache1.cc is the bare append.
#include "../example.h"

#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kBufferSize = 32;
constexpr std::size_t kLongest = 16;
constexpr int kElements = 3;

struct BufferedLog {
  std::size_t outcnt = 0;
  char outbuf[kBufferSize + 2 * kLongest];  // the original overran; here, room for the overrun
  std::mutex file_lock;
  std::string file;
};

void write_file(BufferedLog* buf, const char* bytes, std::size_t count) {
  const std::lock_guard guard(buf->file_lock);
  buf->file.append(bytes, count);
}

void flush_log(BufferedLog* buf) {
  write_file(buf, buf->outbuf, buf->outcnt);  // heddle: P I
  buf->outcnt = 0;                            // heddle: R I
}

void buffered_log_writer(BufferedLog* buf, const char* const* strs, const std::size_t* strl) {
  std::size_t len = 0;
  for (int i = 0; i < kElements; ++i) len += strl[i];

  if (len + buf->outcnt > kBufferSize) {  // heddle: P
    flush_log(buf);
  }
  char* s = &buf->outbuf[buf->outcnt];  // heddle: P I
  for (int i = 0; i < kElements; ++i) {
    std::memcpy(s, strs[i], strl[i]);  // heddle: bug
    s += strl[i];
  }
  const std::size_t end = buf->outcnt + len;  // heddle: P I
  buf->outcnt = end;                          // heddle: R I
}

void serve(BufferedLog* log, const char* client, int requests) {
  for (int request = 0; request < requests; ++request) {
    char number[8];
    std::snprintf(number, sizeof number, " %04d", request % 10000);
    const char* const strs[kElements] = {client, number, "\n"};
    const std::size_t strl[kElements] = {std::strlen(client), std::strlen(number), 1};
    buffered_log_writer(log, strs, strl);
  }
}

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  const int requests = example::rounds(argc, argv, 2);
  BufferedLog log;
  example::in_parallel([&] { serve(&log, "ada", requests); },
                       [&] { serve(&log, "grace", requests); });
  flush_log(&log);

  const std::size_t expected = static_cast<std::size_t>(requests) * (9 + 11);
  if (log.file.size() != expected) {
    example::fail("access log: %zu bytes, %zu were written", log.file.size(), expected);
  }
  for (int request = 0; request < requests && request < 10000; ++request) {
    char number[8];
    std::snprintf(number, sizeof number, " %04d\n", request);
    for (const char* client : {"ada", "grace"}) {
      if (count_of(log.file, std::string(client) + number) == 0) {
        example::fail("access log: no line%.5s of %s", number, client);
      }
    }
  }
}
