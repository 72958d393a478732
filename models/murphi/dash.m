-- The coherence protocol of the DASH multiprocessor with its data and its network: messages between a home and N
-- clusters are in one multiset and overtake one another; V data values. See dash_abstract.m for the protocol.
-- BUG = 1 leaves out that a read is spoilt when an invalidation overtakes its answer.
--
-- expect: states=724 transitions=1728 levels=22 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=3" states=39675 transitions=144942 levels=34 deadlocks=0
-- expect: options="--const N=3" verdict=holds
-- expect: options="--const N=2 --const V=2" states=2264 transitions=5804 levels=23 deadlocks=0
-- expect: options="--const N=2 --const V=2" verdict=holds
-- expect: options="--const BUG=1" verdict=invariant depth=9
-- expect: options="--const N=3 --const BUG=1" verdict=invariant depth=9

const
  N: 2;
  V: 1;
  BUG: 0;
  Room: 2 * N + 2;                                  -- of the network

type
  Cluster: scalarset(N);
  Home: enum {home};
  Node: union {Home, Cluster};
  Value: 1..V;
  Copy: enum {Invalid, Shared, Dirty};
  Pending: enum {Nothing, Read, Write};
  Directory: enum {Uncached, SharedCopies, DirtyCopy};
  Kind: enum {
    ReadRequest, WriteRequest, WriteBack,           -- cluster to home
    ForwardedRead, ForwardedWrite,                  -- home to owner
    Data, DataToWrite, Refused,                     -- to the requester
    Invalidate, Acknowledge,                        -- home to sharer, sharer to requester
    SharingWriteBack, Transfer, Confirm             -- owner to home, home to new owner
  };
  Message: record
    kind: Kind;
    dest: Node;
    from: Node;
    asker: Cluster;
    value: Value;
    acks: 0..N;
  end;

var
  cluster: array [Cluster] of record
    copy: Copy;
    value: Value;
    pending: Pending;
    asked: boolean;                                 -- a request of its own is under way
    spoilt: boolean;
    complete: boolean;
    missing: -N..N;
    unconfirmed: boolean;
  end;
  directory: Directory;
  sharer: array [Cluster] of boolean;
  owner: Cluster;
  memory: Value;
  latest: Value;                                    -- what was written last
  net: multiset [Room] of Message;

procedure send(kind: Kind; dest: Node; from: Node; asker: Cluster; value: Value; acks: 0..N);
var m: Message;
begin
  m.kind := kind;
  m.dest := dest;
  m.from := from;
  m.asker := asker;
  m.value := value;
  m.acks := acks;
  multisetadd(m, net);
end;

procedure home_reads(c: Cluster);
begin
  if directory = DirtyCopy then
    send(ForwardedRead, owner, home, c, undefined, 0);
  else
    directory := SharedCopies;
    sharer[c] := true;
    send(Data, c, home, c, memory, 0);
  end;
end;

procedure home_writes(c: Cluster);
var others: 0..N;
begin
  if directory = DirtyCopy then
    send(ForwardedWrite, owner, home, c, undefined, 0);
  else
    others := 0;
    for d: Cluster do
      if sharer[d] & d != c then
        send(Invalidate, d, home, c, undefined, 0);
        others := others + 1;
      end;
      sharer[d] := false;
    end;
    directory := DirtyCopy;
    owner := c;
    send(DataToWrite, c, home, c, memory, others);
  end;
end;

-- What the home does with a message.
procedure at_home(var m: Message; c: Cluster);
begin
  switch m.kind
  case ReadRequest: home_reads(c);
  case WriteRequest: home_writes(c);
  case WriteBack:
    directory := Uncached;
    memory := m.value;
    undefine owner;
  case SharingWriteBack:
    directory := SharedCopies;
    memory := m.value;
    sharer[c] := true;
    sharer[m.asker] := true;
    undefine owner;
  case Transfer:
    owner := m.asker;
    send(Confirm, m.asker, home, m.asker, undefined, 0);
  else
    error "a message the home does not understand";
  end;
end;

