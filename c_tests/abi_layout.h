/* Where the members of the foreign structs are, in numbers, on machines with 8-byte pointers. Included after the header
 * that defines the structs, whichever that is. */
#ifndef ABI_LAYOUT_H
#define ABI_LAYOUT_H

#include <stddef.h>

#ifdef __cplusplus
#define ABI_ASSERT static_assert
#else
#define ABI_ASSERT _Static_assert
#endif

#define ABI_SIZE(type, size) ABI_ASSERT(sizeof(void *) != 8 || sizeof(type) == (size), #type)
#define ABI_AT(type, member, offset) \
  ABI_ASSERT(sizeof(void *) != 8 || offsetof(type, member) == (offset), #type "." #member)

enum {
  ABI_ARROW_FACTS = 65, /* how many are listed below */
  ABI_DLPACK_FACTS = 26
};

#define ABI_ARROW_LAYOUT                                     \
  ABI_SIZE(struct ArrowSchema, 72);                          \
  ABI_AT(struct ArrowSchema, format, 0);                     \
  ABI_AT(struct ArrowSchema, name, 8);                       \
  ABI_AT(struct ArrowSchema, metadata, 16);                  \
  ABI_AT(struct ArrowSchema, flags, 24);                     \
  ABI_AT(struct ArrowSchema, n_children, 32);                \
  ABI_AT(struct ArrowSchema, children, 40);                  \
  ABI_AT(struct ArrowSchema, dictionary, 48);                \
  ABI_AT(struct ArrowSchema, release, 56);                   \
  ABI_AT(struct ArrowSchema, private_data, 64);              \
  ABI_SIZE(struct ArrowArray, 80);                           \
  ABI_AT(struct ArrowArray, length, 0);                      \
  ABI_AT(struct ArrowArray, null_count, 8);                  \
  ABI_AT(struct ArrowArray, offset, 16);                     \
  ABI_AT(struct ArrowArray, n_buffers, 24);                  \
  ABI_AT(struct ArrowArray, n_children, 32);                 \
  ABI_AT(struct ArrowArray, buffers, 40);                    \
  ABI_AT(struct ArrowArray, children, 48);                   \
  ABI_AT(struct ArrowArray, dictionary, 56);                 \
  ABI_AT(struct ArrowArray, release, 64);                    \
  ABI_AT(struct ArrowArray, private_data, 72);               \
  ABI_SIZE(struct ArrowDeviceArray, 128);                    \
  ABI_AT(struct ArrowDeviceArray, array, 0);                 \
  ABI_AT(struct ArrowDeviceArray, device_id, 80);            \
  ABI_AT(struct ArrowDeviceArray, device_type, 88);          \
  ABI_AT(struct ArrowDeviceArray, sync_event, 96);           \
  ABI_AT(struct ArrowDeviceArray, reserved, 104);            \
  ABI_SIZE(struct ArrowArrayStream, 40);                     \
  ABI_AT(struct ArrowArrayStream, get_schema, 0);            \
  ABI_AT(struct ArrowArrayStream, get_next, 8);              \
  ABI_AT(struct ArrowArrayStream, get_last_error, 16);       \
  ABI_AT(struct ArrowArrayStream, release, 24);              \
  ABI_AT(struct ArrowArrayStream, private_data, 32);         \
  ABI_SIZE(struct ArrowDeviceArrayStream, 48);               \
  ABI_AT(struct ArrowDeviceArrayStream, device_type, 0);     \
  ABI_AT(struct ArrowDeviceArrayStream, get_schema, 8);      \
  ABI_AT(struct ArrowDeviceArrayStream, get_next, 16);       \
  ABI_AT(struct ArrowDeviceArrayStream, get_last_error, 24); \
  ABI_AT(struct ArrowDeviceArrayStream, release, 32);        \
  ABI_AT(struct ArrowDeviceArrayStream, private_data, 40);   \
  ABI_SIZE(ArrowDeviceType, 4);                              \
  ABI_ASSERT((ArrowDeviceType) - 1 < 0, "ArrowDeviceType is signed")

#define ABI_ASYNC_LAYOUT                                         \
  ABI_SIZE(struct ArrowAsyncTask, 16);                           \
  ABI_AT(struct ArrowAsyncTask, extract_data, 0);                \
  ABI_AT(struct ArrowAsyncTask, private_data, 8);                \
  ABI_SIZE(struct ArrowAsyncProducer, 40);                       \
  ABI_AT(struct ArrowAsyncProducer, device_type, 0);             \
  ABI_AT(struct ArrowAsyncProducer, request, 8);                 \
  ABI_AT(struct ArrowAsyncProducer, cancel, 16);                 \
  ABI_AT(struct ArrowAsyncProducer, additional_metadata, 24);    \
  ABI_AT(struct ArrowAsyncProducer, private_data, 32);           \
  ABI_SIZE(struct ArrowAsyncDeviceStreamHandler, 48);            \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, on_schema, 0);    \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, on_next_task, 8); \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, on_error, 16);    \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, release, 24);     \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, producer, 32);    \
  ABI_AT(struct ArrowAsyncDeviceStreamHandler, private_data, 40)

