/* Mismatched calls. W ranks make up to M calls each, and no two need agree: each call of each rank is drawn
   from the kinds that the bits of KINDS allow, so that kinds, roots and arguments differ, calls come in
   another order, and a rank makes fewer of them.

     1   all_reduce              every rank puts to every rank
     2   all_reduce              of another count
     4   broadcast, root 0
     8   broadcast, root 1
     16  gather, root W-1        the others put to the root and wait for nobody
     32  all_gather, zero-copy   every rank writes into every rank's user memory and tells it so (with RAW)
     64  broadcast, zero-copy    the same from root 0 alone

   A call's kind stands for its own fingerprint; the fingerprint of an operation is that of its call and of all
   calls before it. It rides in two places: in the progress word {m, fingerprint},
   which a rank that runs ahead overwrites, and with the data, where the licence protects it: in the tag {m,
   fingerprint} of LL packets, or, with RAW, in the header beside raw slots, whose arrival is told by a word
   that only grows. Who has written user memory tells so by the same header and word. A waiter that sees its
   own m beside another fingerprint gives up. Deadlines are long: one passes only when nothing else can
   happen, and no second one is needed after it.

   Checked: data of another call is never taken, nor is data of another m, nor that of a rank whose calls
   before were others; no user memory is written outside the call that lent it; no deadlock; if anything ended in an error, every rank knows by the end; if all
   ranks made the same calls, nothing did; a deadline is needed only where the awaited rank has never shown
   the waiter another fingerprint: it has left, or passed by without putting anything here.

   What is not claimed: that every mismatch is an error at once. Two ranks that each broadcast as root put data
   that nobody reads and wait for nobody; they find it out when next one of them needs the other.

   Rules, each removed by its macro:
     NO_TAG_FINGERPRINT   tag or header must have the waiter's fingerprint
     NO_TAG_OPERATION     and the waiter's m: in RAW an arrival word that has run ahead proves nothing of m
     NO_HISTORY           a fingerprint has the calls before in it
     NO_TAG_REPORT        a tag of the waiter's m and another fingerprint is an error
     NO_WORD_REPORT       so is such a progress word
     NO_WORD_OPERATION    but only of the waiter's m: of another m it says nothing
     NO_ENTRY_EXACT       user memory is written only while its owner's word is the waiter's own, m and
                          fingerprint; its owner cannot have gone further without being told
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
#ifndef KINDS
#define KINDS 15
#endif
#include "each.pml"

#define ALL_REDUCE (call == 1 || call == 2)
#define BROADCAST (call == 3 || call == 4)
#define GATHER (call == 5)
#define ALL_GATHER_ZERO (call == 6)
#define BROADCAST_ZERO (call == 7)
#define ROOT (GATHER -> W - 1 : (BROADCAST_ZERO -> 0 : call - 3))
#define NONE 8                               /* the rank has left before this operation */

/* history: all calls of the rank so far, three bits each. */
#define WORD(m, print) ((m) * 4096 + (print))
#define OPERATION(word) ((word) / 4096)
#define PRINT(word) ((word) % 4096)
#ifdef NO_HISTORY
#define OWN_PRINT call
#else
#define OWN_PRINT history
#endif
#define OWN_WORD WORD(m, OWN_PRINT)
#define SLOT(p, src) slot[(((p) * 2 + m % 2)) * W + (src)]
#define ARRIVAL(p, src) arrival[(p) * W + (src)]

short progress[W];                           /* {m, fingerprint} last announced */
short slot[W * 2 * W];                       /* {m, fingerprint}: the tag, or the header, and what the data really is */
byte arrival[W * W];                         /* last m whose raw data have come, or whose writes are done */
bool poison[W], erred[W];
byte ended;
bool deadline_passed;
short inside[W];                             /* for assertions: {m, fingerprint} that the rank's user memory is lent to */
short called[W * (M + 1)];                   /* for assertions: what was called, with all before (0: nothing yet) */
bool put_here[W * W * (M + 1)];              /* for assertions: by whom, for whom and m */

#define CALLED(p) called[(p) * (M + 1) + m]
#define PUT(src, p) put_here[((src) * W + (p)) * (M + 1) + m]

