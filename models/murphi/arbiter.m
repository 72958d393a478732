-- An arbiter gives N resources to U users. A user waits for at most one resource at a time, asks in increasing order
-- of their numbers and holds at most K; each resource goes round, so that nobody is passed over forever.
--
-- expect: states=5724 transitions=23487 levels=13 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=2" states=549 transitions=1851 levels=10 deadlocks=0
-- expect: options="--const N=2" verdict=holds
-- expect: options="--const N=4" states=47775 transitions=221634 levels=16 deadlocks=0
-- expect: options="--const N=4" verdict=holds

const
  N: 3;
  U: 3;
  K: 2;

type
  Resource: 1..N;
  User: 0..U - 1;
  Phase: enum {Idle, Waits, Holds};

var
  phase: array [User] of array [Resource] of Phase;
  last: array [Resource] of User;                   -- whose turn it was

function held(u: User): 0..N;
var count: 0..N;
begin
  count := 0;
  for r: Resource do
    if phase[u][r] = Holds then
      count := count + 1;
    end;
  end;
  return count;
end;

function free(r: Resource): boolean;
begin
  return forall u: User do phase[u][r] != Holds end;
end;

startstate
  for r: Resource do
    for u: User do
      phase[u][r] := Idle;
    end;
    last[r] := 0;
  end;
end;

ruleset u: User; r: Resource do
  rule "ask"
    phase[u][r] = Idle & held(u) < K
    & forall s: Resource do phase[u][s] != Waits & (s > r -> phase[u][s] = Idle) end
  ==>
    phase[u][r] := Waits;
  end;

  rule "grant"
    phase[u][r] = Waits & free(r)
    -- nobody between the last holder and this user waits
    & forall v: User do
        phase[v][r] = Waits -> (u + U - 1 - last[r]) % U <= (v + U - 1 - last[r]) % U
      end
  ==>
    phase[u][r] := Holds;
    last[r] := u;
  end;

  rule "release"
    phase[u][r] = Holds
  ==>
    phase[u][r] := Idle;
  end;
end;

invariant "one holder"
  forall r: Resource do
    forall u: User do
      phase[u][r] = Holds -> forall v: User do u = v | phase[v][r] != Holds end
    end
  end;

invariant "not too many"
  forall u: User do held(u) <= K end;
