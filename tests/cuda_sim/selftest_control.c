/* Initialisation, devices, failures on request, the log, the control functions, the variants. */
#include "selftest.h"

#include <dlfcn.h>
#include <signal.h>

enum { N = 32 };

static void initialisation(void) {
  int n = 0;
  CUdeviceptr memory = 0;
  CUcontext context = NULL;
  OK(cuCtxPopCurrent_v2(NULL));
  CHECK(cuda_sim_reset(0, NULL, 0) == 2);
  FAILS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
  FAILS(cuMemAlloc_v2(&memory, 8), CUDA_ERROR_NOT_INITIALIZED);
  FAILS(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  FAILS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  OK(cuDriverGetVersion(&n));
  IS(n, 12080);
  cuda_sim_configure("devices", 0);
  FAILS(cuInit(0), CUDA_ERROR_NO_DEVICE);
  FAILS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
  cuda_sim_configure("devices", 8);
  cuda_sim_configure("driver_version", 11040);
  OK(cuInit(0));
  OK(cuDeviceGetCount(&n));
  IS(n, 8);
  OK(cuDriverGetVersion(&n));
  IS(n, 11040);
  OK(cuDeviceGet(&n, 7));
  IS(n, 7);
  FAILS(cuDeviceGet(&n, 8), CUDA_ERROR_INVALID_DEVICE);
  FAILS(cuDeviceGet(&n, -1), CUDA_ERROR_INVALID_DEVICE);
  char name[64];
  OK(cuDeviceGetName(name, sizeof name, 7));
  CHECK(strcmp(name, "Simulated device 7") == 0);
  cuda_sim_configure("devices", 2);
  for (int device = 0; device < 2; device++) OK(cuDevicePrimaryCtxRetain(&contexts[device], device));
  OK(cuCtxPushCurrent_v2(contexts[0]));
}

static void attributes(void) {
  static const struct {
    int attribute, value;
    const char *key;
  } cases[] = {
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1, "unified_addressing"},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1, "managed_memory"},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1, "concurrent_managed"},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1, "memory_pools"},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1, "registered_pointers"},
      {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0, "pageable_access"},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9, "compute_major"},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, "compute_minor"},
  };
  int value = 77;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    OK(cuDeviceGetAttribute(&value, cases[i].attribute, 1));
    IS(value, cases[i].value);
    IS(cuda_sim_setting(cases[i].key), cases[i].value);
    IS(cuda_sim_configure(cases[i].key, 5), 0);
    OK(cuDeviceGetAttribute(&value, cases[i].attribute, 1));
    IS(value, 5);
  }
  FAILS(cuDeviceGetAttribute(&value, 100000, 0), CUDA_ERROR_INVALID_VALUE);
  FAILS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 2), CUDA_ERROR_INVALID_DEVICE);
  IS(cuda_sim_configure("no such key", 1), -1);
  IS(cuda_sim_configure("devices", 9), -1);
  IS(cuda_sim_configure("delay_us", -1), -1);
  IS(cuda_sim_setting("no such key"), INT64_MIN);
}

