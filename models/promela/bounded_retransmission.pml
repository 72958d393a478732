// A sender tries each chunk of a file at most three times over a lossy line and tells its client how it went.
// Buffered channels of mtypes, timeout, else, labels for legal ends.
// expect: states=335 transitions=467 levels=56 deadlocks=0
// expect: verdict=holds

mtype = { chunk, ack, good, bad };

#define CHUNKS 3
#define TRIES 3

chan line = [1] of { mtype, bit, byte };
chan back = [1] of { mtype, bit };
chan client = [1] of { mtype };
byte received;

active proctype Sender() {
  byte n, tries;
  bit seq;
next:
  do
  :: n == CHUNKS -> client!good; goto done
  :: n < CHUNKS ->
     tries = 0;
again:
     line!chunk(seq, n);
     tries++;
     if
     :: back?ack(eval(seq)) -> seq = 1 - seq; n++; goto next
     :: timeout ->
        if
        :: tries < TRIES -> goto again
        :: else -> client!bad; goto done
        fi
     fi
  od;
done:
  skip
}

active proctype Receiver() {
  bit seq, expected;
  byte data;
endwait:
  do
  :: line?chunk(seq, data) ->
     if
     :: seq == expected ->
        assert(data == received);
        received++;
        expected = 1 - expected
     :: else
     fi;
     back!ack(seq)
  od
}

active proctype Thief() {
enduring:
  do
  :: line?chunk(_, _)
  :: back?ack(_)
  od
}

active proctype Client() {
  if
  :: client?good -> assert(received == CHUNKS)
  :: client?bad -> assert(received <= CHUNKS)
  fi
}
