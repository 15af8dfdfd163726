// The paper's A -> B: what A did before send() happens before what B does after await().
#pragma once

#include <semaphore.h>

class Signal {
 public:
  Signal() { sem_init(&semaphore_, 0, 0); }
  ~Signal() { sem_destroy(&semaphore_); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void send() { sem_post(&semaphore_); }
  void await() {
    while (sem_wait(&semaphore_) != 0) {  // a signal handler may end the wait early
    }
  }

 private:
  sem_t semaphore_;
};