#define ABI_DEVICE_NUMBERS                                                                                     \
  ABI_ASSERT(ARROW_DEVICE_CPU == 1 && ARROW_DEVICE_CUDA == 2 && ARROW_DEVICE_CUDA_HOST == 3, "devices");       \
  ABI_ASSERT(ARROW_DEVICE_OPENCL == 4 && ARROW_DEVICE_VULKAN == 7 && ARROW_DEVICE_METAL == 8, "devices");      \
  ABI_ASSERT(ARROW_DEVICE_VPI == 9 && ARROW_DEVICE_ROCM == 10 && ARROW_DEVICE_ROCM_HOST == 11, "devices");     \
  ABI_ASSERT(ARROW_DEVICE_EXT_DEV == 12 && ARROW_DEVICE_CUDA_MANAGED == 13, "devices");                        \
  ABI_ASSERT(ARROW_DEVICE_ONEAPI == 14 && ARROW_DEVICE_WEBGPU == 15 && ARROW_DEVICE_HEXAGON == 16, "devices"); \
  ABI_ASSERT(ARROW_FLAG_DICTIONARY_ORDERED == 1 && ARROW_FLAG_NULLABLE == 2, "flags");                         \
  ABI_ASSERT(ARROW_FLAG_MAP_KEYS_SORTED == 4, "flags")

/* What core/src/abi/dlpack.rs holds its own structs to. */
#define ABI_DLPACK_LAYOUT                             \
  ABI_SIZE(DLPackVersion, 8);                         \
  ABI_AT(DLPackVersion, minor, 4);                    \
  ABI_SIZE(DLDevice, 8);                              \
  ABI_AT(DLDevice, device_id, 4);                     \
  ABI_SIZE(DLDataType, 4);                            \
  ABI_AT(DLDataType, bits, 1);                        \
  ABI_AT(DLDataType, lanes, 2);                       \
  ABI_SIZE(DLTensor, 48);                             \
  ABI_AT(DLTensor, data, 0);                          \
  ABI_AT(DLTensor, device, 8);                        \
  ABI_AT(DLTensor, ndim, 16);                         \
  ABI_AT(DLTensor, dtype, 20);                        \
  ABI_AT(DLTensor, shape, 24);                        \
  ABI_AT(DLTensor, strides, 32);                      \
  ABI_AT(DLTensor, byte_offset, 40);                  \
  ABI_SIZE(DLManagedTensor, 64);                      \
  ABI_AT(DLManagedTensor, manager_ctx, 48);           \
  ABI_AT(DLManagedTensor, deleter, 56);               \
  ABI_SIZE(DLManagedTensorVersioned, 80);             \
  ABI_AT(DLManagedTensorVersioned, version, 0);       \
  ABI_AT(DLManagedTensorVersioned, manager_ctx, 8);   \
  ABI_AT(DLManagedTensorVersioned, deleter, 16);      \
  ABI_AT(DLManagedTensorVersioned, flags, 24);        \
  ABI_AT(DLManagedTensorVersioned, dl_tensor, 32);    \
  ABI_ASSERT(kDLCPU == 1 && kDLCUDA == 2, "devices"); \
  ABI_ASSERT(kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBool == 6, "codes")

#endif
