/* Prints what a driver answers to calls whose answer is not obvious: `answers LIBRARY`. Run on the simulated driver it has
   to print answers.txt; where there is a device, the same on the real driver shows where the two differ. No call is made
   that could hurt a real driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

#define FUNCTIONS(X) \
  X(cuInit) X(cuGetErrorName) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) \
  X(cuCtxPushCurrent_v2) X(cuCtxPopCurrent_v2) X(cuCtxSetCurrent) X(cuCtxGetCurrent) \
  X(cuCtxSynchronize) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemHostAlloc) \
  X(cuMemFreeHost) X(cuMemAllocManaged) X(cuMemGetAddressRange_v2) X(cuPointerGetAttribute) X(cuPointerGetAttributes) \
  X(cuMemcpyAsync) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemsetD8Async) X(cuStreamCreate) \
  X(cuStreamDestroy_v2) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) X(cuStreamGetCtx) \
  X(cuStreamIsCapturing) X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuThreadExchangeStreamCaptureMode) \
  X(cuGraphDestroy) X(cuEventCreate) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) X(cuEventElapsedTime) \
  X(cuEventDestroy_v2)

#define MEMBER(name) __typeof__(name) *name;
static struct {
  FUNCTIONS(MEMBER)
} cu;

static void *library;

static void find(void *to, const char *name) {
  void *found = dlsym(library, name);
  if (!found) printf("there is no %s\n", name);
  memcpy(to, &found, sizeof found);
}

#define FIND(name) find(&cu.name, #name);
/* One answer: a result, and a number that goes with it. */
#define SAY(what, result) say(what, (int)(result), 0, 0)
#define SAY_WITH(what, result, number) say(what, (int)(result), 1, (long long)(number))

static void say(const char *what, int result, int with, long long number) {
  printf("%s: %d", what, result);
  if (with && result == CUDA_SUCCESS) printf(", %lld", number);
  printf("\n");
}

enum { N = 256 };

static void without_a_context(CUstream stream, CUevent event, CUdeviceptr memory) {
  CUcontext context = NULL;
  CUstreamCaptureStatus status = 9;
  CUdeviceptr made = 0;
  size_t size = 0;
  unsigned type = 9;
  char host = 0;
  SAY_WITH("current context, none", cu.cuCtxGetCurrent(&context), context != NULL);
  SAY("pop, none", cu.cuCtxPopCurrent_v2(&context));
  SAY("set to NULL, none", cu.cuCtxSetCurrent(NULL));
  SAY("push NULL", cu.cuCtxPushCurrent_v2(NULL));
  SAY("allocate, no context", cu.cuMemAlloc_v2(&made, N));
  SAY("free, no context", cu.cuMemFree_v2(0));
  SAY("context of a stream, no context", cu.cuStreamGetCtx(stream, &context));
  SAY("context of the default stream, no context", cu.cuStreamGetCtx(NULL, &context));
  SAY("is capturing, no context", cu.cuStreamIsCapturing(stream, &status));
  SAY("query a stream, no context", cu.cuStreamQuery(stream));
  SAY("synchronize a stream, no context", cu.cuStreamSynchronize(stream));
  SAY("wait, no context", cu.cuStreamWaitEvent(stream, event, 0));
  SAY("record, no context", cu.cuEventRecord(event, stream));
  SAY("query an event, no context", cu.cuEventQuery(event));
  SAY("synchronize an event, no context", cu.cuEventSynchronize(event));
  SAY("pointer attribute, no context", cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  SAY("pointer attribute of the host, no context",
      cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&host));
  SAY("address range, no context", cu.cuMemGetAddressRange_v2(&made, &size, memory));
  SAY("copy on a stream, no context", cu.cuMemcpyAsync(memory, memory + N / 2, 8, stream));
  SAY("fill on a stream, no context", cu.cuMemsetD8Async(memory, 0, 8, stream));
}

static void pointers(const char *kind, CUdeviceptr at, CUcontext ours) {
  CUpointer_attribute names[5] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                  CU_POINTER_ATTRIBUTE_CONTEXT};
  unsigned type = 0, managed = 0;
  int device = 0;
  void *host = NULL, *context = NULL;
  void *values[5] = {&type, &managed, &device, &host, &context};
  printf("%s\n", kind);
  SAY_WITH("  memory type", cu.cuPointerGetAttribute(&type, names[0], at), type);
  SAY_WITH("  is managed", cu.cuPointerGetAttribute(&managed, names[1], at), managed & 0xff);
  SAY_WITH("  device", cu.cuPointerGetAttribute(&device, names[2], at), device);
  SAY_WITH("  host pointer is itself", cu.cuPointerGetAttribute(&host, names[3], at), host == (void *)(uintptr_t)at);
  SAY_WITH("  context is none, ours, another's", cu.cuPointerGetAttribute(&context, names[4], at),
           !context ? 0 : context == ours ? 1 : 2);
  type = 9, managed = 0x909, device = 9, host = &type, context = &type;
  SAY_WITH("  all: memory type", cu.cuPointerGetAttributes(5, names, values, at), type);
  printf("  all: managed %u, device %d, host %s, context %s\n", managed & 0xff, device,
         !host ? "none" : host == (void *)(uintptr_t)at ? "itself" : "another",
         !context ? "none" : context == ours ? "ours" : "another");
}

