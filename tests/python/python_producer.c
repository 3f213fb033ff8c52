/* Owners whose release looks at the interpreter that it runs in. By C alone: a callback of ctypes takes the interpreter's
 * lock by itself, and would hide that it was not held. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int (*holds_lock)(void);
static void *(*occurred)(void);
static void (*raise)(void *kind, const char *message);
static pthread_t first_thread;
static atomic_int released, released_elsewhere, saw_exception;
static atomic_bool tells;

/* Addresses of PyGILState_Check, PyErr_Occurred and PyErr_SetString; whoever calls is the first thread. */
void producer_start(int (*check)(void), void *(*error)(void), void (*set)(void *, const char *)) {
  holds_lock = check;
  occurred = error;
  raise = set;
  first_thread = pthread_self();
}

static void count(void) {
  if (!holds_lock()) {
    fputs("a release without the interpreter's lock\n", stderr);
    abort();
  }
  released++;
  if (!pthread_equal(pthread_self(), first_thread)) released_elsewhere++;
  if (occurred()) saw_exception++;
}

/* An owner's release: the owner is not looked at. */
void producer_release(void *owner) {
  (void)owner;
  count();
}

/* As that, and leaves an exception of the kind that the owner is. */
void producer_release_raising(void *owner) {
  count();
  raise(owner, "left behind by a release");
}

int producer_released(void) { return released; }
int producer_released_elsewhere(void) { return released_elsewhere; }
int producer_saw_exception(void) { return saw_exception; }

/* From now on the end of the process is told how many were released. */
void producer_tell(void) { tells = true; }

__attribute__((destructor)) static void end(void) {
  if (!tells) return;
  printf("released %d, elsewhere %d\n", released, released_elsewhere);
  fflush(stdout);
}
