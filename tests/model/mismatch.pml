/* Mismatched calls. W ranks make up to M calls each, and no two need agree: each call of each rank is drawn from four kinds,
   so that kinds, roots and arguments differ, calls come in another order, and a rank makes fewer of them.

     1  all_reduce          every rank puts to every rank
     2  all_reduce, of another count
     3  broadcast, root 0
     4  broadcast, root 1

   The number of the call stands for its fingerprint. It rides in two places: the progress word {m, fingerprint}, which a
   rank that runs ahead overwrites, and the data's tag {m, fingerprint}, which the licence protects. A waiter that sees
   its own m beside another fingerprint, in either of them, gives up. Deadlines are long: one passes only when nothing else
   can happen, and no second one is needed after it.

   Checked: data of another call is never taken, nor is data of another m; no deadlock; if anything ended in an error,
   every rank knows by the end; if all ranks made the same calls, nothing did; a deadline is needed only where the awaited
   rank has never shown the waiter another fingerprint: it has left, or passed by without putting anything here.

   What is not claimed: that every mismatch is an error. Two ranks that each broadcast as root put data that nobody reads
   and wait for nobody; each has what it asked for.

   Rules, each removed by its macro:
     NO_TAG_FINGERPRINT   the tag must have the waiter's fingerprint
     NO_TAG_OPERATION     the tag must have the waiter's m
     NO_TAG_REPORT        a tag of the waiter's m and another fingerprint is an error
     NO_WORD_REPORT       so is such a progress word
     NO_WORD_OPERATION    but only of the waiter's m: of another m it says nothing
     NO_LICENCE           the licence keeps a tag from being overwritten before it was seen
     NO_POISON            who gives up stores poison at every peer
     NO_POISON_IN_WAIT    waits look at the poison word too
     NO_DEADLINE          waits end by the deadline */
#ifndef W
#define W 3
#endif
#ifndef M
#define M 2
#endif
#ifndef FIRST
#define FIRST 1                              /* kinds of calls: FIRST .. LAST */
#endif
#ifndef LAST
#define LAST 4
#endif
#include "each.pml"

#define ALL_REDUCE (call == 1 || call == 2)
#define ROOT (call - 3)
#define NONE 7                               /* the rank has left before this operation */
#define WORD(m, call) ((m) * 8 + (call))
#define OPERATION(word) ((word) / 8)
#define CALL(word) ((word) % 8)
#define SLOT(p, src) ((((p) * 2 + m % 2)) * W + (src))

byte progress[W];                            /* {m, call} last announced */
byte slot[W * 2 * W];                        /* tag {m, call} last written */
bool poison[W], erred[W];
byte called[W * (M + 1)];                    /* for assertions: what was called (0: nothing yet) */
bool put_here[W * W * (M + 1)];              /* for assertions: by whom, for whom and m */
byte ended;
bool deadline_passed;

#define CALLED(p) called[(p) * (M + 1) + m]
#define PUT_HERE(src) put_here[((src) * W + me) * (M + 1) + m]

#ifdef NO_TAG_FINGERPRINT
#define TAG_FITS(src) (OPERATION(slot[SLOT(me, src)]) == m)
#elif defined(NO_TAG_OPERATION)
#define TAG_FITS(src) (CALL(slot[SLOT(me, src)]) == call)
#else
#define TAG_FITS(src) (slot[SLOT(me, src)] == WORD(m, call))
#endif
#ifdef NO_WORD_OPERATION
#define WORD_DIFFERS(p) (progress[p] > 0 && CALL(progress[p]) != call)
#else
#define WORD_DIFFERS(p) (OPERATION(progress[p]) == m && CALL(progress[p]) != call)
#endif
#define TAG_DIFFERS(src) (OPERATION(slot[SLOT(me, src)]) == m && CALL(slot[SLOT(me, src)]) != call)

/* What ends any wait. */
#ifdef NO_POISON_IN_WAIT
#define OR_POISON
#else
#define OR_POISON :: poison[me] -> goto give_up
#endif
#ifdef NO_DEADLINE
#define OR_DEADLINE(shown)
#else
#define OR_DEADLINE(shown) \
  :: timeout && !deadline_passed -> atomic { deadline_passed = true; assert(!(shown)); goto give_up }
#endif

inline put(p) {
#ifndef NO_LICENCE
  if
  :: heard || OPERATION(progress[p]) + 1 >= m
  OR_POISON
  OR_DEADLINE(false)
  fi;
#endif
  atomic { slot[SLOT(p, me)] = WORD(m, call); put_here[((me) * W + p) * (M + 1) + m] = true }
}

inline get(src) {
  if
  :: TAG_FITS(src) -> assert(slot[SLOT(me, src)] == WORD(m, CALLED(src)) && CALLED(src) == call)
#ifndef NO_TAG_REPORT
  :: TAG_DIFFERS(src) -> goto give_up
#endif
#ifndef NO_WORD_REPORT
  :: WORD_DIFFERS(src) -> goto give_up
#endif
  OR_POISON
  OR_DEADLINE(PUT_HERE(src) || (OPERATION(progress[src]) == m && CALL(progress[src]) != call))
  fi;
  assert(TAG_FITS(src))                      /* the read ends: it is still there */
}

proctype rank(byte me) {
  byte m = 1, p, call;
  bool heard;
  do
  :: m <= M ->
     if
     :: poison[me] -> goto give_up
     :: !poison[me]
     fi;
     atomic {
       if
       :: select(call : FIRST .. LAST)
       :: call = NONE
       fi;
       CALLED(me) = call;
       if
       :: call == NONE -> break
       :: else -> progress[me] = WORD(m, call)
       fi
     }
     if
     :: ALL_REDUCE ->
        EACH put(p) NEXT;
        EACH get(p) NEXT
     :: !ALL_REDUCE && ROOT == me -> EACH put(p) NEXT
     :: !ALL_REDUCE && ROOT != me -> get(ROOT)
     fi;
     heard = ALL_REDUCE;
     m++
  :: else -> break
  od;
  goto end;

give_up:
  p = 0;
  erred[me] = true;
#ifndef NO_POISON
  EACH poison[p] = true NEXT;
#endif
end:
  ended++
}

init {
  byte i, m, first;
  bool equal = true, any, all = true;
  atomic { do :: i < W -> run rank(i); i++ :: else -> break od }
  ended == W;
  d_step {
    m = 1;
    do
    :: m <= M ->
       i = 0; first = 0;
       do
       :: i < W ->
          equal = equal && (first == 0 || CALLED(i) == 0 || CALLED(i) == first);
          first = (first == 0 -> CALLED(i) : first);
          i++
       :: else -> break
       od;
       m++
    :: else -> break
    od;
    i = 0;
    do
    :: i < W -> any = any || erred[i]; all = all && (erred[i] || poison[i]); i++
    :: else -> break
    od;
    assert(!any || all);
    assert(!any || !equal)
  }
}
