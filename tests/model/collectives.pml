/* Announce, licence, publish: what keeps collectives apart that do not end in a barrier. W ranks pass M
   operations, drawn anew for each m and equal on all ranks (mismatch.pml has them differ), of KINDS kinds:

     REDUCE  all_reduce in two phases through staging, a half of the slot each; everyone hears from everybody
     BCAST   root -> staging; the root waits for nobody
     DIRECT  root -> the peers' user memory
     PULL    root <- the peers' user memory; a peer stays until the root is done with it
     LONG    root -> staging in R rounds: two sub-slots of the operation's own slot, a credit for each round
     GATHER  everyone -> the root's staging; the root hears from everybody, the others from nobody
     ROUNDS  all_to_all in R rounds, sub-slots and credits as LONG, both ways between every two ranks

   Checked: no slot is overwritten before it was read, no user memory is touched outside the operation that
   lent it, no deadlock. A wait is for one tag exactly, so reading anything stale would show as a deadlock or
   as an overwritten slot.

   With LATE, REDUCE, BCAST and GATHER announce themselves behind their first puts, as LL operations may: they
   order nothing by it.

   Stores arrive at once. That loses nothing: words only grow, so a late store is a late waiter; announcements
   and credits that are seen at once grant licences as early as any memory could; and "the slot is free" is
   asserted where the store is issued, which is stricter than where it lands.

   Rules, each removed by its macro:
     NO_LICENCE              write slot m only after the reader has announced m-1
     NO_LICENCE_IN_SYNC      synchronising operations check it too: it is m-1 that may excuse from it, not m
     NO_HEARD                the check is skipped only if m-1 heard from everybody
     NO_PARITY               slots alternate (m mod 2)
     NO_HALVES               two phases, two parts of the slot
     NO_OWN_SLOT             rounds stay in their operation's slot, never in the other one
     NO_SUBSLOTS             round r waits for the credit of the round whose sub-slot it takes
     NO_ANNOUNCE_AFTER_READS m+1 is announced after the reads of m have ended
     NO_ANNOUNCED_FOR_WRITE  user memory is written only after its owner has announced m itself
     NO_ANNOUNCED_FOR_READ   the same for reading it
     NO_DONE                 whose memory is read stays until the reader is done */
#ifndef W
#define W 3
#endif
#ifndef M
#define M 3
#endif
#ifndef KINDS
#define KINDS 7
#endif
#ifndef ROOTS
#define ROOTS 2                              /* ranks 0 .. ROOTS-1 may be root */
#endif
#ifndef R
#define R 3                                  /* rounds: one more than there are sub-slots */
#endif
#include "each.pml"

#define REDUCE 1
#define BCAST  2
#define DIRECT 3
#define PULL   4
#define LONG   5
#define GATHER 6
#define ROUNDS 7
#define ROOTED (op[m] != REDUCE && op[m] != ROUNDS)
#define AT_ROOT (root[m] == me)

#define TAG(m, r) ((m) * 4 + (r))
#define SLOT(p, par, half, src) (((((p) * 2 + (par)) * 2 + (half)) * W) + (src))

byte op[M + 1], root[M + 1];
byte progress[W];                            /* last operation announced */
byte inside[W];                              /* operation that the rank's user memory is lent to; 0: to none */
byte slot[W * 4 * W];                        /* tag last written */
byte used[W * 4 * W];                        /* tag last read to its end; the credit, seen by the writer */
byte window[W];                              /* operation that last wrote the rank's user memory */
byte given[W];                               /* the rank's reader is done with it */

#ifdef NO_PARITY
#define PARITY(m) 0
#else
#define PARITY(m) ((m) % 2)
#endif
#ifdef NO_HALVES
#define SECOND 0
#else
#define SECOND 1
#endif
#ifdef NO_OWN_SLOT
#define SUB_PARITY(m, r) (((m) + (r)) % 2)
#define SUB_HALF(r) 0
#else
#define SUB_PARITY(m, r) PARITY(m)
#define SUB_HALF(r) ((r) % 2)
#endif
#define SUB(p, m, r, src) SLOT(p, SUB_PARITY(m, r), SUB_HALF(r), src)

#ifdef NO_ANNOUNCE_AFTER_READS
#define ANNOUNCED (m + 1)
#else
#define ANNOUNCED m
#endif
#ifdef LATE
#define ANNOUNCE_ON_ENTRY \
  if \
  :: op[m] == REDUCE || op[m] == BCAST || op[m] == GATHER \
  :: else -> progress[me] = ANNOUNCED \
  fi
#define ANNOUNCE_LATE progress[me] = ANNOUNCED
#else
#define ANNOUNCE_ON_ENTRY progress[me] = ANNOUNCED
#define ANNOUNCE_LATE skip
#endif

