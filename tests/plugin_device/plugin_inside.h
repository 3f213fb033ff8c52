/* What the two halves of the plug-in share. The lock is held in all of these functions. */
#ifndef PLUGIN_INSIDE_H
#define PLUGIN_INSIDE_H

#include "plugin_device.h"

#include <pthread.h>

enum { MOST_DEVICES = 4, MOST_ENTRIES = 1 << 16, PAGE = 4096, WRONG_ARGUMENT = 9001, WRONG_DEVICE = 9002 };

/* Addresses are never used twice, so that any use of freed memory is noticed. */
#define ARENA ((int64_t)1 << 32)

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

void pd_fault(Plugin *plugin, const char *format, ...);
void *pd_must(void *memory);
Queue *pd_new_queue(Plugin *plugin, int64_t id);
Queue *pd_queue_of(Plugin *plugin, int64_t id, void *handle);
Arena *pd_arena_with(Plugin *plugin, const void *data);
Memory *pd_held(Plugin *plugin, Arena *arena, const void *data, int64_t n, const char *what);
void *pd_new_memory(Plugin *plugin, int64_t id, int64_t size, int is_tests);
void pd_end_memory(Plugin *plugin, Arena *arena, Memory *memory);
int32_t pd_submit(Plugin *plugin, int64_t id, void *handle, Op op);
int32_t pd_record(Plugin *plugin, int64_t id, void *queue, void **event);
int pd_is_event(Plugin *plugin, void *event, const char *what);
void pd_destroy(Plugin *plugin, void *handle);

#endif
