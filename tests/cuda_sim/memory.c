/* Memory: where it lies, who made it, and that it is gone once it is freed. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* All addresses come out of one reservation that nobody can touch, in rising order and never twice. Device memory
   stays untouchable; its bytes lie elsewhere. Between two allocations there is always a page without memory. */
enum { PAGE = 65536 };
static const uint64_t region_size = (uint64_t)1 << 39;
static uint64_t region_base, region_end, region_next;
static uint64_t ids;

/* Neither zero nor what was there before: a program that counts on either is seen. */
#define JUNK 0xCD
/* Beyond the last byte of memory that the CPU may touch. */
#define CANARY 0xA5
#define MOST_JUNK ((size_t)16 << 20)

static bool reserve(void) {
  if (region_base) return true;
  for (uint64_t size = region_size; size >= (uint64_t)1 << 30; size /= 2) {
    void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    region_base = (uint64_t)(uintptr_t)at;
    region_end = region_base + size;
    region_next = (region_base + 2 * PAGE - 1) / PAGE * PAGE;
    return true;
  }
  return false;
}

bool sim_in_region(uint64_t address) { return region_base && address >= region_base && address < region_end; }

const char *sim_memory_name(MemoryKind kind) {
  static const char *const names[] = {"device memory", "pool memory", "pinned memory", "managed memory"};
  return names[kind];
}

/* The allocation that holds an address, alive or not. The address just behind its last byte is not in it. */
Memory *sim_find(uint64_t address) {
  size_t low = 0, high = sim.memory.n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (sim.memory.at[middle]->base <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  Memory *memory = low ? sim.memory.at[low - 1] : NULL;
  return memory && address - memory->base < memory->size ? memory : NULL;
}

static uint64_t in_use(CUdevice device) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sim.memory.n; i++) {
    const Memory *memory = sim.memory.at[i];
    if (memory->device == device && memory->kind != MEMORY_PINNED && memory->state != MEMORY_FREED)
      bytes += memory->size;
  }
  return bytes;
}

