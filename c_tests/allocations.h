/* Counts what the library allocates, and lets chosen allocations fail. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

/* Starts counting. Only calls from within the library are seen, whichever malloc they go on to, so this also works
 * under a sanitizer and valgrind. */
void allocations_watch(void);

/* Calls that allocated or tried to, so far. */
long allocations_made(void);
/* Blocks that were allocated and not freed since counting began. */
long allocations_live(void);

/* The nth allocation from now on fails; 0 lets all succeed. */
void allocations_fail_at(long n);
/* Whether the one that was to fail was reached. */
int allocations_have_failed(void);

#endif
