/* Names of errors, and functions by name. */
#include "sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define ERRORS(X) \
  X(CUDA_SUCCESS, "no error") \
  X(CUDA_ERROR_INVALID_VALUE, "an argument is invalid") \
  X(CUDA_ERROR_OUT_OF_MEMORY, "memory is exhausted") \
  X(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called") \
  X(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down") \
  X(CUDA_ERROR_STUB_LIBRARY, "this driver is a stub") \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is in use or unavailable") \
  X(CUDA_ERROR_NO_DEVICE, "there is no device") \
  X(CUDA_ERROR_INVALID_DEVICE, "there is no such device") \
  X(CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it is invalid") \
  X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "the devices cannot access each other") \
  X(CUDA_ERROR_OPERATING_SYSTEM, "the operating system refused") \
  X(CUDA_ERROR_INVALID_HANDLE, "a handle is invalid") \
  X(CUDA_ERROR_NOT_FOUND, "not found") \
  X(CUDA_ERROR_NOT_READY, "work has not finished") \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel met an illegal address") \
  X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "access to the peer is enabled already") \
  X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "access to the peer is not enabled") \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was destroyed") \
  X(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed") \
  X(CUDA_ERROR_NOT_PERMITTED, "not permitted") \
  X(CUDA_ERROR_NOT_SUPPORTED, "not supported") \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "driver and system do not fit") \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted while a stream is captured") \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture failed before") \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would be joined") \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin here") \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a captured stream was not joined") \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a capture would depend on work outside") \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "a capture would depend on the default stream") \
  X(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture") \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture belongs to another thread") \
  X(CUDA_ERROR_UNKNOWN, "an unknown error")

#define ENTRY(code, text) {code, #code, text},
static const struct {
  int code;
  const char *name, *text;
} errors[] = {ERRORS(ENTRY)};

static CUresult describe(Call *call, CUresult error, const char **out, bool name) {
  if (!sim_begin(call)) return sim_end(call);
  call->result = CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; out && i < sizeof errors / sizeof *errors; i++) {
    if (errors[i].code != (int)error) continue;
    *out = name ? errors[i].name : errors[i].text;
    call->result = CUDA_SUCCESS;
  }
  if (out && call->result != CUDA_SUCCESS) *out = NULL;
  return sim_end(call);
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
  CALL(NEEDS_NOTHING, "error=%d", (int)error);
  return describe(&call, error, name, true);
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
  CALL(NEEDS_NOTHING, "error=%d", (int)error);
  return describe(&call, error, text, false);
}

/* Names are given without their version, and mean the newest that is here. */
static void *find(const char *symbol) {
  Dl_info self;
  if (!dladdr((void *)&sim, &self)) return NULL;
  void *library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return NULL;
  char newer[80];
  snprintf(newer, sizeof newer, "%s_v2", symbol);
  void *function = strncmp(symbol, "cu", 2) == 0 && strncmp(symbol, "cuda_sim", 8) != 0 ? dlsym(library, newer) : NULL;
  if (!function && strncmp(symbol, "cu", 2) == 0 && strncmp(symbol, "cuda_sim", 8) != 0)
    function = dlsym(library, symbol);
  dlclose(library);
  return function;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
  CALL(NEEDS_NOTHING, "symbol=%.64s version=%d flags=%llu", symbol ? symbol : "NULL", version,
       (unsigned long long)flags);
  /* The loader has a lock of its own, which must not be taken within ours. */
  void *found = symbol ? find(symbol) : NULL;
  if (sim_begin(&call)) {
    if (!symbol || !function || flags > 1) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else {
      *function = found;
      if (status) *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      if (!found && !status) call.result = CUDA_ERROR_NOT_FOUND;
    }
  }
  return sim_end(&call);
}
