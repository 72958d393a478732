// Three processes count to two each without a lock; the assertion that nothing is lost fails.
// Shared and local variables, run in a loop, the number of live processes as a barrier.
// expect: states=30881 transitions=78749 levels=35 deadlocks=0
// expect: verdict=invariant depth=33

#define N 3
#define ROUNDS 2

byte total;

proctype Counter() {
  byte k, copy;
  do
  :: k < ROUNDS -> copy = total; total = copy + 1; k++
  :: else -> break
  od
}

init {
  byte i;
  atomic {
    do
    :: i < N -> run Counter(); i++
    :: else -> break
    od
  };
  _nr_pr == 1 -> assert(total == N * ROUNDS)
}
