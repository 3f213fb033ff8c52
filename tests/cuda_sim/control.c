/* What tests ask for that has no other place. */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EXPORT int cuda_sim_is_simulated(const char **variant) {
#if defined CUDA_SIM_STUB
  const char *name = "stub";
#elif defined CUDA_SIM_NO_ASYNC_MEMORY
  const char *name = "no_async_memory";
#elif defined CUDA_SIM_NO_EVENT_RECORD
  const char *name = "no_event_record";
#else
  const char *name = "full";
#endif
  if (variant) *variant = name;
  return CUDA_SIM_MARK;
}

static void count(cuda_sim_counts *counts) {
  memset(counts, 0, sizeof *counts);
  for (size_t i = 0; i < sim.memory.n; i++) {
    const Memory *memory = sim.memory.at[i];
    if (memory->state == MEMORY_FREED) continue;
    counts->bytes += (int64_t)memory->size;
    /* What is only waiting for its turn to be freed is no longer anybody's. */
    bool live = memory->state == MEMORY_LIVE;
    counts->device_memory += live && memory->kind == MEMORY_DEVICE;
    counts->pool_memory += live && memory->kind == MEMORY_POOL;
    counts->pinned_memory += live && memory->kind == MEMORY_PINNED;
    counts->managed_memory += live && memory->kind == MEMORY_MANAGED;
  }
  for (size_t i = 0; i < sim.streams.n; i++) {
    const Stream *stream = sim.streams.at[i];
    counts->streams += stream->handle && !stream->destroyed;
  }
  for (size_t i = 0; i < sim.events.n; i++) {
    const Event *event = sim.events.at[i];
    counts->events += !event->destroyed && event->context->alive;
  }
  for (size_t i = 0; i < sim.contexts.n; i++)
    counts->contexts += sim.contexts.at[i]->alive && !sim.contexts.at[i]->primary;
  for (size_t i = 0; i < MAX_DEVICES; i++) counts->primary_retains += sim.retains[i];
  counts->graphs = sim.graphs;
  counts->pushed_here = (int64_t)sim_thread()->depth;
  counts->pushed = sim.pushed;
  counts->pending = sim.pending;
}

EXPORT void cuda_sim_live(cuda_sim_counts *counts) {
  sim_lock();
  if (counts) count(counts);
  sim_unlock();
}

EXPORT int cuda_sim_capture_mode(void) {
  sim_lock();
  int mode = (int)sim_thread()->mode;
  sim_unlock();
  return mode;
}

EXPORT int64_t cuda_sim_captures_invalidated(void) {
  sim_lock();
  int64_t n = sim.captures_invalidated;
  sim_unlock();
  return n;
}

typedef struct {
  char *text;
  size_t size, used;
} Report;

static void PRINTF(2, 3) tell(Report *report, const char *format, ...) {
  if (!report->text || report->used >= report->size) return;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(report->text + report->used, report->size - report->used, format, arguments);
  va_end(arguments);
  if (n > 0) report->used += (size_t)n;
}

static int describe_live(unsigned flags, Report *report) {
  cuda_sim_counts counts;
  count(&counts);
  const struct {
    const char *name;
    int64_t n;
  } kinds[] = {
      {"device memory", counts.device_memory},
      {"pool memory", counts.pool_memory},
      {"pinned memory", counts.pinned_memory},
      {"managed memory", counts.managed_memory},
      {"streams", counts.streams},
      {"events", counts.events},
      {"graphs", counts.graphs},
      {"contexts", flags ? 0 : counts.contexts},
      {"retains of primary contexts", flags ? 0 : counts.primary_retains},
  };
  int64_t all = 0;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (kinds[i].n) tell(report, "%s: %" PRId64 "\n", kinds[i].name, kinds[i].n);
    all += kinds[i].n;
  }
  int shown = 0;
  for (size_t i = 0; i < sim.memory.n && shown < 20; i++) {
    const Memory *memory = sim.memory.at[i];
    if (memory->state != MEMORY_LIVE) continue;
    tell(report, "  %zu bytes of %s at 0x%" PRIx64 "\n", memory->size, sim_memory_name(memory->kind), memory->base);
    shown++;
  }
  return (int)all;
}

static void destroy_objects(void) {
  for (size_t i = 0; i < sim.streams.n; i++) sim.streams.at[i]->unblocks = sim.streams.at[i]->blocks;
  sim_changed();
  WAIT_UNTIL(!sim.pending, "a reset waits for the work of all streams");
  for (size_t i = 0; i < sim.streams.n; i++) sim_destroy_stream(sim.streams.at[i]);
  sim_join_streams(true);
  sim_forget_memory();
  for (size_t i = 0; i < sim.streams.n; i++) {
    sim_clock_free(&sim.streams.at[i]->clock);
    free(sim.streams.at[i]);
  }
  free(sim.streams.at);
  memset(&sim.streams, 0, sizeof sim.streams);
  for (size_t i = 0; i < sim.buried.n; i++) free(sim.buried.at[i]);
  free(sim.buried.at);
  memset(&sim.buried, 0, sizeof sim.buried);
  for (size_t i = 0; i < sim.events.n; i++) {
    sim_clock_free(&sim.events.at[i]->clock);
    free(sim.events.at[i]);
  }
  free(sim.events.at);
  memset(&sim.events, 0, sizeof sim.events);
  for (size_t i = 0; i < sim.contexts.n; i++) sim.contexts.at[i]->legacy = NULL;
  sim_forget_captures();
  sim.graphs = 0;
}