static void sizes_and_addresses(CUdeviceptr memory) {
  CUdeviceptr made = 0;
  CUevent event = NULL;
  CUstream stream = NULL;
  size_t size = 0;
  char host[N];
  void *pinned = NULL;
  const char *text = host;
  SAY("allocate 0", cu.cuMemAlloc_v2(&made, 0));
  SAY("allocate 0 in order", cu.cuMemAllocAsync(&made, 0, NULL));
  SAY("allocate 0 pinned", cu.cuMemHostAlloc(&pinned, 0, 0));
  SAY("allocate too much", cu.cuMemAlloc_v2(&made, (size_t)1 << 50));
  SAY("free 0", cu.cuMemFree_v2(0));
  SAY("free NULL of the host", cu.cuMemFreeHost(NULL));
  SAY("managed without flags", cu.cuMemAllocManaged(&made, N, 0));
  SAY("copy of 0 bytes", cu.cuMemcpyAsync(0, 0, 0, NULL));
  SAY("copy within a device as if from the host's", cu.cuMemcpyDtoDAsync_v2(memory, (uintptr_t)host, 8, NULL));
  SAY("address range of the host", cu.cuMemGetAddressRange_v2(&made, &size, (uintptr_t)host));
  SAY_WITH("address range", cu.cuMemGetAddressRange_v2(&made, &size, memory + 9), made == memory && size == N);
  SAY("unknown error's name", cu.cuGetErrorName((CUresult)12345, &text));
  printf("unknown error's name is %s\n", text ? "given" : "NULL");
  SAY("a shared event that is timed", cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS));
  SAY("an event with an unknown flag", cu.cuEventCreate(&event, 64));
  SAY("a stream with an unknown flag", cu.cuStreamCreate(&stream, 64));
  SAY("query no event", cu.cuEventQuery(NULL));
}

static void events(CUstream stream) {
  CUevent event = NULL, untimed = NULL;
  float ms = 0;
  SAY("create an event", cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
  SAY("create an event without time", cu.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  SAY("query, never recorded", cu.cuEventQuery(event));
  SAY("wait, never recorded", cu.cuStreamWaitEvent(stream, event, 0));
  SAY("elapsed, never recorded", cu.cuEventElapsedTime(&ms, event, event));
  SAY("record", cu.cuEventRecord(event, stream));
  SAY("record without time", cu.cuEventRecord(untimed, stream));
  SAY("synchronize", cu.cuStreamSynchronize(stream));
  SAY("elapsed", cu.cuEventElapsedTime(&ms, event, event));
  SAY("elapsed without time", cu.cuEventElapsedTime(&ms, event, untimed));
  SAY("wait with an unknown flag", cu.cuStreamWaitEvent(stream, event, 64));
  SAY("destroy", cu.cuEventDestroy_v2(event));
  SAY("destroy", cu.cuEventDestroy_v2(untimed));
}

/* What each call answers within a capture, and how the capture ends. */
static void capture(CUstream stream, CUstream blocking, CUdeviceptr memory) {
  static const char *const calls[] = {"nothing", "synchronize", "query", "synchronize the context", "query an event",
                                      "wait for an event from outside", "copy to the host", "allocate",
                                      "query an event of the capture", "fill on the default stream",
                                      "allocate in order", "query an event, relaxed"};
  CUevent outside = NULL, inside = NULL;
  cu.cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING);
  cu.cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING);
  cu.cuEventRecord(outside, stream);
  cu.cuStreamSynchronize(stream);
  SAY("capture the default stream", cu.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUgraph graph = NULL;
  SAY("end no capture", cu.cuStreamEndCapture(stream, &graph));
  for (int i = 0; i < 12; i++) {
    for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode += 2) {
      CUstream captured = i == 9 ? blocking : stream;
      CUstreamCaptureMode exchanged = CU_STREAM_CAPTURE_MODE_RELAXED;
      CUstreamCaptureStatus status = 9;
      CUdeviceptr made = 0;
      char host[8];
      int answer = 0;
      graph = NULL;
      int begun = (int)cu.cuStreamBeginCapture_v2(captured, (CUstreamCaptureMode)mode);
      cu.cuEventRecord(inside, captured);
      if (i == 1) answer = (int)cu.cuStreamSynchronize(captured);
      if (i == 2) answer = (int)cu.cuStreamQuery(captured);
      if (i == 3) answer = (int)cu.cuCtxSynchronize();
      if (i == 4) answer = (int)cu.cuEventQuery(outside);
      if (i == 5) answer = (int)cu.cuStreamWaitEvent(captured, outside, 0);
      if (i == 6) answer = (int)cu.cuMemcpyDtoH_v2(host, memory, sizeof host);
      if (i == 7) answer = (int)cu.cuMemAlloc_v2(&made, N);
      if (i == 8) answer = (int)cu.cuEventQuery(inside);
      if (i == 9) answer = (int)cu.cuMemsetD8Async(memory, 0, 8, NULL);
      if (i == 10) answer = (int)cu.cuMemAllocAsync(&made, N, captured);
      if (i == 11) {
        cu.cuThreadExchangeStreamCaptureMode(&exchanged);
        answer = (int)cu.cuEventQuery(outside);
        cu.cuThreadExchangeStreamCaptureMode(&exchanged);
      }
      cu.cuStreamIsCapturing(captured, &status);
      int ended = (int)cu.cuStreamEndCapture(captured, &graph);
      printf("capture, mode %d, %s: %d, then status %d, end %d, graph %s\n", mode, calls[i], begun ? begun : answer,
             (int)status, ended, graph ? "made" : "none");
      if (graph) cu.cuGraphDestroy(graph);
      if (i == 7 && made) cu.cuMemFree_v2(made);
    }
  }
  SAY("query an event of a capture that ended", cu.cuEventQuery(inside));
  SAY("wait for an event of a capture that ended", cu.cuStreamWaitEvent(stream, inside, 0));
  cu.cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  CUstreamCaptureStatus status = 9;
  SAY("is the default stream capturing, beside a capture", cu.cuStreamIsCapturing(NULL, &status));
  cu.cuStreamEndCapture(blocking, &graph);
  if (graph) cu.cuGraphDestroy(graph);
  cu.cuEventDestroy_v2(outside);
  cu.cuEventDestroy_v2(inside);
}

