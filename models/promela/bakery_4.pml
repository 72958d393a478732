/* Twin of bakery_4.dve: the same states and the same steps, for comparison with SPIN.
 * expect: states=1566931 transitions=5283596 */

#define N 4
#define LAST 4

byte choosing[N];
byte ticket[N];

active [N] proctype P() {
  byte top, other;

idle:
  choosing[_pid] = 1;
scan:
  if
  :: d_step { other < N && ticket[other] > top -> top = ticket[other]; other = other + 1 }; goto scan
  :: d_step { other < N && ticket[other] <= top -> other = other + 1 }; goto scan
  :: d_step { other == N && top < LAST -> ticket[_pid] = top + 1; top = 0; other = 0 }; goto draw
  :: d_step { other == N && top == LAST -> choosing[_pid] = 0; top = 0; other = 0 }; goto idle
  fi;
draw:
  choosing[_pid] = 0;
wait_choice:
  if
  :: other < N && choosing[other] == 0 -> goto wait_turn
  :: d_step { other == N -> other = 0 }; goto critical
  fi;
wait_turn:
  if
  :: d_step {
    ticket[other] == 0 || ticket[other] > ticket[_pid] || (ticket[other] == ticket[_pid] && other >= _pid)
    -> other = other + 1
  }
  fi;
  goto wait_choice;
critical:
  ticket[_pid] = 0; goto idle
}
