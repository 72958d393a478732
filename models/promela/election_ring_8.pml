/* Twin of election_ring_8.dve: the same states and the same steps, for comparison with SPIN.
 * expect: states=732160 transitions=3357735 */

#define N 8
#define ME (N - _pid)
#define NEXT link[(_pid + 1) % N]

chan link[N] = [N] of { byte };
byte leaders;

active [N] proctype P() {
  byte got;

asleep:
  if
  :: d_step { nfull(NEXT) -> NEXT!ME }; goto awake
  :: d_step { nempty(link[_pid]) -> link[_pid]?got }; goto roused
  fi;
roused:
  if
  :: d_step { got > ME && nfull(NEXT) -> NEXT!got; got = 0 }; goto awake
  :: d_step { got < ME && nfull(NEXT) -> NEXT!ME; got = 0 }; goto awake
  fi;
awake:
  if
  :: d_step { nempty(link[_pid]) -> link[_pid]?got }
  fi;
decide:
  if
  :: d_step { got > ME && nfull(NEXT) -> NEXT!got; got = 0 }; goto awake
  :: d_step { got < ME -> got = 0 }; goto awake
  :: d_step { got == ME -> leaders = leaders + 1; got = 0 }; goto leader
  fi;
leader:
  leaders > 0 -> goto leader    /* always true; SPIN refuses an unconditional loop */
}
