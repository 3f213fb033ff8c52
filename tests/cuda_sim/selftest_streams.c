/* Streams, events and contexts. */
#include "selftest.h"

#include <pthread.h>

/* Long enough, in milliseconds, for this thread to look before it is over, even on a machine that is busy. */
enum { N = 64, LONG = 300 };

static void order_and_overlap(void) {
  CUdeviceptr a = device_memory(N), b = device_memory(N);
  CUstream one = stream_of(CU_STREAM_NON_BLOCKING), two = stream_of(CU_STREAM_NON_BLOCKING);
  FAILS(cuStreamQuery(one), CUDA_SUCCESS);
  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_fill(one, a, 1, N), 0);
  IS(cuda_sim_enqueue_fill(one, a, 2, N), 0);
  IS(cuda_sim_pending(one), 3);
  FAILS(cuStreamQuery(one), CUDA_ERROR_NOT_READY);
  /* The other one goes on. */
  IS(cuda_sim_enqueue_fill(two, b, 3, N), 0);
  OK(cuStreamSynchronize(two));
  CHECK(all_bytes(b, N, 3) && all_bytes(a, N, 0xCD));
  IS(cuda_sim_wait_idle(10), -1);
  IS(cuda_sim_unblock(one), 0);
  IS(cuda_sim_unblock(one), -1);
  IS(cuda_sim_wait_idle(10000), 0);
  CHECK(all_bytes(a, N, 2));
  OK(cuStreamQuery(one));
  IS(cuda_sim_enqueue_delay(one, LONG), 0);
  IS(cuda_sim_enqueue_copy(one, a, b, N), 0);
  CHECK(all_bytes(a, N, 2));
  OK(cuStreamSynchronize(one));
  CHECK(all_bytes(a, N, 3));
  OK(cuStreamDestroy_v2(one));
  OK(cuStreamDestroy_v2(two));
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
}

static void default_streams(void) {
  CUdeviceptr a = device_memory(N);
  CUstream blocking = stream_of(CU_STREAM_DEFAULT), free_one = stream_of(CU_STREAM_NON_BLOCKING);
  /* The legacy stream waits for blocking streams, */
  IS(cuda_sim_block(blocking), 0);
  IS(cuda_sim_enqueue_fill(blocking, a, 1, N), 0);
  OK(cuMemsetD8Async(a, 2, N, NULL));
  FAILS(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_pending(CU_STREAM_LEGACY), 1);
  /* and not for the others. */
  OK(cuStreamQuery(free_one));
  IS(cuda_sim_enqueue_delay(free_one, 0), 0);
  OK(cuStreamSynchronize(free_one));
  IS(cuda_sim_unblock(blocking), 0);
  OK(cuStreamSynchronize(NULL));
  CHECK(all_bytes(a, N, 2));

  /* Blocking streams wait for it, */
  IS(cuda_sim_block(NULL), 0);
  IS(cuda_sim_enqueue_fill(CU_STREAM_LEGACY, a, 3, N), 0);
  IS(cuda_sim_enqueue_fill(blocking, a, 4, N), 0);
  IS(cuda_sim_enqueue_fill(CU_STREAM_PER_THREAD, a, 5, N), 0);
  FAULTS(1, "not ordered behind");
  FAILS(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
  FAILS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  /* the others do not. */
  IS(cuda_sim_enqueue_delay(free_one, 0), 0);
  OK(cuStreamSynchronize(free_one));
  CHECK(all_bytes(a, N, 2));
  IS(cuda_sim_unblock(NULL), 0);
  OK(cuCtxSynchronize());
  CHECK(!all_bytes(a, N, 3) && !all_bytes(a, N, 2));

  /* With nothing of its own to do it is done when they are. */
  IS(cuda_sim_block(blocking), 0);
  FAILS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_unblock(blocking), 0);
  IS(cuda_sim_enqueue_delay(blocking, LONG), 0);
  IS(cuda_sim_enqueue_fill(blocking, a, 6, N), 0);
  OK(cuStreamSynchronize(NULL));
  CHECK(all_bytes(a, N, 6));

  /* A call that names no stream is in the legacy one. */
  unsigned char byte = 9;
  IS(cuda_sim_enqueue_delay(blocking, 30), 0);
  IS(cuda_sim_enqueue_fill(blocking, a, 7, N), 0);
  OK(cuMemcpyDtoH_v2(&byte, a, 1));
  IS(byte, 7);

  CUcontext context = NULL;
  CUdevice device = 9;
  OK(cuStreamGetCtx(NULL, &context));
  CHECK(context == contexts[0]);
  OK(cuCtxPushCurrent_v2(contexts[1]));
  OK(cuStreamGetCtx(CU_STREAM_PER_THREAD, &context));
  CHECK(context == contexts[1]);
  OK(cuStreamGetCtx(blocking, &context));
  CHECK(context == contexts[0]);
  OK(cuStreamGetDevice(blocking, &device));
  IS(device, 0);
  OK(cuCtxPopCurrent_v2(NULL));
  OK(cuStreamDestroy_v2(blocking));
  OK(cuStreamDestroy_v2(free_one));
  FAILS(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "a default stream");
  OK(cuMemFree_v2(a));
}