static Memory *allocate(Call *call, Context *context, MemoryKind kind, size_t size) {
  uint64_t limit = (uint64_t)sim.settings[SET_MEMORY_BYTES];
  uint64_t used = limit && kind != MEMORY_PINNED ? in_use(context->device) : 0;
  call->result = CUDA_ERROR_INVALID_VALUE;
  if (!size) return NULL;
  call->result = CUDA_ERROR_OUT_OF_MEMORY;
  if (limit && kind != MEMORY_PINNED && (size > limit || used > limit - size)) return NULL;
  if (!reserve() || size > region_end - region_next) return NULL;
  size_t mapped = (size + PAGE - 1) / PAGE * PAGE;
  if (mapped + PAGE > region_end - region_next) return NULL;
  bool cpu = kind == MEMORY_PINNED || (kind == MEMORY_MANAGED && sim.settings[SET_CONCURRENT_MANAGED]);
  void *wanted = cpu ? (void *)(uintptr_t)region_next : NULL;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (cpu ? MAP_FIXED : 0);
  void *backing = mmap(wanted, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (backing == MAP_FAILED) return NULL;

  Memory *memory = sim_zeroed(sizeof *memory);
  memory->base = region_next;
  memory->id = ++ids;
  memory->size = size;
  memory->mapped = mapped;
  memory->backing = backing;
  memory->kind = kind;
  memory->context = kind == MEMORY_POOL ? NULL : context;
  memory->device = context->device;
  memory->cpu = cpu;
  region_next += mapped + PAGE;
  size_t junk = size < MOST_JUNK ? size : MOST_JUNK;
  memset(backing, JUNK, junk);
  memset((unsigned char *)backing + size - junk, JUNK, junk);
  if (cpu) memset((unsigned char *)backing + size, CANARY, mapped - size);
  PUSH(sim.memory, memory);
  call->result = CUDA_SUCCESS;
  sim_note(call, " -> 0x%" PRIx64, memory->base);
  return memory;
}

void sim_release_memory(Memory *memory, const char *by) {
  /* Nobody else may free it during the wait. */
  memory->state = MEMORY_FREEING;
  memory->freed_by = by;
  WAIT_UNTIL(!memory->busy, "memory at 0x%" PRIx64 " is in use", memory->base);
  size_t tail = memory->mapped - memory->size;
  for (size_t i = 0; memory->cpu && i < tail; i++) {
    if (memory->backing[memory->size + i] == CANARY) continue;
    sim_fault("the CPU wrote beyond the end of %zu bytes of %s at 0x%" PRIx64, memory->size,
              sim_memory_name(memory->kind), memory->base);
    break;
  }
  if (memory->cpu) {
    mmap(memory->backing, memory->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  } else {
    munmap(memory->backing, memory->mapped);
  }
  memory->backing = NULL;
  memory->state = MEMORY_FREED;
  free(memory->uses);
  memory->uses = NULL;
  memory->n_uses = memory->room = 0;
}

void sim_forget_memory(void) {
  for (size_t i = 0; i < sim.memory.n; i++) {
    Memory *memory = sim.memory.at[i];
    if (memory->state != MEMORY_FREED) sim_release_memory(memory, "a reset");
    free(memory);
  }
  free(sim.memory.at);
  memset(&sim.memory, 0, sizeof sim.memory);
}

bool sim_may_use(const Context *context, const Memory *memory) {
  if (memory->kind == MEMORY_PINNED || memory->kind == MEMORY_MANAGED || memory->device == context->device) return true;
  /* Access to a pool is given by the pool's own functions, which are not there. */
  return memory->kind == MEMORY_DEVICE && (context->peers >> memory->device & 1);
}

/* Where bytes lie that a call is about, or a fault and the call's result. */
bool sim_place(Call *call, uint64_t address, size_t size, Role role, Place *place) {
  memset(place, 0, sizeof *place);
  call->result = CUDA_ERROR_INVALID_VALUE;
  bool before = !sim_in_region(address) && region_base && address < region_base && size > region_base - address;
  if (!address || address + size < address || before) {
    sim_fault("%s: no memory at 0x%" PRIx64 " for %zu bytes", call->name, address, size);
    return false;
  }
  if (!sim_in_region(address)) {
    if (role == ROLE_DEVICE) {
      sim_fault("%s: 0x%" PRIx64 " is not memory of the driver", call->name, address);
      return false;
    }
    place->host = (unsigned char *)(uintptr_t)address;
    call->result = CUDA_SUCCESS;
    return true;
  }
  Memory *memory = sim_find(address);
  if (!memory) {
    sim_fault("%s: 0x%" PRIx64 " lies in no allocation since the last reset", call->name, address);
    return false;
  }
  if (memory->state != MEMORY_LIVE) {
    sim_fault("%s: 0x%" PRIx64 " was freed by %s", call->name, address, memory->freed_by);
    return false;
  }
  if (size > memory->size - (address - memory->base)) {
    sim_fault("%s: %zu bytes at 0x%" PRIx64 " go beyond the %zu at 0x%" PRIx64, call->name, size, address,
              memory->size, memory->base);
    return false;
  }
  if (role == ROLE_HOST && (memory->kind == MEMORY_DEVICE || memory->kind == MEMORY_POOL)) {
    sim_fault("%s: 0x%" PRIx64 " is device memory in the place of host memory", call->name, address);
    return false;
  }
  place->memory = memory;
  place->offset = (size_t)(address - memory->base);
  call->result = CUDA_SUCCESS;
  return true;
}

static void give(Call *call, Context *context, MemoryKind kind, size_t size, void *out) {
  if (!out) {
    call->result = CUDA_ERROR_INVALID_VALUE;
    return;
  }
  Memory *memory = allocate(call, context, kind, size);
  CUdeviceptr base = memory ? memory->base : 0;
  if (memory) memcpy(out, &base, sizeof base);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "size=%zu", size);
  if (sim_begin(&call)) give(&call, call.context, MEMORY_DEVICE, size, address);
  return sim_end(&call);
}

static void allocate_host(Call *call, void **address, size_t size, unsigned flags) {
  if (flags & ~7u) {
    call->result = CUDA_ERROR_INVALID_VALUE;
  } else {
    give(call, call->context, MEMORY_PINNED, size, address);
  }
}

EXPORT CUresult cuMemHostAlloc(void **address, size_t size, unsigned int flags) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "size=%zu flags=%u", size, flags);
  if (sim_begin(&call)) allocate_host(&call, address, size, flags);
  return sim_end(&call);
}

