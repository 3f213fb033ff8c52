/* Questions about addresses. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

/* Programs ask about any address they meet, and only of freed memory must they not. */
static const Memory *asked(Call *call, CUdeviceptr address) {
  const Memory *memory = sim_find(address);
  if (memory && memory->state != MEMORY_LIVE) {
    sim_fault("%s: 0x%llx was freed by %s", call->name, (unsigned long long)address, memory->freed_by);
    return NULL;
  }
  return memory;
}

/* Values of an attribute have the size that the driver gives them. False for an attribute that is not known. */
static bool answer(const Memory *memory, int attribute, CUdeviceptr address, void *value, CUresult *result) {
  void *pointer = NULL;
  size_t size = 0;
  uint64_t id = 0;
  unsigned number = 0;
  int device = -2;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      /* Memory from a pool has none. */
      if (memory && memory->context) pointer = memory->context->handle;
      memcpy(value, &pointer, sizeof pointer);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (memory) number = memory->kind == MEMORY_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      memcpy(value, &number, sizeof number);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (memory) pointer = (void *)(uintptr_t)address;
      memcpy(value, &pointer, sizeof pointer);
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (memory && (memory->kind == MEMORY_PINNED || memory->kind == MEMORY_MANAGED)) {
        pointer = (void *)(uintptr_t)address;
        memcpy(value, &pointer, sizeof pointer);
      } else {
        *result = CUDA_ERROR_INVALID_VALUE;
      }
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (memory) id = memory->id;
      memcpy(value, &id, sizeof id);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      number = memory && memory->kind == MEMORY_MANAGED;
      memcpy(value, &number, sizeof number);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      if (memory) device = memory->device;
      memcpy(value, &device, sizeof device);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      if (memory) pointer = (void *)(uintptr_t)memory->base;
      memcpy(value, &pointer, sizeof pointer);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      if (memory) size = memory->size;
      memcpy(value, &size, sizeof size);
      return true;
    default:
      return false;
  }
}

static bool lacks_context(Call *call) {
  if (!sim.settings[SET_POINTER_NEEDS_CONTEXT] || sim_current()) return false;
  call->result = CUDA_ERROR_INVALID_CONTEXT;
  return true;
}

EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
  CALL(NEEDS_INIT, "attribute=%d address=0x%llx", (int)attribute, (unsigned long long)address);
  if (sim_begin(&call) && !lacks_context(&call)) {
    const Memory *memory = asked(&call, address);
    if (!memory || !value || !answer(memory, (int)attribute, address, value, &call.result))
      call.result = CUDA_ERROR_INVALID_VALUE;
  }
  return sim_end(&call);
}

EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **values,
                                       CUdeviceptr address) {
  CALL(NEEDS_INIT, "count=%u address=0x%llx", count, (unsigned long long)address);
  if (sim_begin(&call) && !lacks_context(&call)) {
    const Memory *memory = asked(&call, address);
    if (!count || !attributes || !values) call.result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && call.result == CUDA_SUCCESS; i++) {
      /* Here an attribute that the address does not have is a zero and no error. */
      CUresult lacks = CUDA_SUCCESS;
      if (!values[i] || !answer(memory, (int)attributes[i], address, values[i], &lacks)) {
        call.result = CUDA_ERROR_INVALID_VALUE;
      } else if (lacks) {
        memset(values[i], 0, sizeof(void *));
      }
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  CALL(NEEDS_CONTEXT, "address=0x%llx", (unsigned long long)address);
  if (sim_begin(&call)) {
    const Memory *memory = asked(&call, address);
    if (memory) {
      if (base) *base = memory->base;
      if (size) *size = memory->size;
    } else {
      call.result = CUDA_ERROR_NOT_FOUND;
    }
  }
  return sim_end(&call);
}
