#define _GNU_SOURCE
#include "plugin_device.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_DEVICES = 4, MOST_ENTRIES = 1 << 16, PAGE = 4096, WRONG_ARGUMENT = 9001, WRONG_DEVICE = 9002 };

/* Addresses are never used twice, so that any use of freed memory is noticed. */
static const int64_t ARENA = (int64_t)1 << 32;

typedef struct Memory {
  int64_t start, size;
  /* Pieces of work that will read or write it. */
  int in_use;
  int is_alive, is_tests;
} Memory;

typedef struct Event {
  int64_t device;
  int is_done, is_destroyed, n_uses;
  struct Event *next;
} Event;

enum { COPY, FILL, FREE, RECORD, WAIT };

typedef struct Op {
  int kind;
  char *to;
  const char *from;
  int64_t n;
  int byte;
  Memory *uses[2];
  Event *event;
  struct Op *next;
} Op;

typedef struct Queue {
  Plugin *plugin;
  int64_t device;
  pthread_t thread;
  Op *first, *last;
  int is_busy, is_stopped, is_closing, is_closed;
  struct Queue *next;
} Queue;

typedef struct Arena {
  char *shown, *own;
  int64_t used;
  Memory **memories;
  size_t n, room;
  Queue *standard, *library;
} Arena;

struct Plugin {
  ArrowDeviceType type;
  int n_devices, delay;
  unsigned features;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Arena arenas[MOST_DEVICES];
  Queue *queues;
  Event *events;
  int64_t n_memories, n_events;
  int64_t calls[PLUGIN_N_FUNCTIONS], bytes[PLUGIN_N_FUNCTIONS];
  int fail_in[PLUGIN_N_FUNCTIONS], fail_lasts[PLUGIN_N_FUNCTIONS];
  int32_t fail_code[PLUGIN_N_FUNCTIONS];
  PluginEntry *log;
  size_t n_log;
  char fault[256], told[256];
};

static void fault(Plugin *plugin, const char *format, ...) {
  if (plugin->fault[0] != '\0') return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plugin->fault, sizeof plugin->fault, format, arguments);
  va_end(arguments);
}

static void *must(void *memory) {
  if (memory == NULL || memory == MAP_FAILED) abort();
  return memory;
}

/* Enters a call: counts it, and says which error it is to return. The lock is held when that is none. */
static int32_t enter(Plugin *plugin, int function, int64_t id, void *queue, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  ++plugin->calls[function];
  if (plugin->n_log < MOST_ENTRIES) plugin->log[plugin->n_log++] = (PluginEntry){function, id, queue, n};
  int32_t code = 0;
  if (plugin->fail_in[function] > 0) {
    if (plugin->fail_in[function] == 1) code = plugin->fail_code[function];
    if (plugin->fail_in[function] > 1 || !plugin->fail_lasts[function]) --plugin->fail_in[function];
  }
  if (code == 0 && (id < 0 || id >= plugin->n_devices)) code = WRONG_DEVICE;
  if (code != 0) pthread_mutex_unlock(&plugin->lock);
  return code;
}

static int32_t leave(Plugin *plugin, int32_t code) {
  pthread_mutex_unlock(&plugin->lock);
  return code;
}

