// MySQL 4.0.12, log.cc and sql_insert.cc: the binary log is rotated while rows are inserted.
// AVIO figure 5 and table 3, MySQL #1. The story is in mysql1.md.
#include "../example.h"

#include <mutex>

namespace {

enum LogType { LOG_CLOSED, LOG_BIN };

struct BinLog {
  std::mutex lock_log;
  LogType log_type = LOG_BIN;
  int file_number = 1;
  int records = 0;  // in all files together

  bool is_open() {
    return log_type != LOG_CLOSED;  // heddle: R
  }

  void write_record() {
    const std::lock_guard guard(lock_log);
    ++records;
  }

  void new_file() {
    const std::lock_guard guard(lock_log);
    const LogType saved = log_type;
    log_type = LOG_CLOSED;  // heddle: P
    ++file_number;
    log_type = saved;  // heddle: I
  }
};

struct Table {
  std::mutex lock;
  int rows = 0;
};

void sql_insert(Table* table, BinLog* binlog) {
  {
    const std::lock_guard guard(table->lock);
    ++table->rows;
  }
  if (binlog->is_open()) binlog->write_record();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 4);
  Table table;
  BinLog binlog;
  example::in_parallel(
      [&] {
        for (int i = 0; i < rounds; ++i) sql_insert(&table, &binlog);
      },
      [&] {
        for (int i = 0; i < rounds; ++i) binlog.new_file();
      });

  if (binlog.records != table.rows) {
    example::fail("binary log: %d rows inserted, %d recorded", table.rows, binlog.records);
  }
}
