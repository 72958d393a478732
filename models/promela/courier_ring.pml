// Couriers in a ring exchange a token by rendezvous; who holds it may put a parcel into a sorted queue.
// Rendezvous over an array of channels, atomic hand-over, sorted send, random receive, len and polls.
// expect: states=215064 transitions=462388 levels=198 deadlocks=0
// expect: verdict=holds

#define N 3

chan token[N] = [0] of { byte };
chan parcels = [N] of { byte, byte };
byte delivered;

active [N] proctype Courier() {
  byte round, who, weight;
  if
  :: _pid == 0 -> goto holding
  :: else
  fi;
waiting:
  atomic { token[_pid]?round; assert(round < 8) };
holding:
  if
  :: nfull(parcels) -> parcels!!_pid + 1, (round & 1)
  :: parcels??eval(_pid + 1), weight -> delivered = (delivered + weight) % 4
  :: parcels?[who, weight] && len(parcels) > 1 -> parcels?who, weight
  :: full(parcels) -> skip
  fi;
  atomic { who = 0; weight = 0; round = (round + 1) % 8; token[(_pid + 1) % N]!round; round = 0 };
  goto waiting
}
