/* EACH ... NEXT: the statements between them once for every rank p but the caller's own, in rank order. The
   process has the variables `me` and `p`; p is 0 before and after. W is the number of ranks. */
#define EACH p = 0; do :: p < W -> if :: p != me ->
#define NEXT :: else fi; p++ :: else -> p = 0; break od
