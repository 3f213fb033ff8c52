/* Events: points in the order of streams. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* The event of a handle, or NULL and the call's result. */
static Event *event_of(Call *call, CUevent handle) {
  Event *event = handle ? sim_handle(handle, HANDLE_EVENT) : NULL;
  if (!event || event->destroyed || !event->context->alive) {
    /* NULL is answered by the driver, too; other handles that are none it follows. */
    if (handle)
      sim_fault("%s: %p %s", call->name, (void *)handle,
                !event             ? "is no event"
                : event->destroyed ? "is an event that was destroyed"
                                   : "is an event of a context that was destroyed");
    call->result = CUDA_ERROR_INVALID_HANDLE;
    return NULL;
  }
  if (event->context->broken) {
    call->result = event->context->broken;
    return NULL;
  }
  return event;
}

static bool is_complete(const Event *event) { return !event->stream || event->stream->completed >= event->position; }

EXPORT CUresult cuEventCreate(CUevent *handle, unsigned int flags) {
  CALL(NEEDS_CONTEXT, "flags=%u", flags);
  if (sim_begin(&call)) {
    bool shared_and_timed = (flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING);
    if (!handle || flags & ~7u || shared_and_timed) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else {
      Event *event = sim_zeroed(sizeof *event);
      event->handle = sim_new_handle(HANDLE_EVENT, event);
      event->context = call.context;
      event->flags = flags;
      PUSH(sim.events, event);
      *handle = event->handle;
      sim_note(&call, " -> %p", event->handle);
    }
  }
  return sim_end(&call);
}

/* Work that waits for it still waits; only the handle is gone. */
EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
  CALL(NEEDS_CONTEXT, "event=%p", (void *)handle);
  if (sim_begin(&call)) {
    Event *event = event_of(&call, handle);
    if (event) {
      event->destroyed = true;
      sim_clock_free(&event->clock);
    }
  }
  return sim_end(&call);
}

#ifndef CUDA_SIM_NO_EVENT_RECORD
EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  CALL_ON(stream_handle, NEEDS_CONTEXT, "event=%p", (void *)handle);
  if (sim_begin(&call)) {
    Event *event = event_of(&call, handle);
    Stream *stream = event ? sim_stream(&call, stream_handle) : NULL;
    if (stream && event->context != stream->context) {
      call.result = CUDA_ERROR_INVALID_HANDLE;
    } else if (stream) {
      Operation *operation = sim_operation(OP_RECORD);
      operation->event = event;
      operation->number = event->recording + 1;
      Capture *capture = stream->capture;
      if (sim_enqueue(&call, stream, operation)) {
        event->recording++;
        event->capture = capture;
        event->captured = stream->captured;
        event->stream = stream;
        event->position = capture ? 0 : stream->issued;
        sim_clock_free(&event->clock);
        sim_clock_merge(&event->clock, &stream->clock);
      }
    }
  }
  return sim_end(&call);
}
#endif

/* Whether asking about the event is refused, because its last recording is part of a graph. */
static bool is_captured(Call *call, Event *event) {
  if (!event->capture) return false;
  if (!event->capture->ended) sim_invalidate(event->capture);
  call->result = CUDA_ERROR_CAPTURED_EVENT;
  return true;
}

EXPORT CUresult cuEventQuery(CUevent handle) {
  CALL(NEEDS_INIT | UNSAFE_IN_CAPTURE, "event=%p", (void *)handle);
  if (sim_begin(&call)) {
    Event *event = event_of(&call, handle);
    if (event && !is_captured(&call, event) && !is_complete(event)) call.result = CUDA_ERROR_NOT_READY;
  }
  return sim_end(&call);
}

EXPORT CUresult cuEventSynchronize(CUevent handle) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "event=%p", (void *)handle);
  if (sim_begin(&call)) {
    Event *event = event_of(&call, handle);
    if (event && !is_captured(&call, event) && event->stream) sim_finish(&call, event->stream, event->position);
  }
  return sim_end(&call);
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  CALL(NEEDS_CONTEXT, "start=%p end=%p", (void *)start, (void *)end);
  if (sim_begin(&call)) {
    Event *from = event_of(&call, start);
    Event *to = from ? event_of(&call, end) : NULL;
    if (!to) {
    } else if (!milliseconds) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING || !from->stream || !to->stream ||
               from->context != to->context) {
      call.result = CUDA_ERROR_INVALID_HANDLE;
    } else if (is_captured(&call, from) || is_captured(&call, to)) {
    } else if (!is_complete(from) || !is_complete(to)) {
      call.result = CUDA_ERROR_NOT_READY;
    } else {
      *milliseconds = (float)(to->when - from->when);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
  CALL_ON(stream_handle, NEEDS_CONTEXT, "event=%p flags=%u", (void *)handle, flags);
  if (sim_begin(&call)) {
    Stream *stream = sim_stream(&call, stream_handle);
    Event *event = stream ? event_of(&call, handle) : NULL;
    if (event && flags > 1) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (event) {
      /* An event that was never recorded is no wait, but one to be seen in the log. */
      Operation *operation = sim_operation(event->stream ? OP_WAIT : OP_ALLOCATE);
      operation->event = event;
      sim_enqueue(&call, stream, operation);
    }
  }
  return sim_end(&call);
}
