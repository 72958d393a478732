// A bounded retransmission protocol (after Helmink, Sellink and Vaandrager 1994): files of CHUNKS chunks go over a line that
// loses frames, with acknowledgements over one that loses those. A chunk is tried again at most TRIES times; then the sender tells its
// client that the transfer failed (or, at the last chunk, that nobody knows), and the receiver hears of it when its timer
// expires. Both go on with the next file. CHUNKS and TRIES may be given with -D.
//
// About seven states for each chunk and try if local steps are merged (some 490 if not), on as many levels as three times
// the tries and four times the chunks: -D CHUNKS=7650 -D TRIES=7650 is about 410 million.
//
// expect: states=9916 transitions=27899 levels=143 deadlocks=0
// expect: options="-D CHUNKS=8 -D TRIES=5" states=26552 transitions=74033 levels=250 deadlocks=0
// expect: verdict=holds

#ifndef CHUNKS
#define CHUNKS 4
#endif
#ifndef TRIES
#define TRIES 3
#endif

mtype = { good, bad, unknown, first, more, last, broken };

chan to_line = [0] of { bit, bit, bit };      // first and last chunk?, alternating bit
chan from_line = [0] of { bit, bit, bit };
chan to_back = [0] of { bit };                // acknowledgements
chan from_back = [0] of { bit };
chan expired = [0] of { bit };                // the sender's timer: a frame or an acknowledgement was lost
chan gave_up = [0] of { bit };                // the receiver's timer: nothing will come
chan sender_client = [0] of { mtype };
chan receiver_client = [0] of { mtype };

active proctype Sender() {
  int chunk, tries;
  bit seq;
next_file:
  chunk = 1;
send:
  to_line!(chunk == 1), (chunk == CHUNKS), seq;
  if
  :: from_back?_ ->
     seq = 1 - seq;
     tries = 0;
     if
     :: chunk == CHUNKS -> sender_client!good; goto next_file
     :: else -> chunk++; goto send
     fi
  :: expired?_ ->
     if
     :: tries < TRIES -> tries++; goto send
     :: else ->
        tries = 0;
        if
        :: chunk == CHUNKS -> sender_client!unknown
        :: else -> sender_client!bad
        fi;
        chunk = 0;
        seq = 0;
        gave_up!0;
        goto next_file
     fi
  fi
}

active proctype Line() {
  bit is_first, is_last, seq;
  do
  :: to_line?is_first, is_last, seq ->
     if
     :: from_line!is_first, is_last, seq
     :: expired!0
     fi;
     is_first = 0; is_last = 0; seq = 0
  od
}

active proctype Back() {
  bit seq;
  do
  :: to_back?seq ->
     if
     :: from_back!seq
     :: expired!0
     fi;
     seq = 0
  od
}

active proctype Receiver() {
  int received;
  bit expected, is_first, is_last, seq;
wait:
  if
  :: from_line?is_first, is_last, seq ->
     if
     :: seq == expected ->
        assert(is_first == (received == 0));
        assert(is_last == (received == CHUNKS - 1));
        received++;
        if
        :: is_last -> receiver_client!last; received = 0
        :: else ->
           if
           :: is_first -> receiver_client!first
           :: else -> receiver_client!more
           fi
        fi;
        expected = 1 - expected
     :: else
     fi;
     to_back!seq;
     is_first = 0; is_last = 0; seq = 0;
     goto wait
  :: gave_up?_ ->
     if
     :: received > 0 -> receiver_client!broken
     :: else
     fi;
     received = 0;
     expected = 0;
     goto wait
  fi
}

active proctype Clients() {
end:
  do
  :: sender_client?_
  :: receiver_client?_
  od
}
