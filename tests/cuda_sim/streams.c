/* Streams, and the driver's functions about them. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

bool sim_blocking(const Stream *stream) { return !stream->legacy && !(stream->flags & CU_STREAM_NON_BLOCKING); }

bool sim_is_idle(const Stream *stream) { return stream->issued == stream->completed; }

/* A slot whose stream is over, or the next one. Otherwise clocks would grow with all streams that there ever were. */
static size_t free_slot(void) {
  for (size_t i = 0; i < sim.streams.n; i++) {
    const Stream *stream = sim.streams.at[i];
    if (stream->destroyed && sim_is_idle(stream) && stream->joined == stream->started) return i;
  }
  return sim.streams.n;
}

Stream *sim_new_stream(Context *context, unsigned flags) {
  sim_join_streams(false);
  Stream *stream = sim_zeroed(sizeof *stream);
  stream->slot = free_slot();
  stream->context = context;
  stream->flags = flags;
  if (stream->slot == sim.streams.n) {
    PUSH(sim.streams, stream);
    return stream;
  }
  /* It goes on counting where the old one stopped: all that the old one did has finished. */
  Stream *old = sim.streams.at[stream->slot];
  stream->issued = stream->completed = old->completed;
  sim.streams.at[stream->slot] = stream;
  sim_clock_free(&old->clock);
  PUSH(sim.buried, old);
  return stream;
}

/* Work that it has is still done, and its handle means nothing any more. */
void sim_destroy_stream(Stream *stream) {
  stream->destroyed = true;
  sim_changed();
}

/* Ends the threads of streams that are over. All: they were destroyed, and are awaited. */
void sim_join_streams(bool all) {
  for (size_t i = 0; i < sim.streams.n; i++) {
    Stream *stream = sim.streams.at[i];
    if (!stream->started || stream->joined) continue;
    if (all) WAIT_UNTIL(stream->exited, "the end of stream %p", stream->handle);
    if (!stream->exited) continue;
    pthread_join(stream->thread, NULL);
    stream->joined = true;
  }
}

Stream *sim_legacy(Context *context) {
  if (!context->legacy) {
    context->legacy = sim_new_stream(context, 0);
    context->legacy->legacy = true;
  }
  return context->legacy;
}

static Stream *per_thread(Context *context) {
  int64_t id = sim_thread()->id;
  for (size_t i = 0; i < sim.streams.n; i++) {
    Stream *stream = sim.streams.at[i];
    if (stream->context == context && stream->owner == id && !stream->destroyed) return stream;
  }
  Stream *stream = sim_new_stream(context, 0);
  stream->owner = id;
  return stream;
}

/* The stream of a handle, or NULL and the call's result. The default streams are those of the current context. */
Stream *sim_stream(Call *call, CUstream handle) {
  if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context *context = sim_current();
    if (!context || !context->alive) {
      call->result = context ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
      return NULL;
    }
    if (context->broken) {
      call->result = context->broken;
      return NULL;
    }
    return handle == CU_STREAM_PER_THREAD ? per_thread(context) : sim_legacy(context);
  }
  Stream *stream = sim_handle(handle, HANDLE_STREAM);
  if (!stream || stream->destroyed) {
    sim_fault("%s: %p %s", call->name, (void *)handle, stream ? "is a stream that was destroyed" : "is no stream");
    call->result = CUDA_ERROR_INVALID_HANDLE;
    return NULL;
  }
  if (stream->context->broken) {
    call->result = stream->context->broken;
    return NULL;
  }
  return stream;
}

static void create(Call *call, CUstream *handle, unsigned flags) {
  if (!handle || flags & ~1u) {
    call->result = CUDA_ERROR_INVALID_VALUE;
    return;
  }
  Stream *stream = sim_new_stream(call->context, flags);
  stream->handle = sim_new_handle(HANDLE_STREAM, stream);
  *handle = stream->handle;
  sim_note(call, " -> %p", stream->handle);
}

EXPORT CUresult cuStreamCreate(CUstream *handle, unsigned int flags) {
  CALL(NEEDS_CONTEXT, "flags=%u", flags);
  if (sim_begin(&call)) create(&call, handle, flags);
  return sim_end(&call);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority) {
  CALL(NEEDS_CONTEXT, "flags=%u priority=%d", flags, priority);
  if (sim_begin(&call)) create(&call, handle, flags);
  return sim_end(&call);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  CALL_ON(handle, NEEDS_CONTEXT, "%s", "");
  if (sim_begin(&call)) {
    bool is_default = !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    if (is_default) sim_fault("cuStreamDestroy: a default stream");
    Stream *stream = is_default ? NULL : sim_stream(&call, handle);
    if (stream) {
      if (stream->capture) sim_invalidate(stream->capture);
      sim_destroy_stream(stream);
    } else if (is_default) {
      call.result = CUDA_ERROR_INVALID_HANDLE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  CALL_ON(handle, NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream && !sim_capture_refuses(&call, stream)) {
      /* The legacy stream has done its work when the streams that it waits for have. */
      for (size_t i = 0; stream->legacy && i < sim.streams.n; i++) {
        Stream *other = sim.streams.at[i];
        if (other->context == stream->context && sim_blocking(other)) sim_finish(&call, other, other->issued);
      }
      sim_finish(&call, stream, stream->issued);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamQuery(CUstream handle) {
  CALL_ON(handle, NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream && !sim_capture_refuses(&call, stream)) {
      bool idle = sim_is_idle(stream);
      for (size_t i = 0; stream->legacy && i < sim.streams.n; i++) {
        const Stream *other = sim.streams.at[i];
        if (other->context == stream->context && sim_blocking(other)) idle = idle && sim_is_idle(other);
      }
      if (!idle) call.result = CUDA_ERROR_NOT_READY;
    }
  }
  return sim_end(&call);
}

/* Who has a stream need not have its context: that is what these two are for. */
EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  CALL_ON(handle, NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream && context) {
      *context = stream->context->handle;
    } else if (stream) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
  CALL_ON(handle, NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream && device) {
      *device = stream->context->device;
    } else if (stream) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
  CALL_ON(handle, NEEDS_CONTEXT, "function=%s data=%p", function ? "given" : "NULL", data);
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream && !function) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (stream) {
      Operation *operation = sim_operation(OP_HOST);
      operation->function = function;
      operation->data = data;
      sim_enqueue(&call, stream, operation);
    }
  }
  return sim_end(&call);
}