static Arena *arena_of(Plugin *plugin, int64_t id) {
  Arena *arena = &plugin->arenas[id];
  if (arena->shown == NULL) {
    int file = memfd_create("plugin_device", 0);
    if (file < 0 || ftruncate(file, ARENA) != 0) abort();
    int access = plugin->features & PLUGIN_ACCESSIBLE ? PROT_READ | PROT_WRITE : PROT_NONE;
    arena->shown = must(mmap(NULL, (size_t)ARENA, access, MAP_SHARED | MAP_NORESERVE, file, 0));
    arena->own = must(mmap(NULL, (size_t)ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
    close(file);
  }
  return arena;
}

/* The arena that an address is in, or NULL. */
static Arena *arena_with(Plugin *plugin, const void *data) {
  for (int i = 0; i < plugin->n_devices; ++i) {
    Arena *arena = &plugin->arenas[i];
    const char *at = data;
    if (arena->shown != NULL && at >= arena->shown && at < arena->shown + ARENA) return arena;
  }
  return NULL;
}

static Memory *memory_at(Arena *arena, int64_t at) {
  size_t low = 0, high = arena->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (arena->memories[middle]->start <= at) low = middle + 1;
    else high = middle;
  }
  return low == 0 ? NULL : arena->memories[low - 1];
}

/* The memory that holds all of a range, or NULL with a fault. */
static Memory *held(Plugin *plugin, Arena *arena, const void *data, int64_t n, const char *what) {
  if (arena == NULL || arena_with(plugin, data) != arena) {
    fault(plugin, "%s: %p is no memory of the device", what, data);
    return NULL;
  }
  int64_t at = (const char *)data - arena->shown;
  Memory *memory = memory_at(arena, at);
  if (memory == NULL || at + n > memory->start + memory->size || n < 0) {
    fault(plugin, "%s: %lld bytes at %p are not in one piece of memory", what, (long long)n, data);
    return NULL;
  }
  if (!memory->is_alive) {
    fault(plugin, "%s: memory at %p was freed", what, data);
    return NULL;
  }
  return memory;
}

static void *new_memory(Plugin *plugin, int64_t id, int64_t size, int is_tests) {
  Arena *arena = arena_of(plugin, id);
  int64_t pages = (size + PAGE - 1) / PAGE * PAGE;
  if (size < 0 || size > ARENA || arena->used + pages + PAGE > ARENA) return NULL;
  if (arena->n == arena->room) {
    arena->room = arena->room == 0 ? 1024 : 2 * arena->room;
    arena->memories = must(realloc(arena->memories, arena->room * sizeof *arena->memories));
  }
  Memory *memory = must(calloc(1, sizeof *memory));
  *memory = (Memory){arena->used, size, 0, 1, is_tests};
  arena->memories[arena->n++] = memory;
  arena->used += pages + PAGE;
  if (!is_tests) ++plugin->n_memories;
  /* Nobody may count on zeroes. */
  memset(arena->own + memory->start, 0xA5, (size_t)size);
  return arena->shown + memory->start;
}

static void end_memory(Plugin *plugin, Arena *arena, Memory *memory) {
  if (memory->in_use > 0) fault(plugin, "free: work on the memory is not done");
  if (!memory->is_alive) {
    fault(plugin, "free: memory was freed before");
    return;
  }
  memory->is_alive = 0;
  if (!memory->is_tests) --plugin->n_memories;
  madvise(arena->own + memory->start, (size_t)(memory->size + PAGE - 1) / PAGE * PAGE, MADV_REMOVE);
}

static void unuse(Plugin *plugin, Event *event) {
  if (--event->n_uses > 0 || !event->is_destroyed) return;
  for (Event **at = &plugin->events; *at != NULL; at = &(*at)->next) {
    if (*at == event) {
      *at = event->next;
      free(event);
      return;
    }
  }
}

static int is_event(Plugin *plugin, void *event, const char *what) {
  for (Event *known = plugin->events; known != NULL; known = known->next) {
    if (known == event && !known->is_destroyed) return 1;
  }
  fault(plugin, "%s: %p is no event, or one that was destroyed", what, event);
  return 0;
}

/* Does one piece of work. The lock is held, but not while bytes are copied or while it waits. */
static void work(Plugin *plugin, Queue *queue, Op *op) {
  for (int i = 0; i < 2; ++i) {
    if (op->uses[i] != NULL && !op->uses[i]->is_alive) fault(plugin, "work runs on memory that was freed");
  }
  switch (op->kind) {
    case WAIT:
      while (!op->event->is_done) pthread_cond_wait(&plugin->changed, &plugin->lock);
      unuse(plugin, op->event);
      break;
    case RECORD:
      op->event->is_done = 1;
      unuse(plugin, op->event);
      break;
    case FREE:
      end_memory(plugin, &plugin->arenas[queue == NULL ? op->byte : queue->device], op->uses[0]);
      break;
    default: {
      int delay = plugin->delay;
      pthread_mutex_unlock(&plugin->lock);
      if (queue != NULL && delay > 0) usleep((useconds_t)delay);
      if (op->kind == COPY) memmove(op->to, op->from, (size_t)op->n);
      else memset(op->to, op->byte, (size_t)op->n);
      pthread_mutex_lock(&plugin->lock);
      for (int i = 0; i < 2; ++i) {
        if (op->uses[i] != NULL) --op->uses[i]->in_use;
      }
    }
  }
  free(op);
  pthread_cond_broadcast(&plugin->changed);
}

static void *run(void *context) {
  Queue *queue = context;
  Plugin *plugin = queue->plugin;
  pthread_mutex_lock(&plugin->lock);
  for (;;) {
    while ((queue->first == NULL || queue->is_stopped) && !queue->is_closing) {
      pthread_cond_wait(&plugin->changed, &plugin->lock);
    }
    Op *op = queue->first;
    if (op == NULL) break;
    queue->first = op->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->is_busy = 1;
    work(plugin, queue, op);
    queue->is_busy = 0;
    pthread_cond_broadcast(&plugin->changed);
  }
  queue->is_closed = 1;
  pthread_mutex_unlock(&plugin->lock);
  return NULL;
}

static Queue *new_queue(Plugin *plugin, int64_t id) {
  Queue *queue = must(calloc(1, sizeof *queue));
  queue->plugin = plugin;
  queue->device = id;
  queue->next = plugin->queues;
  plugin->queues = queue;
  if (pthread_create(&queue->thread, NULL, run, queue) != 0) abort();
  return queue;
}

/* The queue that a handle means, or NULL with a fault. */
static Queue *queue_of(Plugin *plugin, int64_t id, void *handle) {
  Arena *arena = &plugin->arenas[id];
  if (handle == NULL) {
    if (arena->standard == NULL) arena->standard = new_queue(plugin, id);
    return arena->standard;
  }
  for (Queue *queue = plugin->queues; queue != NULL; queue = queue->next) {
    if (queue != handle) continue;
    if (queue->is_closed || queue->is_closing) fault(plugin, "a queue was used after it was closed");
    else if (queue->device != id) fault(plugin, "a queue of device %d was used for device %d", (int)queue->device, (int)id);
    else return queue;
    return NULL;
  }
  fault(plugin, "%p is no queue", handle);
  return NULL;
}

/* Enqueues work, or does it at once where there are no queues. The lock is held. */
static int32_t submit(Plugin *plugin, int64_t id, void *handle, Op op) {
  Op *own = must(malloc(sizeof *own));
  *own = op;
  for (int i = 0; i < 2; ++i) {
    if (op.uses[i] != NULL && op.kind != FREE) ++op.uses[i]->in_use;
  }
  if (op.event != NULL) ++op.event->n_uses;
  if (!(plugin->features & PLUGIN_EVENTS)) {
    if (handle != NULL) fault(plugin, "%p is no queue of a device without queues", handle);
    own->byte = op.kind == FREE ? (int)id : op.byte;
    work(plugin, NULL, own);
    return 0;
  }
  Queue *queue = queue_of(plugin, id, handle);
  if (queue == NULL) return WRONG_ARGUMENT;
  if (queue->last == NULL) queue->first = own;
  else queue->last->next = own;
  queue->last = own;
  pthread_cond_broadcast(&plugin->changed);
  return 0;
}

static int32_t f_probe(void *ctx, int64_t *count) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_PROBE, 0, NULL, 0);
  if (code != 0) return code;
  *count = plugin->n_devices;
  return leave(plugin, 0);
}

