/* Twin of peterson_filter_4.dve: the same states and the same steps, for comparison with SPIN.
 * expect: states=1347266 transitions=5389064 */

#define N 4

byte level[N];
byte victim[N];

active [N] proctype P() {
  byte at, other;

idle:
  at = 1;
climb:
  level[_pid] = at;
  victim[at] = _pid;
look:
  if
  :: other < N && (other == _pid || level[other] < at) -> goto advance
  :: other < N && other != _pid && level[other] >= at -> goto compare
  :: d_step { other == N && at < N - 1 -> at = at + 1; other = 0 }; goto climb
  :: d_step { other == N && at == N - 1 -> at = 0; other = 0 }; goto critical
  fi;
compare:
  if
  :: victim[at] == _pid -> goto look
  :: victim[at] != _pid -> goto advance
  fi;
advance:
  other = other + 1; goto look;
critical:
  level[_pid] = 0; goto idle
}