inline licence(p) {
#if defined(NO_LICENCE)
  skip
#elif defined(NO_LICENCE_IN_SYNC)
  (heard || !ROOTED || progress[p] + 1 >= m)
#else
  (heard || progress[p] + 1 >= m)
#endif
}

inline put(p, par, half, tag) {
  licence(p);
  atomic {
    assert(slot[SLOT(p, par, half, me)] == used[SLOT(p, par, half, me)]);
    slot[SLOT(p, par, half, me)] = tag
  }
}

inline get(src, par, half, tag) {
  slot[SLOT(me, par, half, src)] == tag;
  used[SLOT(me, par, half, src)] = tag       /* the read ends some time later */
}

inline put_round(p) {
#ifndef NO_SUBSLOTS
  if
  :: r >= 2 -> used[SUB(p, m, r - 2, me)] >= TAG(m, r - 2)
  :: else
  fi;
#endif
  put(p, SUB_PARITY(m, r), SUB_HALF(r), TAG(m, r))
}

#ifdef NO_HEARD
#define HEARD true
#elif defined(NO_LICENCE_IN_SYNC)
#define HEARD false                          /* keeps this rule's removal apart from the skip */
#else
#define HEARD (!ROOTED || (AT_ROOT && (op[m] == GATHER || op[m] == DIRECT || op[m] == PULL)))
#endif

proctype rank(byte me) {
  byte m = 1, p, r;
  bool heard = false;                        /* operation m-1 heard from everybody: the word beside the epoch */
  do
  :: m <= M ->
     atomic {
       if
       :: op[m] == 0 ->
          select(r : 1 .. KINDS); op[m] = r;
          if
          :: ROOTED -> select(r : 0 .. (ROOTS - 1)); root[m] = r
          :: else
          fi;
          r = 0
       :: else
       fi;
       inside[me] = m;
       ANNOUNCE_ON_ENTRY
     }
     if
     :: op[m] == REDUCE ->
        EACH put(p, PARITY(m), 0, TAG(m, 0)) NEXT;
        ANNOUNCE_LATE;
        EACH get(p, PARITY(m), 0, TAG(m, 0)) NEXT;
        EACH put(p, PARITY(m), SECOND, TAG(m, 1)) NEXT;
        EACH get(p, PARITY(m), SECOND, TAG(m, 1)) NEXT

     :: op[m] == BCAST && AT_ROOT -> EACH put(p, PARITY(m), 0, TAG(m, 0)) NEXT; ANNOUNCE_LATE
     :: op[m] == BCAST && !AT_ROOT -> ANNOUNCE_LATE; get(root[m], PARITY(m), 0, TAG(m, 0))

     :: op[m] == DIRECT && AT_ROOT ->
#ifdef NO_ANNOUNCED_FOR_WRITE
        EACH licence(p); atomic { assert(inside[p] == m); window[p] = m } NEXT
#else
        EACH progress[p] >= m; atomic { assert(inside[p] == m); window[p] = m } NEXT
#endif
     :: op[m] == DIRECT && !AT_ROOT -> window[me] == m

     :: op[m] == PULL && AT_ROOT ->
#ifdef NO_ANNOUNCED_FOR_READ
        EACH licence(p); assert(inside[p] == m); given[p] = m NEXT
#else
        EACH progress[p] >= m; assert(inside[p] == m); given[p] = m NEXT
#endif
     :: op[m] == PULL && !AT_ROOT ->
#ifdef NO_DONE
        skip
#else
        given[me] == m
#endif

     :: op[m] == LONG && AT_ROOT ->
        do
        :: r < R -> EACH put_round(p) NEXT; r++
        :: else -> r = 0; break
        od
     :: op[m] == LONG && !AT_ROOT ->
        do
        :: r < R -> get(root[m], SUB_PARITY(m, r), SUB_HALF(r), TAG(m, r)); r++
        :: else -> r = 0; break
        od

     :: op[m] == GATHER && AT_ROOT -> ANNOUNCE_LATE; EACH get(p, PARITY(m), 0, TAG(m, 0)) NEXT
     :: op[m] == GATHER && !AT_ROOT -> put(root[m], PARITY(m), 0, TAG(m, 0)); ANNOUNCE_LATE

     :: op[m] == ROUNDS ->
        do
        :: r < R ->
           EACH put_round(p) NEXT;
           EACH get(p, SUB_PARITY(m, r), SUB_HALF(r), TAG(m, r)) NEXT;
           r++
        :: else -> r = 0; break
        od
     fi;
     atomic { inside[me] = 0; heard = HEARD; m++ }
  :: else -> break
  od
}

init { byte i; atomic { do :: i < W -> run rank(i); i++ :: else -> break od } }
