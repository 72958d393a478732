// A foreman hires workers that live for one job each and answer over a channel of their own. Dynamic processes,
// process numbers that are used again, local channels as values, structures as messages.
// expect: states=339 transitions=516 levels=55 deadlocks=0
// expect: verdict=holds

#define JOBS 4

typedef Job { byte size; chan answer };

chan office = [2] of { Job };
byte finished;

proctype Worker(byte hired) {
  Job job;
  office?job;
  job.answer!job.size * 2, _pid
}

proctype Foreman() {
  chan reply = [1] of { byte, byte };
  byte n, result, who;
  Job job;
  do
  :: n < JOBS ->
     n++;
     job.size = n;
     job.answer = reply;
     run Worker(n);
     office!job;
     reply?result, who;
     assert(result == 2 * n && who > 0);
     finished++
  :: else -> break
  od
}

init { run Foreman(); _nr_pr == 1 -> assert(finished == JOBS) }