static void destroy_contexts(void) {
  for (size_t i = 0; i < sim.contexts.n; i++) free(sim.contexts.at[i]);
  free(sim.contexts.at);
  memset(&sim.contexts, 0, sizeof sim.contexts);
  memset(sim.primary, 0, sizeof sim.primary);
  memset(sim.retains, 0, sizeof sim.retains);
  sim.initialised = false;
  sim.pushed = 0;
  sim.generation++;
}

EXPORT int cuda_sim_reset(unsigned flags, char *text, size_t size) {
  Report report = {text, size, 0};
  if (text && size) text[0] = 0;
  sim_lock();
  if (sim_thread()->in_host_function) sim_hang("cuda_sim_reset in a host function");
  int live = describe_live(flags, &report);
  sim_forget_fault_texts();
  if (!(flags & CUDA_SIM_KEEP_OBJECTS)) {
    destroy_objects();
    if (!(flags & CUDA_SIM_KEEP_CONTEXTS)) destroy_contexts();
    sim_forget_handles();
  }
  sim_default_settings();
  sim_forget_orders();
  sim_log_forget();
  sim.captures_invalidated = 0;
  for (size_t i = 0; i < sim.contexts.n; i++) sim.contexts.at[i]->broken = CUDA_SUCCESS;
  sim_unlock();
  /* The end of memory shows whether the CPU wrote beyond it. */
  for (int64_t i = 0; i < cuda_sim_faults(); i++, live++) tell(&report, "%s\n", cuda_sim_fault_text(i));
  cuda_sim_forget_faults();
  return live;
}

EXPORT int cuda_sim_break_device(int device, int code) {
  sim_lock();
  Context *context = sim_primary(device);
  if (context && code >= 0) sim_break(context, (CUresult)code);
  sim_unlock();
  return context && code >= 0 ? 0 : -1;
}

static int touch(uint64_t address, void *read, const void *written, size_t size) {
  sim_lock();
  Memory *memory = sim_find(address);
  bool good = memory && memory->state != MEMORY_FREED && size <= memory->size - (address - memory->base);
  if (good && read) memcpy(read, memory->backing + (address - memory->base), size);
  if (good && written) memcpy(memory->backing + (address - memory->base), written, size);
  sim_unlock();
  return good ? 0 : -1;
}

EXPORT int cuda_sim_poke(uint64_t address, const void *bytes, size_t size) {
  return bytes ? touch(address, NULL, bytes, size) : -1;
}

EXPORT int cuda_sim_peek(uint64_t address, void *bytes, size_t size) {
  return bytes ? touch(address, bytes, NULL, size) : -1;
}

EXPORT int cuda_sim_enqueue_delay(void *handle, int ms) {
  CALL_ON(handle, CONTROL, "ms=%d", ms);
  if (ms < 0) return -1;
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    Operation *operation = stream ? sim_operation(OP_DELAY) : NULL;
    if (stream) operation->ms = ms;
    if (stream) sim_enqueue(&call, stream, operation);
  }
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}

EXPORT int cuda_sim_enqueue_error(void *handle, int code) {
  CALL_ON(handle, CONTROL, "code=%d", code);
  if (code <= 0) return -1;
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    Operation *operation = stream ? sim_operation(OP_ERROR) : NULL;
    if (stream) operation->code = (CUresult)code;
    if (stream) sim_enqueue(&call, stream, operation);
  }
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}

EXPORT int cuda_sim_block(void *handle) {
  CALL_ON(handle, CONTROL, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    Operation *operation = stream ? sim_operation(OP_BLOCK) : NULL;
    if (stream) operation->number = stream->blocks + 1;
    /* What goes into a graph never blocks. */
    if (stream && sim_enqueue(&call, stream, operation) && !stream->capture) stream->blocks++;
  }
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}

/* A stream whose work may go on after its handle is no longer good for the driver. */
static Stream *any_stream(Call *call, void *handle) {
  Stream *stream = sim_handle(handle, HANDLE_STREAM);
  if (stream) return stream;
  Context *context = sim_current();
  if (context && context->alive && context->legacy && (!handle || handle == CU_STREAM_LEGACY)) return context->legacy;
  return sim_stream(call, handle);
}

EXPORT int cuda_sim_unblock(void *handle) {
  CALL_ON(handle, CONTROL, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = any_stream(&call, handle);
    if (stream && stream->unblocks < stream->blocks) {
      stream->unblocks++;
      sim_changed();
    } else {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}

EXPORT int64_t cuda_sim_pending(void *handle) {
  CALL_ON(handle, CONTROL, "%s", "");
  int64_t pending = -1;
  if (sim_begin(&call)) {
    Stream *stream = any_stream(&call, handle);
    if (stream) pending = (int64_t)(stream->issued - stream->completed);
  }
  sim_end(&call);
  return pending;
}

EXPORT int cuda_sim_wait_idle(int ms) {
  sim_lock();
  struct timespec until = sim_deadline(ms);
  while (sim.pending && sim_wait(&until)) {
  }
  bool idle = !sim.pending;
  sim_unlock();
  return idle ? 0 : -1;
}
