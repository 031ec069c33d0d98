/* Send and receive in groups. W ranks pass G groups; a group is one launch, which moves all of its messages
   at once: no pair of ranks waits for another pair, and the two directions of a pair do not wait for each
   other. Each ordered pair has a ring of K chunks at the receiver and words that only grow, 64 bits and never
   reset (bytes here; they count to a dozen): at the receiver `message` (messages begun) with `size` (chunks
   of that one) and `sent` (chunks written), at the sender `consumed` (chunks read). A message may be longer
   than the ring. A send is over only when the receiver has consumed all of it; the pair's next message begins
   after that, so that one `size` serves them all.

   In each group each ordered pair has up to Q messages of 0 (none), 1 or L chunks. Q = 0 draws one length for
   the whole group instead and a pattern: a ring of sends, everybody to everybody, or everybody to rank 0.
   With WRONG = 1 one receive somewhere may expect the other length: the receiver says so, and everybody ends
   by poison.

   Writing a chunk and publishing it, reading it and giving its credit are steps of their own, and each step
   of each pair is taken in any order: that covers a launch in which a pair is a CTA, and one in which one
   thread progresses all. COARSE makes one step of all that concerns a chunk, for more ranks (Q up to 1).

   Checked: a chunk is never overwritten before it was read; what is read is the next chunk of the next
   message, whole and in order; no deadlock; a group that succeeds has moved all of its messages, each between
   calls of one length; no error unless a length was wrong.

   Rules, each removed by its macro:
     NO_CREDIT          a chunk is written only while fewer than K are unread
     NO_PUBLISH_LAST    `sent` grows after the chunk has been written
     NO_CONSUME_LAST    `consumed` grows after the chunk has been read
     NO_SIZE_CHECK      the receiver compares the size that came with what it was called for
     NO_SYNC_SEND       a send is over when all of it was consumed, not when all of it was written
     NO_GROUP_PROGRESS  a group's messages move side by side, not one after the other
     NO_MONOTONE        the words go on counting from group to group
     NO_POISON          who ends in an error poisons its peers */
#ifndef W
#define W 2
#endif
#ifndef K
#define K 2                                  /* chunks of a ring */
#endif
#ifndef L
#define L 3                                  /* chunks of a long message */
#endif
#ifndef G
#define G 2
#endif
#ifndef Q
#define Q 2                                  /* messages of a pair in one group, at most */
#endif
#ifndef WRONG
#define WRONG 0
#endif
#include "each.pml"

#if Q == 0
#define PER_PAIR 1
#else
#define PER_PAIR Q
#endif
#define PAIR(src, dst) ((src) * W + (dst))
#define LEN(src, dst, g, q) chunks[(PAIR(src, dst) * G + (g)) * PER_PAIR + (q)]
#define RING(src, dst, n) ring[PAIR(src, dst) * K + (n) % K]
#define CHUNK(g, q, i) (1 + ((g) * PER_PAIR + (q)) * (L + 1) + (i))

byte chunks[W * W * G * PER_PAIR];              /* lengths sent, drawn by whoever enters a group first */
bool drawn[G];
byte wrong;                                  /* 1 + pair whose receiver was called with another length; 0: none */
byte wrong_group, wrong_message;

byte ring[W * W * K];                        /* the chunk that lies there; 0: none, or read */
byte message[W * W], size[W * W], sent[W * W], consumed[W * W];
bool poison[W];
byte received[W * W];                        /* messages received whole, for the assertion alone */

#define WANTED(src, dst, g, q) \
  ((wrong == 1 + PAIR(src, dst) && wrong_group == (g) && wrong_message == (q)) -> \
     ((LEN(src, dst, g, q) == 1) -> L : 1) : LEN(src, dst, g, q))

inline draw_one(s, d, g) {
  q = 0;
  do
  :: q < Q ->
     if
     :: LEN(s, d, g, q) = 0; q = Q           /* messages of a pair are numbered without gaps */
     :: LEN(s, d, g, q) = 1; q++
     :: LEN(s, d, g, q) = L; q++
     fi
  :: else -> q = 0; break
  od
}