EXPORT CUresult cuMemAllocHost_v2(void **address, size_t size) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "size=%zu", size);
  if (sim_begin(&call)) allocate_host(&call, address, size, 0);
  return sim_end(&call);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "size=%zu flags=%u", size, flags);
  if (sim_begin(&call)) {
    if (!sim.settings[SET_MANAGED_MEMORY]) {
      call.result = CUDA_ERROR_NOT_SUPPORTED;
    } else if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else {
      give(&call, call.context, MEMORY_MANAGED, size, address);
    }
  }
  return sim_end(&call);
}

/* The allocation that a call frees, or a fault and the call's result. */
static Memory *to_free(Call *call, uint64_t address, bool host) {
  call->result = CUDA_ERROR_INVALID_VALUE;
  Memory *memory = sim_find(address);
  if (!memory || memory->base != address) {
    sim_fault("%s: 0x%" PRIx64 " is not the start of an allocation", call->name, address);
    return NULL;
  }
  if (memory->state != MEMORY_LIVE) {
    sim_fault("%s: 0x%" PRIx64 " was already freed by %s", call->name, address, memory->freed_by);
    return NULL;
  }
  if (host != (memory->kind == MEMORY_PINNED)) {
    sim_fault("%s: 0x%" PRIx64 " is %s", call->name, address, sim_memory_name(memory->kind));
    return NULL;
  }
  call->result = CUDA_SUCCESS;
  return memory;
}

static void free_now(Call *call, uint64_t address, bool host) {
  Memory *memory = to_free(call, address, host);
  if (!memory) return;
  if (!sim_all_done(memory))
    sim_fault("%s: work on 0x%" PRIx64 " has not finished", call->name, address);
  sim_release_memory(memory, call->name);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "address=0x%llx", (unsigned long long)address);
  if (sim_begin(&call)) free_now(&call, address, false);
  return sim_end(&call);
}

EXPORT CUresult cuMemFreeHost(void *address) {
  CALL(NEEDS_CONTEXT | UNSAFE_IN_CAPTURE, "address=%p", address);
  if (sim_begin(&call)) free_now(&call, (uint64_t)(uintptr_t)address, true);
  return sim_end(&call);
}

#ifndef CUDA_SIM_NO_ASYNC_MEMORY
/* Allocations within a capture become nodes of its graph, and this driver runs no graphs. */
static Stream *pool_stream(Call *call, CUstream handle) {
  Stream *stream = sim_stream(call, handle);
  if (!stream) return NULL;
  if (!sim.settings[SET_MEMORY_POOLS]) {
    call->result = CUDA_ERROR_NOT_SUPPORTED;
    return NULL;
  }
  return sim_capture_refuses(call, stream) ? NULL : stream;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream handle) {
  CALL_ON(handle, NEEDS_CONTEXT, "size=%zu", size);
  if (sim_begin(&call)) {
    Stream *stream = pool_stream(&call, handle);
    if (stream && !address) {
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (stream) {
      Memory *memory = allocate(&call, stream->context, MEMORY_POOL, size);
      Operation *operation = memory ? sim_operation(OP_ALLOCATE) : NULL;
      if (memory && sim_enqueue(&call, stream, operation)) {
        memory->born_in = stream;
        memory->born_at = stream->issued;
        *address = memory->base;
      } else if (memory) {
        sim_release_memory(memory, "its failed allocation");
      }
    }
  }
  return sim_end(&call);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  CALL_ON(handle, NEEDS_CONTEXT, "address=0x%llx", (unsigned long long)address);
  if (sim_begin(&call)) {
    Stream *stream = pool_stream(&call, handle);
    Memory *memory = stream ? to_free(&call, address, false) : NULL;
    if (memory && memory->kind == MEMORY_MANAGED) {
      sim_fault("%s: 0x%llx is managed memory", call.name, (unsigned long long)address);
      call.result = CUDA_ERROR_INVALID_VALUE;
    } else if (memory) {
      if (!sim_all_ordered(memory, stream))
        sim_fault("%s: stream %p is not ordered behind work on 0x%llx", call.name, (void *)handle,
                  (unsigned long long)address);
      Operation *operation = sim_operation(OP_FREE);
      operation->memory = memory;
      if (sim_enqueue(&call, stream, operation)) {
        memory->state = MEMORY_FREEING;
        memory->freed_by = call.name;
      }
    }
  }
  return sim_end(&call);
}
#endif
