// MySQL, prepared statements: the marks of a query are private to it.
// SVD figure 3, corrected: every connection has a join table of its own.
#include "../example.h"

namespace {

constexpr int kFields = 4;

struct Field {
  int query_id = 0;
};

struct JoinTable {
  int used_fields = 0;
  Field fields[kFields];
};

struct Query {
  int id;
  int first_field;
  int last_field;
  int rows_sent = 0;
  int overruns = 0;
};

void make_join(JoinTable* join_tab, const Query& query) {
  for (int i = query.first_field; i <= query.last_field; ++i) {
    join_tab->fields[i].query_id = query.id;
  }
  int used = 0;
  for (int i = 0; i < kFields; ++i) {
    if (join_tab->fields[i].query_id == query.id) ++used;
  }
  join_tab->used_fields = used;
}

// Copies the used fields of a row. The original has no test for the end of the array: it walks on
// until it has met as many fields of its own as it believes there are.
void send_row(JoinTable* join_tab, Query* query) {
  const int used = join_tab->used_fields;
  int copied = 0;
  for (int i = 0; copied < used; ++i) {
    if (i == kFields) {
      ++query->overruns;
      return;
    }
    if (join_tab->fields[i].query_id == query->id) ++copied;
  }
  query->rows_sent += copied == query->last_field - query->first_field + 1;
}

void execute(JoinTable* join_tab, Query* query, int times) {
  for (int i = 0; i < times; ++i) {
    make_join(join_tab, *query);
    send_row(join_tab, query);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int times = example::rounds(argc, argv, 1);
  Query queries[2] = {{.id = 101, .first_field = 0, .last_field = 2},
                      {.id = 102, .first_field = 2, .last_field = 3}};
  const auto connection = [&](Query* query) {
    JoinTable join_tab;
    execute(&join_tab, query, times);
  };
  example::in_parallel([&] { connection(&queries[0]); }, [&] { connection(&queries[1]); });

  for (const Query& query : queries) {
    if (query.rows_sent != times) {
      example::fail("query %d: %d of %d rows sent whole, %d walks off the end of the fields",
                    query.id, query.rows_sent, times, query.overruns);
    }
  }
}
