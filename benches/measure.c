#define _GNU_SOURCE
#include "measure.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif

/* An odd number of runs has a middle one. */
enum { RUNS = 9, RUN_NS = 10 * 1000 * 1000 };
/* Caches are filled, and the loader has bound every function that a case calls. */
enum { WARM_UP = 3, COUNTED_TURNS = 20 };

static const char *mode;
static char **wanted;
static int n_wanted;

void broken(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: expected %s\n", file, line, what);
  exit(1);
}

void measure_setup(int argc, char **argv) {
  EXPECT(argc > 1);
  mode = argv[1];
  wanted = argv + 2;
  n_wanted = argc - 2;
}

int measure_wants(const char *workload) {
  for (int i = 0; i < n_wanted; i++)
    if (strcmp(wanted[i], workload) == 0) return 1;
  return n_wanted == 0;
}

/* Time of the thread and not of the clock, so that a busy machine disturbs it less. */
static double time_of(struct job job, long times) {
  struct timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  job.run(job.state, times);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double nanoseconds(struct job job) {
  long times = 1;
  double took = time_of(job, times);
  while (took < RUN_NS) {
    times *= 2;
    took = time_of(job, times);
  }
  double each[RUNS];
  for (int i = 0; i < RUNS; i++) each[i] = time_of(job, times) / (double)times;
  qsort(each, RUNS, sizeof each[0], by_size);
  return each[RUNS / 2];
}

static double allocations(struct job job) {
  /* Through an object pointer, because ISO C converts no other pointer to a function. */
  long (*taken)(void) = NULL;
  *(void **)&taken = dlsym(RTLD_DEFAULT, "allocations_taken");
  EXPECT(taken != NULL);
  job.run(job.state, WARM_UP);
  long before = taken();
  job.run(job.state, COUNTED_TURNS);
  return (double)(taken() - before) / COUNTED_TURNS;
}

/* One of callgrind's files is written for the case, with the case and the turns in it. */
static void instructions(struct job job, const char *name) {
#ifdef CALLGRIND_ZERO_STATS
  char trigger[256];
  EXPECT(RUNNING_ON_VALGRIND);
  EXPECT(snprintf(trigger, sizeof trigger, "%s/%d", name, COUNTED_TURNS) < (int)sizeof trigger);
  job.run(job.state, WARM_UP);
  CALLGRIND_ZERO_STATS;
  job.run(job.state, COUNTED_TURNS);
  CALLGRIND_DUMP_STATS_AT(trigger);
#else
  (void)job;
  (void)name;
  broken(__FILE__, __LINE__, "valgrind's headers, when this was compiled");
#endif
}

void measure(struct job job, const char *format, ...) {
  char name[128];
  va_list arguments;
  va_start(arguments, format);
  EXPECT(vsnprintf(name, sizeof name, format, arguments) < (int)sizeof name);
  va_end(arguments);
  if (strcmp(mode, "time") == 0) {
    printf("%s\t%.2f\n", name, nanoseconds(job));
  } else if (strcmp(mode, "allocations") == 0) {
    printf("%s\t%.2f\n", name, allocations(job));
  } else {
    EXPECT(strcmp(mode, "instructions") == 0);
    instructions(job, name);
  }
  fflush(stdout);
}
