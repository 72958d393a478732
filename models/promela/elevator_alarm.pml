// A lift serves calls that arrive at any floor. Arrays, select, inline, d_step, unless: a fire alarm sends the lift
// down, whatever it does.
// expect: states=15194 transitions=38924 levels=37 deadlocks=0
// expect: verdict=holds

#define FLOORS 4

bit called[FLOORS];
byte floor;
bit fire, open;

inline travel(target) {
  do
  :: floor < target -> floor++
  :: floor > target -> floor--
  :: else -> break
  od
}

active proctype Lift() {
  byte goal;
  {
    do
    :: d_step { called[goal] -> called[goal] = 0 };
       travel(goal);
       open = 1;
       open = 0
    :: d_step { !called[goal] -> goal = (goal + 1) % FLOORS }
    od
  } unless { fire -> open = 0 };
  travel(0);
  open = 1;
  assert(floor == 0)
}

active proctype People() {
  byte who;
  do
  :: select(who : 0 .. 3); called[who] = 1
  :: fire = 1; break
  od
}