int main(int argc, char **argv) {
  library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "answers LIBRARY");
    return 2;
  }
  FUNCTIONS(FIND)
  CUcontext context = NULL;
  CUstream stream = NULL, blocking = NULL;
  CUevent event = NULL;
  CUdeviceptr memory = 0, pool = 0, managed = 0;
  void *pinned = NULL;
  char host[N];
  int value = 0;
  SAY("before cuInit", cu.cuDevicePrimaryCtxRetain(&context, 0));
  SAY("cuInit with a flag", cu.cuInit(1));
  SAY("cuInit", cu.cuInit(0));
  SAY("unknown attribute", cu.cuDeviceGetAttribute(&value, 100000, 0));
  SAY("retain for no device", cu.cuDevicePrimaryCtxRetain(&context, 1000));
  SAY("retain", cu.cuDevicePrimaryCtxRetain(&context, 0));
  SAY("push", cu.cuCtxPushCurrent_v2(context));
  SAY("stream", cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  SAY("blocking stream", cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  SAY("event", cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  SAY("allocate", cu.cuMemAlloc_v2(&memory, N));
  SAY("allocate in order", cu.cuMemAllocAsync(&pool, N, NULL));
  SAY("allocate pinned", cu.cuMemHostAlloc(&pinned, N, 0));
  SAY("allocate managed", cu.cuMemAllocManaged(&managed, N, CU_MEM_ATTACH_GLOBAL));
  SAY("synchronize", cu.cuCtxSynchronize());
  pointers("device memory", memory, context);
  pointers("pool memory", pool, context);
  pointers("pinned memory", (uintptr_t)pinned, context);
  pointers("managed memory", managed, context);
  pointers("the host's memory", (uintptr_t)host, context);
  sizes_and_addresses(memory);
  events(stream);
  capture(stream, blocking, memory);
  SAY("pop", cu.cuCtxPopCurrent_v2(&context));
  without_a_context(stream, event, memory);
  SAY("push", cu.cuCtxPushCurrent_v2(context));
  SAY("synchronize", cu.cuCtxSynchronize());
  SAY("free in order what was not made so", cu.cuMemFreeAsync(memory, NULL));
  SAY("free at once what was made in order", cu.cuMemFree_v2(pool));
  SAY("free pinned", cu.cuMemFreeHost(pinned));
  SAY("free managed", cu.cuMemFree_v2(managed));
  SAY("destroy", cu.cuEventDestroy_v2(event));
  SAY("destroy", cu.cuStreamDestroy_v2(stream));
  SAY("destroy", cu.cuStreamDestroy_v2(blocking));
  SAY("synchronize", cu.cuCtxSynchronize());
  SAY("pop", cu.cuCtxPopCurrent_v2(&context));
  SAY("release", cu.cuDevicePrimaryCtxRelease_v2(0));
  SAY("release once more", cu.cuDevicePrimaryCtxRelease_v2(0));
  return 0;
}
