/* Operations: how they are ordered when they are enqueued, and how a stream's thread carries them out. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

Operation *sim_operation(OperationKind kind) {
  Operation *operation = sim_zeroed(sizeof *operation);
  operation->kind = kind;
  return operation;
}

static void discard(Operation *operation) {
  free(operation->after);
  free(operation->staged);
  free(operation);
}

static void wait_for(Operation *operation, Stream *stream, uint64_t position) {
  if (stream->completed >= position) return;
  operation->after = sim_resize(operation->after, (operation->n_after + 1) * sizeof *operation->after);
  operation->after[operation->n_after].stream = stream;
  operation->after[operation->n_after].position = position;
  operation->n_after++;
}

/* The legacy default stream waits for all blocking streams of its context, and they for it. */
static void wait_for_default_streams(Operation *operation, Stream *stream) {
  bool blocking = sim_blocking(stream);
  for (size_t i = 0; (stream->legacy || blocking) && i < sim.streams.n; i++) {
    Stream *other = sim.streams.at[i];
    if (other == stream || other->context != stream->context) continue;
    if (!(stream->legacy ? sim_blocking(other) : other->legacy)) continue;
    wait_for(operation, other, other->issued);
    sim_clock_merge(&stream->clock, &other->clock);
    sim_clock_set(&stream->clock, other->slot, other->issued);
  }
}

/* Takes the operation in any case. False with the call's result if it does not go into the stream. */
bool sim_enqueue(Call *call, Stream *stream, Operation *operation) {
  bool taken = false;
  if (stream->context->broken) call->result = stream->context->broken;
  if (call->result != CUDA_SUCCESS || !sim_captures(call, stream, operation, &taken)) {
    discard(operation);
    return false;
  }
  if (taken) {
    discard(operation);
    return true;
  }
  if (!stream->started && pthread_create(&stream->thread, NULL, sim_worker, stream) != 0) {
    discard(operation);
    call->result = CUDA_ERROR_OPERATING_SYSTEM;
    return false;
  }
  stream->started = true;
  wait_for_default_streams(operation, stream);
  if (operation->kind == OP_WAIT) {
    wait_for(operation, operation->event->stream, operation->event->position);
    sim_clock_merge(&stream->clock, &operation->event->clock);
  }
  uint64_t position = stream->issued + 1;
  sim_use(call, stream, &operation->from, operation->size, position, false);
  sim_use(call, stream, &operation->to, operation->size, position, true);
  stream->issued = position;
  sim_clock_set(&stream->clock, stream->slot, position);
  operation->position = position;
  operation->entry = call->entry;
  if (stream->tail) {
    stream->tail->next = operation;
  } else {
    stream->head = operation;
  }
  stream->tail = operation;
  sim.pending++;
  sim_changed();
  return true;
}

/* Waits until the stream has come that far; the call's result tells of a broken context. */
bool sim_finish(Call *call, Stream *stream, uint64_t position) {
  WAIT_UNTIL(stream->completed >= position, "%s waits for stream %p", call->name, stream->handle);
  if (stream->context->broken) call->result = stream->context->broken;
  return call->result == CUDA_SUCCESS;
}

/* The bytes of a place, as long as they are there; what is freed meanwhile is not touched. */
static unsigned char *hold(const Place *place, const char *what) {
  Memory *memory = place->memory;
  if (!memory) return place->host;
  if (memory->state == MEMORY_FREED) {
    sim_fault("%s at 0x%" PRIx64 " was freed by %s before the operation that %s it ran", sim_memory_name(memory->kind),
              memory->base, memory->freed_by, what);
    return NULL;
  }
  memory->busy++;
  return memory->backing + place->offset;
}

static void let_go(const Place *place, const unsigned char *bytes) {
  if (place->memory && bytes) place->memory->busy--;
}

static void move_bytes(Operation *operation) {
  bool fill = operation->kind == OP_FILL;
  unsigned char *from = fill || operation->staged ? operation->staged : hold(&operation->from, "reads");
  unsigned char *to = hold(&operation->to, "writes");
  if (to && (fill || from)) {
    sim_unlock();
    if (fill) {
      memset(to, operation->byte, operation->size);
    } else {
      memmove(to, from, operation->size);
    }
    sim_lock();
  }
  if (!fill && !operation->staged) let_go(&operation->from, from);
  let_go(&operation->to, to);
}

static void run(Stream *stream, Operation *operation) {
  switch (operation->kind) {
    case OP_COPY:
    case OP_FILL:
      move_bytes(operation);
      break;
    case OP_HOST:
      sim_thread()->in_host_function = true;
      sim_unlock();
      operation->function(operation->data);
      sim_lock();
      sim_thread()->in_host_function = false;
      break;
    case OP_RECORD:
      if (operation->event->recording == operation->number) operation->event->when = sim_now();
      break;
    case OP_FREE:
      sim_release_memory(operation->memory, operation->memory->freed_by);
      break;
    case OP_DELAY:
      sim_sleep((int64_t)operation->ms * 1000);
      break;
    case OP_BLOCK:
      while (stream->unblocks < operation->number && !stream->context->broken) pthread_cond_wait(&sim.changed, &sim.lock);
      break;
    case OP_ERROR:
      sim_break(stream->context, operation->code);
      break;
    case OP_WAIT:
    case OP_ALLOCATE:
      break;
  }
}

static bool may_start(const Operation *operation) {
  for (size_t i = 0; i < operation->n_after; i++)
    if (operation->after[i].stream->completed < operation->after[i].position) return false;
  return true;
}

/* A stream's thread. It ends when the stream was destroyed and has no more work. */
void *sim_worker(void *argument) {
  Stream *stream = argument;
  sim_lock();
  for (;;) {
    Operation *operation = stream->head;
    if (!operation) {
      if (stream->destroyed) break;
      pthread_cond_wait(&sim.changed, &sim.lock);
      continue;
    }
    if (!may_start(operation)) {
      pthread_cond_wait(&sim.changed, &sim.lock);
      continue;
    }
    int64_t delay = sim.settings[SET_DELAY_US];
    if (delay && operation->kind != OP_WAIT) sim_sleep(delay);
    sim_log_operation(operation->entry, ++sim.sequence, 0);
    /* After an error that cannot be recovered from nothing runs any more, but memory is still given back. */
    if (!stream->context->broken || operation->kind == OP_FREE) run(stream, operation);
    sim_log_operation(operation->entry, 0, ++sim.sequence);
    stream->head = operation->next;
    if (!stream->head) stream->tail = NULL;
    stream->completed = operation->position;
    sim.pending--;
    discard(operation);
    sim_changed();
  }
  stream->exited = true;
  sim_changed();
  sim_unlock();
  return NULL;
}
