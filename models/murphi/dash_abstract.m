-- The coherence protocol of the DASH multiprocessor, for one block of memory, without data: a home with a directory
-- and N clusters. The home forwards requests for a dirty block to its owner, who answers the requester and tells the
-- home; who finds nothing to answer with refuses, and the requester tries again. Invalidations are acknowledged
-- to the requester. BUG = 1 leaves out that a read is spoilt when an invalidation overtakes its answer.
--
-- expect: states=17760 transitions=63243 levels=32 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=2" states=498 transitions=1150 levels=22 deadlocks=0
-- expect: options="--const N=2" verdict=holds
-- expect: options="--const N=4" states=654348 transitions=3177500 levels=42 deadlocks=0
-- expect: options="--const N=4" verdict=holds
-- expect: options="--const BUG=1" verdict=invariant depth=9

const
  N: 3;
  BUG: 0;

type
  Cluster: scalarset(N);
  Copy: enum {Invalid, Shared, Dirty};
  Pending: enum {Nothing, Read, Write};
  Directory: enum {Uncached, SharedCopies, DirtyCopy};
  Request: enum {ReadRequest, WriteRequest, WriteBack};
  Answer: enum {Data, DataToWrite, Refused};
  Note: enum {SharingWriteBack, Transfer};

var
  copy: array [Cluster] of Copy;
  pending: array [Cluster] of Pending;
  spoilt: array [Cluster] of boolean;               -- the answer to the pending read must not be kept
  complete: array [Cluster] of boolean;             -- the data to write is there, acknowledgements may be missing
  missing: array [Cluster] of -N..N;                -- acknowledgements due minus those that came
  unconfirmed: array [Cluster] of boolean;          -- the home has not yet confirmed the new owner

  -- The network: one place for each kind of message and cluster; undefined means empty.
  request: array [Cluster] of Request;              -- to the home
  forwarded: array [Cluster] of record              -- from the home to the owner
    what: Pending;
    asker: Cluster;
  end;
  answer: array [Cluster] of record                 -- to the requester
    what: Answer;
    acks: 0..N;
    by_owner: boolean;
  end;
  invalidate: array [Cluster] of Cluster;           -- and acknowledge to this one
  acks: array [Cluster] of 0..N;                    -- acknowledgements on their way
  note: array [Cluster] of record                   -- from the owner to the home
    what: Note;
    asker: Cluster;
  end;
  confirmation: array [Cluster] of boolean;         -- from the home to the new owner

  directory: Directory;
  sharer: array [Cluster] of boolean;
  owner: Cluster;

startstate
  for c: Cluster do
    copy[c] := Invalid;
    pending[c] := Nothing;
    spoilt[c] := false;
    complete[c] := false;
    missing[c] := 0;
    unconfirmed[c] := false;
    undefine request[c];
    undefine forwarded[c];
    undefine answer[c];
    undefine invalidate[c];
    acks[c] := 0;
    undefine note[c];
    confirmation[c] := false;
    sharer[c] := false;
  end;
  directory := Uncached;
  undefine owner;
end;

