/* That each fault is seen, and that what is right is none. */
#include "selftest.h"

#include <unistd.h>

enum { N = 64 };

static CUstream one, two;
static CUevent event;

static void begin(void) {
  one = stream_of(CU_STREAM_NON_BLOCKING);
  two = stream_of(CU_STREAM_NON_BLOCKING);
  event = event_of(CU_EVENT_DISABLE_TIMING);
}

static void end(void) {
  OK(cuStreamDestroy_v2(one));
  OK(cuStreamDestroy_v2(two));
  OK(cuEventDestroy_v2(event));
}

static void freed_under_work(void) {
  begin();
  CUdeviceptr memory = device_memory(N);
  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_fill(one, memory, 1, N), 0);
  OK(cuMemFree_v2(memory));
  FAULTS(1, "cuMemFree_v2: work on 0x");
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(one));
  FAULTS(1, "before the operation that writes it ran");

  /* The same with pinned memory, which the device reads. */
  unsigned char *pinned = pinned_memory(N);
  memory = device_memory(N);
  IS(cuda_sim_block(one), 0);
  OK(cuMemcpyHtoDAsync_v2(memory, pinned, N, one));
  OK(cuMemFreeHost(pinned));
  FAULTS(1, "cuMemFreeHost: work on 0x");
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(one));
  FAULTS(1, "before the operation that reads it ran");
  CHECK(all_bytes(memory, N, 0xCD));

  /* Awaited, all is well: by the stream, by an event behind the work, or by the context. */
  OK(cuMemFree_v2(memory));
  for (int way = 0; way < 3; way++) {
    memory = device_memory(N);
    IS(cuda_sim_enqueue_fill(one, memory, 1, N), 0);
    if (way == 0) OK(cuStreamSynchronize(one));
    OK(cuEventRecord(event, one));
    if (way == 1) OK(cuEventSynchronize(event));
    if (way == 2) OK(cuCtxSynchronize());
    OK(cuMemFree_v2(memory));
  }
  end();
}

static void freed_in_order(void) {
  begin();
  for (int way = 0; way < 4; way++) {
    CUdeviceptr memory = 0;
    OK(cuMemAllocAsync(&memory, N, one));
    IS(cuda_sim_block(one), 0);
    IS(cuda_sim_enqueue_fill(one, memory, 1, N), 0);
    OK(cuEventRecord(event, one));
    if (way == 0) OK(cuMemFreeAsync(memory, one));
    if (way == 1) OK(cuStreamWaitEvent(two, event, 0));
    if (way == 3) {
      /* The wait has to be for the work, not for what was before it. */
      IS(cuda_sim_enqueue_fill(one, memory, 2, N), 0);
      OK(cuStreamWaitEvent(two, event, 0));
    }
    if (way > 0) OK(cuMemFreeAsync(memory, two));
    bool wrong = way >= 2;
    FAULTS(wrong, "is not ordered behind work on 0x");
    cuda_sim_counts counts;
    cuda_sim_live(&counts);
    CHECK(counts.pool_memory == 0);
    /* Behind nobody it is freed as soon as its stream comes to it, else not yet. */
    if (way != 2) IS(counts.bytes, N);
    for (int i = 0; way == 2 && counts.bytes != 0 && i < 20000; i++) {
      usleep(500);
      cuda_sim_live(&counts);
    }
    IS(counts.bytes, way == 2 ? 0 : N);
    IS(cuda_sim_unblock(one), 0);
    OK(cuCtxSynchronize());
    if (way == 2) FAULTS(1, "before the operation that writes it ran");
    cuda_sim_forget_faults();
    cuda_sim_live(&counts);
    IS(counts.bytes, 0);
  }
  end();
}

/* Order goes on through streams and events between them. */
static void order_is_transitive(void) {
  begin();
  CUstream three = stream_of(CU_STREAM_NON_BLOCKING);
  CUevent other = event_of(CU_EVENT_DISABLE_TIMING);
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, N, one));
  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_fill(one, memory, 1, N), 0);
  OK(cuEventRecord(event, one));
  OK(cuStreamWaitEvent(two, event, 0));
  OK(cuEventRecord(other, two));
  OK(cuStreamWaitEvent(three, other, 0));
  IS(cuda_sim_enqueue_fill(three, memory, 2, N), 0);
  OK(cuMemFreeAsync(memory, three));
  FAULTS(0, "");
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(three));
  OK(cuEventDestroy_v2(other));
  OK(cuStreamDestroy_v2(three));
  end();
}