static void *of_another_thread(void *memory) {
  OK(cuCtxPushCurrent_v2(contexts[0]));
  IS(cuda_sim_pending(CU_STREAM_PER_THREAD), 0);
  IS(cuda_sim_enqueue_fill(CU_STREAM_PER_THREAD, *(CUdeviceptr *)memory, 8, N), 0);
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  OK(cuCtxPopCurrent_v2(NULL));
  return NULL;
}

static void a_default_stream_a_thread(void) {
  CUdeviceptr memory = device_memory(N);
  IS(cuda_sim_block(CU_STREAM_PER_THREAD), 0);
  in_thread(of_another_thread, &memory);
  CHECK(all_bytes(memory, N, 8));
  IS(cuda_sim_pending(CU_STREAM_PER_THREAD), 1);
  IS(cuda_sim_unblock(CU_STREAM_PER_THREAD), 0);
  OK(cuCtxSynchronize());
  OK(cuMemFree_v2(memory));
}

static void streams_that_are_gone(void) {
  CUdeviceptr a = device_memory(N);
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING), wrong = NULL;
  FAILS(cuStreamCreate(&wrong, 2), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamCreateWithPriority(&wrong, CU_STREAM_NON_BLOCKING, -1));
  OK(cuStreamDestroy_v2(wrong));
  /* The work of a stream that is destroyed is still done. */
  IS(cuda_sim_enqueue_delay(stream, LONG), 0);
  IS(cuda_sim_enqueue_fill(stream, a, 6, N), 0);
  OK(cuStreamDestroy_v2(stream));
  CHECK(!all_bytes(a, N, 6));
  IS(cuda_sim_wait_idle(10000), 0);
  CHECK(all_bytes(a, N, 6));
  /* So is that of one that is held. */
  CUstream held = stream_of(CU_STREAM_NON_BLOCKING);
  IS(cuda_sim_block(held), 0);
  IS(cuda_sim_enqueue_fill(held, a, 7, N), 0);
  OK(cuStreamDestroy_v2(held));
  IS(cuda_sim_pending(held), 2);
  IS(cuda_sim_unblock(held), 0);
  IS(cuda_sim_wait_idle(10000), 0);
  CHECK(all_bytes(a, N, 7));
  FAILS(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is a stream that was destroyed");
  FAILS(cuMemsetD8Async(a, 1, N, stream), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is a stream that was destroyed");
  FAILS(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is a stream that was destroyed");
  FAILS(cuStreamQuery((CUstream)&stream), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is no stream");
  OK(cuMemFree_v2(a));
}

static void events_are_honest(void) {
  CUdeviceptr a = device_memory(N);
  CUstream one = stream_of(CU_STREAM_NON_BLOCKING), two = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
  /* Never recorded: complete, and no wait. */
  OK(cuEventQuery(event));
  OK(cuEventSynchronize(event));
  OK(cuStreamWaitEvent(two, event, 0));
  OK(cuStreamSynchronize(two));

  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_fill(one, a, 1, N), 0);
  OK(cuEventRecord(event, one));
  IS(cuda_sim_block(one), 0);
  OK(cuStreamWaitEvent(two, event, 0));
  IS(cuda_sim_enqueue_fill(two, a, 2, N), 0);
  FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  FAILS(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_unblock(one), 0);
  /* What comes after the event is not waited for. */
  OK(cuEventSynchronize(event));
  OK(cuEventQuery(event));
  OK(cuStreamSynchronize(two));
  CHECK(all_bytes(a, N, 2));
  IS(cuda_sim_pending(one), 1);

  /* Recorded again it means the new point; a wait means the point at its call. */
  OK(cuStreamWaitEvent(two, event, 0));
  OK(cuEventRecord(event, one));
  FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  OK(cuStreamSynchronize(two));
  OK(cuStreamWaitEvent(two, event, 0));
  FAILS(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
  FAILS(cuStreamWaitEvent(two, event, 2), CUDA_ERROR_INVALID_VALUE);

  /* Destroyed it is still waited for. */
  OK(cuEventDestroy_v2(event));
  FAILS(cuStreamQuery(two), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(two));
  FAULTS(0, "");
  FAILS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is an event that was destroyed");
  FAILS(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is an event that was destroyed");
  FAILS(cuStreamWaitEvent(two, event, 0), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is an event that was destroyed");
  FAILS(cuEventRecord((CUevent)one, one), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is no event");
  FAILS(cuEventSynchronize(NULL), CUDA_ERROR_INVALID_HANDLE);
  FAILS(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  OK(cuStreamDestroy_v2(one));
  OK(cuStreamDestroy_v2(two));
  OK(cuMemFree_v2(a));
}

static void events_between_devices(void) {
  CUstream here = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
  IS(cuda_sim_block(here), 0);
  OK(cuEventRecord(event, here));
  OK(cuCtxPushCurrent_v2(contexts[1]));
  CUstream there = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent other = event_of(CU_EVENT_DISABLE_TIMING);
  FAILS(cuEventRecord(event, there), CUDA_ERROR_INVALID_HANDLE);
  FAILS(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
  FAILS(cuEventRecord(other, here), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(0, "");
  OK(cuStreamWaitEvent(there, event, 0));
  FAILS(cuStreamQuery(there), CUDA_ERROR_NOT_READY);
  FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_unblock(here), 0);
  OK(cuStreamSynchronize(there));
  OK(cuEventQuery(event));
  OK(cuEventDestroy_v2(other));
  OK(cuStreamDestroy_v2(there));
  OK(cuCtxPopCurrent_v2(NULL));
  OK(cuEventDestroy_v2(event));
  OK(cuStreamDestroy_v2(here));
}

static void elapsed_time(void) {
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent start = event_of(0), end = event_of(CU_EVENT_BLOCKING_SYNC), untimed = event_of(CU_EVENT_DISABLE_TIMING);
  float ms = -1;
  FAILS(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventRecord(start, stream));
  IS(cuda_sim_enqueue_delay(stream, LONG), 0);
  OK(cuEventRecord(end, stream));
  OK(cuEventRecord(untimed, stream));
  FAILS(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
  OK(cuEventSynchronize(end));
  OK(cuEventElapsedTime(&ms, start, end));
  CHECK(ms >= LONG);
  FAILS(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
  OK(cuEventDestroy_v2(start));
  OK(cuEventDestroy_v2(end));
  OK(cuEventDestroy_v2(untimed));
  OK(cuStreamDestroy_v2(stream));
}

typedef struct {
  int calls;
  bool asks;
  CUresult answer;
} Host;

static void host_function(void *data) {
  Host *host = data;
  host->calls++;
  if (host->asks) host->answer = cuStreamQuery(NULL);
}

static void host_functions(void) {
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
  Host host = {0, false, CUDA_SUCCESS};
  FAILS(cuLaunchHostFunc(stream, NULL, &host), CUDA_ERROR_INVALID_VALUE);
  IS(cuda_sim_block(stream), 0);
  OK(cuLaunchHostFunc(stream, host_function, &host));
  IS(host.calls, 0);
  IS(cuda_sim_unblock(stream), 0);
  OK(cuStreamSynchronize(stream));
  IS(host.calls, 1);
  host.asks = true;
  OK(cuLaunchHostFunc(stream, host_function, &host));
  OK(cuStreamSynchronize(stream));
  IS(host.calls, 2);
  IS(host.answer, CUDA_ERROR_NOT_PERMITTED);
  FAULTS(1, "cuStreamQuery was called by a host function");
  OK(cuStreamDestroy_v2(stream));
}

static void *without_context(void *unused) {
  CUcontext context = contexts[0];
  CUstream stream = NULL;
  CUdeviceptr memory = 0;
  OK(cuCtxGetCurrent(&context));
  CHECK(!context);
  FAILS(cuMemAlloc_v2(&memory, 8), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuStreamGetCtx(NULL, &context), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuCtxPopCurrent_v2(&context), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  return unused;
}

static void context_stack(void) {
  CUcontext context = NULL, made = NULL;
  CUdevice device = 9;
  cuda_sim_counts counts;
  in_thread(without_context, NULL);
  OK(cuCtxPushCurrent_v2(contexts[1]));
  OK(cuCtxGetDevice(&device));
  IS(device, 1);
  cuda_sim_live(&counts);
  CHECK(counts.pushed == 2 && counts.pushed_here == 2 && counts.primary_retains == 2 && counts.contexts == 0);
  OK(cuCtxSetCurrent(contexts[0]));
  OK(cuCtxGetCurrent(&context));
  CHECK(context == contexts[0]);
  cuda_sim_live(&counts);
  IS(counts.pushed, 2);
  OK(cuCtxSetCurrent(NULL));
  OK(cuCtxGetCurrent(&context));
  CHECK(context == contexts[0]);
  FAILS(cuCtxPushCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuCtxPushCurrent_v2((CUcontext)&context), CUDA_ERROR_INVALID_CONTEXT);
  FAULTS(1, "is no context");

  OK(cuCtxCreate_v2(&made, 0, 1));
  cuda_sim_live(&counts);
  CHECK(counts.contexts == 1 && counts.pushed_here == 2);
  OK(cuCtxGetDevice(&device));
  IS(device, 1);
  CUstream stream = stream_of(0);
  CUevent event = event_of(0);
  CUdeviceptr memory = device_memory(8);
  OK(cuCtxDestroy_v2(made));
  OK(cuCtxGetCurrent(&context));
  CHECK(context == contexts[0]);
  FAILS(cuCtxSetCurrent(made), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  FAULTS(1, "was destroyed");
  FAILS(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "was destroyed");
  FAILS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "event of a context that was destroyed");
  FAILS(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "freed by the end of its context");
  FAILS(cuCtxDestroy_v2(contexts[1]), CUDA_ERROR_INVALID_CONTEXT);
  FAULTS(1, "is a primary context");
}

static void primary_contexts(void) {
  CUcontext again = NULL;
  unsigned flags = 7;
  int active = 7;
  OK(cuDevicePrimaryCtxRetain(&again, 1));
  CHECK(again == contexts[1]);
  OK(cuDevicePrimaryCtxRelease_v2(1));
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  CHECK(flags == 0 && active == 1);
  OK(cuCtxPushCurrent_v2(contexts[1]));
  CUstream stream = stream_of(0);
  IS(cuda_sim_enqueue_delay(stream, LONG), 0);
  OK(cuDevicePrimaryCtxRelease_v2(1));
  FAULTS(1, "is destroyed with work on stream");
  FAILS(cuStreamQuery(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  FAULTS(1, "the current context was destroyed");
  OK(cuCtxPopCurrent_v2(NULL));
  OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
  IS(active, 0);
  FAILS(cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
  FAULTS(1, "is not retained");
  FAILS(cuDevicePrimaryCtxRetain(&again, 2), CUDA_ERROR_INVALID_DEVICE);
  OK(cuDevicePrimaryCtxRetain(&again, 1));
  CHECK(again != contexts[1]);
  contexts[1] = again;
}

enum { THREADS = 4, ROUNDS = 25 };

/* Memory wanders through streams, devices and ways to wait, many times over. */
static void *one_of_many(void *argument) {
  int me = (int)(intptr_t)argument;
  unsigned char from[N], to[N];
  for (int round = 0; round < ROUNDS; round++) {
    CUcontext here = contexts[(me + round) % 2];
    memset(from, me * ROUNDS + round, N);
    memset(to, 0, N);
    OK(cuCtxPushCurrent_v2(here));
    CUstream one = stream_of(round & 1), two = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
    CUdeviceptr pool = 0, plain = device_memory(N);
    OK(cuMemAllocAsync(&pool, N, one));
    OK(cuMemcpyHtoDAsync_v2(pool, from, N, one));
    OK(cuEventRecord(event, one));
    OK(cuStreamWaitEvent(two, event, 0));
    OK(cuMemcpyPeerAsync(plain, here, pool, here, N, two));
    OK(cuMemFreeAsync(pool, two));
    OK(cuEventRecord(event, two));
    OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, event, 0));
    OK(cuEventDestroy_v2(event));
    OK(cuMemcpyDtoHAsync_v2(to, plain, N, CU_STREAM_PER_THREAD));
    OK(cuStreamDestroy_v2(one));
    OK(cuStreamDestroy_v2(two));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(memcmp(from, to, N) == 0);
    OK(cuMemFree_v2(plain));
    OK(cuCtxPopCurrent_v2(NULL));
  }
  return NULL;
}

static void many_threads(void) {
  pthread_t threads[THREADS];
  cuda_sim_counts counts;
  cuda_sim_configure("delay_us", 50);
  for (int i = 0; i < THREADS; i++) IS(pthread_create(&threads[i], NULL, one_of_many, (void *)(intptr_t)i), 0);
  for (int i = 0; i < THREADS; i++) IS(pthread_join(threads[i], NULL), 0);
  OK(cuCtxSynchronize());
  FAULTS(0, "");
  cuda_sim_live(&counts);
  CHECK(counts.bytes == 0 && counts.streams == 0 && counts.events == 0 && counts.pushed == 1);
  IS(cuda_sim_calls("cuMemFreeAsync"), THREADS * ROUNDS);
}

/* A stream that takes another's place is not mistaken for it. */
static void streams_come_and_go(void) {
  CUdeviceptr memory = device_memory(N);
  CUstream first = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
  IS(cuda_sim_enqueue_fill(first, memory, 1, N), 0);
  OK(cuEventRecord(event, first));
  OK(cuStreamDestroy_v2(first));
  IS(cuda_sim_wait_idle(10000), 0);
  for (int i = 0; i < 50; i++) {
    CUstream next = stream_of(CU_STREAM_NON_BLOCKING);
    IS(cuda_sim_pending(next), 0);
    IS(cuda_sim_block(next), 0);
    IS(cuda_sim_enqueue_fill(next, memory, i, N), 0);
    OK(cuEventQuery(event));
    IS(cuda_sim_enqueue_fill(NULL, memory, 1, N), 0);
    FAULTS(1, "not ordered behind");
    IS(cuda_sim_unblock(next), 0);
    OK(cuCtxSynchronize());
    FAILS(cuStreamQuery(first), CUDA_ERROR_INVALID_HANDLE);
    FAULTS(1, "was destroyed");
    OK(cuStreamDestroy_v2(next));
  }
  OK(cuEventDestroy_v2(event));
  OK(cuMemFree_v2(memory));
}

const Test stream_tests[] = {
    {"order within a stream, none between two", order_and_overlap},
    {"default streams", default_streams},
    {"each thread has a default stream", a_default_stream_a_thread},
    {"streams that are gone", streams_that_are_gone},
    {"events are honest", events_are_honest},
    {"events between devices", events_between_devices},
    {"elapsed time", elapsed_time},
    {"host functions", host_functions},
    {"contexts are a thread's stack", context_stack},
    {"primary contexts", primary_contexts},
    {"many threads", many_threads},
    {"streams that come and go", streams_come_and_go},
    {NULL, NULL},
};
