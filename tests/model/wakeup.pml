/* Sleep and wake on the host platform. WRITERS peers count up a word each in the control memory of one rank;
   WAITERS threads of that rank wait for each word to reach each value. A waiter looks at the word for a
   while, then registers (adds itself to `sleepers`, in its own control memory), reads the futex's sequence,
   looks at the word again, and sleeps on the sequence. A writer stores the word, loads `sleepers`, and only
   if there is one adds to the sequence and wakes all.

   The writer has no fence between its store and its load: the store sits in its store buffer (in order, as on
   x86) while the load is answered from memory, so that a wake can be missed. That is what the timer is for: a
   waiter's sleeps are short until one of them has run its full time. The only assumption about time is that a
   store leaves the buffer before such a sleep ends. From then on the waiter has been registered since before
   any store that is yet to come, and may sleep long. Long sleeps are endless here: nothing may need them to
   end. A wake that was meant for somebody else ends a sleep early and proves nothing.

   Checked: every waiter gets every value (no deadlock), and a timer runs out on a word that is there only if
   the writer's load did overtake its store (or its wake is still to come): the timer hides no other fault.
   With FENCE (the load waits for the store) the protocol needs no short sleep.

   Rules, each removed by its macro:
     NO_TIMER       sleeps are short
     NO_FULL_TIME   until one has run its full time, not just until the first one has ended
     NO_REGISTER    who sleeps is registered
     NO_STAY        and stays so from before its first sleep to the end of its wait
     NO_COUNT       `sleepers` counts, since several may sleep
     NO_RECHECK     the word is looked at again after registering
     NO_SEQUENCE    the sequence is read before that look, not after
     NO_BUMP        who wakes adds to the sequence first
     NO_WAKE_ALL    and wakes all, since sleepers wait for different words */
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef N
#define N 1                                  /* values of each word */
#endif

byte issued[WRITERS], word[WRITERS];         /* last value stored; last one that has left the store buffer */
byte sleepers, sequence;
bool asleep[WAITERS];
/* For assertions: the load of `sleepers` overtook the store of this value; a writer is between its store and its wake. */
bool overtaken[WRITERS * (N + 1)], busy[WRITERS];

#if WRITERS == 1
#define ALL_LANDED (word[0] == issued[0])
#else
#define ALL_LANDED (word[0] == issued[0] && word[1] == issued[1])
#endif

/* Empties a writer's store buffer, whenever. */
proctype buffer(byte w) {
end:
  do
  :: word[w] < issued[w] -> word[w]++
  od
}

proctype writer(byte w) {
  byte i, seen;
  do
  :: issued[w] < N ->
     atomic { issued[w]++; busy[w] = true };
#ifdef FENCE
     word[w] == issued[w];
#endif
     atomic { seen = sleepers; overtaken[w * (N + 1) + issued[w]] = (word[w] < issued[w]) }
     if
     :: seen > 0 ->
#ifndef NO_BUMP
        atomic { word[w] == issued[w]; sequence++ }           /* a locked instruction empties the buffer */
#else
        word[w] == issued[w];
#endif
        d_step {
          i = 0;
          do
          :: i < WAITERS && asleep[i] ->
             asleep[i] = false;
#ifdef NO_WAKE_ALL
             break
#else
             i++
#endif
          :: i < WAITERS && !asleep[i] -> i++
          :: else -> break
          od;
          i = 0; seen = 0
        }
     :: else
     fi;
     busy[w] = false
  :: else -> break
  od
}

inline come_to_sleep() {
#if defined(NO_REGISTER)
  skip
#elif defined(NO_COUNT)
  sleepers = 1
#else
  sleepers++
#endif
}

inline go_from_sleep() {
#if defined(NO_REGISTER)
  skip
#elif defined(NO_COUNT)
  sleepers = 0
#else
  sleepers--
#endif
}

#ifdef NO_RECHECK
#define LOOK_AGAIN woken
#else
#define LOOK_AGAIN true
#endif

inline await(w, v) {
  if
  :: word[w] >= v                            /* seen while spinning */
  :: true ->
     timed = true;
     come_to_sleep();
     do
     :: true ->
#ifndef NO_SEQUENCE
        before = sequence;
#endif
        if
        :: LOOK_AGAIN && word[w] >= v -> break
        :: !(LOOK_AGAIN && word[w] >= v)
        fi;
#ifdef NO_SEQUENCE
        before = sequence;
#endif
        atomic { asleep[me] = (sequence == before) }          /* the system compares and queues at once */
        if
        :: !asleep[me] ->
#ifdef NO_FULL_TIME
           timed = false
#else
           skip
#endif
#ifndef NO_TIMER
        :: atomic {
             asleep[me] && timed && ALL_LANDED ->
             assert(word[w] < v || busy[w] || overtaken[w * (N + 1) + v]);
             asleep[me] = false;
             timed = false
           }
#endif
        fi;
        woken = true;
#ifdef NO_STAY
        go_from_sleep();
        come_to_sleep();
#endif
     od;
     atomic { go_from_sleep(); woken = false; before = 0; timed = false }
  fi
}

proctype waiter(byte me) {
  byte w, v = 1, before;
  bool timed, woken;
  do
  :: v <= N ->
     await(w, v);
     atomic {
       w++;
       if
       :: w == WRITERS -> w = 0; v++
       :: else
       fi
     }
  :: else -> break
  od
}

init {
  byte i;
  atomic {
    do :: i < WRITERS -> run writer(i); run buffer(i); i++ :: else -> i = 0; break od;
    do :: i < WAITERS -> run waiter(i); i++ :: else -> break od
  }
}
