/* Stream capture: what goes into a graph instead of being done, and what ends a capture before its time. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static uint64_t ids;

void sim_invalidate(Capture *capture) {
  if (capture->active) sim.captures_invalidated++;
  capture->active = false;
}

/* Calls that could wait are forbidden to all threads while one captures, or to the one that does, as the capture and
   the calling thread have it. */
bool sim_capture_forbids(const Call *call) {
  bool forbidden = false;
  const Thread *thread = sim_thread();
  if (!(call->needs & UNSAFE_IN_CAPTURE) || thread->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  for (Capture *capture = sim.captures; capture; capture = capture->next) {
    bool own = capture->thread == thread->id && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!capture->active || !(own || global)) continue;
    sim_invalidate(capture);
    forbidden = true;
  }
  return forbidden;
}

/* A capture that an operation of the legacy stream would have to wait for, if any. */
static Capture *implied(const Stream *stream) {
  for (size_t i = 0; stream->legacy && i < sim.streams.n; i++) {
    const Stream *other = sim.streams.at[i];
    if (other->context == stream->context && other->capture && sim_blocking(other)) return other->capture;
  }
  return NULL;
}

/* For calls that make no sense on a stream that is captured. */
bool sim_capture_refuses(Call *call, Stream *stream) {
  Capture *capture = stream->capture;
  Capture *other = capture ? NULL : implied(stream);
  if (!capture && !other) return false;
  call->result = other               ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                 : !capture->active ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                     : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  sim_invalidate(capture ? capture : other);
  return true;
}

static bool break_capture(Call *call, Capture *capture, CUresult code) {
  sim_invalidate(capture);
  call->result = code;
  return false;
}

/* A wait may draw a stream into the capture that recorded the event, and never one out of it. */
static bool captures_wait(Call *call, Stream *stream, const Event *event) {
  Capture *from = event->stream ? event->capture : NULL;
  if (from && from->ended) {
    if (stream->capture) return break_capture(call, stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    call->result = CUDA_ERROR_CAPTURED_EVENT;
    return false;
  }
  if (from && !from->active) return break_capture(call, from, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (stream->capture && event->stream && !from)
    return break_capture(call, stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (stream->capture && from && from != stream->capture) {
    sim_invalidate(from);
    return break_capture(call, stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!from) return true;
  if (stream->legacy) return break_capture(call, from, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (!stream->capture) {
    stream->capture = from;
    stream->unjoined = true;
  }
  if (event->stream != stream && event->captured == event->stream->captured) event->stream->unjoined = false;
  return true;
}

/* Whether the operation may go on; `taken`: it went into a graph. */
bool sim_captures(Call *call, Stream *stream, const Operation *operation, bool *taken) {
  Capture *other = implied(stream);
  if (other) return break_capture(call, other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream->capture && !stream->capture->active) {
    call->result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return false;
  }
  bool waits = operation->kind == OP_WAIT || (operation->kind == OP_ALLOCATE && operation->event);
  if (waits && !captures_wait(call, stream, operation->event)) return false;
  if (!stream->capture) return true;
  *taken = true;
  bool node = !waits && operation->kind != OP_RECORD;
  stream->capture->nodes += node;
  stream->captured += node;
  if (node && stream != stream->capture->origin) stream->unjoined = true;
  return true;
}

void sim_forget_captures(void) {
  while (sim.captures) {
    Capture *capture = sim.captures;
    sim.captures = capture->next;
    free(capture);
  }
}

static CUresult status_of(const Stream *stream, CUstreamCaptureStatus *status) {
  if (implied(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = !stream->capture          ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->active ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                      : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  CALL_ON(handle, NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream) call.result = status ? status_of(stream, status) : CUDA_ERROR_INVALID_VALUE;
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **dependencies, size_t *count) {
  CALL_ON(handle, NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (stream) call.result = status ? status_of(stream, status) : CUDA_ERROR_INVALID_VALUE;
    if (call.result == CUDA_SUCCESS && stream->capture) {
      if (id) *id = stream->capture->id;
      if (graph) *graph = NULL;
      if (dependencies) *dependencies = NULL;
      if (count) *count = 0;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  CALL_ON(handle, NEEDS_CONTEXT, "mode=%d", (int)mode);
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    if (!stream) {
    } else if (stream->legacy) {
      call.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream->capture) {
      sim_invalidate(stream->capture);
      call.result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else {
      Capture *capture = sim_zeroed(sizeof *capture);
      capture->id = ++ids;
      capture->mode = mode;
      capture->origin = stream;
      capture->thread = sim_thread()->id;
      capture->active = true;
      capture->next = sim.captures;
      sim.captures = capture;
      stream->capture = capture;
    }
  }
  return sim_end(&call);
}

static void end_capture(Call *call, Capture *capture, CUgraph *graph) {
  bool unjoined = false;
  for (size_t i = 0; i < sim.streams.n; i++) {
    Stream *stream = sim.streams.at[i];
    if (stream->capture != capture) continue;
    unjoined |= stream != capture->origin && stream->unjoined;
    stream->capture = NULL;
    stream->unjoined = false;
  }
  bool valid = capture->active;
  if (valid && unjoined) sim_invalidate(capture);
  capture->active = false;
  capture->ended = true;
  *graph = NULL;
  if (!valid || unjoined) {
    call->result = valid ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return;
  }
  *graph = sim_new_handle(HANDLE_GRAPH, capture);
  sim.graphs++;
  sim_note(call, " -> %llu nodes", (unsigned long long)capture->nodes);
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  CALL_ON(handle, NEEDS_CONTEXT, "%s", "");
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, handle);
    Capture *capture = stream ? stream->capture : NULL;
    if (!stream) {
    } else if (!graph) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!capture) {
      call.result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    } else if (capture->origin != stream) {
      sim_invalidate(capture);
      call.result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    } else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sim_thread()->id) {
      call.result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else {
      end_capture(&call, capture, graph);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  CALL(NEEDS_INIT, "mode=%d", mode ? (int)*mode : -1);
  if (sim_begin(&call)) {
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else {
      Thread *thread = sim_thread();
      CUstreamCaptureMode before = thread->mode;
      thread->mode = *mode;
      *mode = before;
    }
  }
  return sim_end(&call);
}

/* A graph is a handle that can be let go; it cannot be run. */
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  CALL(NEEDS_INIT, "graph=%p", (void *)graph);
  if (sim_begin(&call)) {
    Capture *capture = graph ? sim_handle(graph, HANDLE_GRAPH) : NULL;
    if (capture && capture->origin) {
      capture->origin = NULL;
      sim.graphs--;
    } else {
      if (graph) sim_fault("cuGraphDestroy: %p is no graph, or was destroyed", (void *)graph);
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}
