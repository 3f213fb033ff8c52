/* Copies: that they are right, late, and refused where they make no sense. */
#include "selftest.h"

/* Long enough, in milliseconds, for this thread to look before it is over, even on a machine that is busy. */
enum { N = 200, LONG = 300 };

static void round_trips(void) {
  unsigned char from[N], to[N];
  for (int i = 0; i < N; i++) from[i] = (unsigned char)(i * 7);
  CUdeviceptr a = device_memory(N), b = device_memory(N), managed = 0;
  unsigned char *pinned = pinned_memory(N);
  OK(cuMemAllocManaged(&managed, N, CU_MEM_ATTACH_GLOBAL));
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);

  OK(cuMemcpyHtoD_v2(a, from, N));
  OK(cuMemcpyDtoD_v2(b, a, N));
  memset(to, 0, N);
  OK(cuMemcpyDtoH_v2(to, b, N));
  CHECK(memcmp(from, to, N) == 0);

  OK(cuMemcpy(managed, a, N));
  OK(cuMemcpy((uintptr_t)pinned, managed, N));
  CHECK(memcmp(from, pinned, N) == 0);
  memset(to, 0, N);
  OK(cuMemcpy((uintptr_t)to, (uintptr_t)from, N));
  CHECK(memcmp(from, to, N) == 0);

  memset(to, 0, N);
  OK(cuMemsetD8Async(b, 9, N, stream));
  OK(cuMemcpyHtoDAsync_v2(a, pinned, N, stream));
  OK(cuMemcpyDtoDAsync_v2(b + 50, a + 50, 50, stream));
  OK(cuMemcpyAsync(managed, b, N, stream));
  OK(cuMemcpyDtoHAsync_v2(to, managed, N, stream));
  OK(cuStreamSynchronize(stream));
  CHECK(all_host(to, 50, 9) && memcmp(to + 50, from + 50, 50) == 0 && all_host(to + 100, 100, 9));

  /* Nothing is nothing, wherever. */
  OK(cuMemcpyHtoD_v2(0, NULL, 0));
  OK(cuMemcpyDtoHAsync_v2(NULL, 0, 0, stream));
  OK(cuStreamDestroy_v2(stream));
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
  OK(cuMemFree_v2(managed));
  OK(cuMemFreeHost(pinned));
}

static void host_copies_are_late(void) {
  unsigned char from[N], to[N];
  CUdeviceptr memory = device_memory(N);
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
  memset(from, 1, N);
  memset(to, 0, N);
  IS(cuda_sim_block(stream), 0);
  OK(cuMemcpyHtoDAsync_v2(memory, from, N, stream));
  OK(cuMemcpyDtoHAsync_v2(to, memory, N, stream));
  CHECK(all_bytes(memory, N, 0xCD));
  memset(from, 2, N);
  CHECK(all_host(to, N, 0));
  IS(cuda_sim_unblock(stream), 0);
  OK(cuStreamSynchronize(stream));
  CHECK(all_bytes(memory, N, 2));
  CHECK(all_host(to, N, 2));

  /* Without a block they are late as well. */
  cuda_sim_configure("delay_us", LONG * 1000);
  memset(from, 3, N);
  OK(cuMemcpyHtoDAsync_v2(memory, from, N, stream));
  CHECK(all_bytes(memory, N, 2));
  OK(cuStreamSynchronize(stream));
  CHECK(all_bytes(memory, N, 3));
  OK(cuStreamDestroy_v2(stream));
  OK(cuMemFree_v2(memory));
}

static void as_the_driver_has_it(void) {
  unsigned char from[N], to[N];
  CUdeviceptr memory = device_memory(N), other = device_memory(N);
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
  cuda_sim_configure("staged_pageable", 1);
  memset(from, 1, N);
  memset(to, 0, N);
  IS(cuda_sim_block(stream), 0);
  OK(cuMemcpyHtoDAsync_v2(memory, from, N, stream));
  memset(from, 2, N);
  CHECK(all_bytes(memory, N, 0xCD));
  IS(cuda_sim_unblock(stream), 0);
  OK(cuMemcpyDtoHAsync_v2(to, memory, N, stream));
  CHECK(all_host(to, N, 1));

  /* A copy within a device waits for nothing even if it is not called asynchronous. */
  IS(cuda_sim_block(NULL), 0);
  OK(cuMemcpyDtoD_v2(other, memory, N));
  CHECK(all_bytes(other, N, 0xCD));
  IS(cuda_sim_unblock(NULL), 0);
  OK(cuStreamSynchronize(CU_STREAM_LEGACY));
  CHECK(all_bytes(other, N, 1));

  /* The other one has read its source when it returns, and that is all that the documentation promises. */
  cuda_sim_configure("staged_pageable", 0);
  cuda_sim_configure("early_htod", 1);
  memset(from, 5, N);
  IS(cuda_sim_block(NULL), 0);
  OK(cuMemcpyHtoD_v2(memory, from, N));
  memset(from, 6, N);
  CHECK(all_bytes(memory, N, 1));
  IS(cuda_sim_unblock(NULL), 0);
  OK(cuCtxSynchronize());
  CHECK(all_bytes(memory, N, 5));
  cuda_sim_configure("early_htod", 0);
  OK(cuMemcpyHtoD_v2(memory, from, N));
  CHECK(all_bytes(memory, N, 6));
  OK(cuStreamDestroy_v2(stream));
  OK(cuMemFree_v2(memory));
  OK(cuMemFree_v2(other));
}

