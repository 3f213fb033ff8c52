/* The simulated driver from inside. One lock guards everything; one condition tells of every change.
   Functions that start with `sim_` want the lock held unless they say otherwise. */
#ifndef CUDA_SIM_INTERNAL_H
#define CUDA_SIM_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "cuda_sim.h"
#include "driver.h"

#define EXPORT __attribute__((visibility("default")))
#define PRINTF(text, first) __attribute__((format(printf, text, first)))

enum { MAX_DEVICES = 8, MAX_DEPTH = 64 };

typedef struct Context Context;
typedef struct Stream Stream;
typedef struct Event Event;
typedef struct Memory Memory;
typedef struct Capture Capture;
typedef struct Operation Operation;

/* How far each stream has to have come; a stream's slot is the index. */
typedef struct {
  uint64_t *at;
  size_t n;
} Clock;

typedef enum { HANDLE_CONTEXT, HANDLE_STREAM, HANDLE_EVENT, HANDLE_GRAPH } HandleKind;

struct Context {
  void *handle;
  CUdevice device;
  unsigned flags;
  bool primary, alive;
  CUresult broken; /* what every call answers after an error that cannot be recovered from */
  unsigned peers;  /* devices whose memory it may use, a bit each */
  Stream *legacy;
};

struct Stream {
  void *handle;
  size_t slot;
  Context *context;
  unsigned flags;
  int64_t owner; /* the thread whose default stream it is; 0 for others */
  bool legacy, destroyed, started, exited, joined;
  pthread_t thread;
  Operation *head, *tail;
  uint64_t issued, completed;
  uint64_t blocks, unblocks;
  Clock clock; /* what is ordered before the next operation */
  Capture *capture;
  uint64_t captured; /* operations that went into captures */
  bool unjoined;     /* captured work that its capture's origin does not wait for yet */
};

struct Event {
  void *handle;
  Context *context;
  unsigned flags;
  bool destroyed;
  Stream *stream; /* where it was recorded last, if anywhere */
  uint64_t position, recording;
  Clock clock;
  Capture *capture; /* the capture in which it was recorded last, if so */
  uint64_t captured;
  double when; /* in milliseconds */
};

struct Capture {
  Capture *next;
  uint64_t id;
  CUstreamCaptureMode mode;
  Stream *origin;
  int64_t thread;
  bool active, ended;
  uint64_t nodes;
};

typedef enum { MEMORY_DEVICE, MEMORY_POOL, MEMORY_PINNED, MEMORY_MANAGED } MemoryKind;
typedef enum { MEMORY_LIVE, MEMORY_FREEING, MEMORY_FREED } MemoryState;

/* One operation's use of bytes. */
typedef struct {
  size_t slot;
  uint64_t position;
  size_t low, high;
  bool write;
} Use;

struct Memory {
  uint64_t base, id;
  size_t size, mapped;
  unsigned char *backing;
  MemoryKind kind;
  MemoryState state;
  Context *context;
  CUdevice device;
  bool cpu; /* whether the CPU may touch it at its address */
  int busy; /* operations that touch it just now */
  Use *uses;
  size_t n_uses, room;
  Stream *born_in; /* the stream in whose order it exists; NULL for all */
  uint64_t born_at;
  const char *freed_by;
};

/* Bytes that an operation touches. */
typedef struct {
  Memory *memory; /* NULL for pageable host memory */
  size_t offset;
  unsigned char *host;
} Place;

typedef enum {
  OP_COPY,
  OP_FILL,
  OP_HOST,
  OP_RECORD,
  OP_WAIT,
  OP_ALLOCATE,
  OP_FREE,
  OP_DELAY,
  OP_BLOCK,
  OP_ERROR
} OperationKind;

struct Operation {
  Operation *next;
  OperationKind kind;
  uint64_t position, entry;
  struct {
    Stream *stream;
    uint64_t position;
  } *after;
  size_t n_after;
  Place to, from;
  size_t size;
  unsigned char byte;
  void *staged; /* a copy of the source that was made at once */
  CUhostFn function;
  void *data;
  Event *event;
  uint64_t number; /* a recording, or a block */
  Memory *memory;
  int ms;
  CUresult code;
};

/* What a call needs before it does anything. */
enum { NEEDS_NOTHING = 0, NEEDS_INIT = 1, NEEDS_CONTEXT = 3, UNSAFE_IN_CAPTURE = 4, CONTROL = 8 };

typedef struct {
  const char *name;
  unsigned needs;
  CUresult result;
  Context *context; /* the current one, if it needs one */
  bool has_stream;
  void *stream;
  uint64_t entry;
  char arguments[160];
} Call;

typedef struct {
  int64_t id;
  bool in_host_function;
  CUstreamCaptureMode mode; /* how far the captures of others concern it */
  uint64_t generation;
  size_t depth;
  Context *stack[MAX_DEPTH];
} Thread;

typedef enum {
  SET_DEVICES,
  SET_DRIVER_VERSION,
  SET_DELAY_US,
  SET_STAGED_PAGEABLE,
  SET_EARLY_HTOD,
  SET_MEMORY_BYTES,
  SET_PEER_ACCESS,
  SET_UNIFIED_ADDRESSING,
  SET_MANAGED_MEMORY,
  SET_CONCURRENT_MANAGED,
  SET_MEMORY_POOLS,
  SET_REGISTERED_POINTERS,
  SET_PAGEABLE_ACCESS,
  SET_COMPUTE_MAJOR,
  SET_COMPUTE_MINOR,
  SET_POINTER_NEEDS_CONTEXT,
  SET_CHECK_RACES,
  SET_ABORT_ON_FAULT,
  SET_HANG_MS,
  N_SETTINGS
} Setting;