static void failures(void) {
  CUdeviceptr memory = 0;
  int n = 0;
  IS(cuda_sim_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SIM_ONCE), 0);
  OK(cuMemAlloc_v2(&memory, N));
  OK(cuMemFree_v2(memory));
  memory = 77;
  FAILS(cuMemAlloc_v2(&memory, N), CUDA_ERROR_OUT_OF_MEMORY);
  IS(memory, 77);
  OK(cuMemAlloc_v2(&memory, N));
  /* What failed was not done. */
  IS(cuda_sim_fail("cuMemFree_v2", 1, 12345, CUDA_SIM_FROM_THEN_ON), 0);
  FAILS(cuMemFree_v2(memory), 12345);
  FAILS(cuMemFree_v2(memory), 12345);
  OK(cuDeviceGetCount(&n));
  IS(cuda_sim_fail_nothing(), 0);
  OK(cuMemFree_v2(memory));
  /* Any function, those without a context as well. */
  IS(cuda_sim_fail(NULL, 3, CUDA_ERROR_UNKNOWN, CUDA_SIM_ONCE), 0);
  OK(cuDeviceGetCount(&n));
  OK(cuCtxSynchronize());
  FAILS(cuInit(0), CUDA_ERROR_UNKNOWN);
  OK(cuInit(0));
  /* The context is broken with the call. */
  IS(cuda_sim_fail("cuCtxSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_SIM_STICKY), 0);
  OK(cuStreamQuery(NULL));
  FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  FAILS(cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
  OK(cuDeviceGetCount(&n));
  IS(cuda_sim_break_device(0, 0), 0);
  OK(cuStreamQuery(NULL));
  IS(cuda_sim_fail("cuEventCreate", 1, 1, CUDA_SIM_ONCE), 0);
  IS(cuda_sim_fail("cuEventCreate", 0, 1, CUDA_SIM_ONCE), -1);
  IS(cuda_sim_fail("cuEventCreate", 1, -1, CUDA_SIM_ONCE), -1);
  IS(cuda_sim_fail("cuEventCreate", 1, 1, 9), -1);
  IS(cuda_sim_fail_nothing(), 1);
  CUevent event = event_of(0);
  OK(cuEventDestroy_v2(event));
  for (int i = 0; i < 32; i++) IS(cuda_sim_fail("cuInit", 1000, 1, CUDA_SIM_ONCE), 0);
  IS(cuda_sim_fail("cuInit", 1000, 1, CUDA_SIM_ONCE), -1);
  IS(cuda_sim_fail_nothing(), 32);
}

static void log_of_calls(void) {
  unsigned char host[N];
  CUdeviceptr memory = device_memory(N);
  CUstream one = stream_of(CU_STREAM_NON_BLOCKING), two = stream_of(CU_STREAM_NON_BLOCKING);
  cuda_sim_log_clear();
  IS(cuda_sim_log_count(), 0);
  IS(cuda_sim_calls(NULL), 0);
  IS(cuda_sim_block(one), 0);
  OK(cuMemsetD8Async(memory, 1, N / 2, one));
  OK(cuMemcpyDtoHAsync_v2(host, memory + N / 2, N / 2, two));
  OK(cuStreamSynchronize(two));
  cuda_sim_entry fill = entry_of("cuMemsetD8Async"), copy = entry_of("cuMemcpyDtoHAsync_v2");
  CHECK(fill.sequence && !fill.start && !fill.end && fill.result == 0 && fill.stream == one && fill.on_stream);
  CHECK(copy.sequence > fill.sequence && copy.start > copy.sequence && copy.end > copy.start);
  CHECK(copy.thread == fill.thread && copy.thread > 0);
  char wanted[64];
  snprintf(wanted, sizeof wanted, "from=0x%llx size=%d", (unsigned long long)memory + N / 2, N / 2);
  CHECK(strstr(copy.arguments, wanted));
  IS(cuda_sim_unblock(one), 0);
  OK(cuStreamSynchronize(one));
  fill = entry_of("cuMemsetD8Async");
  CHECK(fill.start > copy.end && fill.end > fill.start);
  FAILS(cuMemAlloc_v2(&memory, 0), CUDA_ERROR_INVALID_VALUE);
  IS(entry_of("cuMemAlloc_v2").result, CUDA_ERROR_INVALID_VALUE);
  IS(cuda_sim_calls("cuStreamSynchronize"), 2);
  /* The control functions are in the log, and are no calls of the driver. */
  IS(cuda_sim_calls(NULL), 5);
  IS(cuda_sim_log_count(), 7);
  IS(cuda_sim_log_entry(7, &copy), -1);
  IS(cuda_sim_log_entry(-1, &copy), -1);
  int64_t size = cuda_sim_log_text(NULL, 0);
  char *text = malloc((size_t)size);
  IS(cuda_sim_log_text(text, (size_t)size), size);
  IS(strlen(text), size - 1);
  int lines = 0;
  for (const char *at = text; *at; at++) lines += *at == '\n';
  IS(lines, 7);
  CHECK(strstr(text, "cuMemsetD8Async stream=") && strstr(text, " ran ") && strstr(text, "cuda_sim_block"));
  cuda_sim_log_text(text, 10);
  IS(strlen(text), 9);
  free(text);
  IS(cuda_sim_reset(CUDA_SIM_KEEP_CONTEXTS, NULL, 0), 3);
}

static void resets(void) {
  char text[2000];
  cuda_sim_counts counts;
  CUdeviceptr memory = device_memory(N), pool = 0, managed = 0;
  unsigned char byte = 1;
  pinned_memory(N);
  OK(cuMemAllocAsync(&pool, N, NULL));
  OK(cuMemAllocManaged(&managed, N, CU_MEM_ATTACH_GLOBAL));
  CUstream stream = stream_of(0);
  CUevent event = event_of(0);
  IS(cuda_sim_block(stream), 0);
  OK(cuEventRecord(event, stream));
  cuda_sim_live(&counts);
  CHECK(counts.device_memory == 1 && counts.pool_memory == 1 && counts.pinned_memory == 1);
  CHECK(counts.managed_memory == 1 && counts.streams == 1 && counts.events == 1 && counts.bytes == 4 * N);
  CHECK(counts.pending >= 2);

  /* Only settings, log, faults and orders are put back. */
  cuda_sim_configure("devices", 1);
  cuda_sim_fail("cuInit", 1, 1, CUDA_SIM_ONCE);
  IS(cuda_sim_reset(CUDA_SIM_KEEP_OBJECTS, text, sizeof text), 6);
  CHECK(strstr(text, "streams: 1\n") && strstr(text, "32 bytes of pinned memory at 0x"));
  IS(cuda_sim_setting("devices"), 2);
  OK(cuInit(0));
  FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  IS(cuda_sim_poke(memory, &byte, 1), 0);

  /* Everything but contexts goes; a blocked stream is let go. */
  IS(cuda_sim_reset(CUDA_SIM_KEEP_CONTEXTS, text, sizeof text), 6);
  IS(cuda_sim_poke(memory, &byte, 1), -1);
  FAILS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  FAULTS(1, "is no event");
  FAILS(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  FAULTS(1, "is not the start of an allocation");
  cuda_sim_live(&counts);
  CHECK(counts.bytes == 0 && counts.streams == 0 && counts.primary_retains == 2 && counts.pushed_here == 1);
  CUcontext context = NULL;
  OK(cuCtxGetCurrent(&context));
  CHECK(context == contexts[0]);
  memory = device_memory(N);
  OK(cuMemsetD8Async(memory, 1, N, NULL));
  OK(cuStreamSynchronize(NULL));
  OK(cuMemFree_v2(memory));
}

static void never_let_go(void *stream) {
  cuda_sim_configure("hang_ms", 50);
  cuStreamSynchronize(stream);
}

static void at_the_first_fault(void *unused) {
  cuda_sim_configure("abort_on_fault", 1);
  cuMemFree_v2((uintptr_t)&unused);
}

static void ends(void) {
  CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
  IS(cuda_sim_block(stream), 0);
  IS(in_child(never_let_go, stream), SIGABRT);
  IS(in_child(at_the_first_fault, NULL), SIGABRT);
  IS(cuda_sim_unblock(stream), 0);
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy_v2(stream));
  /* A test that enqueues on nothing learns of it. */
  IS(cuda_sim_block(stream), -1);
  FAULTS(1, "was destroyed");
  IS(cuda_sim_enqueue_delay(NULL, -1), -1);
  IS(cuda_sim_enqueue_error(NULL, 0), -1);
}

static void names(void) {
  const char *text = NULL;
  OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
  CHECK(strcmp(text, "CUDA_ERROR_NOT_READY") == 0);
  OK(cuGetErrorString(CUDA_SUCCESS, &text));
  CHECK(strcmp(text, "no error") == 0);
  FAILS(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(!text);
  void *function = NULL;
  CUdriverProcAddressQueryResult status = 9;
  OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
  CHECK(function == (void *)(uintptr_t)cuMemAlloc_v2 && status == CU_GET_PROC_ADDRESS_SUCCESS);
  OK(cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL));
  CHECK(function == (void *)(uintptr_t)cuInit);
  FAILS(cuGetProcAddress_v2("cuNoSuchThing", &function, 12000, 0, NULL), CUDA_ERROR_NOT_FOUND);
  OK(cuGetProcAddress_v2("cuda_sim_block", &function, 12000, 0, &status));
  CHECK(!function && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* The other variants lack what they have to lack, and the stub answers everything with its error. */
static void all_variants(void) {
  static const struct {
    const char *name, *missing[2];
  } cases[] = {{"full", {NULL, NULL}},
               {"no_async_memory", {"cuMemAllocAsync", "cuMemFreeAsync"}},
               {"no_event_record", {"cuEventRecord", NULL}},
               {"stub", {NULL, NULL}}};
  static const char *const symbols[] = {"cuMemAllocAsync", "cuMemFreeAsync", "cuEventRecord", "cuMemAlloc_v2"};
  for (size_t i = 0; variants && i < sizeof cases / sizeof *cases; i++) {
    char path[2000];
    snprintf(path, sizeof path, "%s/%s/libcuda.so.1", variants, cases[i].name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) check_failed(__FILE__, __LINE__, "%s", dlerror());
    int (*is_simulated)(const char **) = NULL;
    CUresult (*init)(unsigned) = NULL;
    CUresult (*name)(CUresult, const char **) = NULL;
    *(void **)&is_simulated = dlsym(library, "cuda_sim_is_simulated");
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&name = dlsym(library, "cuGetErrorName");
    const char *variant = NULL, *text = NULL;
    IS(is_simulated(&variant), CUDA_SIM_MARK);
    CHECK(strcmp(variant, cases[i].name) == 0);
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++) {
      bool missing = false;
      for (int m = 0; m < 2; m++) missing |= cases[i].missing[m] && strcmp(cases[i].missing[m], symbols[k]) == 0;
      IS(dlsym(library, symbols[k]) == NULL, missing);
    }
    bool stub = strcmp(cases[i].name, "stub") == 0;
    FAILS(init(0), stub ? CUDA_ERROR_STUB_LIBRARY : CUDA_SUCCESS);
    FAILS(name(0, &text), stub ? CUDA_ERROR_STUB_LIBRARY : CUDA_SUCCESS);
    IS(dlclose(library), 0);
  }
}

const Test control_tests[] = {
    {"initialisation", initialisation},
    {"device attributes", attributes},
    {"failures on request", failures},
    {"the log", log_of_calls},
    {"resets", resets},
    {"what ends the process", ends},
    {"names", names},
    {"variants", all_variants},
    {NULL, NULL},
};