static void used_after_its_free(void) {
  begin();
  unsigned char host[N];
  CUdeviceptr memory = 0;
  OK(cuMemAllocAsync(&memory, N, one));
  IS(cuda_sim_block(one), 0);
  OK(cuMemFreeAsync(memory, one));
  FAILS(cuMemcpyDtoHAsync_v2(host, memory, N, one), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was freed by cuMemFreeAsync");
  IS(cuda_sim_enqueue_fill(two, memory, 1, N), -1);
  FAULTS(1, "was freed by cuMemFreeAsync");
  IS(cuda_sim_unblock(one), 0);
  end();
}

static void used_before_its_allocation(void) {
  begin();
  CUdeviceptr memory = 0;
  IS(cuda_sim_block(one), 0);
  OK(cuMemAllocAsync(&memory, N, one));
  IS(cuda_sim_enqueue_fill(two, memory, 1, N), 0);
  FAULTS(1, "not ordered behind its allocation");
  OK(cuEventRecord(event, one));
  OK(cuStreamWaitEvent(two, event, 0));
  IS(cuda_sim_enqueue_fill(two, memory, 1, N), 0);
  FAULTS(0, "");
  OK(cuMemFreeAsync(memory, two));
  CUdeviceptr other = 0;
  OK(cuMemAllocAsync(&other, N, one));
  OK(cuMemFree_v2(other));
  FAULTS(1, "work on 0x");
  IS(cuda_sim_unblock(one), 0);
  end();
}

static void races(void) {
  begin();
  unsigned char host[N];
  CUdeviceptr memory = device_memory(N), other = device_memory(N);
  OK(cuMemsetD8Async(memory, 0, N, NULL));
  OK(cuStreamSynchronize(NULL));
  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_fill(one, memory, 1, N / 2), 0);
  /* Other bytes, */
  IS(cuda_sim_enqueue_fill(two, memory + N / 2, 2, N / 2), 0);
  OK(cuMemcpyDtoHAsync_v2(host, memory + N / 2, N / 2, two));
  FAULTS(0, "");
  /* and the same. */
  OK(cuMemcpyDtoHAsync_v2(host, memory + N / 2 - 1, 2, two));
  FAULTS(1, "bytes 31 to 33 of 0x");
  IS(cuda_sim_enqueue_fill(two, memory, 3, 1), 0);
  FAULTS(1, "are written on stream");
  /* The legacy stream is not ordered behind this one, but what has finished is before everything. */
  OK(cuStreamSynchronize(two));
  OK(cuMemcpyDtoH_v2(host, memory + N / 2, N / 2));
  FAULTS(0, "");
  cuda_sim_configure("check_races", 0);
  IS(cuda_sim_enqueue_fill(two, memory, 3, 1), 0);
  FAULTS(0, "");
  cuda_sim_configure("check_races", 1);
  OK(cuEventRecord(event, two));
  OK(cuStreamWaitEvent(one, event, 0));
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(one));

  /* Readers do not meet; a writer after them does. */
  IS(cuda_sim_block(one), 0);
  IS(cuda_sim_enqueue_copy(one, other, memory, N), 0);
  OK(cuMemcpyDtoHAsync_v2(host, memory, N, two));
  FAULTS(0, "");
  IS(cuda_sim_enqueue_fill(two, memory, 1, N), 0);
  FAULTS(1, "are written on stream");
  OK(cuEventRecord(event, one));
  OK(cuStreamWaitEvent(two, event, 0));
  IS(cuda_sim_enqueue_fill(two, other, 1, N), 0);
  FAULTS(0, "");
  IS(cuda_sim_unblock(one), 0);
  OK(cuCtxSynchronize());
  OK(cuMemFree_v2(memory));
  OK(cuMemFree_v2(other));
  end();
}

/* What the legacy stream orders is ordered. */
static void the_legacy_stream_orders(void) {
  unsigned char host[N];
  CUdeviceptr memory = device_memory(N);
  CUstream blocking = stream_of(CU_STREAM_DEFAULT);
  IS(cuda_sim_block(blocking), 0);
  IS(cuda_sim_enqueue_fill(blocking, memory, 1, N), 0);
  OK(cuMemsetD8Async(memory, 2, N, CU_STREAM_LEGACY));
  OK(cuMemcpyDtoHAsync_v2(host, memory, N, blocking));
  OK(cuMemFreeAsync(memory, blocking));
  IS(cuda_sim_unblock(blocking), 0);
  OK(cuStreamSynchronize(blocking));
  CHECK(all_host(host, N, 2));
  OK(cuStreamDestroy_v2(blocking));
}

static void broken_contexts(void) {
  begin();
  CUdeviceptr memory = device_memory(N), there = 0;
  int device = -1;
  IS(cuda_sim_enqueue_error(one, CUDA_ERROR_ILLEGAL_ADDRESS), 0);
  IS(cuda_sim_enqueue_fill(one, memory, 1, N), 0);
  FAILS(cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(all_bytes(memory, N, 0xCD));
  FAILS(cuMemAlloc_v2(&there, N), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuMemFree_v2(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuStreamDestroy_v2(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuDeviceGet(&device, 0));
  /* The other device is well, but not for streams of this one. */
  OK(cuCtxPushCurrent_v2(contexts[1]));
  OK(cuMemAlloc_v2(&there, N));
  OK(cuMemFree_v2(there));
  FAILS(cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuStreamQuery(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuCtxPopCurrent_v2(NULL));
  IS(cuda_sim_break_device(0, 0), 0);
  IS(cuda_sim_wait_idle(10000), 0);

  /* What runs when a context breaks is given up. */
  IS(cuda_sim_block(two), 0);
  while (!entry_of("cuda_sim_block").start) {
  }
  IS(cuda_sim_break_device(0, CUDA_ERROR_ILLEGAL_ADDRESS), 0);
  IS(cuda_sim_wait_idle(10000), 0);
  IS(cuda_sim_unblock(two), 0);
  IS(cuda_sim_break_device(0, 0), 0);

  IS(cuda_sim_break_device(5, 700), -1);
  IS(cuda_sim_break_device(0, 12345), 0);
  FAILS(cuMemAlloc_v2(&there, N), 12345);
  IS(cuda_sim_break_device(0, 0), 0);
  OK(cuMemFree_v2(memory));
  end();
}

const Test fault_tests[] = {
    {"memory freed under work", freed_under_work},
    {"memory freed in the order of streams", freed_in_order},
    {"order goes on through streams", order_is_transitive},
    {"memory used after its free", used_after_its_free},
    {"memory used before its allocation", used_before_its_allocation},
    {"races", races},
    {"the legacy stream orders", the_legacy_stream_orders},
    {"broken contexts", broken_contexts},
    {NULL, NULL},
};
