-- The alternating bit protocol: a sender and a receiver over two channels that hold one message each and lose some.
-- Messages are numbered modulo M.
--
-- expect: states=36 transitions=80 levels=16 deadlocks=0
-- expect: verdict=holds
-- expect: options="--const M=8" states=72 transitions=160 levels=28 deadlocks=0
-- expect: options="--const M=8" verdict=holds

const
  M: 4;

type
  Bit: 0..1;
  Number: 0..M - 1;

var
  data: record bit: Bit; number: Number; end;       -- undefined: nothing on the way
  ack: Bit;
  sender: record bit: Bit; number: Number; end;
  receiver: record bit: Bit; number: Number; end;   -- what is expected next

startstate
  undefine data;
  undefine ack;
  clear sender;
  clear receiver;
end;

rule "send"
  isundefined(data.bit)
==>
  data := sender;
end;

rule "lose a message"
  !isundefined(data.bit)
==>
  undefine data;
end;

rule "lose an acknowledgement"
  !isundefined(ack)
==>
  undefine ack;
end;

rule "receive"
  !isundefined(data.bit) & isundefined(ack)
==>
  if data.bit = receiver.bit then
    assert data.number = receiver.number "a message is lost or comes twice";
    receiver.bit := 1 - receiver.bit;
    receiver.number := (receiver.number + 1) % M;
  end;
  ack := data.bit;
  undefine data;
end;

rule "hear"
  !isundefined(ack)
==>
  if ack = sender.bit then
    sender.bit := 1 - sender.bit;
    sender.number := (sender.number + 1) % M;
  end;
  undefine ack;
end;

invariant "the receiver is never ahead by more than one"
  receiver.number = sender.number | receiver.number = (sender.number + 1) % M;
