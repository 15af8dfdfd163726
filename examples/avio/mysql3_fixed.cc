// MySQL 3.23.56: "delete from t" empties the table under one lock and is logged under another.
// AVIO table 3, MySQL #3. Corrected: a statement is logged while its
// table is still locked.
#include "../example.h"

#include <memory>
#include <mutex>

namespace {

enum class Statement { kInsert, kDeleteAll };

struct Table {
  std::mutex lock;
  int rows = 0;
};

struct BinLog {
  explicit BinLog(int capacity) : statements(new Statement[capacity]) {}

  void append(Statement statement) {
    const std::lock_guard guard(lock);
    statements[length] = statement;
    ++length;
  }

  std::mutex lock;
  int length = 0;
  std::unique_ptr<Statement[]> statements;
};

void mysql_insert(Table* table, BinLog* binlog) {
  const std::lock_guard guard(table->lock);
  ++table->rows;
  binlog->append(Statement::kInsert);
}

void mysql_delete_all(Table* table, BinLog* binlog) {
  const std::lock_guard guard(table->lock);
  table->rows = 0;
  binlog->append(Statement::kDeleteAll);
}

// What a slave server, or a restore, would end up with.
int replay(const BinLog& binlog) {
  int rows = 0;
  for (int i = 0; i < binlog.length; ++i) {
    const Statement statement = binlog.statements[i];
    rows = statement == Statement::kInsert ? rows + 1 : 0;
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = example::rounds(argc, argv, 3);
  Table table;
  BinLog binlog(2 * rounds);
  example::in_parallel(
      [&] {
        for (int i = 0; i < rounds; ++i) mysql_insert(&table, &binlog);
      },
      [&] {
        for (int i = 0; i < rounds; ++i) mysql_delete_all(&table, &binlog);
      });

  const int replayed = replay(binlog);
  if (replayed != table.rows) {
    example::fail("binary log out of order: the table has %d rows, its replay %d", table.rows,
                  replayed);
  }
}
