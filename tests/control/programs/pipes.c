// Threads that talk through pipes and socket pairs, with more bytes than fit.
#define _GNU_SOURCE
#include "control.h"

#include <poll.h>
#include <sys/socket.h>

enum { kBytes = 200000 };
static int there[2], back[2], quiet[2];

static void* echo(void* argument) {
  char buffer[5000];
  for (;;) {
    const ssize_t got = read(there[0], buffer, sizeof buffer);
    CHECK(got >= 0);
    if (got == 0) break;
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t part = send(back[1], buffer + sent, got - sent, 0);
      CHECK(part > 0);
      sent += part;
    }
  }
  CHECK(shutdown(back[1], SHUT_WR) == 0);
  return argument;
}

static void* feed(void* argument) {
  static char data[kBytes];
  for (int i = 0; i < kBytes; ++i) data[i] = (char)(i * 7);
  CHECK(write(there[1], data, kBytes) == kBytes);
  CHECK(close(there[1]) == 0);
  return argument;
}

int main(void) {
  CHECK(pipe(there) == 0 && pipe(quiet) == 0);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, back) == 0);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, echo, NULL);
  pthread_create(&threads[1], NULL, feed, NULL);
  int total = 0;
  char buffer[3000];
  for (;;) {
    struct pollfd watched = {back[0], POLLIN, 0};
    CHECK(poll(&watched, 1, 100000) == 1);
    const ssize_t got = recv(back[0], buffer, sizeof buffer, 0);
    CHECK(got >= 0);
    if (got == 0) break;
    for (ssize_t i = 0; i < got; ++i) CHECK(buffer[i] == (char)((total + i) * 7));
    total += (int)got;
  }
  CHECK(total == kBytes);
  struct pollfd silent = {quiet[0], POLLIN, 0};
  CHECK(poll(&silent, 1, 60000) == 0);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return done();
}
