/* Where memory can be touched, and what the driver says about addresses. */
#include "selftest.h"

#include <signal.h>

static volatile unsigned char sink;

static void read_byte(void *at) { sink = *(volatile unsigned char *)at; }
static void write_byte(void *at) { *(volatile unsigned char *)at = 1; }

#define SEGFAULTS(run, address) IS(in_child((run), (void *)(uintptr_t)(address)), SIGSEGV)
#define RUNS(run, address) IS(in_child((run), (void *)(uintptr_t)(address)), 0)

static void device_memory_is_not_the_cpus(void) {
  CUdeviceptr memory = device_memory(1000);
  SEGFAULTS(read_byte, memory);
  SEGFAULTS(write_byte, memory + 999);
  CUdeviceptr pool = 0;
  OK(cuMemAllocAsync(&pool, 10, NULL));
  SEGFAULTS(read_byte, pool);
  OK(cuMemFreeAsync(pool, NULL));
  OK(cuMemFree_v2(memory));
  SEGFAULTS(read_byte, memory);
  /* Neither are handles. */
  SEGFAULTS(read_byte, contexts[0]);
}

static void host_memory_is(void) {
  unsigned char *pinned = pinned_memory(100), *next = pinned_memory(100);
  RUNS(write_byte, pinned);
  memset(pinned, 7, 100);
  CHECK(all_bytes((uintptr_t)pinned, 100, 7));
  /* A page is more than 100 bytes; the next one is nobody's, and so is the one before. */
  SEGFAULTS(read_byte, pinned - 1);
  SEGFAULTS(read_byte, pinned + 65536);
  SEGFAULTS(read_byte, next - 1);
  OK(cuMemFreeHost(next));
  OK(cuMemFreeHost(pinned));
  SEGFAULTS(read_byte, pinned);

  void *other = NULL;
  OK(cuMemAllocHost_v2(&other, 5));
  memset(other, 1, 5);
  OK(cuMemFreeHost(other));
  FAILS(cuMemHostAlloc(&other, 5, 8), CUDA_ERROR_INVALID_VALUE);
}

static void managed_memory(void) {
  CUdeviceptr managed = 0;
  OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  RUNS(write_byte, managed);
  OK(cuMemFree_v2(managed));
  SEGFAULTS(read_byte, managed);

  cuda_sim_configure("concurrent_managed", 0);
  OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  SEGFAULTS(read_byte, managed);
  OK(cuMemFree_v2(managed));

  FAILS(cuMemAllocManaged(&managed, 64, 0), CUDA_ERROR_INVALID_VALUE);
  cuda_sim_configure("managed_memory", 0);
  FAILS(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_SUPPORTED);
}

static void overrun(void) {
  unsigned char *pinned = pinned_memory(10);
  pinned[10] = 0;
  OK(cuMemFreeHost(pinned));
  FAULTS(1, "beyond the end of 10 bytes of pinned memory");
  pinned_memory(10)[11] = 0;
  char text[500];
  IS(cuda_sim_reset(CUDA_SIM_KEEP_CONTEXTS, text, sizeof text), 2);
  CHECK(strstr(text, "beyond the end"));
}

static void new_memory_is_junk(void) {
  CUdeviceptr memory = device_memory(300);
  CHECK(all_bytes(memory, 300, 0xCD));
  OK(cuMemFree_v2(memory));
  CUdeviceptr next = device_memory(300);
  CHECK(next != memory);
  OK(cuMemFree_v2(next));
}

