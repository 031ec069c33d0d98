/* The host platform's streams: tasks run one after the other, in the order of their enqueueing, by whoever
   has the driver role. THREADS threads take STEPS steps each on STREAMS streams: enqueue a task, or wait for
   all that are there. Who waits takes the role whenever it is free and runs tasks until all are done that it
   waits for; meanwhile the others wait. One steward for all streams starts a stream's worker, which takes the
   role too, where there is work and nobody drives. It goes round until all streams are idle and sleeps then;
   whoever enqueues wakes it if it sleeps.

   A task may wait, within itself,
     - for what had been enqueued on the other stream when it was enqueued (an event dependency, or a
       collective whose peer is another rank of the process);
     - for another thread to have got past the wait that it is in, for tasks before this one.
   Neither is a fault of the program, so neither may hang.

   Checked: each task runs once, in order, after what it waits for; who has waited finds its tasks done; no
   deadlock; when all threads have gone, all tasks get done though nobody waits for them any more.

   Steps are sequentially consistent but for one: the steward's word that it sleeps may lie in its store
   buffer while it looks at the streams a last time, unless the rule says otherwise. Enqueueing empties its
   own buffer by its mutex. Not covered: time (the steward's rounds), notices of the condition variables (they
   are timed), the worker's thread.

   Rules, each removed by its macro:
     NO_ROLE          one driver at a time (try-lock)
     NO_STEWARD       somebody takes over where nobody waits
     NO_NOTICE        who enqueues wakes the steward
     NO_LAST_LOOK     the steward looks once more after it has said that it sleeps
     NO_SAID_FIRST    and what it has said is seen before it looks (through the streams' locks)
     NO_DRIVEN_BUSY   work that somebody drives keeps it awake too: the driver may leave some behind
     NO_COUNT_LAST    a task is counted after it has run
     NO_TARGET        a driver leaves when what it waits for is done, though there be more */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef STREAMS
#define STREAMS 1
#endif
#ifndef STEPS
#define STEPS 3
#endif
#define MOST (THREADS * STEPS)               /* tasks of a stream */
#define TASK(s, i) ((s) * (MOST + 1) + (i))

byte enqueued[STREAMS], completed[STREAMS];
byte elsewhere[STREAMS * (MOST + 1)];        /* the task waits until so many of the other stream are completed */
byte whom[STREAMS * (MOST + 1)];             /* 1 + thread whose wait it waits for; 0: none */
byte until[STREAMS * (MOST + 1)];            /* the number of that wait */
bool driven[STREAMS], wanted[STREAMS];       /* somebody has the role; the worker is to take it */
byte target[THREADS], where[THREADS];        /* what a thread waits for; 0: nothing */
byte passed[THREADS];                        /* waits that a thread has got past */
bool asleep, buffered;                       /* the steward's word; it is still in the steward's store buffer */
byte ran[STREAMS];                           /* for assertions: last task begun */
bool running[STREAMS];
byte gone;

#define IDLE(s) (completed[s] == enqueued[s])
#define UNATTENDED(s) (!IDLE(s) && !driven[s] && !wanted[s])
#ifdef NO_DRIVEN_BUSY
#define BUSY(s) (!IDLE(s) && !driven[s])
#else
#define BUSY(s) (!IDLE(s))
#endif
#if STREAMS == 1
#define ANY(f) f(0)
#else
#define ANY(f) (f(0) || f(1))
#endif

#ifdef NO_ROLE
#define TAKE_ROLE(s) true
#else
#define TAKE_ROLE(s) atomic { !driven[s] -> driven[s] = true }
#endif

/* Runs task n of stream s. */
inline run_next(s) {
#ifdef NO_COUNT_LAST
  completed[s] = n;
#endif
  atomic {
    (whom[TASK(s, n)] == 0 || passed[whom[TASK(s, n)] - 1] >= until[TASK(s, n)]) &&
    (elsewhere[TASK(s, n)] == 0 || completed[(s + 1) % STREAMS] >= elsewhere[TASK(s, n)]) ->
    assert(!running[s] && ran[s] == n - 1);
    running[s] = true;
    ran[s] = n;
    whom[TASK(s, n)] = 0; until[TASK(s, n)] = 0; elsewhere[TASK(s, n)] = 0
  }
#ifdef NO_COUNT_LAST
  running[s] = false;
  n = 0
#else
  atomic { running[s] = false; completed[s] = n; n = 0 }
#endif
}

