# Stores of words: a run that records nothing turns every one of them into a no-operation; others
# leave the program's code as it is. What the program computes is the same.
cat >words.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern const uint8_t __start_heddle_words[], __stop_heddle_words[];
static int table[1000];
static int sum(const int* numbers, int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total += numbers[i];
  return total;
}
int main(void) {
  for (int i = 0; i < 1000; ++i) table[i] = i;
  int all = 0, dropped = 0;
  for (const uint8_t* at = __start_heddle_words; at < __stop_heddle_words; at += 4) {
    int32_t distance;
    memcpy(&distance, at, sizeof distance);
    const uint8_t* store = at + distance;
    ++all;
    dropped += store[0] == 0x0f && store[1] == 0x1f;
  }
  printf("sum %d, %s of the stores dropped\n", sum(table, 1000),
         all < 5 ? "hardly any" : dropped == 0 ? "none" : dropped == all ? "all" : "some");
}
C
for optimisation in -O0 -O2 -O3; do
  expect 0 "$build/bin/heddle-cc" $optimisation words.c -o words
  expect 0 ./words
  grep -q '^sum 499500, none of' "$out" || fail "$optimisation, dormant: $(cat "$out")"
  expect 0 env HEDDLE_OPTIONS=mode=memory:level=accesses ./words
  grep -q '^sum 499500, none of' "$out" || fail "$optimisation, recorded: $(cat "$out")"
  for points in sync shared all; do
    expect 0 env HEDDLE_OPTIONS=level=off:points=$points ./words
    grep -q '^sum 499500, all of' "$out" || fail "$optimisation, $points: $(cat "$out")"
  done
done
