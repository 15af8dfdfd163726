// MySQL 4.1, prepared statements: a query marks the fields it uses with its id, later counts them.
// AVIO table 3, MySQL #2. Corrected: the lock is held from the first
// mark to the last count.
#include "../example.h"

#include <mutex>

namespace {

constexpr int kFields = 4;

struct Field {
  int query_id = 0;
};

struct TableShare {
  std::mutex lock;
  Field fields[kFields];
};

struct PreparedQuery {
  int id;
  int first_field;
  int last_field;
};

void mark_used_fields(TableShare* table, const PreparedQuery& query) {
  for (int i = query.first_field; i <= query.last_field; ++i) {
    table->fields[i].query_id = query.id;
  }
}

int count_used_fields(TableShare* table, const PreparedQuery& query) {
  int used = 0;
  for (int i = query.first_field; i <= query.last_field; ++i) {
    if (table->fields[i].query_id == query.id) ++used;
  }
  return used;
}

struct Outcome {
  int failures = 0;
  int last_count = 0;
};

void execute(TableShare* table, const PreparedQuery& query, int times, Outcome* outcome) {
  for (int i = 0; i < times; ++i) {
    const std::lock_guard guard(table->lock);
    mark_used_fields(table, query);
    const int used = count_used_fields(table, query);
    // The server sizes its row buffer by this number and walks over the end of it.
    if (used != query.last_field - query.first_field + 1) {
      ++outcome->failures;
      outcome->last_count = used;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int times = example::rounds(argc, argv, 2);
  TableShare table;
  const PreparedQuery queries[2] = {{.id = 101, .first_field = 0, .last_field = 2},
                                    {.id = 102, .first_field = 1, .last_field = 3}};
  Outcome outcomes[2];
  example::in_parallel([&] { execute(&table, queries[0], times, &outcomes[0]); },
                       [&] { execute(&table, queries[1], times, &outcomes[1]); });

  for (int i = 0; i < 2; ++i) {
    if (outcomes[i].failures > 0) {
      example::fail("query %d: marked 3 fields as used, then found %d (%d of %d times)",
                    queries[i].id, outcomes[i].last_count, outcomes[i].failures, times);
    }
  }
}