procedure answer_forwarded(c: Cluster; kind: Kind; asker: Cluster);
begin
  alias me: cluster[c] do
    if me.copy != Dirty | me.unconfirmed then
      send(Refused, asker, c, asker, undefined, 0);
    elsif kind = ForwardedRead then
      me.copy := Shared;
      send(Data, asker, c, asker, me.value, 0);
      send(SharingWriteBack, home, c, asker, me.value, 0);
    else
      send(DataToWrite, asker, c, asker, me.value, 0);
      send(Transfer, home, c, asker, undefined, 0);
      me.copy := Invalid;
      undefine me.value;
    end;
  end;
end;

-- What a cluster does with a message.
procedure at_cluster(var m: Message; c: Cluster);
begin
  alias me: cluster[c] do
    switch m.kind
    case ForwardedRead, ForwardedWrite:
      answer_forwarded(c, m.kind, m.asker);
    case Data:
      if !me.spoilt | BUG = 1 then
        me.copy := Shared;
        me.value := m.value;
      end;
      me.pending := Nothing;
      me.spoilt := false;
      me.asked := false;
    case DataToWrite:
      me.copy := Invalid;
      me.value := m.value;
      me.complete := true;
      me.missing := me.missing + m.acks;
      me.unconfirmed := m.from != home;
      me.asked := false;
    case Refused:
      me.pending := Nothing;
      me.spoilt := false;
      me.asked := false;
    case Invalidate:
      if me.copy = Shared then
        me.copy := Invalid;
        undefine me.value;
      elsif me.pending = Read then
        me.spoilt := true;
      end;
      send(Acknowledge, m.asker, c, m.asker, undefined, 0);
    case Acknowledge:
      me.missing := me.missing - 1;
    case Confirm:
      me.unconfirmed := false;
    else
      error "a message a cluster does not understand";
    end;
  end;
end;

ruleset v: Value do
  startstate
    for c: Cluster do
      clear cluster[c];
      cluster[c].missing := 0;
      undefine cluster[c].value;
      sharer[c] := false;
    end;
    directory := Uncached;
    undefine owner;
    memory := v;
    latest := v;
    undefine net;
  end;
end;

ruleset c: Cluster do
  alias me: cluster[c] do
    rule "start a read"
      me.copy = Invalid & me.pending = Nothing & !me.asked & multisetcount(i: net, true) < Room - N
    ==>
      me.pending := Read;
      me.spoilt := false;
      me.asked := true;
      send(ReadRequest, home, c, c, undefined, 0);
    end;

    rule "start a write"
      me.copy != Dirty & me.pending = Nothing & !me.asked & multisetcount(i: net, true) < Room - N
    ==>
      me.pending := Write;
      me.asked := true;
      send(WriteRequest, home, c, c, undefined, 0);
    end;

    rule "write back"
      me.copy = Dirty & !me.unconfirmed & multisetcount(i: net, true) < Room - N
    ==>
      send(WriteBack, home, c, c, me.value, 0);
      me.copy := Invalid;
      undefine me.value;
    end;

    ruleset v: Value do
      rule "finish a write"
        me.complete & me.missing = 0
      ==>
        me.complete := false;
        me.pending := Nothing;
        me.copy := Dirty;
        me.value := v;
        latest := v;
      end;
    end;
  end;
end;

-- The home takes a request of a cluster only when its earlier write-back has arrived: that is one channel.
function overtakes(m: Message): boolean;
begin
  return (m.kind = ReadRequest | m.kind = WriteRequest)
    & multisetcount(i: net, net[i].kind = WriteBack & net[i].from = m.from) > 0;
end;

choose i: net do
  rule "receive"
    !overtakes(net[i])
  ==>
    var m: Message; dest: Cluster; from: Cluster;
  begin
    m := net[i];
    multisetremove(i, net);
    if m.dest = home then
      from := m.from;
      at_home(m, from);
    else
      dest := m.dest;
      at_cluster(m, dest);
    end;
  end;
end;

invariant "a dirty copy is alone"
  forall c: Cluster do
    cluster[c].copy = Dirty -> forall d: Cluster do c = d | cluster[d].copy = Invalid end
  end;

invariant "a dirty copy is the latest value"
  forall c: Cluster do cluster[c].copy = Dirty -> cluster[c].value = latest end;
