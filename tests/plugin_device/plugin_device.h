/* A device for tests: its memory faults when the CPU touches it, its queues are threads that run late, and it notices misuse. */
#ifndef PLUGIN_DEVICE_H
#define PLUGIN_DEVICE_H

#include <bowstring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a device can do. Without EVENTS it works at once and has no queues. */
enum {
  PLUGIN_EVENTS = 1,
  PLUGIN_LIBRARY_QUEUE = 2,
  PLUGIN_WITHIN = 4,
  PLUGIN_BETWEEN = 8,
  PLUGIN_PROBE = 16,
  PLUGIN_ACCESSIBLE = 32,
  PLUGIN_LOCATE = 64,
  PLUGIN_TEXT = 128
};

/* The functions of the backend, for counting and for failures. */
enum {
  PLUGIN_F_PROBE,
  PLUGIN_F_ALLOCATE,
  PLUGIN_F_FREE,
  PLUGIN_F_FROM_HOST,
  PLUGIN_F_TO_HOST,
  PLUGIN_F_WITHIN,
  PLUGIN_F_BETWEEN,
  PLUGIN_F_LIBRARY_QUEUE,
  PLUGIN_F_DRAIN,
  PLUGIN_F_RECORD,
  PLUGIN_F_QUEUE_WAITS,
  PLUGIN_F_HOST_WAITS,
  PLUGIN_F_IS_DONE,
  PLUGIN_F_DESTROY_EVENT,
  PLUGIN_F_ACCESSIBLE,
  PLUGIN_F_LOCATE,
  PLUGIN_N_FUNCTIONS
};

typedef struct Plugin Plugin;

/* A plug-in with `n_devices` devices, numbered from 0, of a type. It lives as long as the process. */
Plugin *plugin_new(ArrowDeviceType type, int n_devices, unsigned features);
/* Its functions, for bowstring_device_register. */
void plugin_backend(Plugin *plugin, BowstringDeviceBackend *out);

/* Ends all queues. Nobody may use the devices any more. */
void plugin_end(Plugin *plugin);

/* A queue of a device, of the test's own; any use after it was closed is a fault. Closing waits for its work. */
void *plugin_queue_open(Plugin *plugin, int64_t id);
void plugin_queue_close(void *queue);
/* From now on a queue stands still, until it may go on. NULL is the default queue. */
void plugin_stop(Plugin *plugin, int64_t id, void *queue);
void plugin_go(Plugin *plugin, int64_t id, void *queue);
/* The library's queue of a device. */
void *plugin_library_queue(Plugin *plugin, int64_t id);
/* Every piece of work takes so long. */
void plugin_delay(Plugin *plugin, int microseconds);
/* Waits until every queue of the plug-in is idle. */
void plugin_settle(Plugin *plugin);

/* The nth call of a function from now on, counted from 1, returns `code`, and all after it when `lasts`. 0 calls it off. */
void plugin_fail(Plugin *plugin, int function, int nth, int32_t code, int lasts);
/* Calls, and bytes that were copied, since the last reset. */
int64_t plugin_calls(Plugin *plugin, int function);
int64_t plugin_bytes(Plugin *plugin, int function);
void plugin_reset(Plugin *plugin);
/* Entry `i` of the log of calls since the last reset; 0 when there are not so many. */
typedef struct PluginEntry {
  int32_t function;
  int64_t device;
  void *queue;
  int64_t n;
} PluginEntry;
int plugin_log(Plugin *plugin, size_t i, PluginEntry *out);

/* What is alive. */
int64_t plugin_live_memory(Plugin *plugin);
int64_t plugin_live_events(Plugin *plugin);
/* The first misuse that was noticed, or NULL; it is forgotten. */
const char *plugin_fault(Plugin *plugin);

/* Memory of the test's own, and what is in any memory of the device, all at once and not on a queue. */
void *plugin_take(Plugin *plugin, int64_t id, int64_t size);
void plugin_give_back(Plugin *plugin, void *data);
void plugin_peek(Plugin *plugin, const void *from, void *to, int64_t n);
void plugin_poke(Plugin *plugin, void *to, const void *from, int64_t n);
int64_t plugin_size(Plugin *plugin, const void *data);
/* Work as a kernel does it: fills memory with a byte when the queue comes to it. */
void plugin_fill(Plugin *plugin, int64_t id, void *queue, void *to, int byte, int64_t n);
/* Events of the test's own. */
void *plugin_record(Plugin *plugin, int64_t id, void *queue);
int plugin_is_done(Plugin *plugin, void *event);
void plugin_destroy_event(Plugin *plugin, void *event);

#ifdef __cplusplus
}
#endif

#endif
