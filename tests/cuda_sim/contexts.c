/* Initialisation, devices, contexts, peer access. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Context *sim_current(void) {
  Thread *thread = sim_thread();
  return thread->depth ? thread->stack[thread->depth - 1] : NULL;
}

/* The context of a handle, or NULL and the call's result. */
Context *sim_context(Call *call, CUcontext handle) {
  Context *context = handle ? sim_handle(handle, HANDLE_CONTEXT) : NULL;
  if (context && context->alive) return context;
  if (context) {
    sim_fault("%s: context %p was destroyed", call->name, (void *)handle);
    call->result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return NULL;
  }
  if (handle) sim_fault("%s: %p is no context", call->name, (void *)handle);
  call->result = CUDA_ERROR_INVALID_CONTEXT;
  return NULL;
}

bool sim_has_device(CUdevice device) { return device >= 0 && device < sim.settings[SET_DEVICES]; }

Context *sim_primary(CUdevice device) { return sim_has_device(device) ? sim.primary[device] : NULL; }

void sim_break(Context *context, CUresult code) {
  context->broken = code;
  sim_changed();
}

static Context *new_context(CUdevice device, unsigned flags, bool primary) {
  Context *context = sim_zeroed(sizeof *context);
  context->handle = sim_new_handle(HANDLE_CONTEXT, context);
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->alive = true;
  PUSH(sim.contexts, context);
  return context;
}

/* All that was made in it goes with it. What memory pools gave belongs to the device. */
void sim_destroy_context(Context *context) {
  for (size_t i = 0; i < sim.streams.n; i++) {
    Stream *stream = sim.streams.at[i];
    if (stream->context != context) continue;
    if (!sim_is_idle(stream)) sim_fault("context %p is destroyed with work on stream %p", context->handle, stream->handle);
    WAIT_UNTIL(sim_is_idle(stream), "the end of a context waits for stream %p", stream->handle);
    sim_destroy_stream(stream);
  }
  for (size_t i = 0; i < sim.memory.n; i++) {
    Memory *memory = sim.memory.at[i];
    if (memory->context == context && memory->state != MEMORY_FREED)
      sim_release_memory(memory, "the end of its context");
  }
  context->alive = false;
}

EXPORT CUresult cuInit(unsigned int flags) {
  CALL(NEEDS_NOTHING, "flags=%u", flags);
  if (sim_begin(&call)) {
    if (flags) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim.settings[SET_DEVICES]) {
      call.result = CUDA_ERROR_NO_DEVICE;
    } else {
      sim.initialised = true;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDriverGetVersion(int *version) {
  CALL(NEEDS_NOTHING, "%s", "");
  if (sim_begin(&call)) {
    if (version) {
      *version = (int)sim.settings[SET_DRIVER_VERSION];
    } else {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDeviceGetCount(int *count) {
  CALL(NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    if (count) {
      *count = (int)sim.settings[SET_DEVICES];
    } else {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  CALL(NEEDS_INIT, "ordinal=%d", ordinal);
  if (sim_begin(&call)) {
    if (!device) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(ordinal)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      *device = ordinal;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  CALL(NEEDS_INIT, "device=%d", device);
  if (sim_begin(&call)) {
    if (!name || size <= 0) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      snprintf(name, (size_t)size, "Simulated device %d", device);
    }
  }
  return sim_end(&call);
}

static const struct {
  int attribute;
  Setting setting;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, SET_UNIFIED_ADDRESSING},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, SET_COMPUTE_MAJOR},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, SET_COMPUTE_MINOR},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, SET_MANAGED_MEMORY},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, SET_PAGEABLE_ACCESS},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, SET_CONCURRENT_MANAGED},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, SET_REGISTERED_POINTERS},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, SET_MEMORY_POOLS},
};