static int32_t f_allocate(void *ctx, int64_t id, int64_t size, void *queue, void **data) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_ALLOCATE, id, queue, size);
  if (code != 0) return code;
  if (size <= 0 || size % 64 != 0) fault(plugin, "allocate: %lld bytes", (long long)size);
  if (plugin->features & PLUGIN_EVENTS) queue_of(plugin, id, queue);
  *data = new_memory(plugin, id, size, 0);
  return leave(plugin, 0);
}

static int32_t f_free(void *ctx, int64_t id, void *data, int64_t size, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_FREE, id, queue, size);
  if (code != 0) return code;
  Memory *memory = held(plugin, &plugin->arenas[id], data, size, "free");
  if (memory == NULL) return leave(plugin, WRONG_ARGUMENT);
  if (memory->size != size || memory->start != (char *)data - plugin->arenas[id].shown) {
    fault(plugin, "free: %lld bytes of %lld", (long long)size, (long long)memory->size);
  }
  return leave(plugin, submit(plugin, id, queue, (Op){.kind = FREE, .uses = {memory, NULL}}));
}

/* A copy between memories, either of which may be the CPU's, whose arena is NULL. */
static int32_t copy(Plugin *plugin, int function, int64_t id, Arena *to, void *into, Arena *from, const void *source,
                    int64_t n, void *queue) {
  Op op = {.kind = COPY, .to = into, .from = source, .n = n};
  if (n <= 0) fault(plugin, "a copy of %lld bytes", (long long)n);
  plugin->bytes[function] += n;
  if (to != NULL) {
    op.uses[0] = held(plugin, to, into, n, "copy to");
    op.to = to->own + ((char *)into - to->shown);
  } else if (arena_with(plugin, into) != NULL) {
    fault(plugin, "copy to: %p is not the CPU's", into);
    return WRONG_ARGUMENT;
  }
  if (from != NULL) {
    op.uses[1] = held(plugin, from, source, n, "copy from");
    op.from = from->own + ((const char *)source - from->shown);
  } else if (arena_with(plugin, source) != NULL) {
    fault(plugin, "copy from: %p is not the CPU's", source);
    return WRONG_ARGUMENT;
  }
  if ((to != NULL && op.uses[0] == NULL) || (from != NULL && op.uses[1] == NULL)) return WRONG_ARGUMENT;
  return submit(plugin, id, queue, op);
}

