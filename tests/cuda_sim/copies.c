/* Copies and fills. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* What a copying function of the driver promises. */
typedef struct {
  CUdeviceptr to, from;
  size_t size;
  Role to_role, from_role;
  bool waits; /* the function without "Async" in its name */
  bool peer;  /* between devices without access to each other */
} Copy;

static bool on_device(const Place *place) {
  return place->memory && (place->memory->kind == MEMORY_DEVICE || place->memory->kind == MEMORY_POOL);
}

/* Whether a plain copy may go from one device to another. */
static bool may_cross(const Memory *to, const Memory *from) {
  for (size_t i = 0; i < sim.contexts.n; i++) {
    const Context *context = sim.contexts.at[i];
    if (!context->alive || (context->device != to->device && context->device != from->device)) continue;
    if (sim_may_use(context, to) && sim_may_use(context, from)) return true;
  }
  return false;
}

static void copy(Call *call, CUstream handle, const Copy *wanted) {
  Stream *stream = sim_stream(call, handle);
  if (!stream || !wanted->size) return;
  Operation *operation = sim_operation(OP_COPY);
  operation->size = wanted->size;
  if (!sim_place(call, wanted->to, wanted->size, wanted->to_role, &operation->to) ||
      !sim_place(call, wanted->from, wanted->size, wanted->from_role, &operation->from)) {
    free(operation);
    return;
  }
  const Memory *to = operation->to.memory, *from = operation->from.memory;
  bool both = on_device(&operation->to) && on_device(&operation->from);
  if (both && !wanted->peer && to->device != from->device && !may_cross(to, from)) {
    call->result = CUDA_ERROR_INVALID_VALUE;
    free(operation);
    return;
  }
  bool pageable_source = !from, pageable_target = !to, staged = sim.settings[SET_STAGED_PAGEABLE];
  /* A copy within a device, or between two, never waits, whatever its name says. */
  bool waits = wanted->waits ? !both : staged && pageable_target;
  if (wanted->waits && pageable_source && !pageable_target && sim.settings[SET_EARLY_HTOD]) waits = false;
  if (!waits && pageable_source && (staged || wanted->waits)) {
    operation->staged = sim_resize(NULL, wanted->size);
    memcpy(operation->staged, operation->from.host, wanted->size);
  }
  if (sim_enqueue(call, stream, operation) && waits && !stream->capture) sim_finish(call, stream, stream->issued);
}

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, NULL, &(Copy){to, from, size, ROLE_ANY, ROLE_ANY, true, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, stream, &(Copy){to, from, size, ROLE_ANY, ROLE_ANY, false, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "to=0x%llx from=%p size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, NULL, &(Copy){to, (uintptr_t)from, size, ROLE_DEVICE, ROLE_HOST, true, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=0x%llx from=%p size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, stream, &(Copy){to, (uintptr_t)from, size, ROLE_DEVICE, ROLE_HOST, false, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "to=%p from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, NULL, &(Copy){(uintptr_t)to, from, size, ROLE_HOST, ROLE_DEVICE, true, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=%p from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, stream, &(Copy){(uintptr_t)to, from, size, ROLE_HOST, ROLE_DEVICE, false, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, NULL, &(Copy){to, from, size, ROLE_DEVICE, ROLE_DEVICE, true, false});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call)) copy(&call, stream, &(Copy){to, from, size, ROLE_DEVICE, ROLE_DEVICE, false, false});
  return sim_end(&call);
}

/* Each address has to belong to the device of the context that is named with it. */
static bool fits(Call *call, CUcontext handle, CUdeviceptr address) {
  const Context *context = sim_context(call, handle);
  if (!context) return false;
  const Memory *memory = sim_find(address);
  if (!memory || memory->device == context->device || memory->kind == MEMORY_MANAGED) return true;
  sim_fault("%s: 0x%llx is memory of device %d, and the context given for it of device %d", call->name,
            (unsigned long long)address, memory->device, context->device);
  call->result = CUDA_ERROR_INVALID_VALUE;
  return false;
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call) && fits(&call, to_context, to) && fits(&call, from_context, from))
    copy(&call, NULL, &(Copy){to, from, size, ROLE_DEVICE, ROLE_DEVICE, true, true});
  return sim_end(&call);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                  size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=0x%llx from=0x%llx size=%zu", to, from, size);
  if (sim_begin(&call) && fits(&call, to_context, to) && fits(&call, from_context, from))
    copy(&call, stream, &(Copy){to, from, size, ROLE_DEVICE, ROLE_DEVICE, false, true});
  return sim_end(&call);
}

/* Whether a kernel of the stream can reach the bytes. */
static bool reaches(Call *call, const Stream *stream, const Place *place) {
  if (sim_may_use(stream->context, place->memory)) return true;
  sim_fault("%s: a kernel of device %d cannot reach memory of device %d", call->name, stream->context->device,
            place->memory->device);
  call->result = CUDA_ERROR_INVALID_VALUE;
  return false;
}

static void kernel(Call *call, CUstream handle, CUdeviceptr to, CUdeviceptr from, int byte, size_t size) {
  Stream *stream = sim_stream(call, handle);
  if (!stream || !size) return;
  Operation *operation = sim_operation(from ? OP_COPY : OP_FILL);
  operation->size = size;
  operation->byte = (unsigned char)byte;
  bool good = sim_place(call, to, size, ROLE_DEVICE, &operation->to) && reaches(call, stream, &operation->to);
  if (good && from)
    good = sim_place(call, from, size, ROLE_DEVICE, &operation->from) && reaches(call, stream, &operation->from);
  if (good) {
    sim_enqueue(call, stream, operation);
  } else {
    free(operation);
  }
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream) {
  CALL_ON(stream, NEEDS_CONTEXT, "to=0x%llx byte=%u size=%zu", to, byte, size);
  if (sim_begin(&call)) kernel(&call, stream, to, 0, byte, size);
  return sim_end(&call);
}

EXPORT int cuda_sim_enqueue_fill(void *stream, uint64_t address, int byte, size_t size) {
  CALL_ON(stream, CONTROL, "to=0x%llx byte=%d size=%zu", (unsigned long long)address, byte, size);
  if (sim_begin(&call)) kernel(&call, stream, address, 0, byte, size);
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}

EXPORT int cuda_sim_enqueue_copy(void *stream, uint64_t to, uint64_t from, size_t size) {
  CALL_ON(stream, CONTROL, "to=0x%llx from=0x%llx size=%zu", (unsigned long long)to, (unsigned long long)from, size);
  if (!from) return -1;
  if (sim_begin(&call)) kernel(&call, stream, to, from, 0, size);
  return sim_end(&call) == CUDA_SUCCESS ? 0 : -1;
}
