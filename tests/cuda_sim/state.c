/* What everything else stands on: the lock, the settings, handles, clocks. */
#include "sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

Sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local Thread thread;

/* Handles point into memory that nobody can read, and none is handed out twice: whoever looks behind one, or keeps one
   beyond its end, is seen. */
enum { HANDLE_STEP = 64 };
static const size_t handle_region = (size_t)1 << 32;
static uintptr_t handle_base;
static struct {
  void *object;
  HandleKind kind;
} *handles;
static size_t n_handles, handle_room, forgotten_handles;

static const struct {
  const char *name;
  int64_t initial;
} settings[N_SETTINGS] = {
    [SET_DEVICES] = {"devices", 2},
    [SET_DRIVER_VERSION] = {"driver_version", 12080},
    [SET_DELAY_US] = {"delay_us", 2000},
    [SET_STAGED_PAGEABLE] = {"staged_pageable", 0},
    [SET_EARLY_HTOD] = {"early_htod", 0},
    [SET_MEMORY_BYTES] = {"memory_bytes", 0},
    [SET_PEER_ACCESS] = {"peer_access", 1},
    [SET_UNIFIED_ADDRESSING] = {"unified_addressing", 1},
    [SET_MANAGED_MEMORY] = {"managed_memory", 1},
    [SET_CONCURRENT_MANAGED] = {"concurrent_managed", 1},
    [SET_MEMORY_POOLS] = {"memory_pools", 1},
    [SET_REGISTERED_POINTERS] = {"registered_pointers", 1},
    [SET_PAGEABLE_ACCESS] = {"pageable_access", 0},
    [SET_COMPUTE_MAJOR] = {"compute_major", 9},
    [SET_COMPUTE_MINOR] = {"compute_minor", 0},
    [SET_POINTER_NEEDS_CONTEXT] = {"pointer_needs_context", 0},
    [SET_CHECK_RACES] = {"check_races", 1},
    [SET_ABORT_ON_FAULT] = {"abort_on_fault", 0},
    [SET_HANG_MS] = {"hang_ms", 60000},
};

void sim_lock(void) { pthread_mutex_lock(&sim.lock); }
void sim_unlock(void) { pthread_mutex_unlock(&sim.lock); }
void sim_changed(void) { pthread_cond_broadcast(&sim.changed); }

struct timespec sim_deadline(int64_t ms) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += ms / 1000;
  time.tv_nsec += ms % 1000 * 1000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_sec++;
    time.tv_nsec -= 1000000000;
  }
  return time;
}

bool sim_wait(const struct timespec *until) {
  return pthread_cond_timedwait(&sim.changed, &sim.lock, until) != ETIMEDOUT;
}

void sim_hang(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "cuda_sim: no end after %" PRId64 " ms: ", sim.settings[SET_HANG_MS]);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\n");
  for (size_t i = 0; i < sim.streams.n; i++) {
    const Stream *stream = sim.streams.at[i];
    if (stream->issued != stream->completed)
      fprintf(stderr, "cuda_sim:   stream %p: %" PRIu64 " of %" PRIu64 " done, %" PRIu64 " of %" PRIu64 " let go\n",
              stream->handle, stream->completed, stream->issued, stream->unblocks, stream->blocks);
  }
  abort();
}

void sim_sleep(int64_t us) {
  struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  sim_unlock();
  while (nanosleep(&time, &time) != 0) {
  }
  sim_lock();
}

double sim_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1000.0 + (double)time.tv_nsec / 1000000.0;
}

void *sim_resize(void *block, size_t size) {
  void *resized = realloc(block, size);
  if (!resized) {
    fprintf(stderr, "cuda_sim: no memory\n");
    abort();
  }
  return resized;
}

void *sim_zeroed(size_t size) { return memset(sim_resize(NULL, size), 0, size); }

Thread *sim_thread(void) {
  if (!thread.id) thread.id = ++sim.threads;
  if (thread.generation != sim.generation) {
    thread.generation = sim.generation;
    thread.depth = 0;
  }
  return &thread;
}

