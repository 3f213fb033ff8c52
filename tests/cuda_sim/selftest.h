/* The self-test of the simulated driver: its checks, and what the tests begin with. */
#ifndef CUDA_SIM_SELFTEST_H
#define CUDA_SIM_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_sim.h"
#include "driver.h"

typedef struct {
  const char *name;
  void (*run)(void);
} Test;

extern const Test memory_tests[], copy_tests[], stream_tests[], fault_tests[], capture_tests[], control_tests[];

void check_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4), noreturn));
void check_result(CUresult found, int expected, const char *file, int line, const char *text);
void check_number(int64_t found, int64_t expected, const char *file, int line, const char *text);
void check_faults(int64_t n, const char *part, const char *file, int line);

#define OK(call) check_result((call), CUDA_SUCCESS, __FILE__, __LINE__, #call)
#define FAILS(call, code) check_result((call), (code), __FILE__, __LINE__, #call)
#define IS(found, expected) check_number((int64_t)(found), (int64_t)(expected), __FILE__, __LINE__, #found)
#define CHECK(holds) check_number(!!(holds), 1, __FILE__, __LINE__, #holds)
/* There were just so many faults since the last look, and the last one's text has that part. They are forgotten. */
#define FAULTS(n, part) check_faults((n), (part), __FILE__, __LINE__)

/* The contexts of both devices, retained; the first is current. */
extern CUcontext contexts[2];

/* Memory, streams and events whose making succeeds. */
CUdeviceptr device_memory(size_t size);
unsigned char *pinned_memory(size_t size);
CUstream stream_of(unsigned flags);
CUevent event_of(unsigned flags);
/* All bytes of simulated memory have that value. */
bool all_bytes(CUdeviceptr address, size_t size, int byte);
bool all_host(const unsigned char *bytes, size_t size, int byte);
/* Runs it in a process of its own; returns the signal that ended it, or minus its exit code. */
int in_child(void (*run)(void *), void *argument);
void *in_thread(void *(*run)(void *), void *argument);
/* The last entry of a function in the log; all zero if there is none. */
cuda_sim_entry entry_of(const char *function);
/* The folder with the variants; NULL if it was not given. */
extern const char *variants;

#endif