static int32_t f_from_host(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_FROM_HOST, id, queue, n);
  if (code != 0) return code;
  return leave(plugin, copy(plugin, PLUGIN_F_FROM_HOST, id, &plugin->arenas[id], to, NULL, from, n, queue));
}

static int32_t f_to_host(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_TO_HOST, id, queue, n);
  if (code != 0) return code;
  return leave(plugin, copy(plugin, PLUGIN_F_TO_HOST, id, NULL, to, &plugin->arenas[id], from, n, queue));
}

static int32_t f_within(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_WITHIN, id, queue, n);
  if (code != 0) return code;
  Arena *arena = &plugin->arenas[id];
  return leave(plugin, copy(plugin, PLUGIN_F_WITHIN, id, arena, to, arena, from, n, queue));
}

static int32_t f_between(void *ctx, int64_t id, void *to, int64_t from_id, const void *from, int64_t n, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_BETWEEN, id, queue, n);
  if (code != 0) return code;
  if (from_id < 0 || from_id >= plugin->n_devices || from_id == id) {
    fault(plugin, "copy_between: from device %lld", (long long)from_id);
    return leave(plugin, WRONG_DEVICE);
  }
  Arena *arena = &plugin->arenas[id], *source = &plugin->arenas[from_id];
  return leave(plugin, copy(plugin, PLUGIN_F_BETWEEN, id, arena, to, source, from, n, queue));
}

static int32_t f_library_queue(void *ctx, int64_t id, void **queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_LIBRARY_QUEUE, id, NULL, 0);
  if (code != 0) return code;
  Arena *arena = &plugin->arenas[id];
  if (arena->library == NULL) arena->library = new_queue(plugin, id);
  *queue = arena->library;
  return leave(plugin, 0);
}

static int32_t f_drain(void *ctx, int64_t id, void *handle) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_DRAIN, id, handle, 0);
  if (code != 0) return code;
  Queue *queue = queue_of(plugin, id, handle);
  if (queue == NULL) return leave(plugin, WRONG_ARGUMENT);
  while (queue->first != NULL || queue->is_busy) pthread_cond_wait(&plugin->changed, &plugin->lock);
  return leave(plugin, 0);
}

