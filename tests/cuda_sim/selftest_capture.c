/* Stream capture. */
#include "selftest.h"

enum { N = 16 };

static CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = 9;
  OK(cuStreamIsCapturing(stream, &status));
  return status;
}

static void captured(void) {
  CUdeviceptr memory = device_memory(N);
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING), joined = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent event = event_of(CU_EVENT_DISABLE_TIMING), back = event_of(CU_EVENT_DISABLE_TIMING);
  CUgraph graph = NULL;
  IS(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  IS(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  cuuint64_t id = 0;
  CUstreamCaptureStatus status = 9;
  OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, NULL, NULL, NULL));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0);
  /* Work is noted and not done. */
  OK(cuMemsetD8Async(memory, 1, N, stream));
  OK(cuEventRecord(event, stream));
  OK(cuStreamWaitEvent(joined, event, 0));
  IS(status_of(joined), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD8Async(memory, 2, N, joined));
  OK(cuEventRecord(back, joined));
  OK(cuStreamWaitEvent(stream, back, 0));
  OK(cuStreamEndCapture(stream, &graph));
  CHECK(graph);
  IS(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  IS(status_of(joined), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuCtxSynchronize());
  CHECK(all_bytes(memory, N, 0xCD));
  FAILS(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  FAILS(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_CAPTURED_EVENT);
  cuda_sim_counts counts;
  cuda_sim_live(&counts);
  IS(counts.graphs, 1);
  OK(cuGraphDestroy(graph));
  FAILS(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is no graph, or was destroyed");
  IS(cuda_sim_captures_invalidated(), 0);

  /* Another stream that is drawn in has to be joined, after its last work. */
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventRecord(event, stream));
  OK(cuStreamWaitEvent(joined, event, 0));
  OK(cuEventRecord(back, joined));
  OK(cuStreamWaitEvent(stream, back, 0));
  OK(cuMemsetD8Async(memory, 2, N, joined));
  FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  IS(cuda_sim_captures_invalidated(), 1);
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventRecord(event, stream));
  OK(cuStreamWaitEvent(joined, event, 0));
  FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(!graph);
  IS(cuda_sim_captures_invalidated(), 2);
  /* The end of a captured stream ends the capture. */
  CUstream short_lived = stream_of(CU_STREAM_NON_BLOCKING);
  OK(cuStreamBeginCapture_v2(short_lived, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuStreamDestroy_v2(short_lived));
  IS(cuda_sim_captures_invalidated(), 3);
  OK(cuEventDestroy_v2(event));
  OK(cuEventDestroy_v2(back));
  OK(cuStreamDestroy_v2(stream));
  OK(cuStreamDestroy_v2(joined));
  OK(cuMemFree_v2(memory));
}

static CUstream stream, blocking;
static CUevent outside;
static CUdeviceptr memory;
static unsigned char host[N];

static CUresult synchronize(void) { return cuStreamSynchronize(stream); }
static CUresult query(void) { return cuStreamQuery(stream); }
static CUresult synchronize_context(void) { return cuCtxSynchronize(); }
static CUresult query_event(void) { return cuEventQuery(outside); }
static CUresult synchronize_event(void) { return cuEventSynchronize(outside); }
static CUresult wait_for_what_is_outside(void) { return cuStreamWaitEvent(stream, outside, 0); }
static CUresult copy(void) { return cuMemcpyDtoH_v2(host, memory, N); }
static CUresult fill_in_order(void) { return cuMemsetD8Async(memory, 1, N, NULL); }
static CUresult free_memory(void) { return cuMemFree_v2(memory); }
static CUresult allocate_in_order(void) {
  CUdeviceptr out = 0;
  return cuMemAllocAsync(&out, N, stream);
}
static CUresult allocate(void) {
  CUdeviceptr out = 0;
  return cuMemAlloc_v2(&out, N);
}

static void what_ends_a_capture(void) {
  static const struct {
    CUresult (*call)(void);
    CUstreamCaptureMode mode;
    int code;
    bool blocking;
  } cases[] = {
      {synchronize, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {synchronize, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {query, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {synchronize_context, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {query_event, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {query_event, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {synchronize_event, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {wait_for_what_is_outside, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, false},
      {copy, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {copy, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true},
      {fill_in_order, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, true},
      {free_memory, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {allocate, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
      {allocate_in_order, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, false},
  };
  CUstream free_one = stream_of(CU_STREAM_NON_BLOCKING);
  blocking = stream_of(CU_STREAM_DEFAULT);
  outside = event_of(CU_EVENT_DISABLE_TIMING);
  memory = device_memory(N);
  OK(cuEventRecord(outside, free_one));
  OK(cuStreamSynchronize(free_one));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CUgraph graph = NULL;
    stream = cases[i].blocking ? blocking : free_one;
    OK(cuStreamBeginCapture_v2(stream, cases[i].mode));
    FAILS(cases[i].call(), cases[i].code);
    IS(cuda_sim_captures_invalidated(), i + 1);
    IS(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    FAILS(cuMemsetD8Async(memory, 1, N, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    IS(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  CHECK(all_bytes(memory, N, 0xCD));
  OK(cuEventDestroy_v2(outside));
  OK(cuStreamDestroy_v2(free_one));
  OK(cuStreamDestroy_v2(blocking));
  OK(cuMemFree_v2(memory));
}

static CUstreamCaptureMode other_mode;

static void *of_another_thread(void *answer) {
  CUstreamCaptureMode mode = other_mode;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  IS(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  *(CUresult *)answer = cuEventQuery(outside);
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  IS(mode, other_mode);
  return NULL;
}

static void *ended_by_another_thread(void *answer) {
  CUgraph graph = NULL;
  OK(cuCtxPushCurrent_v2(contexts[0]));
  *(CUresult *)answer = cuStreamEndCapture(stream, &graph);
  OK(cuCtxPopCurrent_v2(NULL));
  return NULL;
}

static void modes(void) {
  CUgraph graph = NULL;
  CUresult answer = CUDA_SUCCESS;
  stream = stream_of(CU_STREAM_NON_BLOCKING);
  outside = event_of(CU_EVENT_DISABLE_TIMING);
  FAILS(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  FAILS(cuStreamBeginCapture_v2(stream, 3), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  /* Other threads are disturbed by the global mode only. */
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  in_thread(of_another_thread, &answer);
  OK(answer);
  in_thread(ended_by_another_thread, &answer);
  FAILS(answer, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuEventQuery(outside));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  /* A thread may say that it is not concerned, and the one that captures as well. */
  other_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  in_thread(of_another_thread, &answer);
  OK(answer);
  other_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  in_thread(of_another_thread, &answer);
  OK(answer);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  OK(cuEventQuery(outside));
  IS(cuda_sim_capture_mode(), CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  mode = 3;
  FAILS(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
  IS(cuda_sim_captures_invalidated(), 0);
  other_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  in_thread(of_another_thread, &answer);
  FAILS(answer, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  /* The default stream cannot tell while a blocking stream is captured. */
  blocking = stream_of(CU_STREAM_DEFAULT);
  OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureStatus status = 9;
  FAILS(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  IS(status, 9);
  OK(cuStreamEndCapture(blocking, &graph));
  OK(cuGraphDestroy(graph));
  OK(cuEventDestroy_v2(outside));
  OK(cuStreamDestroy_v2(stream));
  OK(cuStreamDestroy_v2(blocking));
}

const Test capture_tests[] = {
    {"captured work is not done", captured},
    {"what ends a capture", what_ends_a_capture},
    {"modes of capture", modes},
    {NULL, NULL},
};
