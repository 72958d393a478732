/* Twin of philosophers_13.dve: the same states and the same steps, for comparison with SPIN.
 * expect: states=1594323 transitions=13817466 */

#define N 13
#define FIRST  (_pid == N - 1 -> 0 : _pid)
#define SECOND (_pid == N - 1 -> N - 1 : _pid + 1)

byte fork[N];

active [N] proctype P() {
think:
  if
  :: d_step { fork[FIRST] == 0 -> fork[FIRST] = 1 }
  fi;
  d_step { fork[SECOND] == 0 -> fork[SECOND] = 1 };
  fork[FIRST] = 0;
  fork[SECOND] = 0; goto think
}