static int32_t record(Plugin *plugin, int64_t id, void *queue, void **event) {
  Event *made = must(calloc(1, sizeof *made));
  made->device = id;
  made->next = plugin->events;
  plugin->events = made;
  ++plugin->n_events;
  *event = made;
  return submit(plugin, id, queue, (Op){.kind = RECORD, .event = made});
}

static int32_t f_record(void *ctx, int64_t id, void *queue, void **event) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_RECORD, id, queue, 0);
  return code != 0 ? code : leave(plugin, record(plugin, id, queue, event));
}

static int32_t f_queue_waits(void *ctx, int64_t id, void *event, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_QUEUE_WAITS, id, queue, 0);
  if (code != 0) return code;
  if (!is_event(plugin, event, "queue_waits")) return leave(plugin, WRONG_ARGUMENT);
  return leave(plugin, submit(plugin, id, queue, (Op){.kind = WAIT, .event = event}));
}

static int32_t f_host_waits(void *ctx, int64_t id, void *handle) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_HOST_WAITS, id, NULL, 0);
  if (code != 0) return code;
  if (!is_event(plugin, handle, "host_waits")) return leave(plugin, WRONG_ARGUMENT);
  Event *event = handle;
  if (event->device != id) fault(plugin, "host_waits: an event of device %d on device %d", (int)event->device, (int)id);
  ++event->n_uses;
  while (!event->is_done) pthread_cond_wait(&plugin->changed, &plugin->lock);
  unuse(plugin, event);
  return leave(plugin, 0);
}

static int32_t f_is_done(void *ctx, int64_t id, void *event, int32_t *done) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_IS_DONE, id, NULL, 0);
  if (code != 0) return code;
  if (!is_event(plugin, event, "is_done")) return leave(plugin, WRONG_ARGUMENT);
  *done = ((Event *)event)->is_done;
  return leave(plugin, 0);
}

static void destroy(Plugin *plugin, void *handle) {
  if (!is_event(plugin, handle, "destroy_event")) return;
  Event *event = handle;
  event->is_destroyed = 1;
  --plugin->n_events;
  ++event->n_uses;
  unuse(plugin, event);
}

static void f_destroy_event(void *ctx, int64_t id, void *event) {
  Plugin *plugin = ctx;
  if (enter(plugin, PLUGIN_F_DESTROY_EVENT, id, NULL, 0) != 0) return;
  if (is_event(plugin, event, "destroy_event") && ((Event *)event)->device != id) {
    fault(plugin, "destroy_event: an event of another device");
  }
  destroy(plugin, event);
  leave(plugin, 0);
}

static int32_t f_accessible(void *ctx, int64_t id, int32_t *accessible) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_ACCESSIBLE, id, NULL, 0);
  if (code != 0) return code;
  *accessible = 1;
  return leave(plugin, 0);
}

static int32_t f_locate(void *ctx, const void *data, BowstringDevice *device) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_LOCATE, 0, NULL, 0);
  if (code != 0) return code;
  Arena *arena = arena_with(plugin, data);
  device->type = arena == NULL ? ARROW_DEVICE_CPU : plugin->type;
  device->id = arena == NULL ? -1 : arena - plugin->arenas;
  return leave(plugin, 0);
}

static const char *f_error_text(void *ctx, int32_t code) {
  (void)ctx;
  static _Thread_local char text[64];
  snprintf(text, sizeof text, "the plug-in's error %d", code);
  return text;
}

Plugin *plugin_new(ArrowDeviceType type, int n_devices, unsigned features) {
  Plugin *plugin = must(calloc(1, sizeof *plugin));
  plugin->type = type;
  plugin->n_devices = n_devices < MOST_DEVICES ? n_devices : MOST_DEVICES;
  plugin->features = features;
  plugin->log = must(calloc(MOST_ENTRIES, sizeof *plugin->log));
  pthread_mutex_init(&plugin->lock, NULL);
  pthread_cond_init(&plugin->changed, NULL);
  return plugin;
}