static void wrong_copies(void) {
  unsigned char host[N] = {0};
  CUdeviceptr memory = device_memory(N), gone = device_memory(N);
  unsigned char *pinned = pinned_memory(N);
  OK(cuMemFree_v2(gone));
  FAILS(cuMemcpyHtoD_v2(memory, (void *)(uintptr_t)memory, N), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "device memory in the place of host memory");
  FAILS(cuMemcpyDtoHAsync_v2((void *)(uintptr_t)memory, memory, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "device memory in the place of host memory");
  FAILS(cuMemcpyHtoDAsync_v2((uintptr_t)host, host, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not memory of the driver");
  FAILS(cuMemcpyDtoDAsync_v2(memory, (uintptr_t)host, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not memory of the driver");
  FAILS(cuMemsetD8Async((uintptr_t)host, 1, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not memory of the driver");
  FAILS(cuMemcpyHtoD_v2(memory + 1, host, N), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "go beyond the 200");
  FAILS(cuMemcpyHtoD_v2(memory + N, host, 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "lies in no allocation");
  FAILS(cuMemcpyHtoD_v2(memory - 1, host, 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "lies in no allocation");
  FAILS(cuMemcpyHtoD_v2(memory, NULL, 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "no memory at 0x0");
  FAILS(cuMemcpyHtoD_v2(memory, host, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "for 18446744073709551615 bytes");
  FAILS(cuMemcpy(gone, memory, 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was freed by cuMemFree_v2");
  FAILS(cuMemcpyDtoH_v2(host, gone, 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was freed by cuMemFree_v2");
  CHECK(all_bytes(memory, N, 0xCD));
  /* Pinned memory is both, as with unified addressing. */
  OK(cuMemcpyHtoD_v2((uintptr_t)pinned, host, N));
  OK(cuMemcpyDtoH_v2(host, (uintptr_t)pinned, N));
  OK(cuMemFree_v2(memory));
  OK(cuMemFreeHost(pinned));
}

static void peers(void) {
  unsigned char bytes[N];
  memset(bytes, 4, N);
  CUdeviceptr here = device_memory(N), there = 0, pool = 0;
  OK(cuMemcpyHtoD_v2(here, bytes, N));
  OK(cuCtxPushCurrent_v2(contexts[1]));
  there = device_memory(N);
  OK(cuMemAllocAsync(&pool, N, NULL));
  OK(cuCtxSynchronize());
  OK(cuCtxPopCurrent_v2(NULL));
  int can = 0;
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  IS(can, 1);
  OK(cuDeviceCanAccessPeer(&can, 0, 0));
  IS(can, 0);

  FAILS(cuMemcpyDtoDAsync_v2(there, here, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuMemcpyAsync(there, here, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(0, "");
  OK(cuMemcpyPeerAsync(there, contexts[1], here, contexts[0], N, NULL));
  OK(cuStreamSynchronize(NULL));
  CHECK(all_bytes(there, N, 4));
  OK(cuMemcpyPeer(pool, contexts[1], here, contexts[0], N));
  OK(cuStreamSynchronize(NULL));
  CHECK(all_bytes(pool, N, 4));
  FAILS(cuMemcpyPeer(there, contexts[0], here, contexts[0], N), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is memory of device 1");
  FAILS(cuMemcpyPeer(there, NULL, here, contexts[0], N), CUDA_ERROR_INVALID_CONTEXT);
  FAILS(cuMemsetD8Async(there, 1, N, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "a kernel of device 0 cannot reach memory of device 1");

  OK(cuCtxEnablePeerAccess(contexts[1], 0));
  FAILS(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  FAILS(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_INVALID_DEVICE);
  FAILS(cuCtxEnablePeerAccess(contexts[1], 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemsetD8Async(there, 1, N, NULL));
  OK(cuMemcpyDtoDAsync_v2(here, there, N, NULL));
  OK(cuStreamSynchronize(NULL));
  CHECK(all_bytes(here, N, 1));
  /* Access to a context's memory is none to its device's pool. */
  FAILS(cuMemcpyDtoDAsync_v2(here, pool, N, NULL), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxDisablePeerAccess(contexts[1]));
  FAILS(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  FAILS(cuMemcpyDtoDAsync_v2(here, there, N, NULL), CUDA_ERROR_INVALID_VALUE);
  cuda_sim_configure("peer_access", 0);
  OK(cuDeviceCanAccessPeer(&can, 0, 1));
  IS(can, 0);
  FAILS(cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  OK(cuMemFree_v2(here));
  OK(cuMemFree_v2(there));
  OK(cuMemFree_v2(pool));
}

static void pokes(void) {
  unsigned char byte = 3;
  CUdeviceptr memory = device_memory(4);
  IS(cuda_sim_poke(memory + 3, &byte, 1), 0);
  byte = 0;
  IS(cuda_sim_peek(memory + 3, &byte, 1), 0);
  IS(byte, 3);
  IS(cuda_sim_poke(memory + 3, "ab", 2), -1);
  IS(cuda_sim_peek(memory - 1, &byte, 1), -1);
  IS(cuda_sim_peek((uintptr_t)&byte, &byte, 1), -1);
  OK(cuMemFree_v2(memory));
  IS(cuda_sim_peek(memory, &byte, 1), -1);
}

const Test copy_tests[] = {
    {"copies arrive", round_trips},
    {"host copies are late", host_copies_are_late},
    {"host copies are as the driver has them", as_the_driver_has_it},
    {"wrong copies are seen", wrong_copies},
    {"copies between devices", peers},
    {"peek and poke", pokes},
    {NULL, NULL},
};