inline draw(g) {
  atomic {
    if
    :: !drawn[g] ->
       drawn[g] = true;
       s = 0;
#if Q == 0
       if :: n = 1 :: n = L fi;
       if :: pattern = 0 :: pattern = 1 :: pattern = 2 fi;
#endif
       do
       :: s < W ->
          d = 0;
          do
          :: d < W ->
             if
             :: s != d ->
#if Q == 0
                if
                :: (pattern == 0 && d == (s + 1) % W) || pattern == 1 || (pattern == 2 && d == 0) ->
                   LEN(s, d, g, 0) = n
                :: else
                fi;
#else
                draw_one(s, d, g);
#endif
#if WRONG
                q = 0;
                do
                :: q < PER_PAIR ->
                   if
                   :: !wrong && LEN(s, d, g, q) ->
                      if
                      :: wrong = 1 + PAIR(s, d); wrong_group = g; wrong_message = q
                      :: skip
                      fi
                   :: else
                   fi;
                   q++
                :: else -> q = 0; break
                od
#endif
             :: else
             fi;
             d++
          :: else -> d = 0; break
          od;
          s++
       :: else -> s = 0; n = 0; pattern = 0; break
       od
    :: else
    fi
  }
}

/* A rank's half of a pair: the message it is at (whether it has begun), chunks of it, chunks ever, a chunk that has been
   written or read but not yet told. */
#define SEND_LEFT(p) (p != me && out_q[p] < PER_PAIR && LEN(me, p, g, out_q[p]) > 0)
#define RECV_LEFT(p) (p != me && in_q[p] < PER_PAIR && LEN(p, me, g, in_q[p]) > 0)

#ifdef NO_CREDIT
#define CREDIT(p) true
#else
#define CREDIT(p) (out_n[p] - consumed[PAIR(me, p)] < K)
#endif
#ifdef NO_SYNC_SEND
#define OVER(p) (out_i[p] == LEN(me, p, g, out_q[p]))
#else
#define OVER(p) (out_i[p] == LEN(me, p, g, out_q[p]) && consumed[PAIR(me, p)] == out_n[p])
#endif
#ifdef NO_GROUP_PROGRESS
#define SEND_TURN(p) (turn == p)
#define RECV_TURN(p) (turn == W + p)
#else
#define SEND_TURN(p) true
#define RECV_TURN(p) true
#endif

inline begin_send(p) {
  size[PAIR(me, p)] = LEN(me, p, g, out_q[p]);
  message[PAIR(me, p)]++;
  out_open[p] = true
}

inline end_send(p) { out_open[p] = false; out_i[p] = 0; out_q[p]++ }

inline begin_receive(p) {
  if
#ifndef NO_SIZE_CHECK
  :: size[PAIR(p, me)] != WANTED(p, me, g, in_q[p]) -> failed = true
#endif
  :: else -> in_m[p]++; in_open[p] = true
  fi
}

inline write_chunk(p) {
  assert(RING(me, p, out_n[p]) == 0);        /* an unread chunk would be lost */
  RING(me, p, out_n[p]) = CHUNK(g, out_q[p], out_i[p])
}

inline read_chunk(p) {
  assert(RING(p, me, in_n[p]) == CHUNK(g, in_q[p], in_i[p]));
  RING(p, me, in_n[p]) = 0
}

inline count_read(p) {
  in_n[p]++; in_i[p]++;
  if
  :: in_i[p] == WANTED(p, me, g, in_q[p]) ->
     assert(in_i[p] == LEN(p, me, g, in_q[p]));
     received[PAIR(p, me)]++; in_i[p] = 0; in_q[p]++; in_open[p] = false
  :: else
  fi
}

/* The steps that rank `me` can take with p. */
#define CAN_WRITE(p) (out_open[p] && out_i[p] < LEN(me, p, g, out_q[p]) && !out_begun[p] && CREDIT(p))
#define CAN_READ(p) (in_open[p] && sent[PAIR(p, me)] > in_n[p] && !in_begun[p])
#ifdef COARSE
#define SENT_ALL(p) (p == me || LEN(me, p, g, 0) == 0 || OVER(p))
#define RECEIVED_ALL(p) (!RECV_LEFT(p))
#define STEPS(p) \
  :: !failed && SEND_LEFT(p) && out_i[p] < LEN(me, p, g, 0) && CREDIT(p) -> \
       atomic { \
         if \
         :: out_i[p] == 0 -> begin_send(p) \
         :: else \
         fi; \
         write_chunk(p); out_n[p]++; out_i[p]++; sent[PAIR(me, p)] = out_n[p] \
       } \
  :: !failed && RECV_LEFT(p) && sent[PAIR(p, me)] > in_n[p] -> \
       atomic { \
         if \
         :: in_i[p] == 0 -> begin_receive(p) \
         :: else \
         fi; \
         if \
         :: !failed -> read_chunk(p); count_read(p); consumed[PAIR(p, me)] = in_n[p] \
         :: else \
         fi \
       }