void plugin_backend(Plugin *plugin, BowstringDeviceBackend *out) {
  unsigned features = plugin->features;
  *out = (BowstringDeviceBackend){
      .struct_size = sizeof *out,
      .ctx = plugin,
      .allocate = f_allocate,
      .free = f_free,
      .copy_from_host = f_from_host,
      .copy_to_host = f_to_host,
  };
  if (features & PLUGIN_PROBE) out->probe = f_probe;
  if (features & PLUGIN_WITHIN) out->copy_within = f_within;
  if (features & PLUGIN_BETWEEN) out->copy_between = f_between;
  if (features & PLUGIN_LIBRARY_QUEUE) out->library_queue = f_library_queue;
  if (features & PLUGIN_ACCESSIBLE) out->host_accessible = f_accessible;
  if (features & PLUGIN_LOCATE) out->locate = f_locate;
  if (features & PLUGIN_TEXT) out->error_text = f_error_text;
  if (features & PLUGIN_EVENTS) {
    out->drain = f_drain;
    out->record = f_record;
    out->queue_waits = f_queue_waits;
    out->host_waits = f_host_waits;
    out->is_done = f_is_done;
    out->destroy_event = f_destroy_event;
  }
}

void *plugin_queue_open(Plugin *plugin, int64_t id) {
  pthread_mutex_lock(&plugin->lock);
  Queue *queue = new_queue(plugin, id);
  pthread_mutex_unlock(&plugin->lock);
  return queue;
}

void plugin_queue_close(void *handle) {
  Queue *queue = handle;
  pthread_mutex_lock(&queue->plugin->lock);
  queue->is_stopped = 0;
  queue->is_closing = 1;
  pthread_cond_broadcast(&queue->plugin->changed);
  pthread_mutex_unlock(&queue->plugin->lock);
  pthread_join(queue->thread, NULL);
}