/* Settings that a user of the program gives, such as "devices=0,delay_us=0". */
static void apply(const char *text) {
  char word[64];
  while (*text) {
    size_t length = strcspn(text, ",");
    char *equals;
    bool known = length < sizeof word;
    if (known) {
      memcpy(word, text, length);
      word[length] = 0;
      equals = strchr(word, '=');
      known = equals != NULL;
    }
    if (known) {
      *equals = 0;
      known = false;
      for (size_t i = 0; i < N_SETTINGS; i++) {
        if (strcmp(word, settings[i].name) != 0) continue;
        sim.settings[i] = strtoll(equals + 1, NULL, 0);
        known = true;
      }
    }
    if (!known) fprintf(stderr, "cuda_sim: CUDA_SIM has an unknown setting: %.*s\n", (int)length, text);
    text += length + (text[length] == ',');
  }
}

void sim_default_settings(void) {
  for (size_t i = 0; i < N_SETTINGS; i++) sim.settings[i] = settings[i].initial;
  const char *text = getenv("CUDA_SIM");
  if (text) apply(text);
}

EXPORT int cuda_sim_configure(const char *key, int64_t value) {
  int result = -1;
  sim_lock();
  for (size_t i = 0; key && i < N_SETTINGS; i++) {
    if (strcmp(key, settings[i].name) != 0) continue;
    bool sensible = value >= 0 && (i != SET_DEVICES || value <= MAX_DEVICES);
    if (!sensible) break;
    sim.settings[i] = value;
    result = 0;
  }
  sim_unlock();
  return result;
}

EXPORT int64_t cuda_sim_setting(const char *key) {
  int64_t value = INT64_MIN;
  sim_lock();
  for (size_t i = 0; key && i < N_SETTINGS; i++)
    if (strcmp(key, settings[i].name) == 0) value = sim.settings[i];
  sim_unlock();
  return value;
}

__attribute__((constructor)) static void begin(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&sim.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  sim.generation = 1;
  sim_default_settings();
  /* A child has no streams' threads, but it must not find the lock taken by one of them. */
  pthread_atfork(sim_lock, sim_unlock, sim_unlock);
}

void *sim_new_handle(HandleKind kind, void *object) {
  if (!handle_base) {
    void *region = mmap(NULL, handle_region, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) sim_hang("no address space for handles");
    /* Handles 0, 1 and 2 mean something. */
    handle_base = (uintptr_t)region + HANDLE_STEP;
  }
  if (n_handles == handle_room) {
    handle_room = handle_room ? 2 * handle_room : 256;
    handles = sim_resize(handles, handle_room * sizeof *handles);
  }
  if ((n_handles + 2) * HANDLE_STEP > handle_region) sim_hang("no more handles");
  handles[n_handles].object = object;
  handles[n_handles].kind = kind;
  return (void *)(handle_base + n_handles++ * HANDLE_STEP);
}

/* What a handle stands for; NULL if it was never one of that kind, or is older than the last reset. */
void *sim_handle(const void *handle, HandleKind kind) {
  uintptr_t at = (uintptr_t)handle;
  if (!handle_base || at < handle_base) return NULL;
  size_t index = (at - handle_base) / HANDLE_STEP;
  if (index >= n_handles || (at - handle_base) % HANDLE_STEP || index < forgotten_handles) return NULL;
  return handles[index].kind == kind ? handles[index].object : NULL;
}

/* Contexts and their default streams may outlive a reset. */
void sim_forget_handles(void) {
  for (size_t i = forgotten_handles; i < n_handles; i++) {
    bool lives = false;
    for (size_t k = 0; k < sim.contexts.n; k++) lives |= handles[i].object == sim.contexts.at[k];
    if (!lives) handles[i].object = NULL;
  }
}

uint64_t sim_clock_get(const Clock *clock, size_t slot) { return slot < clock->n ? clock->at[slot] : 0; }

void sim_clock_set(Clock *clock, size_t slot, uint64_t position) {
  if (slot >= clock->n) {
    size_t n = slot + 8;
    clock->at = sim_resize(clock->at, n * sizeof *clock->at);
    memset(clock->at + clock->n, 0, (n - clock->n) * sizeof *clock->at);
    clock->n = n;
  }
  clock->at[slot] = position;
}

void sim_clock_merge(Clock *clock, const Clock *other) {
  for (size_t i = 0; i < other->n; i++)
    if (other->at[i] > sim_clock_get(clock, i)) sim_clock_set(clock, i, other->at[i]);
}

void sim_clock_free(Clock *clock) {
  free(clock->at);
  clock->at = NULL;
  clock->n = 0;
}
