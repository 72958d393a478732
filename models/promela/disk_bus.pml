// Disks and a controller on one bus, with arbitration as in SCSI-2: whoever has something to send puts its line up while the bus is not in use, and the
// highest number wins. The controller, which has the highest, sends commands to disks that have room for them; a disk works on its commands
// and answers each. Losers take their lines down and try again when the bus is free. DISKS (1 to 6) and ROOM, the commands that a disk may
// have, can be given with -D: more disks make levels wider, more room makes more of them.
//
// expect: states=2349 transitions=7668 levels=28 deadlocks=0
// expect: options="-D DISKS=2" states=225 transitions=539 levels=19 deadlocks=0
// expect: options="-D DISKS=4" states=23409 transitions=96741 levels=37 deadlocks=0
// expect: options="-D DISKS=2 -D ROOM=8" states=23409 transitions=83450 levels=67 deadlocks=0
// expect: verdict=holds

#ifndef DISKS
#define DISKS 3
#endif
#ifndef ROOM
#define ROOM 2
#endif

mtype = { unused, arbitration, transfer };

mtype bus = unused;
byte lines;           // a bit for each that wants the bus
byte owner;
byte commands[DISKS]; // not yet worked on
byte answers[DISKS];  // not yet sent

#define up(device) ((lines >> device) & 1)
#define wins(device) (bus == arbitration && (lines >> device) == 1)
#define put_up(device) lines = lines | (1 << device); bus = arbitration
#define win(device) bus = transfer; owner = device; lines = 0

active [DISKS] proctype Disk() {
  do
  :: atomic { commands[_pid] > 0 -> commands[_pid]--; answers[_pid]++ }
  :: atomic { bus != transfer && answers[_pid] > 0 && !up(_pid) -> put_up(_pid) }
  :: atomic { wins(_pid) -> win(_pid) }
  :: atomic { bus == transfer && owner == _pid -> answers[_pid]--; bus = unused; owner = 0 }
  od
}

#define has_room(disk) (commands[disk] + answers[disk] < ROOM)
#define ask(disk) atomic { bus != transfer && !up(DISKS) && has_room(disk) -> target = disk; put_up(DISKS) }

active proctype Controller() {
  byte target;
  do
  :: ask(0)
#if DISKS > 1
  :: ask(1)
#endif
#if DISKS > 2
  :: ask(2)
#endif
#if DISKS > 3
  :: ask(3)
#endif
#if DISKS > 4
  :: ask(4)
#endif
#if DISKS > 5
  :: ask(5)
#endif
  :: atomic { wins(DISKS) -> win(DISKS) }
  :: atomic {
       bus == transfer && owner == DISKS ->
       assert(has_room(target));
       commands[target]++;
       bus = unused;
       owner = 0;
       target = 0
     }
  od
}