static void set_stopped(Plugin *plugin, int64_t id, void *handle, int is_stopped) {
  pthread_mutex_lock(&plugin->lock);
  Queue *queue = queue_of(plugin, id, handle);
  if (queue != NULL) queue->is_stopped = is_stopped;
  pthread_cond_broadcast(&plugin->changed);
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_stop(Plugin *plugin, int64_t id, void *queue) { set_stopped(plugin, id, queue, 1); }

void plugin_go(Plugin *plugin, int64_t id, void *queue) { set_stopped(plugin, id, queue, 0); }

void *plugin_library_queue(Plugin *plugin, int64_t id) {
  if (!(plugin->features & PLUGIN_LIBRARY_QUEUE)) return NULL;
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = &plugin->arenas[id];
  if (arena->library == NULL) arena->library = new_queue(plugin, id);
  pthread_mutex_unlock(&plugin->lock);
  return arena->library;
}

void plugin_delay(Plugin *plugin, int microseconds) {
  pthread_mutex_lock(&plugin->lock);
  plugin->delay = microseconds;
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_settle(Plugin *plugin) {
  pthread_mutex_lock(&plugin->lock);
  for (Queue *queue = plugin->queues; queue != NULL;) {
    int is_idle = queue->first == NULL && !queue->is_busy;
    if (!is_idle) pthread_cond_wait(&plugin->changed, &plugin->lock);
    queue = is_idle ? queue->next : plugin->queues;
  }
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_fail(Plugin *plugin, int function, int nth, int32_t code, int lasts) {
  pthread_mutex_lock(&plugin->lock);
  plugin->fail_in[function] = nth;
  plugin->fail_code[function] = code;
  plugin->fail_lasts[function] = lasts;
  pthread_mutex_unlock(&plugin->lock);
}

static int64_t read_locked(Plugin *plugin, const int64_t *number) {
  pthread_mutex_lock(&plugin->lock);
  int64_t read = *number;
  pthread_mutex_unlock(&plugin->lock);
  return read;
}

int64_t plugin_calls(Plugin *plugin, int function) { return read_locked(plugin, &plugin->calls[function]); }

int64_t plugin_bytes(Plugin *plugin, int function) { return read_locked(plugin, &plugin->bytes[function]); }

int64_t plugin_live_memory(Plugin *plugin) { return read_locked(plugin, &plugin->n_memories); }

int64_t plugin_live_events(Plugin *plugin) { return read_locked(plugin, &plugin->n_events); }

void plugin_reset(Plugin *plugin) {
  pthread_mutex_lock(&plugin->lock);
  memset(plugin->calls, 0, sizeof plugin->calls);
  memset(plugin->bytes, 0, sizeof plugin->bytes);
  plugin->n_log = 0;
  pthread_mutex_unlock(&plugin->lock);
}

int plugin_log(Plugin *plugin, size_t i, PluginEntry *out) {
  pthread_mutex_lock(&plugin->lock);
  int is_there = i < plugin->n_log;
  if (is_there) *out = plugin->log[i];
  pthread_mutex_unlock(&plugin->lock);
  return is_there;
}

const char *plugin_fault(Plugin *plugin) {
  pthread_mutex_lock(&plugin->lock);
  memcpy(plugin->told, plugin->fault, sizeof plugin->told);
  plugin->fault[0] = '\0';
  pthread_mutex_unlock(&plugin->lock);
  return plugin->told[0] == '\0' ? NULL : plugin->told;
}

void *plugin_take(Plugin *plugin, int64_t id, int64_t size) {
  pthread_mutex_lock(&plugin->lock);
  void *data = must(new_memory(plugin, id, size, 1));
  pthread_mutex_unlock(&plugin->lock);
  return data;
}

void plugin_give_back(Plugin *plugin, void *data) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = arena_with(plugin, data);
  Memory *memory = held(plugin, arena, data, 0, "give back");
  if (memory != NULL) end_memory(plugin, arena, memory);
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_peek(Plugin *plugin, const void *from, void *to, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = arena_with(plugin, from);
  if (held(plugin, arena, from, n, "peek") != NULL) {
    memcpy(to, arena->own + ((const char *)from - arena->shown), (size_t)n);
  }
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_poke(Plugin *plugin, void *to, const void *from, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = arena_with(plugin, to);
  if (held(plugin, arena, to, n, "poke") != NULL) memcpy(arena->own + ((char *)to - arena->shown), from, (size_t)n);
  pthread_mutex_unlock(&plugin->lock);
}

int64_t plugin_size(Plugin *plugin, const void *data) {
  pthread_mutex_lock(&plugin->lock);
  Memory *memory = held(plugin, arena_with(plugin, data), data, 0, "size");
  int64_t size = memory == NULL ? -1 : memory->size;
  pthread_mutex_unlock(&plugin->lock);
  return size;
}

void plugin_fill(Plugin *plugin, int64_t id, void *queue, void *to, int byte, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = &plugin->arenas[id];
  Memory *memory = held(plugin, arena, to, n, "fill");
  char *own = arena->own + ((char *)to - arena->shown);
  if (memory != NULL) submit(plugin, id, queue, (Op){.kind = FILL, .to = own, .byte = byte, .n = n, .uses = {memory, NULL}});
  pthread_mutex_unlock(&plugin->lock);
}

void *plugin_record(Plugin *plugin, int64_t id, void *queue) {
  void *event = NULL;
  pthread_mutex_lock(&plugin->lock);
  record(plugin, id, queue, &event);
  pthread_mutex_unlock(&plugin->lock);
  return event;
}

int plugin_is_done(Plugin *plugin, void *event) {
  pthread_mutex_lock(&plugin->lock);
  int is_done = is_event(plugin, event, "is done") && ((Event *)event)->is_done;
  pthread_mutex_unlock(&plugin->lock);
  return is_done;
}

void plugin_destroy_event(Plugin *plugin, void *event) {
  pthread_mutex_lock(&plugin->lock);
  destroy(plugin, event);
  pthread_mutex_unlock(&plugin->lock);
}
