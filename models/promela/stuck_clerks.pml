// Two clerks take a stamp and a pad in opposite order. The deadlock is the point.
// expect: states=36 transitions=48 levels=11 deadlocks=3
// expect: verdict=deadlock depth=2

bit stamp, pad;
byte papers;

inline take(thing) { atomic { !thing -> thing = 1 } }
inline drop(thing) { thing = 0 }

active proctype First() {
  do
  :: take(stamp); take(pad); papers = (papers + 1) % 3; drop(pad); drop(stamp)
  od
}

active proctype Second() {
  do
  :: take(pad); take(stamp); papers = (papers + 2) % 3; drop(stamp); drop(pad)
  od
}