#ifdef NO_TARGET
#define REACHED(s) IDLE(s)
#else
#define REACHED(s) (completed[s] >= goal || IDLE(s))
#endif

/* The caller has the role. */
inline drive(s) {
  do
  :: atomic { !REACHED(s) -> n = completed[s] + 1 }; run_next(s)
  :: REACHED(s) -> break
  od;
  driven[s] = false
}

inline wait(s) {
  do
  :: completed[s] >= goal -> break
  :: TAKE_ROLE(s); drive(s)
  od
}

inline enqueue(s) {
  atomic {
    enqueued[s]++;
    n = enqueued[s];
#if STREAMS == 2
    if
    :: elsewhere[TASK(s, n)] = enqueued[1 - s]
    :: skip
    fi;
#endif
#if THREADS == 2
    if
    :: target[1 - me] > 0 && (where[1 - me] != s || target[1 - me] < n) ->
       whom[TASK(s, n)] = 1 + (1 - me);
       until[TASK(s, n)] = passed[1 - me] + 1
    :: true
    fi;
#endif
    n = 0
  }
#ifndef NO_NOTICE
  if
  :: asleep -> asleep = false
  :: !asleep
  fi
#endif
}

proctype thread(byte me) {
  byte step, s, n, goal;
  do
  :: step < STEPS ->
     if
     :: s = 0
#if STREAMS == 2
     :: s = 1
#endif
     fi;
     if
     :: enqueue(s)
     :: atomic { enqueued[s] > 0 -> goal = enqueued[s]; target[me] = goal; where[me] = s };
        wait(s);
        atomic {
          assert(ran[s] > goal || (ran[s] == goal && !running[s]));
          target[me] = 0; where[me] = 0; goal = 0;
          passed[me]++
        }
     fi;
     atomic { step++; s = 0 }
  :: else -> break
  od;
  gone++
}

proctype worker(byte s) {
  byte n, goal;
end:
  do
  :: atomic { wanted[s] -> wanted[s] = false };
     do
     :: IDLE(s) -> break
     :: !IDLE(s) ->
        goal = enqueued[s];
        if
        :: TAKE_ROLE(s); drive(s)
        :: driven[s] -> break
        fi
     od;
     goal = 0
  od
}

/* A round that would change nothing is left out, so that going round for ever cannot hide a deadlock. */
proctype steward() {
  byte s;
#ifndef NO_STEWARD
end_round:
  do
  :: ANY(UNATTENDED) ->
     s = 0;
     do
     :: s < STREAMS && UNATTENDED(s) -> wanted[s] = true; s++
     :: s < STREAMS && !UNATTENDED(s) -> s++
     :: else -> s = 0; break
     od
  :: !ANY(BUSY) ->
#ifdef NO_SAID_FIRST
     buffered = true;
#else
     asleep = true;
#endif
     if
#ifndef NO_LAST_LOOK
     :: ANY(BUSY) -> atomic { asleep = false; buffered = false }
     :: !ANY(BUSY) ->
#else
     :: true ->
#endif
        atomic { asleep = (buffered || asleep); buffered = false };      /* the mutex given back: the buffer is empty */
end_asleep:
        !asleep
     fi
  od
#endif
}

init {
  byte i;
  atomic {
    run steward();
    do :: i < STREAMS -> run worker(i); i++ :: else -> i = 0; break od;
    do :: i < THREADS -> run thread(i); i++ :: else -> i = 0; break od
  }
  gone == THREADS;
  do
  :: i < STREAMS -> IDLE(i); assert(ran[i] == enqueued[i] && !running[i]); i++
  :: else -> break
  od
}
