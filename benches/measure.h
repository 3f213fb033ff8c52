/* How a case is measured, the same way for every library. */
#ifndef MEASURE_H
#define MEASURE_H

/* Something that can be done any number of times in a row. */
struct job {
  void (*run)(void *state, long times);
  void *state;
};

/* Reads the command line: `time`, `allocations` or `instructions`, and then the workloads that are wanted, or none for
 * all of them. */
void measure_setup(int argc, char **argv);

/* Whether a workload such as "W1" is wanted. */
int measure_wants(const char *workload);

/* Measures one case under a name made as by printf, and prints a line: the name, a tab and the figure. Figures are of
 * one turn: nanoseconds of the thread's CPU time, the median of several runs; or allocations. Instructions go to the
 * files of callgrind, under which the program then has to run. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void measure(struct job job, const char *name, ...);

/* Ends the program: a figure would be of something else than it says. */
void broken(const char *file, int line, const char *what);

#define EXPECT(holds) ((holds) ? (void)0 : broken(__FILE__, __LINE__, #holds))

/* The compiler has to believe that what `p` points to was read and written. */
static inline void touch(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

#endif