#else
#define SENT_ALL(p) (!SEND_LEFT(p) && !out_open[p])
#define RECEIVED_ALL(p) (!RECV_LEFT(p) && !in_open[p])
#ifdef NO_PUBLISH_LAST
#define WRITE_FIRST(p) sent[PAIR(me, p)] = out_n[p] + 1
#define WRITE_THEN(p) write_chunk(p)
#else
#define WRITE_FIRST(p) write_chunk(p)
#define WRITE_THEN(p) sent[PAIR(me, p)] = out_n[p] + 1
#endif
#ifdef NO_CONSUME_LAST
#define READ_FIRST(p) consumed[PAIR(p, me)] = in_n[p] + 1
#define READ_THEN(p) read_chunk(p)
#else
#define READ_FIRST(p) read_chunk(p)
#define READ_THEN(p) consumed[PAIR(p, me)] = in_n[p] + 1
#endif
#define STEPS(p) \
  :: !failed && SEND_LEFT(p) && !out_open[p] && SEND_TURN(p) -> atomic { begin_send(p) } \
  :: !failed && CAN_WRITE(p) -> atomic { WRITE_FIRST(p); out_begun[p] = true } \
  :: !failed && out_begun[p] -> atomic { WRITE_THEN(p); out_n[p]++; out_i[p]++; out_begun[p] = false } \
  :: !failed && out_open[p] && !out_begun[p] && OVER(p) -> atomic { end_send(p) } \
  :: !failed && RECV_LEFT(p) && !in_open[p] && message[PAIR(p, me)] > in_m[p] && RECV_TURN(p) -> \
       atomic { begin_receive(p) } \
  :: !failed && CAN_READ(p) -> atomic { READ_FIRST(p); in_begun[p] = true } \
  :: !failed && in_begun[p] -> atomic { READ_THEN(p); count_read(p); in_begun[p] = false }
#endif

#if W == 2
#define ALL_STEPS STEPS(0) STEPS(1)
#define ALL_DONE (SENT_ALL(0) && SENT_ALL(1) && RECEIVED_ALL(0) && RECEIVED_ALL(1))
#else
#define ALL_STEPS STEPS(0) STEPS(1) STEPS(2)
#define ALL_DONE \
  (SENT_ALL(0) && SENT_ALL(1) && SENT_ALL(2) && RECEIVED_ALL(0) && RECEIVED_ALL(1) && RECEIVED_ALL(2))
#endif

proctype rank(byte me) {
  byte g, p, s, d, q, n, pattern;
  byte out_q[W], out_i[W], out_n[W], in_q[W], in_i[W], in_n[W], in_m[W];
  bool out_open[W], in_open[W], out_begun[W], in_begun[W];
  bool failed;
#ifdef NO_GROUP_PROGRESS
  byte turn;
#endif
  do
  :: g < G ->
     draw(g);
     do
     :: failed -> break
     :: poison[me] -> failed = true
     :: !failed && ALL_DONE -> break
#ifdef NO_GROUP_PROGRESS
     :: turn < W && SENT_ALL(turn) -> turn++
     :: turn >= W && turn < 2 * W && RECEIVED_ALL(turn - W) -> turn++
#endif
     ALL_STEPS
     od;
     if
     :: failed -> break
     :: else ->
        d_step {
          do
          :: p < W ->
             out_q[p] = 0; out_i[p] = 0; out_open[p] = false; in_q[p] = 0;
             s = 0; q = 0; n = 0;
             do                              /* messages to p so far */
             :: p != me && s <= g && q < PER_PAIR && LEN(me, p, s, q) > 0 -> n++; q++
             :: p != me && s <= g && (q == PER_PAIR || LEN(me, p, s, q) == 0) -> s++; q = 0
             :: else -> break
             od;
             assert(received[PAIR(me, p)] >= n);
             s = 0; q = 0; n = 0;
#ifdef NO_MONOTONE
             if
             :: p != me ->
                out_n[p] = 0; in_n[p] = 0; in_m[p] = 0;
                message[PAIR(me, p)] = 0; sent[PAIR(me, p)] = 0; consumed[PAIR(p, me)] = 0
             :: else
             fi;
#endif
             p++
          :: else -> p = 0; break
          od
        }
     fi;
#ifdef NO_GROUP_PROGRESS
     turn = 0;
#endif
     g++
  :: else -> break
  od;
  if
  :: failed ->
     assert(wrong > 0);
#ifndef NO_POISON
     EACH poison[p] = true NEXT
#else
     skip
#endif
  :: else
  fi
}

init { byte i; atomic { do :: i < W -> run rank(i); i++ :: else -> break od } }
