// MySQL 4.0.12, log.cc and sql_insert.cc: the binary log is rotated while rows are inserted.
// AVIO figure 5 and table 3, MySQL #1. Corrected: the writer looks under the lock
// that the rotation holds.
#include "../example.h"

#include <mutex>

namespace {

enum LogType { LOG_CLOSED, LOG_BIN };

struct BinLog {
  std::mutex lock_log;
  LogType log_type = LOG_BIN;
  int file_number = 1;
  int records = 0;  // in all files together

  void write_record_if_open() {
    const std::lock_guard guard(lock_log);
    if (log_type != LOG_CLOSED) ++records;
  }

  void new_file() {
    const std::lock_guard guard(lock_log);
    const LogType saved = log_type;
    log_type = LOG_CLOSED;
    ++file_number;
    log_type = saved;
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
  binlog->write_record_if_open();
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
