// Readers and writers with a monitor that is entered and left in atomic sequences; writers go first.
// Atomic sequences that block and go on, remote references, provided.
// expect: states=232 transitions=723 levels=10 deadlocks=0
// expect: verdict=holds

#define R 3
#define W 2

byte reading, writing, waiting;
bool lights = true;

active [R] proctype Reader() provided (lights) {
  do
  :: atomic { writing == 0 && waiting == 0 -> reading++ };
inside:
     assert(writing == 0);
     reading--
  od
}

active [W] proctype Writer() {
  do
  :: waiting++;
     atomic { reading == 0 && writing == 0; writing++; waiting-- };
     assert(reading == 0 && writing == 1 && !Reader[0]@inside && !Reader[R - 1]@inside);
     writing--
  od
}

active proctype Caretaker() {
  do
  :: lights = false; lights = true
  od
}
