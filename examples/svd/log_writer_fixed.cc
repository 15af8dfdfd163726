// Apache httpd, mod_log_config.c: the whole of ap_buffered_log_writer(), with its flush.
// SVD figure 2. Corrected: one critical section from the first look at the count to its update.
#include "../example.h"

#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

namespace {

constexpr std::size_t kBufferSize = 32;
constexpr int kElements = 3;

struct BufferedLog {
  std::mutex lock;
  std::size_t outcnt = 0;
  char outbuf[kBufferSize];
  std::mutex file_lock;
  std::string file;
};

void write_file(BufferedLog* buf, const char* bytes, std::size_t count) {
  const std::lock_guard guard(buf->file_lock);
  buf->file.append(bytes, count);
}

void flush_log(BufferedLog* buf) {
  write_file(buf, buf->outbuf, buf->outcnt);
  buf->outcnt = 0;
}

void buffered_log_writer(BufferedLog* buf, const char* const* strs, const std::size_t* strl) {
  std::size_t len = 0;
  for (int i = 0; i < kElements; ++i) len += strl[i];

  const std::lock_guard guard(buf->lock);
  if (len + buf->outcnt > kBufferSize) {
    flush_log(buf);
  }
  char* s = &buf->outbuf[buf->outcnt];
  for (int i = 0; i < kElements; ++i) {
    std::memcpy(s, strs[i], strl[i]);
    s += strl[i];
  }
  const std::size_t end = buf->outcnt + len;
  buf->outcnt = end;
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
