# heddle learn: progress, --until-stable, --pass, --threshold; merge in any order; show, diff; files
# of other programs and older formats are refused with a reason.
cat >app.cc <<'C'
#include <cstdio>
#include <mutex>
#include <thread>
std::mutex m;
int stock = 3;
int get() { std::lock_guard guard(m); return stock; }
void put(int n) { std::lock_guard guard(m); stock = n; }
void sell() { put(get() - 1); }
int main(int argc, char**) {
  std::thread a(sell), b(sell);
  a.join();
  b.join();
  std::printf("left %d\n", stock);
  return argc > 1 ? 0 : stock != 1;
}
C
[ -x "$build/bin/heddle-c++" ] || exit 0
expect 0 "$build/bin/heddle-c++" -std=c++20 -O1 -g -pthread app.cc -o app
expect 0 "$heddle" learn -n 6 --seed 1 -o a.inv -- ./app
complains 'run 1/6  seed 1'
complains 'dropped'
expect 0 "$heddle" learn -n 6 --seed 7 -o b.inv -- ./app
expect 0 "$heddle" learn -n 100 --until-stable 3 --seed 20 -o c.inv -- ./app
complains 'stable for 3 runs'

# The judge looks at the output; the status of this command is always 0.
expect 0 "$heddle" learn -n 25 --seed 1 -o all.inv -- ./app lenient
complains '25 passing runs'
expect 0 "$heddle" learn -n 25 --seed 1 --pass 'grep -q "left 1"' -o judged.inv -- ./app lenient
complains 'failed and taught nothing'
expect 0 "$heddle" learn show judged.inv
says 'program     app'
says 'runs'
grep -q '0 failed' "$out" && fail "the judge failed no run"
expect 1 "$heddle" learn diff judged.inv all.inv
says 'split there'
expect 0 "$heddle" learn diff judged.inv judged.inv

expect 0 "$heddle" learn merge a.inv b.inv c.inv -o abc.inv
expect 0 "$heddle" learn merge c.inv a.inv b.inv a.inv -o cab.inv
same abc.inv cab.inv
expect 0 "$heddle" learn merge b.inv c.inv -o bc.inv
expect 0 "$heddle" learn merge a.inv bc.inv -o a_bc.inv
same abc.inv a_bc.inv
expect 0 "$heddle" learn show --all abc.inv
says 'never split in'

expect 0 "$heddle" record -q --level accesses --schedule random --seed 5 -o run.heddle -- ./app lenient
cp app other
expect 0 "$heddle" learn -q -n 2 -o other.inv -- ./other
expect 2 "$heddle" learn merge a.inv other.inv -o mixed.inv
complains 'different programs'
expect 2 "$heddle" check run.heddle --detect avio --invariants other.inv
complains 'not the program of this trace'
sed '1s/"version":[0-9]*/"version":1/' a.inv >old.inv
expect 2 "$heddle" check run.heddle --detect avio --invariants old.inv
complains 'format 1'
expect 2 "$heddle" learn show run.heddle
complains 'not a file of learned invariants'
expect 1 "$heddle" check "$traces/lost_update.txt" --detect avio
says 'unlearned'
says 'heddle learn'
