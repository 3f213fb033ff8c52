/* What tests do with the device without the library: queues, memory and events of their own, failures, and looking. */
#define _GNU_SOURCE
#include "plugin_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *plugin_queue_open(Plugin *plugin, int64_t id) {
  pthread_mutex_lock(&plugin->lock);
  Queue *queue = pd_new_queue(plugin, id);
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

void plugin_end(Plugin *plugin) {
  for (Queue *queue = plugin->queues; queue != NULL; queue = queue->next) {
    if (!queue->is_closing) plugin_queue_close(queue);
  }
  /* What looks for leaks at the end of a program reads all memory that can be read, and these are gigabytes. */
  for (int i = 0; i < plugin->n_devices; i++) {
    Arena *arena = &plugin->arenas[i];
    if (arena->own != NULL) munmap(arena->own, (size_t)ARENA);
    arena->own = NULL;
  }
}

static void set_stopped(Plugin *plugin, int64_t id, void *handle, int is_stopped) {
  pthread_mutex_lock(&plugin->lock);
  Queue *queue = pd_queue_of(plugin, id, handle);
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
  if (arena->library == NULL) arena->library = pd_new_queue(plugin, id);
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
  void *data = pd_must(pd_new_memory(plugin, id, size, 1));
  pthread_mutex_unlock(&plugin->lock);
  return data;
}

void plugin_give_back(Plugin *plugin, void *data) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = pd_arena_with(plugin, data);
  Memory *memory = pd_held(plugin, arena, data, 0, "give back");
  if (memory != NULL) pd_end_memory(plugin, arena, memory);
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_peek(Plugin *plugin, const void *from, void *to, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = pd_arena_with(plugin, from);
  if (pd_held(plugin, arena, from, n, "peek") != NULL) {
    memcpy(to, arena->own + ((const char *)from - arena->shown), (size_t)n);
  }
  pthread_mutex_unlock(&plugin->lock);
}

void plugin_poke(Plugin *plugin, void *to, const void *from, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = pd_arena_with(plugin, to);
  if (pd_held(plugin, arena, to, n, "poke") != NULL) memcpy(arena->own + ((char *)to - arena->shown), from, (size_t)n);
  pthread_mutex_unlock(&plugin->lock);
}

int64_t plugin_size(Plugin *plugin, const void *data) {
  pthread_mutex_lock(&plugin->lock);
  Memory *memory = pd_held(plugin, pd_arena_with(plugin, data), data, 0, "size");
  int64_t size = memory == NULL ? -1 : memory->size;
  pthread_mutex_unlock(&plugin->lock);
  return size;
}

void plugin_fill(Plugin *plugin, int64_t id, void *queue, void *to, int byte, int64_t n) {
  pthread_mutex_lock(&plugin->lock);
  Arena *arena = &plugin->arenas[id];
  Memory *memory = pd_held(plugin, arena, to, n, "fill");
  char *own = arena->own + ((char *)to - arena->shown);
  if (memory != NULL) pd_submit(plugin, id, queue, (Op){.kind = FILL, .to = own, .byte = byte, .n = n, .uses = {memory, NULL}});
  pthread_mutex_unlock(&plugin->lock);
}

void *plugin_record(Plugin *plugin, int64_t id, void *queue) {
  void *event = NULL;
  pthread_mutex_lock(&plugin->lock);
  pd_record(plugin, id, queue, &event);
  pthread_mutex_unlock(&plugin->lock);
  return event;
}

int plugin_is_done(Plugin *plugin, void *event) {
  pthread_mutex_lock(&plugin->lock);
  int is_done = pd_is_event(plugin, event, "is done") && ((Event *)event)->is_done;
  pthread_mutex_unlock(&plugin->lock);
  return is_done;
}

void plugin_destroy_event(Plugin *plugin, void *event) {
  pthread_mutex_lock(&plugin->lock);
  pd_destroy(plugin, event);
  pthread_mutex_unlock(&plugin->lock);
}
