-- N cells form a linked list behind a fixed head. A cell joins by asking the head, which makes it the first; it
-- leaves by asking the head too, which lets one cell at a time go: a search runs down the list to the cell before
-- it, which takes over its successor. Messages may overtake one another.
--
-- expect: states=1832 transitions=4572 levels=17 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=2" states=110 transitions=196 levels=13 deadlocks=0
-- expect: options="--const N=2" verdict=holds
-- expect: options="--const N=4" states=26035 transitions=72392 levels=20 deadlocks=0
-- expect: options="--const N=4" verdict=holds
-- expect: options="--const N=5" states=341056 transitions=989920 levels=23 deadlocks=0
-- expect: options="--const N=5" verdict=holds

const
  N: 3;
  Room: 4;                                          -- of the network

type
  Cell: scalarset(N);
  Head: enum {head};
  Node: union {Head, Cell};
  Kind: enum {
    Join,                                           -- a cell wants to be in the list
    First,                                          -- the head answers: your successor is
    Leave,                                          -- a cell wants out
    Search,                                         -- whose successor leaves?
    Before,                                         -- a node answers the leaving cell: I stand before you
    Skip,                                           -- the leaving cell to the one before it: your successor is
    Gone                                            -- and that has happened
  };
  Message: record
    kind: Kind;
    dest: Node;
    about: Node;                                    -- the cell that joins or leaves, or the node that answers
    next: Node;                                     -- a successor
  end;
  Mode: enum {Outside, Joining, Inside, Leaving, Skipping};

var
  mode: array [Cell] of Mode;
  next: array [Node] of Node;                       -- undefined behind the last cell
  leaving: boolean;                                 -- the head lets somebody go
  net: multiset [Room] of Message;

procedure send(kind: Kind; dest: Node; about: Node; successor: Node);
var m: Message;
begin
  m.kind := kind;
  m.dest := dest;
  m.about := about;
  m.next := successor;
  multisetadd(m, net);
end;

-- A search reaches a node: it stands before the leaving cell, or passes the search on.
procedure look(n: Node; about: Node);
begin
  if next[n] = about then
    send(Before, about, n, undefined);
  else
    send(Search, next[n], about, undefined);
  end;
end;

startstate
  for c: Cell do
    mode[c] := Outside;
  end;
  undefine next;
  undefine net;
  leaving := false;
end;

ruleset c: Cell do
  rule "join"
    mode[c] = Outside & multisetcount(i: net, true) < Room - 1
  ==>
    mode[c] := Joining;
    send(Join, head, c, undefined);
  end;

  rule "leave"
    mode[c] = Inside & multisetcount(i: net, true) < Room - 1
  ==>
    mode[c] := Leaving;
    send(Leave, head, c, undefined);
  end;
end;

choose i: net do
  rule "receive"
    net[i].kind != Leave | !leaving
  ==>
    var m: Message;
  begin
    m := net[i];
    multisetremove(i, net);
    switch m.kind
    case Join:
      send(First, m.about, head, next[head]);
      next[head] := m.about;
    case First:
      next[m.dest] := m.next;
      if ismember(m.dest, Cell) then
        mode[m.dest] := Inside;
      end;
    case Leave:
      leaving := true;
      look(head, m.about);
    case Search:
      -- The answer to a join may still be on its way: then the search comes back.
      if mode[m.dest] = Joining then
        multisetadd(m, net);
      else
        look(m.dest, m.about);
      end;
    case Before:
      mode[m.dest] := Skipping;
      send(Skip, m.about, m.dest, next[m.dest]);
    case Skip:
      -- A cell may have joined in between: then the search goes on.
      if next[m.dest] = m.about then
        next[m.dest] := m.next;
        send(Gone, m.about, m.dest, undefined);
      else
        look(m.dest, m.about);
      end;
    case Gone:
      undefine next[m.dest];
      mode[m.dest] := Outside;
      leaving := false;
    end;
  end;
end;

-- How far is it from the head to a cell? Zero if it is not in the list.
function place(c: Cell): 0..N;
var at: Node;
begin
  at := head;
  for i: 1..N do
    if isundefined(at) then
      return 0;
    end;
    at := next[at];
    if at = c then
      return i;
    end;
  end;
  return 0;
end;

invariant "a cell that is in the list can be reached, unless one is joining"
  (forall c: Cell do mode[c] != Joining end) ->
  forall c: Cell do mode[c] = Inside -> place(c) > 0 end;

invariant "one skips at a time"
  forall c: Cell do forall d: Cell do c = d | mode[c] != Skipping | mode[d] != Skipping end end;

invariant "the list ends"
  forall c: Cell do next[c] != c end;
