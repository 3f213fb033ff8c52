/* What tests ask of the simulated CUDA driver. All of it is exported by the simulated libcuda.so.1 itself.
   Unless a comment says otherwise a function returns 0, or -1 for a call that makes no sense; each may be called from
   any thread, but only those that enqueue nothing and reset nothing by a host function. Addresses are those that the driver's functions hand out. */
#ifndef CUDA_SIM_H
#define CUDA_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A real driver lacks this symbol. Returns CUDA_SIM_MARK; `variant`, which may be NULL, becomes "full",
   "no_async_memory", "no_event_record" or "stub". */
#define CUDA_SIM_MARK 0x53494d31
int cuda_sim_is_simulated(const char **variant);

/* ---- State ---- */

enum {
  /* cuInit stays called; contexts, their retains and their default streams live on. */
  CUDA_SIM_KEEP_CONTEXTS = 1,
  /* Nothing is destroyed; settings, log, faults and injected failures are put back. */
  CUDA_SIM_KEEP_OBJECTS = 2
};

/* Puts everything back to its default. Blocked streams are let go and work is awaited first. Returns how many things
   were alive that should have been let go (memory, streams, events, graphs; without a flag also primary context
   retains and contexts), 0 if none; `text`, which may be NULL, lists them. No other thread may be inside the driver. */
int cuda_sim_reset(unsigned flags, char *text, size_t size);

/* Settings, with their defaults:
     devices 2                  0 to 8; with 0 cuInit returns CUDA_ERROR_NO_DEVICE
     driver_version 12080
     delay_us 2000              pause before each operation of a stream
     staged_pageable 0          1: pageable host memory is read, or written, before the call returns, as by the driver
     early_htod 0               1: cuMemcpyHtoD_v2 from pageable memory returns before the device has the bytes
     memory_bytes 0             device memory of each device; 0 is without limit
     peer_access 1              what cuDeviceCanAccessPeer says
     unified_addressing 1, managed_memory 1, concurrent_managed 1, memory_pools 1,
     registered_pointers 1, pageable_access 0, compute_major 9, compute_minor 0     device attributes
     pointer_needs_context 0    1: cuPointerGetAttribute(s) need a current context
     check_races 1              unordered use of the same bytes by two streams is a fault
     abort_on_fault 0           1: the first fault ends the process, with its text
     hang_ms 60000              a wait that takes longer ends the process, and says for what
   The environment variable CUDA_SIM, such as "devices=0,delay_us=0", changes the defaults. */
int cuda_sim_configure(const char *key, int64_t value);
/* The value of a setting; INT64_MIN for a name that is none. */
int64_t cuda_sim_setting(const char *key);

typedef struct {
  int64_t device_memory, pool_memory, pinned_memory, managed_memory; /* allocations; pool: cuMemAllocAsync */
  int64_t bytes;                                                     /* of them all together */
  int64_t streams, events, graphs;                                   /* default streams are not counted */
  int64_t contexts;                                                  /* made by cuCtxCreate */
  int64_t primary_retains;
  int64_t pushed_here; /* contexts on this thread's stack */
  int64_t pushed;      /* on the stacks of all threads */
  int64_t pending;     /* operations that have not finished */
} cuda_sim_counts;
void cuda_sim_live(cuda_sim_counts *counts);
/* This thread's capture mode; 0 is the default. */
int cuda_sim_capture_mode(void);

/* ---- Faults: what a program must not do, whether or not the driver's answer shows it ---- */

int64_t cuda_sim_faults(void);
/* The text of the nth fault, from 0; "" beyond the last. It stays valid until the next reset. */
const char *cuda_sim_fault_text(int64_t n);
/* Forgets the faults; returns how many there were. */
int64_t cuda_sim_forget_faults(void);
int64_t cuda_sim_captures_invalidated(void);

/* ---- Failures on request ---- */

enum {
  CUDA_SIM_ONCE = 0,
  CUDA_SIM_FROM_THEN_ON = 1,
  CUDA_SIM_STICKY = 2 /* once, and the current context is broken from then on */
};

/* The nth call from now (1: the next) of `function`, as it is exported, or of any if NULL, does nothing and returns
   `code`, which may be any number. Up to 32 such orders stand at a time. */
int cuda_sim_fail(const char *function, int64_t nth, int code, int how);
/* Takes back all orders. Returns how many had not come true. */
int cuda_sim_fail_nothing(void);
/* Breaks a device's primary context: every later call that concerns it returns `code`. 0 heals it. */
int cuda_sim_break_device(int device, int code);

/* ---- The log: one entry a call, in the order in which the calls began ---- */

typedef struct {
  char function[48];  /* as exported; control functions that enqueue work are in the log too */
  char arguments[160];
  uint64_t sequence;  /* of the call's begin; one counter numbers calls and operations */
  uint64_t start, end; /* of the operation it enqueued; 0: none, or not yet */
  void *stream;       /* as given; NULL also for none */
  int64_t thread;     /* from 1 */
  int result;         /* -1: it has not returned yet */
  int on_stream;      /* whether the function has a stream */
} cuda_sim_entry;

int64_t cuda_sim_log_count(void);
int cuda_sim_log_entry(int64_t n, cuda_sim_entry *entry);
/* The log as text, one line a call. Returns the size with the final NUL; fills in what fits. `buffer` may be NULL. */
int64_t cuda_sim_log_text(char *buffer, size_t size);
void cuda_sim_log_clear(void);
/* How often a driver function was called since the log was cleared; NULL: all of them. */
int64_t cuda_sim_calls(const char *function);

/* ---- Memory, past the streams ---- */

/* Writes to or reads from memory of the simulated driver; it has to lie within one live allocation. */
int cuda_sim_poke(uint64_t address, const void *bytes, size_t size);
int cuda_sim_peek(uint64_t address, void *bytes, size_t size);

/* ---- Kernels. They take a stream as a driver function does, and are checked like copies. ---- */

/* A kernel that takes that long. */
int cuda_sim_enqueue_delay(void *stream, int ms);
/* Kernels that write. */
int cuda_sim_enqueue_fill(void *stream, uint64_t address, int byte, size_t size);
int cuda_sim_enqueue_copy(void *stream, uint64_t to, uint64_t from, size_t size);
/* A kernel that breaks its context with that error when it runs. */
int cuda_sim_enqueue_error(void *stream, int code);
/* A kernel that runs until the test lets it go, or its context breaks. Each block needs one unblock; streams may be
   blocked repeatedly, and let go after they were destroyed. */
int cuda_sim_block(void *stream);
int cuda_sim_unblock(void *stream);
/* Operations of the stream that have not finished. */
int64_t cuda_sim_pending(void *stream);
/* Waits until no stream has work; -1 if that takes longer than `ms`. */
int cuda_sim_wait_idle(int ms);

#ifdef __cplusplus
}
#endif

#endif
