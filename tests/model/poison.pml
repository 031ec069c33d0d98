/* Every wait ends. W ranks pass M operations (REDUCE: two phases, everyone hears from everybody, the second
   phase carries results; BCAST: root -> the others), destroy, and reuse the memory for something else.
   Meanwhile
     - DEADLINES ranks in all give up at a wait, any wait, early or never;
     - CRASHES ranks in all stop dead before any step, and the system closes their connections;
     - SHORT ranks in all leave after fewer than M calls.
   A wait may end by its word, by poison, by a connection that closed without goodbye, by the awaited rank's
   having left, or by the deadline, in any order of looking; none of these must come for another to end it, so
   a deadlock here is a hang in the library. Who gives up stores poison at one peer after the other and has no
   part in anything any more.

   Checked: no deadlock; success means that all of the operation's data arrived and that all of it was made of
   the data of everybody; no success after an error; no error unless something of the above happened; no store
   into memory that its owner has put to another use.

   Rules, each removed by its macro:
     NO_POISON          who gives up stores poison at every peer
     NO_POISON_IN_WAIT  waits look at the poison word too
     NO_EOF             waits look at closed connections too
     NO_SILENCE         who has given up publishes nothing more in this operation
     NO_VERDICT         a wait that ended by anything but its word fails the operation
     NO_RETURN_AT_ONCE  a launch on a poisoned communicator returns at once
     NO_LEFT            a wait ends if the awaited rank has left
     NO_RECHECK         but only if its word, looked at again after that, is still not there
     NO_LEFT_LAST       a rank says that it has left after all of its stores
     NO_GOODBYE         and before its connection closes: then the closing is no crash
     NO_DRAIN           memory is reused when all ranks have drained (or crashed) */
#ifndef W
#define W 3
#endif
#ifndef M
#define M 2
#endif
#ifndef DEADLINES
#define DEADLINES 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef SHORT
#define SHORT 0
#endif
#ifndef ROOTS
#define ROOTS 2                              /* ranks 0 .. ROOTS-1 may be root */
#endif
#include "each.pml"

#define REDUCE 1
#define BCAST  2
#define SLOT(p, par, half, src) (((((p) * 2 + (par)) * 2 + (half)) * W) + (src))
/* Data of operation m, whole or lacking somebody's part; whoever receives it cannot tell. */
#define DATA(m, whole) ((m) * 2 + (whole))

byte op[M + 1], root[M + 1];
byte progress[W];                            /* last operation announced */
byte slot[W * 4 * W];
bool poison[W];                              /* stored by peers */
bool left[W];                                /* the rank has destroyed, and says so at its peers */
bool closed[W];                              /* its connection has ended, whatever the reason */
bool ended[W], drained[W], reused[W];       /* all calls have returned; no store is under way; memory given away */
byte deadlines = DEADLINES, crashes = CRASHES, shorts = SHORT;

#if W == 2
#define ANY(f) (f(0) || f(1))
#define ALL(f) (f(0) && f(1))
#else
#define ANY(f) (f(0) || f(1) || f(2))
#define ALL(f) (f(0) && f(1) && f(2))
#endif
#define DIED(p) (p != me && closed[p] && !left[p])
#define DRAINED(p) (drained[p] || (closed[p] && !left[p]))
#define ENDED(p) (ended[p] || closed[p])
#define OURS(p) (!reused[p])
#define HARM_DONE (deadlines < DEADLINES || crashes < CRASHES || shorts < SHORT)

inline crash_or_go_on() {
#if CRASHES
  if
  :: atomic { crashes > 0 -> crashes--; closed[me] = true; goto crashed }
  :: true
  fi
#else
  skip
#endif
}