#define LIST(type) \
  struct { \
    type *at; \
    size_t n, room; \
  }

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool initialised;
  uint64_t generation; /* of the contexts */
  uint64_t sequence;
  int64_t threads, pushed, pending;
  int64_t settings[N_SETTINGS];
  LIST(Context *) contexts;
  LIST(Stream *) streams; /* each at its slot */
  LIST(Stream *) buried;  /* those whose slot another one has; handles and events may still know them */
  LIST(Event *) events;
  LIST(Memory *) memory; /* in the order of their addresses */
  Capture *captures;
  Context *primary[MAX_DEVICES];
  int64_t retains[MAX_DEVICES];
  int64_t graphs, captures_invalidated;
} Sim;

extern Sim sim;

/* A list takes one more. */
#define PUSH(list, item) \
  do { \
    if ((list).n == (list).room) { \
      (list).room = (list).room ? 2 * (list).room : 16; \
      (list).at = sim_resize((list).at, (list).room * sizeof *(list).at); \
    } \
    (list).at[(list).n++] = (item); \
  } while (0)

/* Waits until the condition holds; a wait without end ends the process. */
#define WAIT_UNTIL(condition, ...) \
  do { \
    struct timespec until = sim_deadline(sim.settings[SET_HANG_MS]); \
    while (!(condition)) \
      if (!sim_wait(&until)) sim_hang(__VA_ARGS__); \
  } while (0)

#define CALL(needs_, ...) \
  Call call = {.name = __func__, .needs = (needs_)}; \
  sim_note(&call, __VA_ARGS__)
#define CALL_ON(stream_, needs_, ...) \
  CALL(needs_, __VA_ARGS__); \
  call.has_stream = true; \
  call.stream = (stream_)

/* state.c */
void sim_lock(void);   /* takes the lock */
void sim_unlock(void); /* gives it up */
void sim_changed(void);
struct timespec sim_deadline(int64_t ms);
bool sim_wait(const struct timespec *until);
void sim_hang(const char *format, ...) PRINTF(1, 2) __attribute__((noreturn));
void sim_sleep(int64_t us); /* without the lock meanwhile */
double sim_now(void);
void *sim_resize(void *block, size_t size);
void *sim_zeroed(size_t size);
Thread *sim_thread(void);
void sim_default_settings(void);
void *sim_new_handle(HandleKind kind, void *object);
void *sim_handle(const void *handle, HandleKind kind);
void sim_forget_handles(void);
uint64_t sim_clock_get(const Clock *clock, size_t slot);
void sim_clock_set(Clock *clock, size_t slot, uint64_t position);
void sim_clock_merge(Clock *clock, const Clock *other);
void sim_clock_free(Clock *clock);

/* call.c */
void sim_note(Call *call, const char *format, ...) PRINTF(2, 3); /* adds to the arguments; wants no lock */
bool sim_begin(Call *call);                                      /* takes the lock */
CUresult sim_end(Call *call);                                    /* gives it up */
void sim_fault(const char *format, ...) PRINTF(1, 2);
void sim_forget_fault_texts(void);
int sim_injected(const char *function, bool *breaks);
void sim_forget_orders(void);

/* log.c */
uint64_t sim_log_begin(const Call *call);
void sim_log_end(const Call *call);
void sim_log_operation(uint64_t entry, uint64_t start, uint64_t end);
void sim_log_forget(void);

/* contexts.c */
Context *sim_current(void);
Context *sim_context(Call *call, CUcontext handle);
Context *sim_primary(CUdevice device);
void sim_destroy_context(Context *context);
bool sim_has_device(CUdevice device);
void sim_break(Context *context, CUresult code);

/* streams.c */
Stream *sim_stream(Call *call, CUstream handle);
Stream *sim_legacy(Context *context);
Stream *sim_new_stream(Context *context, unsigned flags);
void sim_destroy_stream(Stream *stream);
void sim_join_streams(bool all);
bool sim_is_idle(const Stream *stream);
bool sim_blocking(const Stream *stream);

/* work.c */
Operation *sim_operation(OperationKind kind);
bool sim_enqueue(Call *call, Stream *stream, Operation *operation);
bool sim_finish(Call *call, Stream *stream, uint64_t position);
void *sim_worker(void *stream);

/* uses.c */
bool sim_ordered(const Stream *stream, size_t slot, uint64_t position);
void sim_use(Call *call, Stream *stream, const Place *place, size_t size, uint64_t position, bool write);
bool sim_all_done(const Memory *memory);
bool sim_all_ordered(const Memory *memory, const Stream *stream);

/* memory.c */
typedef enum { ROLE_HOST, ROLE_DEVICE, ROLE_ANY } Role;
Memory *sim_find(uint64_t address);
bool sim_in_region(uint64_t address);
bool sim_place(Call *call, uint64_t address, size_t size, Role role, Place *place);
const char *sim_memory_name(MemoryKind kind);
void sim_release_memory(Memory *memory, const char *by);
void sim_forget_memory(void);
bool sim_may_use(const Context *context, const Memory *memory);

/* capture.c */
bool sim_capture_forbids(const Call *call);
bool sim_captures(Call *call, Stream *stream, const Operation *operation, bool *taken);
bool sim_capture_refuses(Call *call, Stream *stream);
void sim_invalidate(Capture *capture);
void sim_forget_captures(void);

#endif
