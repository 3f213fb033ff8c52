/* Validates each array with each library, in turn, and prints a line for each: the case, the library, the nanoseconds of
 * its best round, the bytes that a validation has to read, and 1 if the library notices the fault of the case, else 0.
 *
 *   validate ROUNDS [CASE...]   cases by number, or all of them
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../measure.h"
#include "validators.h"

enum { VALIDATORS = 4, LEAST_NS = 3 * 1000 * 1000 };

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* One validation is enough unless it is shorter than what the clock can tell. */
static double time_of(const struct validator *v, void *opened) {
  double from = now(), took = 0;
  long times = 0;
  while (took < LEAST_NS && times < 1000) {
    EXPECT(v->validate(opened));
    times++;
    took = now() - from;
  }
  return took / (double)times;
}

static void measure_case(int number, int rounds) {
  static const struct validator *const all[VALIDATORS] = {&with_bowstring, &with_arrow_cpp, &with_arrow_rs,
                                                          &with_nanoarrow};
  struct array_case *c = array_case_new(number);
  void *opened[VALIDATORS];
  double best[VALIDATORS] = {0};
  for (int i = 0; i < VALIDATORS; i++) {
    struct ArrowArray array;
    struct ArrowSchema schema;
    array_case_export(c, &array, &schema);
    opened[i] = all[i]->open(&array, &schema);
    if (schema.release) schema.release(&schema);
  }
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; i < VALIDATORS; i++) {
      double took = time_of(all[i], opened[i]);
      if (round == 0 || took < best[i]) best[i] = took;
    }
  }
  array_case_swap_fault(c);
  for (int i = 0; i < VALIDATORS; i++) {
    int notices = !all[i]->validate(opened[i]);
    printf("%s\t%s\t%.0f\t%lld\t%d\n", c->name, all[i]->name, best[i], (long long)c->bytes, notices);
  }
  fflush(stdout);
  for (int i = 0; i < VALIDATORS; i++) all[i]->close(opened[i]);
  array_case_free(c);
}

int main(int argc, char **argv) {
  EXPECT(argc > 1);
  int rounds = atoi(argv[1]);
  for (int i = 0; i < CASES && argc == 2; i++) measure_case(i, rounds);
  for (int i = 2; i < argc; i++) measure_case(atoi(argv[i]), rounds);
  return 0;
}