/* Waits until `there`, a word that rank `peer` stores. Whatever else ends it makes the operation fail. */
inline await(there, peer) {
  if
  :: there -> ended_by_word = true
#ifndef NO_POISON_IN_WAIT
  :: poison[me] -> ended_by_word = false
#endif
#ifndef NO_EOF
  :: ANY(DIED) -> ended_by_word = false
#endif
#if defined(NO_RECHECK)
  :: left[peer] -> ended_by_word = false
#elif !defined(NO_LEFT)
  :: left[peer] -> ended_by_word = there
#endif
#if DEADLINES
  :: atomic { deadlines > 0 -> deadlines--; ended_by_word = false }
#endif
#if CRASHES
  :: atomic { crashes > 0 -> crashes--; closed[me] = true; goto crashed }
#endif
  fi;
#if defined(NO_VERDICT)
  skip
#elif defined(NO_SILENCE)
  failed = failed || !ended_by_word
#else
  if
  :: !ended_by_word -> goto give_up
  :: else
  fi
#endif
}

inline put(p, half, whole) {
  await((heard || progress[p] + 1 >= m), p);
  crash_or_go_on();
  atomic { assert(!reused[p]); slot[SLOT(p, m % 2, half, me)] = DATA(m, whole) }
}

/* `got` counts what arrived, for the assertions alone. */
inline get(p, half) {
  await((slot[SLOT(me, m % 2, half, p)] / 2 == m), p);
  atomic {
    assert(!ended_by_word || half == 0 || slot[SLOT(me, m % 2, half, p)] == DATA(m, 1));
    got = got + ended_by_word
  }
}

proctype rank(byte me) {
  byte m = 1, p, n, got, calls = M;
  bool ended_by_word, failed, erred, heard;
#if SHORT
  if
  :: atomic { shorts > 0 -> shorts--; select(calls : 0 .. (M - 1)) }
  :: true
  fi;
#endif
again:
  do
  :: m <= calls ->
#ifndef NO_RETURN_AT_ONCE
     if
     :: erred || poison[me] || ANY(DIED) -> goto give_up
     :: !erred && !poison[me] && !ANY(DIED)
     fi;
#endif
     crash_or_go_on();
     atomic {
       if
       :: op[m] == 0 ->
          if
          :: op[m] = REDUCE
          :: op[m] = BCAST; select(n : 0 .. (ROOTS - 1)); root[m] = n
          fi;
          n = 0
       :: else
       fi;
       assert(ALL(OURS));
#ifdef NO_LEFT_LAST
       left[me] = (m == calls);
#endif
       progress[me] = m
     }
     if
     :: op[m] == REDUCE ->
        EACH put(p, 0, 1) NEXT;
        EACH get(p, 0) NEXT;
        EACH put(p, 1, got == W - 1) NEXT;
        EACH get(p, 1) NEXT;
        assert(failed || got == 2 * (W - 1));
        heard = true
     :: op[m] == BCAST && root[m] == me ->
        EACH put(p, 0, 1) NEXT;
        heard = false
     :: op[m] == BCAST && root[m] != me ->
        get(root[m], 0);
        assert(failed || got == 1);
        heard = false
     fi;
     got = 0;
     if
     :: failed -> goto give_up
     :: else -> assert(!erred)               /* success */
     fi;
     m++
  :: else -> break
  od;
  goto leave;

give_up:
  atomic { assert(HARM_DONE); ended_by_word = false; got = 0; heard = false; erred = true; failed = false; p = 0 }
#ifndef NO_POISON
  EACH crash_or_go_on(); atomic { assert(!reused[p]); poison[p] = true } NEXT;
#endif
#ifdef NO_RETURN_AT_ONCE
  if
  :: m < calls -> m++; goto again
  :: else
  fi;
#endif

leave:
  ended[me] = true;
  if
  :: erred -> ALL(ENDED)                     /* a user may keep a failed communicator: none may need its end */
  :: else
  fi;
#ifdef NO_GOODBYE
  closed[me] = true;
  atomic { assert(ALL(OURS)); left[me] = true; drained[me] = true };
#else
  atomic { assert(ALL(OURS)); left[me] = true };
  drained[me] = true;
  closed[me] = true;
#endif
#ifndef NO_DRAIN
  ALL(DRAINED);
#endif
  reused[me] = true;
crashed:
  skip
}

init { byte i; atomic { do :: i < W -> run rank(i); i++ :: else -> break od } }
