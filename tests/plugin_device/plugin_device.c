#define _GNU_SOURCE
#include "plugin_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void pd_fault(Plugin *plugin, const char *format, ...) {
  if (plugin->fault[0] != '\0') return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plugin->fault, sizeof plugin->fault, format, arguments);
  va_end(arguments);
}

void *pd_must(void *memory) {
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
    arena->shown = pd_must(mmap(NULL, (size_t)ARENA, access, MAP_SHARED | MAP_NORESERVE, file, 0));
    arena->own = pd_must(mmap(NULL, (size_t)ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
    close(file);
  }
  return arena;
}

/* The arena that an address is in, or NULL. */
Arena *pd_arena_with(Plugin *plugin, const void *data) {
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
Memory *pd_held(Plugin *plugin, Arena *arena, const void *data, int64_t n, const char *what) {
  if (arena == NULL || pd_arena_with(plugin, data) != arena) {
    pd_fault(plugin, "%s: %p is no memory of the device", what, data);
    return NULL;
  }
  int64_t at = (const char *)data - arena->shown;
  Memory *memory = memory_at(arena, at);
  if (memory == NULL || at + n > memory->start + memory->size || n < 0) {
    pd_fault(plugin, "%s: %lld bytes at %p are not in one piece of memory", what, (long long)n, data);
    return NULL;
  }
  if (!memory->is_alive) {
    pd_fault(plugin, "%s: memory at %p was freed", what, data);
    return NULL;
  }
  return memory;
}

void *pd_new_memory(Plugin *plugin, int64_t id, int64_t size, int is_tests) {
  Arena *arena = arena_of(plugin, id);
  int64_t pages = (size + PAGE - 1) / PAGE * PAGE;
  if (size < 0 || size > ARENA || arena->used + pages + PAGE > ARENA) return NULL;
  if (arena->n == arena->room) {
    arena->room = arena->room == 0 ? 1024 : 2 * arena->room;
    arena->memories = pd_must(realloc(arena->memories, arena->room * sizeof *arena->memories));
  }
  Memory *memory = pd_must(calloc(1, sizeof *memory));
  *memory = (Memory){arena->used, size, 0, 1, is_tests};
  arena->memories[arena->n++] = memory;
  arena->used += pages + PAGE;
  if (!is_tests) ++plugin->n_memories;
  /* Nobody may count on zeroes. */
  memset(arena->own + memory->start, 0xA5, (size_t)size);
  return arena->shown + memory->start;
}

void pd_end_memory(Plugin *plugin, Arena *arena, Memory *memory) {
  if (memory->in_use > 0) pd_fault(plugin, "free: work on the memory is not done");
  if (!memory->is_alive) {
    pd_fault(plugin, "free: memory was freed before");
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

int pd_is_event(Plugin *plugin, void *event, const char *what) {
  for (Event *known = plugin->events; known != NULL; known = known->next) {
    if (known == event && !known->is_destroyed) return 1;
  }
  pd_fault(plugin, "%s: %p is no event, or one that was destroyed", what, event);
  return 0;
}

/* Does one piece of work. The lock is held, but not while bytes are copied or while it waits. */
static void work(Plugin *plugin, Queue *queue, Op *op) {
  for (int i = 0; i < 2; ++i) {
    if (op->uses[i] != NULL && !op->uses[i]->is_alive) pd_fault(plugin, "work runs on memory that was freed");
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
      pd_end_memory(plugin, &plugin->arenas[queue == NULL ? op->byte : queue->device], op->uses[0]);
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

Queue *pd_new_queue(Plugin *plugin, int64_t id) {
  Queue *queue = pd_must(calloc(1, sizeof *queue));
  queue->plugin = plugin;
  queue->device = id;
  queue->next = plugin->queues;
  plugin->queues = queue;
  if (pthread_create(&queue->thread, NULL, run, queue) != 0) abort();
  return queue;
}

/* The queue that a handle means, or NULL with a fault. */
Queue *pd_queue_of(Plugin *plugin, int64_t id, void *handle) {
  Arena *arena = &plugin->arenas[id];
  if (handle == NULL) {
    if (arena->standard == NULL) arena->standard = pd_new_queue(plugin, id);
    return arena->standard;
  }
  for (Queue *queue = plugin->queues; queue != NULL; queue = queue->next) {
    if (queue != handle) continue;
    if (queue->is_closed || queue->is_closing) pd_fault(plugin, "a queue was used after it was closed");
    else if (queue->device != id) pd_fault(plugin, "a queue of device %d was used for device %d", (int)queue->device, (int)id);
    else return queue;
    return NULL;
  }
  pd_fault(plugin, "%p is no queue", handle);
  return NULL;
}

/* Enqueues work, or does it at once where there are no queues. The lock is held. */
int32_t pd_submit(Plugin *plugin, int64_t id, void *handle, Op op) {
  Op *own = pd_must(malloc(sizeof *own));
  *own = op;
  for (int i = 0; i < 2; ++i) {
    if (op.uses[i] != NULL && op.kind != FREE) ++op.uses[i]->in_use;
  }
  if (op.event != NULL) ++op.event->n_uses;
  if (!(plugin->features & PLUGIN_EVENTS)) {
    if (handle != NULL) pd_fault(plugin, "%p is no queue of a device without queues", handle);
    own->byte = op.kind == FREE ? (int)id : op.byte;
    work(plugin, NULL, own);
    return 0;
  }
  Queue *queue = pd_queue_of(plugin, id, handle);
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
  if (size <= 0 || size % 64 != 0) pd_fault(plugin, "allocate: %lld bytes", (long long)size);
  if (plugin->features & PLUGIN_EVENTS) pd_queue_of(plugin, id, queue);
  *data = pd_new_memory(plugin, id, size, 0);
  return leave(plugin, 0);
}

static int32_t f_free(void *ctx, int64_t id, void *data, int64_t size, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_FREE, id, queue, size);
  if (code != 0) return code;
  Memory *memory = pd_held(plugin, &plugin->arenas[id], data, size, "free");
  if (memory == NULL) return leave(plugin, WRONG_ARGUMENT);
  if (memory->size != size || memory->start != (char *)data - plugin->arenas[id].shown) {
    pd_fault(plugin, "free: %lld bytes of %lld", (long long)size, (long long)memory->size);
  }
  return leave(plugin, pd_submit(plugin, id, queue, (Op){.kind = FREE, .uses = {memory, NULL}}));
}

/* A copy between memories, either of which may be the CPU's, whose arena is NULL. */
static int32_t copy(Plugin *plugin, int function, int64_t id, Arena *to, void *into, Arena *from, const void *source,
                    int64_t n, void *queue) {
  Op op = {.kind = COPY, .to = into, .from = source, .n = n};
  if (n <= 0) pd_fault(plugin, "a copy of %lld bytes", (long long)n);
  plugin->bytes[function] += n;
  if (to != NULL) {
    op.uses[0] = pd_held(plugin, to, into, n, "copy to");
    op.to = to->own + ((char *)into - to->shown);
  } else if (pd_arena_with(plugin, into) != NULL) {
    pd_fault(plugin, "copy to: %p is not the CPU's", into);
    return WRONG_ARGUMENT;
  }
  if (from != NULL) {
    op.uses[1] = pd_held(plugin, from, source, n, "copy from");
    op.from = from->own + ((const char *)source - from->shown);
  } else if (pd_arena_with(plugin, source) != NULL) {
    pd_fault(plugin, "copy from: %p is not the CPU's", source);
    return WRONG_ARGUMENT;
  }
  if ((to != NULL && op.uses[0] == NULL) || (from != NULL && op.uses[1] == NULL)) return WRONG_ARGUMENT;
  return pd_submit(plugin, id, queue, op);
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
    pd_fault(plugin, "copy_between: from device %lld", (long long)from_id);
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
  if (arena->library == NULL) arena->library = pd_new_queue(plugin, id);
  *queue = arena->library;
  return leave(plugin, 0);
}

static int32_t f_drain(void *ctx, int64_t id, void *handle) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_DRAIN, id, handle, 0);
  if (code != 0) return code;
  Queue *queue = pd_queue_of(plugin, id, handle);
  if (queue == NULL) return leave(plugin, WRONG_ARGUMENT);
  while (queue->first != NULL || queue->is_busy) pthread_cond_wait(&plugin->changed, &plugin->lock);
  return leave(plugin, 0);
}

int32_t pd_record(Plugin *plugin, int64_t id, void *queue, void **event) {
  Event *made = pd_must(calloc(1, sizeof *made));
  made->device = id;
  made->next = plugin->events;
  plugin->events = made;
  ++plugin->n_events;
  *event = made;
  return pd_submit(plugin, id, queue, (Op){.kind = RECORD, .event = made});
}

static int32_t f_record(void *ctx, int64_t id, void *queue, void **event) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_RECORD, id, queue, 0);
  return code != 0 ? code : leave(plugin, pd_record(plugin, id, queue, event));
}

static int32_t f_queue_waits(void *ctx, int64_t id, void *event, void *queue) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_QUEUE_WAITS, id, queue, 0);
  if (code != 0) return code;
  if (!pd_is_event(plugin, event, "queue_waits")) return leave(plugin, WRONG_ARGUMENT);
  return leave(plugin, pd_submit(plugin, id, queue, (Op){.kind = WAIT, .event = event}));
}

