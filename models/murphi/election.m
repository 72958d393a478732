-- Chang and Roberts' election on a ring of N processes, whose channels are multisets: messages overtake one another.
--
-- expect: states=164 transitions=392 levels=9 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=6" states=2205 transitions=7457 levels=13 deadlocks=0
-- expect: options="--const N=6" verdict=holds

const
  N: 4;

type
  Process: 0..N - 1;
  Role: enum {Asleep, Candidate, Passive, Leader};

var
  role: array [Process] of Role;
  channel: array [Process] of multiset [N] of Process;   -- into the process

procedure send(from: Process; number: Process);
var m: Process;
begin
  m := number;
  multisetadd(m, channel[(from + 1) % N]);
end;

startstate
  for p: Process do
    role[p] := Asleep;
    undefine channel[p];
  end;
end;

ruleset p: Process do
  rule "wake up"
    role[p] = Asleep
  ==>
    role[p] := Candidate;
    send(p, p);
  end;

  choose i: channel[p] do
    rule "receive"
      true
    ==>
      var number: Process;
    begin
      number := channel[p][i];
      multisetremove(i, channel[p]);
      if number = p then
        role[p] := Leader;
      elsif number > p | role[p] = Asleep then
        if role[p] != Leader then
          role[p] := Passive;
        end;
        send(p, number);
      end;
    end;
  end;

  rule "start over"
    role[p] = Leader
    & forall q: Process do role[q] != Asleep & multisetcount(i: channel[q], true) = 0 end
  ==>
    for q: Process do
      role[q] := Asleep;
    end;
  end;
end;

invariant "one leader"
  forall p: Process do forall q: Process do p = q | role[p] != Leader | role[q] != Leader end end;