static void sizes(void) {
  CUdeviceptr a = 0, b = 0;
  FAILS(cuMemAlloc_v2(&a, 0), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuMemAlloc_v2(NULL, 8), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuMemAlloc_v2(&a, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  cuda_sim_configure("memory_bytes", 1000);
  OK(cuMemAlloc_v2(&a, 600));
  FAILS(cuMemAlloc_v2(&b, 401), CUDA_ERROR_OUT_OF_MEMORY);
  FAILS(cuMemAllocAsync(&b, 401, NULL), CUDA_ERROR_OUT_OF_MEMORY);
  OK(cuMemAlloc_v2(&b, 400));
  /* The other device has memory of its own, and the host is not limited. */
  OK(cuCtxPushCurrent_v2(contexts[1]));
  CUdeviceptr there = device_memory(1000);
  OK(cuMemFree_v2(there));
  OK(cuCtxPopCurrent_v2(NULL));
  OK(cuMemFreeHost(pinned_memory(5000)));
  OK(cuMemFree_v2(a));
  OK(cuMemFree_v2(b));
  OK(cuMemAlloc_v2(&a, 1000));
  OK(cuMemFree_v2(a));
}

static void pointer_attributes(void) {
  struct {
    CUdeviceptr address;
    unsigned type, managed;
    bool host, context;
  } kinds[4] = {{0, CU_MEMORYTYPE_DEVICE, 0, false, true},
                {0, CU_MEMORYTYPE_DEVICE, 0, false, false},
                {0, CU_MEMORYTYPE_HOST, 0, true, true},
                {0, CU_MEMORYTYPE_DEVICE, 1, true, true}};
  OK(cuCtxPushCurrent_v2(contexts[1]));
  kinds[0].address = device_memory(100);
  OK(cuMemAllocAsync(&kinds[1].address, 100, NULL));
  kinds[2].address = (uintptr_t)pinned_memory(100);
  OK(cuMemAllocManaged(&kinds[3].address, 100, CU_MEM_ATTACH_GLOBAL));
  OK(cuCtxSynchronize());
  OK(cuCtxPopCurrent_v2(NULL));
  for (int i = 0; i < 4; i++) {
    CUdeviceptr at = kinds[i].address + 99, found = 0, base = 0;
    unsigned number = 77;
    int device = 77;
    void *pointer = &found;
    size_t size = 0;
    OK(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    IS(number, kinds[i].type);
    OK(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    IS(number, kinds[i].managed);
    OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
    IS(device, 1);
    OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at));
    IS(found, at);
    FAILS(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, at),
          kinds[i].host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    CHECK(pointer == (kinds[i].host ? (void *)(uintptr_t)at : (void *)&found));
    OK(cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_CONTEXT, at));
    CHECK(pointer == (kinds[i].context ? contexts[1] : NULL));
    OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at));
    IS(found, kinds[i].address);
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
    IS(size, 100);
    OK(cuMemGetAddressRange_v2(&base, &size, at));
    CHECK(base == kinds[i].address && size == 100);
    FAILS(cuMemGetAddressRange_v2(&base, &size, at + 1), CUDA_ERROR_NOT_FOUND);
    FAILS(cuPointerGetAttribute(&number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 1), CUDA_ERROR_INVALID_VALUE);
  }
  unsigned number = 0;
  FAILS(cuPointerGetAttribute(&number, 12345, kinds[0].address), CUDA_ERROR_INVALID_VALUE);

  CUpointer_attribute wanted[5] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
  unsigned type = 7, managed = 7;
  int device = 7;
  void *host = &type, *context = &type;
  void *values[5] = {&type, &host, &device, &context, &managed};
  OK(cuPointerGetAttributes(5, wanted, values, kinds[0].address));
  CHECK(type == CU_MEMORYTYPE_DEVICE && !host && device == 1 && context == contexts[1] && !managed);
  OK(cuPointerGetAttributes(5, wanted, values, (uintptr_t)&type));
  CHECK(!type && !host && device == -2 && !context && !managed);
  FAILS(cuPointerGetAttributes(0, wanted, values, kinds[0].address), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type), CUDA_ERROR_INVALID_VALUE);
  FAULTS(0, "");

  OK(cuMemFree_v2(kinds[0].address));
  OK(cuMemFreeAsync(kinds[1].address, NULL));
  OK(cuMemFreeHost((void *)(uintptr_t)kinds[2].address));
  OK(cuMemFree_v2(kinds[3].address));
  FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, kinds[0].address), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was freed by cuMemFree_v2");
  FAILS(cuMemGetAddressRange_v2(NULL, NULL, kinds[0].address), CUDA_ERROR_NOT_FOUND);
  FAULTS(1, "was freed");
  OK(cuCtxPopCurrent_v2(NULL));
  /* Real drivers answer these without a context. */
  FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type), CUDA_ERROR_INVALID_VALUE);
  cuda_sim_configure("pointer_needs_context", 1);
  FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type), CUDA_ERROR_INVALID_CONTEXT);
  OK(cuCtxPushCurrent_v2(contexts[0]));
}

static void wrong_frees(void) {
  CUdeviceptr memory = device_memory(100), pool = 0, managed = 0;
  unsigned char *pinned = pinned_memory(100);
  OK(cuMemAllocAsync(&pool, 100, NULL));
  OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  FAILS(cuMemFree_v2(memory + 1), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not the start of an allocation");
  FAILS(cuMemFree_v2((uintptr_t)&memory), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not the start of an allocation");
  FAILS(cuMemFree_v2((uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is pinned memory");
  FAILS(cuMemFreeHost((void *)(uintptr_t)memory), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is device memory");
  FAILS(cuMemFreeAsync(managed, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is managed memory");
  OK(cuMemFree_v2(memory));
  FAILS(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was already freed by cuMemFree_v2");
  OK(cuMemFreeAsync(pool, NULL));
  FAILS(cuMemFreeAsync(pool, NULL), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was already freed by cuMemFreeAsync");
  FAILS(cuMemFree_v2(pool), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "was already freed by cuMemFreeAsync");
  OK(cuMemFreeHost(pinned));
  OK(cuMemFree_v2(managed));
  /* Each kind of function may free what the other gave. */
  memory = device_memory(8);
  OK(cuMemFreeAsync(memory, NULL));
  OK(cuMemAllocAsync(&pool, 8, NULL));
  OK(cuStreamSynchronize(NULL));
  OK(cuMemFree_v2(pool));
  cuda_sim_configure("memory_pools", 0);
  FAILS(cuMemAllocAsync(&pool, 8, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

const Test memory_tests[] = {
    {"device memory is not the CPU's", device_memory_is_not_the_cpus},
    {"pinned memory is the CPU's", host_memory_is},
    {"managed memory is the CPU's if it can be", managed_memory},
    {"writing beyond pinned memory is seen", overrun},
    {"new memory is junk, and new", new_memory_is_junk},
    {"sizes and limits", sizes},
    {"pointer attributes", pointer_attributes},
    {"wrong frees are seen", wrong_frees},
    {NULL, NULL},
};