static int32_t f_host_waits(void *ctx, int64_t id, void *handle) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_HOST_WAITS, id, NULL, 0);
  if (code != 0) return code;
  if (!pd_is_event(plugin, handle, "host_waits")) return leave(plugin, WRONG_ARGUMENT);
  Event *event = handle;
  if (event->device != id) pd_fault(plugin, "host_waits: an event of device %d on device %d", (int)event->device, (int)id);
  ++event->n_uses;
  while (!event->is_done) pthread_cond_wait(&plugin->changed, &plugin->lock);
  unuse(plugin, event);
  return leave(plugin, 0);
}

static int32_t f_is_done(void *ctx, int64_t id, void *event, int32_t *done) {
  Plugin *plugin = ctx;
  int32_t code = enter(plugin, PLUGIN_F_IS_DONE, id, NULL, 0);
  if (code != 0) return code;
  if (!pd_is_event(plugin, event, "is_done")) return leave(plugin, WRONG_ARGUMENT);
  *done = ((Event *)event)->is_done;
  return leave(plugin, 0);
}

void pd_destroy(Plugin *plugin, void *handle) {
  if (!pd_is_event(plugin, handle, "destroy_event")) return;
  Event *event = handle;
  event->is_destroyed = 1;
  --plugin->n_events;
  ++event->n_uses;
  unuse(plugin, event);
}

static void f_destroy_event(void *ctx, int64_t id, void *event) {
  Plugin *plugin = ctx;
  if (enter(plugin, PLUGIN_F_DESTROY_EVENT, id, NULL, 0) != 0) return;
  if (pd_is_event(plugin, event, "destroy_event") && ((Event *)event)->device != id) {
    pd_fault(plugin, "destroy_event: an event of another device");
  }
  pd_destroy(plugin, event);
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
  Arena *arena = pd_arena_with(plugin, data);
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
  Plugin *plugin = pd_must(calloc(1, sizeof *plugin));
  plugin->type = type;
  plugin->n_devices = n_devices < MOST_DEVICES ? n_devices : MOST_DEVICES;
  plugin->features = features;
  plugin->log = pd_must(calloc(MOST_ENTRIES, sizeof *plugin->log));
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
