-- N philosophers around a table. POLITE = 1: the first takes the right fork first, which avoids the deadlock.
--
-- expect: states=82 transitions=265 levels=6 deadlocks=1
-- expect: verdict=deadlock depth=5
-- expect: options="--const N=8" states=1154 transitions=5968 levels=9 deadlocks=1
-- expect: options="--const N=8" verdict=deadlock depth=8
-- expect: options="--const POLITE=1" states=70 transitions=219 levels=6 deadlocks=0
-- expect: options="--const POLITE=1" verdict=holds

const
  N: 5;
  POLITE: 0;

type
  Seat: 0..N - 1;
  Mood: enum {Thinking, Waiting, Eating};

var
  mood: array [Seat] of Mood;
  taken: array [Seat] of boolean;                   -- the fork to the left of a seat

function first(p: Seat): Seat;
begin
  return p = 0 & POLITE = 1 ? 1 % N : p;
end;

function second(p: Seat): Seat;
begin
  return p = 0 & POLITE = 1 ? 0 : (p + 1) % N;
end;

startstate
  clear mood;
  clear taken;
end;

ruleset p: Seat do
  rule "take the first fork"
    mood[p] = Thinking & !taken[first(p)]
  ==>
    taken[first(p)] := true;
    mood[p] := Waiting;
  end;

  rule "take the second fork"
    mood[p] = Waiting & !taken[second(p)]
  ==>
    taken[second(p)] := true;
    mood[p] := Eating;
  end;

  rule "put both down"
    mood[p] = Eating
  ==>
    taken[first(p)] := false;
    taken[second(p)] := false;
    mood[p] := Thinking;
  end;
end;

invariant "neighbours do not eat together"
  forall p: Seat do mood[p] != Eating | N = 1 | mood[(p + 1) % N] != Eating end;
