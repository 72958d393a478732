// Two-phase commit: the coordinator may crash, participants may refuse. The never claim asks for a state where one
// has committed and another has aborted. Inline, mtype sets, for, array initialiser, conditional expressions.
// expect: states=1413 transitions=3077 levels=54 deadlocks=0
// expect: verdict=holds

#define N 3

mtype:vote = { yes, no };
mtype:message = { ask, commit, abort };
mtype:outcome = { open, committed, aborted };

chan request[N] = [1] of { mtype:message };
chan answer = [N] of { byte, mtype:vote };
mtype:outcome state[N] = open;
byte share[N] = { 2, 3, 5 };
byte weight;

inline tell(what) {
  for (i : 0 .. N - 1) { request[i]!what }
}

active proctype Coordinator() {
  byte i, who, agreed, replies;
  mtype:vote v;
  tell(ask);
  do
  :: replies < N ->
     answer?who, v;
     d_step { replies++; agreed = agreed + (v == yes -> 1 : 0); weight = weight + (v == yes -> share[who] : 0); v = 0; who = 0 }
  :: else -> break
  od;
  if
  :: agreed == N -> assert(weight == 10); tell(commit)
  :: else -> tell(abort)
  :: goto crashed
  fi;
crashed:
  skip
}

proctype Participant(byte me) {
  mtype:message m;
  request[me]?ask;
  if
  :: answer!me, yes
  :: answer!me, no
  fi;
  end: request[me]?m;
  state[me] = (m == commit -> committed : aborted)
}

init {
  atomic { byte k; for (k : 0 .. N - 1) { run Participant(k) } }
}

never {
  do
  :: (state[0] == committed || state[1] == committed || state[2] == committed) &&
     (state[0] == aborted || state[1] == aborted || state[2] == aborted) -> break
  :: else
  od
}
