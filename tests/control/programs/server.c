// A server on a loopback socket: one thread accepts, one per client answers; several clients.
#define _GNU_SOURCE
#include "control.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { kClients = 4, kRequests = 10 };
static struct sockaddr_in address;
static int listener;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int served;

static void* serve(void* argument) {
  const int fd = (int)(intptr_t)argument;
  int number;
  ssize_t got;
  while ((got = recv(fd, &number, sizeof number, MSG_WAITALL)) == sizeof number) {
    number *= 2;
    CHECK(send(fd, &number, sizeof number, 0) == sizeof number);
    pthread_mutex_lock(&mutex);
    ++served;
    pthread_mutex_unlock(&mutex);
  }
  CHECK(got == 0);
  close(fd);
  return NULL;
}

static void* accept_all(void* argument) {
  pthread_t threads[kClients];
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0);
  for (int i = 0; i < kClients; ++i) {
    CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
    const int fd = accept(listener, NULL, NULL);
    CHECK(fd >= 0);
    pthread_create(&threads[i], NULL, serve, (void*)(intptr_t)fd);
  }
  for (int i = 0; i < kClients; ++i) pthread_join(threads[i], NULL);
  close(epoll);
  return argument;
}

static void* client(void* argument) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  for (int i = 0; i < kRequests; ++i) {
    int number = i + 100 * (int)(intptr_t)argument;
    CHECK(write(fd, &number, sizeof number) == sizeof number);
    int answer = 0;
    CHECK(read(fd, &answer, sizeof answer) == sizeof answer);
    CHECK(answer == 2 * number);
  }
  close(fd);
  return argument;
}

int main(void) {
  listener = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listener, (struct sockaddr*)&address, sizeof address) == 0);
  socklen_t length = sizeof address;
  CHECK(getsockname(listener, (struct sockaddr*)&address, &length) == 0);
  CHECK(listen(listener, 16) == 0);
  pthread_t acceptor;
  pthread_create(&acceptor, NULL, accept_all, NULL);
  run_threads(kClients, client);
  pthread_join(acceptor, NULL);
  CHECK(served == kClients * kRequests);
  return done();
}