static CUresult attribute(int *value, int wanted) {
  if (wanted == CU_DEVICE_ATTRIBUTE_INTEGRATED || wanted == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) {
    *value = wanted == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    if (attributes[i].attribute != wanted) continue;
    *value = (int)sim.settings[attributes[i].setting];
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute wanted, CUdevice device) {
  CALL(NEEDS_INIT, "attribute=%d device=%d", (int)wanted, device);
  if (sim_begin(&call)) {
    if (!value) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      call.result = attribute(value, (int)wanted);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CALL(NEEDS_INIT, "device=%d peer=%d", device, peer);
  if (sim_begin(&call)) {
    if (!can) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device) || !sim_has_device(peer)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      *can = device != peer && sim.settings[SET_PEER_ACCESS];
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  CALL(NEEDS_INIT, "device=%d", device);
  if (sim_begin(&call)) {
    if (!context) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      if (!sim.primary[device]) sim.primary[device] = new_context(device, 0, true);
      sim.retains[device]++;
      *context = sim.primary[device]->handle;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  CALL(NEEDS_INIT, "device=%d", device);
  if (sim_begin(&call)) {
    if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else if (!sim.retains[device]) {
      sim_fault("cuDevicePrimaryCtxRelease: the primary context of device %d is not retained", device);
      call.result = CUDA_ERROR_INVALID_CONTEXT;
    } else if (!--sim.retains[device]) {
      Context *context = sim.primary[device];
      sim.primary[device] = NULL;
      sim_destroy_context(context);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  CALL(NEEDS_INIT, "device=%d", device);
  if (sim_begin(&call)) {
    if (!flags || !active) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      *flags = 0;
      *active = sim.primary[device] != NULL;
    }
  }
  return sim_end(&call);
}

static void push(Call *call, Context *context) {
  Thread *thread = sim_thread();
  if (thread->depth == MAX_DEPTH) {
    sim_fault("%s: more than %d contexts pushed", call->name, MAX_DEPTH);
    call->result = CUDA_ERROR_OUT_OF_MEMORY;
    return;
  }
  thread->stack[thread->depth++] = context;
  sim.pushed++;
}

static Context *pop(void) {
  Thread *thread = sim_thread();
  if (!thread->depth) return NULL;
  sim.pushed--;
  return thread->stack[--thread->depth];
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
  CALL(NEEDS_INIT, "flags=%u device=%d", flags, device);
  if (sim_begin(&call)) {
    if (!context) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_has_device(device)) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else {
      Context *made = new_context(device, flags, false);
      push(&call, made);
      *context = made->handle;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext handle) {
  CALL(NEEDS_INIT, "context=%p", (void *)handle);
  if (sim_begin(&call)) {
    Context *context = sim_context(&call, handle);
    if (context && context->primary) {
      sim_fault("cuCtxDestroy: context %p is a primary context", (void *)handle);
      call.result = CUDA_ERROR_INVALID_CONTEXT;
    } else if (context) {
      if (sim_current() == context) pop();
      sim_destroy_context(context);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  CALL(NEEDS_INIT, "context=%p", (void *)handle);
  if (sim_begin(&call)) {
    Context *context = sim_context(&call, handle);
    if (context) push(&call, context);
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *handle) {
  CALL(NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Context *context = pop();
    if (!context) call.result = CUDA_ERROR_INVALID_CONTEXT;
    if (context && handle) *handle = context->handle;
    sim_note(&call, "context=%p", context ? context->handle : NULL);
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext handle) {
  CALL(NEEDS_INIT, "context=%p", (void *)handle);
  if (sim_begin(&call)) {
    Context *context = handle ? sim_context(&call, handle) : NULL;
    if (call.result == CUDA_SUCCESS) pop();
    if (context) push(&call, context);
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *handle) {
  CALL(NEEDS_INIT, "%s", "");
  if (sim_begin(&call)) {
    Context *context = sim_current();
    if (handle) {
      *handle = context ? context->handle : NULL;
    } else {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
  CALL(NEEDS_CONTEXT, "%s", "");
  if (sim_begin(&call)) {
    if (device) {
      *device = call.context->device;
    } else {
      call.result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxSynchronize(void) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "%s", "");
  if (sim_begin(&call)) {
    for (size_t i = 0; i < sim.streams.n && call.result == CUDA_SUCCESS; i++) {
      Stream *stream = sim.streams.at[i];
      if (stream->context == call.context && sim_capture_refuses(&call, stream)) break;
    }
    for (size_t i = 0; i < sim.streams.n && call.result == CUDA_SUCCESS; i++) {
      Stream *stream = sim.streams.at[i];
      if (stream->context == call.context) sim_finish(&call, stream, stream->issued);
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  CALL(NEEDS_CONTEXT, "peer=%p flags=%u", (void *)handle, flags);
  if (sim_begin(&call)) {
    Context *peer = sim_context(&call, handle);
    if (!peer) {
    } else if (flags) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (peer->device == call.context->device) {
      call.result = CUDA_ERROR_INVALID_DEVICE;
    } else if (!sim.settings[SET_PEER_ACCESS]) {
      call.result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    } else if (call.context->peers >> peer->device & 1) {
      call.result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    } else {
      call.context->peers |= 1u << peer->device;
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  CALL(NEEDS_CONTEXT, "peer=%p", (void *)handle);
  if (sim_begin(&call)) {
    Context *peer = sim_context(&call, handle);
    if (!peer) {
    } else if (!(call.context->peers >> peer->device & 1)) {
      call.result = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    } else {
      call.context->peers &= ~(1u << peer->device);
    }
  }
  return sim_end(&call);
}