ruleset c: Cluster do
  rule "start a read"
    copy[c] = Invalid & pending[c] = Nothing & isundefined(request[c])
  ==>
    pending[c] := Read;
    spoilt[c] := false;
    request[c] := ReadRequest;
  end;

  rule "start a write"
    copy[c] != Dirty & pending[c] = Nothing & isundefined(request[c])
  ==>
    pending[c] := Write;
    request[c] := WriteRequest;
  end;

  rule "write back"
    copy[c] = Dirty & !unconfirmed[c] & isundefined(request[c])
  ==>
    copy[c] := Invalid;
    request[c] := WriteBack;
  end;

  -- The home.
  rule "home: read"
    !isundefined(request[c]) & request[c] = ReadRequest & isundefined(answer[c].what)
    & (directory != DirtyCopy | isundefined(forwarded[owner].what))
  ==>
    undefine request[c];
    if directory = DirtyCopy then
      forwarded[owner].what := Read;
      forwarded[owner].asker := c;
    else
      directory := SharedCopies;
      sharer[c] := true;
      answer[c].what := Data;
      answer[c].acks := 0;
      answer[c].by_owner := false;
    end;
  end;

  rule "home: write"
    !isundefined(request[c]) & request[c] = WriteRequest & isundefined(answer[c].what)
    & (directory != DirtyCopy | isundefined(forwarded[owner].what))
    & forall d: Cluster do !sharer[d] | d = c | isundefined(invalidate[d]) end
  ==>
    undefine request[c];
    if directory = DirtyCopy then
      forwarded[owner].what := Write;
      forwarded[owner].asker := c;
    else
      answer[c].what := DataToWrite;
      answer[c].acks := 0;
      answer[c].by_owner := false;
      for d: Cluster do
        if sharer[d] & d != c then
          invalidate[d] := c;
          answer[c].acks := answer[c].acks + 1;
        end;
        sharer[d] := false;
      end;
      directory := DirtyCopy;
      owner := c;
    end;
  end;

  rule "home: write back"
    !isundefined(request[c]) & request[c] = WriteBack
  ==>
    undefine request[c];
    directory := Uncached;
    undefine owner;
  end;

  rule "home: note of the owner"
    !isundefined(note[c].what)
  ==>
    if note[c].what = SharingWriteBack then
      directory := SharedCopies;
      sharer[c] := true;
      sharer[note[c].asker] := true;
      undefine owner;
    else
      owner := note[c].asker;
      confirmation[note[c].asker] := true;
    end;
    undefine note[c];
  end;

  -- The owner, or who was it.
  rule "answer what was forwarded"
    !isundefined(forwarded[c].what) & isundefined(answer[forwarded[c].asker].what) & isundefined(note[c].what)
  ==>
    alias a: answer[forwarded[c].asker] do
      a.acks := 0;
      a.by_owner := true;
      if copy[c] != Dirty | unconfirmed[c] then
        a.what := Refused;
      elsif forwarded[c].what = Read then
        a.what := Data;
        copy[c] := Shared;
        note[c].what := SharingWriteBack;
        note[c].asker := forwarded[c].asker;
      else
        a.what := DataToWrite;
        copy[c] := Invalid;
        note[c].what := Transfer;
        note[c].asker := forwarded[c].asker;
      end;
    end;
    undefine forwarded[c];
  end;

  -- The requester.
  rule "take an answer"
    !isundefined(answer[c].what)
  ==>
    switch answer[c].what
    case Data:
      if !spoilt[c] | BUG = 1 then
        copy[c] := Shared;
      end;
      pending[c] := Nothing;
      spoilt[c] := false;
    case DataToWrite:
      copy[c] := Invalid;
      complete[c] := true;
      missing[c] := missing[c] + answer[c].acks;
      unconfirmed[c] := answer[c].by_owner;
    case Refused:
      pending[c] := Nothing;
      spoilt[c] := false;
    end;
    undefine answer[c];
  end;

  rule "finish a write"
    complete[c] & missing[c] = 0
  ==>
    complete[c] := false;
    pending[c] := Nothing;
    copy[c] := Dirty;
  end;

  rule "take an acknowledgement"
    acks[c] > 0
  ==>
    acks[c] := acks[c] - 1;
    missing[c] := missing[c] - 1;
  end;

  rule "take a confirmation"
    confirmation[c] & unconfirmed[c]
  ==>
    confirmation[c] := false;
    unconfirmed[c] := false;
  end;

  rule "invalidate"
    !isundefined(invalidate[c])
  ==>
    if copy[c] = Shared then
      copy[c] := Invalid;
    elsif pending[c] = Read then
      spoilt[c] := true;
    end;
    acks[invalidate[c]] := acks[invalidate[c]] + 1;
    undefine invalidate[c];
  end;
end;

invariant "a dirty copy is alone"
  forall c: Cluster do
    copy[c] = Dirty -> forall d: Cluster do c = d | copy[d] = Invalid end
  end;