/* Data of operation m have come from src, as far as this rank can see, and they are of the waiter's call. */
#ifdef RAW
#define COME(src) (ARRIVAL(me, src) >= m)
#else
#define COME(src) (OPERATION(SLOT(me, src)) == m)
#endif
#if defined(NO_TAG_FINGERPRINT)
#define AGREES(src) (COME(src) && OPERATION(SLOT(me, src)) == m)
#elif defined(NO_TAG_OPERATION) && defined(RAW)
#define AGREES(src) (COME(src) && (SLOT(me, src) == OWN_WORD || OPERATION(SLOT(me, src)) != m))
#elif defined(NO_TAG_OPERATION)
#define AGREES(src) (PRINT(SLOT(me, src)) % 8 == call)       /* 16 bits would not tell m from m-2 for ever */
#else
#define AGREES(src) (COME(src) && SLOT(me, src) == OWN_WORD)
#endif
#ifdef NO_WORD_OPERATION
#define WORD_DIFFERS(p) (progress[p] > 0 && PRINT(progress[p]) != OWN_PRINT)
#else
#define WORD_DIFFERS(p) (OPERATION(progress[p]) == m && progress[p] != OWN_WORD)
#endif
#ifdef NO_ENTRY_EXACT
#define ENTERED(p) (OPERATION(progress[p]) >= m && !WORD_DIFFERS(p))
#else
#define ENTERED(p) (progress[p] == OWN_WORD)
#endif
/* The awaited rank has shown this one a fingerprint, so this one had no need to wait for the deadline. */
#define SHOWN(p) (PUT(p, me) || (OPERATION(progress[p]) == m && progress[p] != OWN_WORD))

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
#ifdef NO_WORD_REPORT
#define OR_WORD(p)
#else
#define OR_WORD(p) :: WORD_DIFFERS(p) -> goto give_up
#endif
#ifdef NO_TAG_REPORT
#define OR_TAG(src)
#else
#define OR_TAG(src) :: COME(src) && !AGREES(src) -> goto give_up
#endif

inline publish(p) {
  atomic { SLOT(p, me) = OWN_WORD; PUT(me, p) = true };
#ifdef RAW
  ARRIVAL(p, me) = m
#else
  skip
#endif
}

inline put(p) {
#ifndef NO_LICENCE
  if
  :: heard || OPERATION(progress[p]) + 1 >= m
  OR_POISON
  OR_DEADLINE(false)
  fi;
#endif
  publish(p)
}

inline put_to_user(p) {
  if
  :: ENTERED(p)
#ifndef NO_ENTRY_EXACT
  :: OPERATION(progress[p]) > m -> goto give_up
#endif
  OR_WORD(p)
  OR_POISON
  OR_DEADLINE(SHOWN(p))
  fi;
  assert(inside[p] == OWN_WORD);
  publish(p)
}

inline get(src) {
  if
  :: AGREES(src) -> assert(OPERATION(SLOT(me, src)) == m && CALLED(src) == history)
  OR_TAG(src)
  OR_WORD(src)
  OR_POISON
  OR_DEADLINE(SHOWN(src))
  fi;
  assert(AGREES(src))                        /* the read ends: it is still there */
}

proctype rank(byte me) {
  byte m = 1, p, call;
  short history;
  bool heard;
  do
  :: m <= M ->
     if
     :: poison[me] -> goto give_up
     :: !poison[me]
     fi;
     atomic {
       if
#if KINDS & 1
       :: call = 1
#endif
#if KINDS & 2
       :: call = 2
#endif
#if KINDS & 4
       :: call = 3
#endif
#if KINDS & 8
       :: call = 4
#endif
#if KINDS & 16
       :: call = 5
#endif
#if KINDS & 32
       :: call = 6
#endif
#if KINDS & 64
       :: call = 7
#endif
       :: call = NONE
       fi;
       if
       :: call == NONE -> CALLED(me) = -1; break
       :: else ->
          history = history * 8 + call;
          CALLED(me) = history;
          progress[me] = OWN_WORD;
          inside[me] = OWN_WORD
       fi
     }
     if
     :: ALL_REDUCE ->
        EACH put(p) NEXT;
        EACH get(p) NEXT
     :: BROADCAST && ROOT == me -> EACH put(p) NEXT
     :: BROADCAST && ROOT != me -> get(ROOT)
     :: GATHER && ROOT == me -> EACH get(p) NEXT
     :: GATHER && ROOT != me -> put(ROOT)
     :: ALL_GATHER_ZERO ->
        EACH put_to_user(p) NEXT;
        EACH get(p) NEXT
     :: BROADCAST_ZERO && ROOT == me -> EACH put_to_user(p) NEXT
     :: BROADCAST_ZERO && ROOT != me -> get(ROOT)
     fi;
     atomic { inside[me] = 0; heard = ALL_REDUCE || ALL_GATHER_ZERO; m++ }
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
  byte i, m;
  short first;
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
