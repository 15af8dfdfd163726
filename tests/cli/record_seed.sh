# A seed alone means what it means to heddle try; a recording keeps its schedule, and a report says how
# to make it happen again.
cat >race.c <<'C'
#include <pthread.h>
static int count;
static void* add(void* argument) {
  for (int i = 0; i < 3; ++i) ++count;
  return argument;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, add, 0);
  add(0);
  pthread_join(thread, 0);
  return count == 6 ? 0 : 1;
}
C
expect 0 "$build/bin/heddle-cc" -O1 -pthread race.c -o race
expect 1 "$heddle" try -q -n 200 --until-failure --keep 1 -o kept -- ./race
seed=$(ls kept.*.schedule | sed 's/kept\.\(.*\)\.schedule/\1/')
expect 1 "$heddle" record -q -o race.heddle --seed "$seed" -- ./race
grep -q "^strategy random seed $seed$" race.schedule || fail "another strategy"
grep -q '^points shared$' race.schedule || fail "other points"
expect 1 "$heddle" check race.heddle --detect race
says 'replay   heddle replay race.schedule -- ./race'
expect 1 "$heddle" replay -q race.schedule -- ./race
expect 1 "$heddle" run -o report --detect race --seed "$seed" -- ./race
grep -q "replay   heddle run --schedule random --points shared --seed $seed -- ./race" report ||
  fail "run does not say how to repeat it"
