-- A directory keeps the caches of N clients coherent, after the protocol that S. German proposed as a challenge:
-- one channel each way and one for acknowledgements per client, one request served at a time.
-- V is the number of data values; 1 leaves the data out.
--
-- expect: states=27513 transitions=110781 levels=27 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const N=2" states=1461 transitions=4026 levels=19 deadlocks=0
-- expect: options="--const N=2" verdict=holds
-- expect: options="--const N=3 --const V=2" states=58104 transitions=235872 levels=27 deadlocks=0
-- expect: options="--const N=3 --const V=2" verdict=holds
-- expect: options="--const N=4" states=544617 transitions=2918052 levels=35 deadlocks=0
-- expect: options="--const N=4" verdict=holds

const
  N: 3;
  V: 1;

type
  Client: scalarset(N);
  Value: 1..V;
  Permission: enum {Nothing, Reading, Writing};
  Order: enum {ToRead, ToWrite};                    -- what a client asks for
  Answer: enum {MayRead, MayWrite, GiveUp};         -- what the directory says

var
  cache: array [Client] of record
    may: Permission;
    value: Value;
  end;
  request: array [Client] of Order;                 -- undefined: the channel is empty
  answer: array [Client] of record
    what: Answer;
    value: Value;
  end;
  given_up: array [Client] of boolean;
  returned: array [Client] of Value;                -- comes with the acknowledgement of a writer

  memory: Value;
  holds: array [Client] of boolean;                 -- the directory's view
  to_tell: array [Client] of boolean;               -- must still be told to give up
  writer: boolean;                                  -- one client may write
  serving: Order;                                   -- undefined: nothing
  served: Client;
  latest: Value;                                    -- what a read should give

ruleset v: Value do
  startstate
    for c: Client do
      cache[c].may := Nothing;
      undefine cache[c].value;
      undefine request[c];
      undefine answer[c];
      given_up[c] := false;
      undefine returned[c];
      holds[c] := false;
      to_tell[c] := false;
    end;
    memory := v;
    latest := v;
    writer := false;
    undefine serving;
    undefine served;
  end;
end;

ruleset c: Client do
  rule "ask to read"
    isundefined(request[c]) & cache[c].may = Nothing
  ==>
    request[c] := ToRead;
  end;

  rule "ask to write"
    isundefined(request[c]) & cache[c].may != Writing
  ==>
    request[c] := ToWrite;
  end;

  rule "serve"
    isundefined(serving) & !isundefined(request[c])
  ==>
    serving := request[c];
    served := c;
    undefine request[c];
    for d: Client do
      to_tell[d] := holds[d];
    end;
  end;

  rule "tell to give up"
    !isundefined(serving) & to_tell[c] & isundefined(answer[c].what) & (serving = ToWrite | writer)
  ==>
    answer[c].what := GiveUp;
    to_tell[c] := false;
  end;

  rule "give up"
    !isundefined(answer[c].what) & answer[c].what = GiveUp & !given_up[c]
  ==>
    undefine answer[c];
    given_up[c] := true;
    if cache[c].may = Writing then
      returned[c] := cache[c].value;
    end;
    cache[c].may := Nothing;
    undefine cache[c].value;
  end;

  rule "take back"
    !isundefined(serving) & given_up[c]
  ==>
    given_up[c] := false;
    holds[c] := false;
    if writer then
      writer := false;
      memory := returned[c];
      undefine returned[c];
    end;
  end;

  rule "let read"
    !isundefined(serving) & serving = ToRead & served = c & !writer & isundefined(answer[c].what)
  ==>
    holds[c] := true;
    answer[c].what := MayRead;
    answer[c].value := memory;
    undefine serving;
    undefine served;
  end;

  rule "let write"
    !isundefined(serving) & serving = ToWrite & served = c & !writer & isundefined(answer[c].what)
    & forall d: Client do !holds[d] end
  ==>
    holds[c] := true;
    writer := true;
    answer[c].what := MayWrite;
    answer[c].value := memory;
    undefine serving;
    undefine served;
  end;

  rule "start reading"
    !isundefined(answer[c].what) & answer[c].what = MayRead
  ==>
    cache[c].may := Reading;
    cache[c].value := answer[c].value;
    undefine answer[c];
  end;

  rule "start writing"
    !isundefined(answer[c].what) & answer[c].what = MayWrite
  ==>
    cache[c].may := Writing;
    cache[c].value := answer[c].value;
    undefine answer[c];
  end;

  ruleset v: Value do
    rule "write"
      cache[c].may = Writing
    ==>
      cache[c].value := v;
      latest := v;
    end;
  end;
end;

invariant "a writer is alone"
  forall c: Client do
    cache[c].may = Writing -> forall d: Client do c = d | cache[d].may = Nothing end
  end;

invariant "who may read sees the latest value"
  forall c: Client do cache[c].may != Nothing -> cache[c].value = latest end;

invariant "memory is up to date unless somebody writes"
  !writer -> memory = latest;
