-- Twin of peterson_filter_4.dve: the same states and the same steps, for comparison with Murphi checkers.
--
-- expect: states=1347266 transitions=5389064 levels=145 deadlocks=0
-- expect: verdict=holds

const
  N: 4;

type
  process: 0 .. N - 1;
  place: enum { idle, climb, defer, look, compare, advance, critical };

var
  level: array [process] of 0 .. N - 1;
  victim: array [process] of process;
  at: array [process] of 0 .. N - 1;
  other: array [process] of 0 .. N;
  here: array [process] of place;

startstate
begin
  for p: process do
    level[p] := 0;
    victim[p] := 0;
    at[p] := 0;
    other[p] := 0;
    here[p] := idle;
  end;
end;

ruleset p: process do

  rule "begin" here[p] = idle ==>
  begin
    at[p] := 1;
    here[p] := climb;
  end;

  rule "raise" here[p] = climb ==>
  begin
    level[p] := at[p];
    here[p] := defer;
  end;

  rule "defer" here[p] = defer ==>
  begin
    victim[at[p]] := p;
    here[p] := look;
  end;

  rule "nobody there" here[p] = look & other[p] < N & (other[p] = p | level[other[p]] < at[p]) ==>
  begin
    here[p] := advance;
  end;

  rule "somebody there" here[p] = look & other[p] < N & other[p] != p & level[other[p]] >= at[p] ==>
  begin
    here[p] := compare;
  end;

  rule "still the victim" here[p] = compare & victim[at[p]] = p ==>
  begin
    here[p] := look;
  end;

  rule "pushed on" here[p] = compare & victim[at[p]] != p ==>
  begin
    here[p] := advance;
  end;

  rule "advance" here[p] = advance ==>
  begin
    other[p] := other[p] + 1;
    here[p] := look;
  end;

  rule "next level" here[p] = look & other[p] = N & at[p] < N - 1 ==>
  begin
    at[p] := at[p] + 1;
    other[p] := 0;
    here[p] := climb;
  end;

  rule "enter" here[p] = look & other[p] = N & at[p] = N - 1 ==>
  begin
    at[p] := 0;
    other[p] := 0;
    here[p] := critical;
  end;

  rule "leave" here[p] = critical ==>
  begin
    level[p] := 0;
    here[p] := idle;
  end;

end;

invariant "one at a time"
  forall p: process do
    forall q: process do
      p != q & here[p] = critical -> here[q] != critical
    end
  end;
