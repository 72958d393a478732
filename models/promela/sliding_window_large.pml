/* Twin of sliding_window_large.dve: the same states and the same steps, for comparison with SPIN.
 * expect: states=3833172 transitions=15753696 */

#define WINDOW 3
#define MODULUS 4
#define ITEMS 7
#define PROGRESS ((heard + MODULUS - base) % MODULUS)

chan data = [4] of { byte, byte };
chan ack = [4] of { byte };

active proctype Sender() {
  byte base, ahead, item, heard;

ready:
  if
  :: d_step { ahead < WINDOW && nfull(data) ->
       data!((base + ahead) % MODULUS), ((item + ahead) % ITEMS); ahead = ahead + 1 }; goto ready
  :: d_step { ahead > 0 -> ahead = 0 }; goto ready
  :: d_step { nempty(ack) -> ack?heard }; goto check
  fi;
check:
  if
  :: d_step { PROGRESS <= WINDOW ->
       item = (item + PROGRESS) % ITEMS; ahead = ahead - PROGRESS; base = heard; heard = 0 }; goto ready
  :: d_step { PROGRESS > WINDOW -> heard = 0 }; goto ready
  fi
}

active proctype Receiver() {
  byte expected, next, number, item;

ready:
  if
  :: d_step { nempty(data) -> data?number, item }
  fi;
check:
  if
  :: d_step { number == expected -> number = 0 }; goto deliver
  :: d_step { number != expected -> number = 0; item = 0 }; goto reply
  fi;
deliver:
  if
  :: d_step { expected = (expected + 1) % MODULUS; next = (next + 1) % ITEMS; item = 0 }
  fi;
reply:
  if
  :: d_step { nfull(ack) -> ack!expected }
  fi; goto ready
}

active proctype Thief() {
  byte loot, more;

lurk:
  if
  :: d_step { nempty(data) -> data?loot, more; loot = 0; more = 0 }; goto lurk
  :: d_step { nempty(ack) -> ack?loot; loot = 0 }; goto lurk
  fi
}
