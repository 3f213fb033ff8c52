/* Generated from bowstring.h by `cargo xtask header --write`: every declaration in it and in Arrow's
 * structs, as cffi's ffi.cdef() takes them. C and C++ include bowstring.h. */
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
typedef int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_OPENCL 4
#define ARROW_DEVICE_VULKAN 7
#define ARROW_DEVICE_METAL 8
#define ARROW_DEVICE_VPI 9
#define ARROW_DEVICE_ROCM 10
#define ARROW_DEVICE_ROCM_HOST 11
#define ARROW_DEVICE_EXT_DEV 12
#define ARROW_DEVICE_CUDA_MANAGED 13
#define ARROW_DEVICE_ONEAPI 14
#define ARROW_DEVICE_WEBGPU 15
#define ARROW_DEVICE_HEXAGON 16
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;
  int64_t reserved[3];
};
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
struct ArrowDeviceArrayStream {
  ArrowDeviceType device_type;
  int (*get_schema)(struct ArrowDeviceArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowDeviceArrayStream*, struct ArrowDeviceArray* out);
  const char* (*get_last_error)(struct ArrowDeviceArrayStream*);
  void (*release)(struct ArrowDeviceArrayStream*);
  void* private_data;
};
struct ArrowAsyncTask {
  int (*extract_data)(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out);
  void* private_data;
};
struct ArrowAsyncProducer {
  ArrowDeviceType device_type;
  void (*request)(struct ArrowAsyncProducer* self, int64_t n);
  void (*cancel)(struct ArrowAsyncProducer* self);
  const char* additional_metadata;
  void* private_data;
};
struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* stream_schema);
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task,
                      const char* metadata);
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                   const char* metadata);
  void (*release)(struct ArrowAsyncDeviceStreamHandler* self);
  struct ArrowAsyncProducer* producer;
  void* private_data;
};
#define BOWSTRING_VERSION_MAJOR 0
#define BOWSTRING_VERSION_MINOR 1
#define BOWSTRING_VERSION_PATCH 0
struct DLManagedTensorVersioned;
struct DLManagedTensor;
#define BOWSTRING_SEVERITY_ERROR 0
#define BOWSTRING_SEVERITY_WARNING 1
#define BOWSTRING_SEVERITY_NOTE 2
#define BOWSTRING_MAX_DEPTH 64
#define BOWSTRING_MAX_NODES 16777216
#define BOWSTRING_MAX_FORMAT 65535
#define BOWSTRING_MAX_NAME 1048576
#define BOWSTRING_MAX_METADATA 67108864
#define BOWSTRING_TYPE_IGNORE_NAMES 1
#define BOWSTRING_TYPE_IGNORE_METADATA 2
#define BOWSTRING_TYPE_IGNORE_NULLABLE 4
#define BOWSTRING_ROLE_VALIDITY 0
#define BOWSTRING_ROLE_OFFSETS 1
#define BOWSTRING_ROLE_SIZES 2
#define BOWSTRING_ROLE_TYPE_IDS 3
#define BOWSTRING_ROLE_VIEWS 4
#define BOWSTRING_ROLE_DATA 5
#define BOWSTRING_ROLE_VARIADIC 6
#define BOWSTRING_ROLE_VARIADIC_SIZES 7
#define BOWSTRING_SYNC_NONE 0
#define BOWSTRING_SYNC_QUEUE 1
#define BOWSTRING_SYNC_HOST 2
#define BOWSTRING_SYNC_LIBRARY 3
#define BOWSTRING_TRANSFER_MAY_SHARE 1
#define BOWSTRING_ABI_VERSION 1
#define BOWSTRING_TENSOR_PHYSICAL 1
#define BOWSTRING_TENSOR_VALUES_ONLY 2
#define BOWSTRING_TENSOR_ALLOW_COPY 4
#define BOWSTRING_TENSOR_DROP_READ_ONLY 8
#define BOWSTRING_LEVEL_FULL 0
#define BOWSTRING_LEVEL_BOUNDS 1
#define BOWSTRING_LEVEL_STRUCTURE 2
#define BOWSTRING_PROFILE_SPEC 0
#define BOWSTRING_PROFILE_CUDF_DEVICE 1
#define BOWSTRING_PROFILE_CUDF_HOST 2
#define BOWSTRING_PROFILE_CUDF_OWNING 3
#define BOWSTRING_CONFORM_ALLOW_COPY 1
#define BOWSTRING_CONFORM_AS_TABLE 2
#define BOWSTRING_CONFORM_TO_OFFSETS 4
#define BOWSTRING_CONFORM_TO_VIEWS 8
typedef struct BowstringArray BowstringArray;
typedef struct BowstringBuffer BowstringBuffer;
typedef struct BowstringStream BowstringStream;
typedef struct BowstringType BowstringType;
typedef int32_t BowstringStatus;
typedef struct BowstringError {
    int32_t status;
    int32_t rule;
    int64_t row;
    int64_t batch;
    int64_t native_code;
    char path[256];
    char message[1024];
} BowstringError;
typedef struct BowstringTypeNodeInfo {
    size_t struct_size;
    const char *format;
    const char *name;
    int64_t flags;
    const void *metadata;
    int64_t metadata_bytes;
    size_t n_children;
    size_t first_child;
    size_t dictionary;
    size_t subtree_end;
} BowstringTypeNodeInfo;
typedef struct BowstringDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} BowstringDataType;
typedef struct BowstringLayoutEntry {
    size_t node;
    int32_t role;
    struct BowstringDataType element;
} BowstringLayoutEntry;
typedef struct BowstringNode {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
} BowstringNode;
typedef struct BowstringOwnedBuffer {
    const void *data;
    int64_t size_bytes;
    void *owner;
    void (*release_owner)(void *owner);
} BowstringOwnedBuffer;
typedef struct BowstringDevice {
    ArrowDeviceType type;
    int64_t id;
} BowstringDevice;
typedef struct BowstringSync {
    int32_t mode;
    int32_t reserved;
    void *queue;
} BowstringSync;
typedef struct BowstringPlacement {
    size_t struct_size;
    struct BowstringDevice device;
    void *event;
    void *event_ctx;
    void (*destroy_event)(void *event_ctx, void *event);
    struct BowstringSync record_on;
    void *owner;
    void (*release_owner)(void *owner);
} BowstringPlacement;
typedef struct BowstringTransferOptions {
    size_t struct_size;
    struct BowstringSync sync;
    uint64_t flags;
    void *ctx;
    void *(*allocate)(void *ctx, int64_t size, void *queue);
    void (*deallocate)(void *ctx, void *data, int64_t size, void *queue);
    int (*progress)(void *ctx, int64_t batches, int64_t rows, int64_t bytes);
    uint32_t depth;
} BowstringTransferOptions;
typedef struct BowstringNodeInfo {
    size_t struct_size;
    size_t parent;
    size_t first_child;
    size_t n_children;
    size_t dictionary;
    size_t subtree_end;
    const char *format;
    const char *name;
    int64_t flags;
    int64_t length;
    int64_t offset;
    int64_t null_count;
    size_t first_buffer;
    size_t n_buffers;
} BowstringNodeInfo;
typedef struct BowstringBufferInfo {
    size_t struct_size;
    size_t node;
    int32_t role;
    struct BowstringDataType element;
    const void *data;
    int64_t n_elements;
    int64_t first;
    int64_t count;
    int64_t size_bytes;
    int64_t bit_offset;
    struct BowstringDevice device;
} BowstringBufferInfo;
typedef struct BowstringBufferMemory {
    size_t struct_size;
    const void *data;
    int64_t size_bytes;
    struct BowstringDevice device;
    void *sync_event;
} BowstringBufferMemory;
typedef struct BowstringDeviceBackend {
    size_t struct_size;
    void *ctx;
    int32_t (*probe)(void *ctx, int64_t *count);
    int32_t (*allocate)(void *ctx, int64_t device_id, int64_t size, void *queue, void **data);
    int32_t (*free)(void *ctx, int64_t device_id, void *data, int64_t size, void *queue);
    int32_t (*copy_from_host)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    int32_t (*copy_to_host)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    int32_t (*copy_within)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    int32_t (*copy_between)(void *ctx,
                            int64_t to_device_id,
                            void *to,
                            int64_t from_device_id,
                            const void *from,
                            int64_t n,
                            void *queue);
    int32_t (*library_queue)(void *ctx, int64_t device_id, void **queue);
    int32_t (*drain)(void *ctx, int64_t device_id, void *queue);
    int32_t (*record)(void *ctx, int64_t device_id, void *queue, void **event);
    int32_t (*queue_waits)(void *ctx, int64_t device_id, void *event, void *queue);
    int32_t (*host_waits)(void *ctx, int64_t device_id, void *event);
    int32_t (*is_done)(void *ctx, int64_t device_id, void *event, int32_t *done);
    void (*destroy_event)(void *ctx, int64_t device_id, void *event);
    int32_t (*host_accessible)(void *ctx, int64_t device_id, int32_t *accessible);
    int32_t (*locate)(void *ctx, const void *data, struct BowstringDevice *device);
    const char *(*error_text)(void *ctx, int32_t code);
} BowstringDeviceBackend;
typedef struct BowstringCallbackScope {
    size_t struct_size;
    int (*alive)(void);
    int (*enter)(void);
    void (*leave)(int);
    int (*held)(void);
    void *(*pause)(void);
    void (*resume)(void*);
} BowstringCallbackScope;
typedef struct BowstringLiveCounts {
    size_t struct_size;
    size_t types;
    size_t arrays;
    size_t buffers;
    size_t streams;
    size_t tensors;
    size_t blocks;
    size_t pending;
    size_t leaked_callbacks;
} BowstringLiveCounts;
typedef struct BowstringTensorOptions {
    size_t struct_size;
    uint64_t flags;
    struct BowstringSync sync;
} BowstringTensorOptions;
typedef struct BowstringValidateOptions {
    size_t struct_size;
    int32_t level;
    int32_t profile;
    struct BowstringDevice assume_device;
    int32_t as_table;
    uint32_t threads;
    uint32_t max_findings;
    int64_t staging_bytes;
    struct BowstringSync sync;
    void *ctx;
    int (*on_finding)(void *ctx, int32_t severity, const struct BowstringError *finding);
} BowstringValidateOptions;
typedef struct BowstringStreamCallbacks {
    size_t struct_size;
    struct BowstringDevice device;
    void *ctx;
    int (*get_next)(void *ctx, struct ArrowDeviceArray *out);
    int (*get_next_array)(void *ctx, struct BowstringArray **out);
    const char *(*get_last_error)(void *ctx);
    void (*release)(void *ctx);
} BowstringStreamCallbacks;
typedef struct BowstringPythonApi {
    size_t struct_size;
    int (*capsule_is_valid)(void *capsule, const char *name);
    const char *(*capsule_get_name)(void *capsule);
    void *(*capsule_get_pointer)(void *capsule, const char *name);
    void (*err_fetch)(void **kind, void **value, void **traceback);
    void (*err_restore)(void *kind, void *value, void *traceback);
    void (*err_write_unraisable)(void *object);
    void *(*err_occurred)(void);
    void (*err_clear)(void);
    void (*err_set_string)(void *kind, const char *message);
    void *(*capsule_new)(void *pointer, const char *name, void (*destructor)(void *capsule));
    void *(*long_as_void_ptr)(void *object);
    void *(*long_from_void_ptr)(void *pointer);
    void *(*tuple_new)(ptrdiff_t size);
    int (*tuple_set_item)(void *tuple, ptrdiff_t index, void *item);
    void (*inc_ref)(void *object);
    void (*dec_ref)(void *object);
    ptrdiff_t (*tuple_size)(void *tuple);
    void *(*tuple_get_item)(void *tuple, ptrdiff_t index);
    void *(*object_get_attr)(void *object, void *name);
    void *(*unicode_from_string)(const char *text);
    void *(*object_vectorcall_method)(void *name, void *const *args, size_t nargs, void *names);
    void *(*type_generic_alloc)(void *kind, ptrdiff_t items);
    void *(*memoryview_from_object)(void *object);
    int (*object_get_buffer)(void *object, void *view, int flags);
    void (*buffer_release)(void *view);
    void *none;
    void *type_error;
    void *true_object;
    size_t object_size;
} BowstringPythonApi;
#define BOWSTRING_OK 0
#define BOWSTRING_INVALID_ARGUMENT 1
#define BOWSTRING_INVALID_DATA 2
#define BOWSTRING_NOT_CONFORMING 3
#define BOWSTRING_UNSUPPORTED 4
#define BOWSTRING_SYNC_REQUIRED 5
#define BOWSTRING_RELEASED 6
#define BOWSTRING_OUT_OF_MEMORY 7
#define BOWSTRING_DEVICE_UNAVAILABLE 8
#define BOWSTRING_DEVICE_ERROR 9
#define BOWSTRING_CALLBACK_ERROR 10
#define BOWSTRING_CANCELLED 11
#define BOWSTRING_INTERNAL 12
const char *bowstring_status_name(int32_t status);
const char *bowstring_rule_name(int32_t rule);
const char *bowstring_rule_text(int32_t rule);
const char *bowstring_rule_source(int32_t rule);
int32_t bowstring_rule_severity(int32_t rule);
int32_t bowstring_rule_next(int32_t rule);
void bowstring_schema_move(struct ArrowSchema *from,
                           struct ArrowSchema *to);
void bowstring_schema_release(struct ArrowSchema *x);
bool bowstring_schema_is_released(const struct ArrowSchema *x);
struct ArrowSchema *bowstring_schema_new(void);
void bowstring_schema_free(struct ArrowSchema *x);
void bowstring_host_array_move(struct ArrowArray *from,
                               struct ArrowArray *to);
void bowstring_host_array_release(struct ArrowArray *x);
bool bowstring_host_array_is_released(const struct ArrowArray *x);
struct ArrowArray *bowstring_host_array_new(void);
void bowstring_host_array_free(struct ArrowArray *x);
void bowstring_device_array_move(struct ArrowDeviceArray *from,
                                 struct ArrowDeviceArray *to);
void bowstring_device_array_release(struct ArrowDeviceArray *x);
bool bowstring_device_array_is_released(const struct ArrowDeviceArray *x);
struct ArrowDeviceArray *bowstring_device_array_new(void);
void bowstring_device_array_free(struct ArrowDeviceArray *x);
void bowstring_host_stream_move(struct ArrowArrayStream *from,
                                struct ArrowArrayStream *to);
void bowstring_host_stream_release(struct ArrowArrayStream *x);
bool bowstring_host_stream_is_released(const struct ArrowArrayStream *x);
struct ArrowArrayStream *bowstring_host_stream_new(void);
void bowstring_host_stream_free(struct ArrowArrayStream *x);
void bowstring_device_stream_move(struct ArrowDeviceArrayStream *from,
                                  struct ArrowDeviceArrayStream *to);
void bowstring_device_stream_release(struct ArrowDeviceArrayStream *x);
bool bowstring_device_stream_is_released(const struct ArrowDeviceArrayStream *x);
struct ArrowDeviceArrayStream *bowstring_device_stream_new(void);
void bowstring_device_stream_free(struct ArrowDeviceArrayStream *x);
void bowstring_tensor_release(struct DLManagedTensorVersioned *tensor);
void bowstring_legacy_tensor_release(struct DLManagedTensor *tensor);
BowstringStatus bowstring_type_import(struct ArrowSchema *schema,
                                      struct BowstringType **out,
                                      struct BowstringError *error);
BowstringStatus bowstring_type_copy_from(const struct ArrowSchema *schema,
                                         struct BowstringType **out,
                                         struct BowstringError *error);
BowstringStatus bowstring_type_new(const char *format,
                                   const char *name,
                                   int64_t flags,
                                   const struct BowstringType *const *children,
                                   size_t n_children,
                                   const struct BowstringType *dictionary,
                                   const void *metadata,
                                   int64_t metadata_bytes,
                                   struct BowstringType **out,
                                   struct BowstringError *error);
BowstringStatus bowstring_type_parse(const char *text,
                                     struct BowstringType **out,
                                     struct BowstringError *error);
BowstringStatus bowstring_type_to_text(const struct BowstringType *type,
                                       char *out,
                                       size_t capacity,
                                       size_t *needed,
                                       struct BowstringError *error);
BowstringStatus bowstring_type_export(const struct BowstringType *type,
                                      struct ArrowSchema *out,
                                      struct BowstringError *error);
BowstringStatus bowstring_type_node_info(const struct BowstringType *type,
                                         size_t node,
                                         struct BowstringTypeNodeInfo *out,
                                         struct BowstringError *error);
BowstringStatus bowstring_type_child(const struct BowstringType *type,
                                     size_t i,
                                     const struct BowstringType **out,
                                     struct BowstringError *error);
BowstringStatus bowstring_type_dictionary(const struct BowstringType *type,
                                          const struct BowstringType **out,
                                          struct BowstringError *error);
BowstringStatus bowstring_type_layout(const struct BowstringType *type,
                                      struct BowstringLayoutEntry *out,
                                      size_t capacity,
                                      size_t *needed,
                                      struct BowstringError *error);
bool bowstring_type_equals(const struct BowstringType *a,
                           const struct BowstringType *b,
                           uint32_t flags);
struct BowstringType *bowstring_type_retain(const struct BowstringType *type);
void bowstring_type_release(struct BowstringType *type);
BowstringStatus bowstring_device_array_from_buffers(const struct BowstringType *type,
                                                    const struct BowstringNode *nodes,
                                                    size_t n_nodes,
                                                    struct BowstringOwnedBuffer *buffers,
                                                    size_t n_buffers,
                                                    struct BowstringPlacement *placement,
                                                    struct ArrowDeviceArray *out,
                                                    struct BowstringError *error);
struct BowstringArray *bowstring_array_retain(const struct BowstringArray *array);
void bowstring_array_release(struct BowstringArray *array);
const struct BowstringType *bowstring_array_type(const struct BowstringArray *array);
BowstringStatus bowstring_array_to_device(const struct BowstringArray *array,
                                          struct BowstringDevice device,
                                          const struct BowstringTransferOptions *options,
                                          struct BowstringArray **out,
                                          bool *shared,
                                          struct BowstringError *error);
BowstringStatus bowstring_array_wait(const struct BowstringArray *array,
                                     const struct BowstringSync *sync,
                                     struct BowstringError *error);
BowstringStatus bowstring_array_record(const struct BowstringArray *array,
                                       const struct BowstringSync *sync,
                                       struct BowstringArray **out,
                                       struct BowstringError *error);
BowstringStatus bowstring_array_join_events(const struct BowstringArray *array,
                                            void *const *events,
                                            size_t n,
                                            const struct BowstringSync *sync,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);
BowstringStatus bowstring_array_release_after(struct BowstringArray **array,
                                              const struct BowstringSync *sync,
                                              struct BowstringError *error);
BowstringStatus bowstring_array_export(const struct BowstringArray *array,
                                       struct ArrowDeviceArray *out,
                                       struct ArrowSchema *out_schema,
                                       struct BowstringError *error);
BowstringStatus bowstring_array_export_host(const struct BowstringArray *array,
                                            const struct BowstringSync *sync,
                                            struct ArrowArray *out,
                                            struct ArrowSchema *out_schema,
                                            struct BowstringError *error);
BowstringStatus bowstring_array_import(struct ArrowDeviceArray *array,
                                       struct ArrowSchema *schema,
                                       struct BowstringArray **out,
                                       struct BowstringError *error);
BowstringStatus bowstring_array_import_typed(struct ArrowDeviceArray *array,
                                             const struct BowstringType *type,
                                             struct BowstringArray **out,
                                             struct BowstringError *error);
BowstringStatus bowstring_array_import_host(struct ArrowArray *array,
                                            struct ArrowSchema *schema,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);
BowstringStatus bowstring_array_import_host_typed(struct ArrowArray *array,
                                                  const struct BowstringType *type,
                                                  struct BowstringArray **out,
                                                  struct BowstringError *error);
BowstringStatus bowstring_array_import_borrowed(const struct ArrowDeviceArray *array,
                                                const struct BowstringType *type,
                                                void *owner,
                                                void (*release_owner)(void *owner),
                                                struct BowstringArray **out,
                                                struct BowstringError *error);
BowstringStatus bowstring_array_count(const struct BowstringArray *array,
                                      size_t *n_nodes,
                                      size_t *n_buffers,
                                      struct BowstringError *error);
BowstringStatus bowstring_array_node_info(const struct BowstringArray *array,
                                          size_t node,
                                          struct BowstringNodeInfo *out,
                                          struct BowstringError *error);
BowstringStatus bowstring_array_buffer_info(const struct BowstringArray *array,
                                            size_t buffer,
                                            struct BowstringBufferInfo *out,
                                            struct BowstringError *error);
BowstringStatus bowstring_array_device(const struct BowstringArray *array,
                                       struct BowstringDevice *out,
                                       void **sync_event,
                                       struct BowstringError *error);
BowstringStatus bowstring_array_null_count(const struct BowstringArray *array,
                                           const struct BowstringSync *sync,
                                           int64_t *out,
                                           struct BowstringError *error);
BowstringStatus bowstring_array_to_text(const struct BowstringArray *array,
                                        char *out,
                                        size_t capacity,
                                        size_t *needed,
                                        struct BowstringError *error);
BowstringStatus bowstring_array_child(const struct BowstringArray *array,
                                      size_t i,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);
BowstringStatus bowstring_array_dictionary(const struct BowstringArray *array,
                                           struct BowstringArray **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_array_slice(const struct BowstringArray *array,
                                      int64_t offset,
                                      int64_t length,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);
BowstringStatus bowstring_array_resolve_sizes(const struct BowstringArray *array,
                                              const struct BowstringSync *sync,
                                              struct BowstringArray **out,
                                              struct BowstringError *error);
BowstringStatus bowstring_array_resolve_sizes_with(const struct BowstringArray *array,
                                                   int (*read)(void *ctx, void *dst, const void *src, size_t n),
                                                   void *ctx,
                                                   struct BowstringArray **out,
                                                   struct BowstringError *error);
BowstringStatus bowstring_array_with_owner(const struct BowstringArray *array,
                                           void *owner,
                                           void (*release_owner)(void *owner),
                                           struct BowstringArray **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_array_buffer(const struct BowstringArray *array,
                                       size_t buffer,
                                       struct BowstringBuffer **out,
                                       struct BowstringError *error);
BowstringStatus bowstring_array_to_buffers(const struct BowstringArray *array,
                                           struct BowstringNode *nodes,
                                           size_t n_nodes,
                                           struct BowstringOwnedBuffer *buffers,
                                           size_t n_buffers,
                                           struct BowstringPlacement *out_placement,
                                           struct BowstringError *error);
BowstringStatus bowstring_buffer_wrap(struct BowstringOwnedBuffer *memory,
                                      struct BowstringPlacement *placement,
                                      struct BowstringBuffer **out,
                                      struct BowstringError *error);
BowstringStatus bowstring_buffer_allocate(struct BowstringDevice device,
                                          int64_t size,
                                          const struct BowstringSync *sync,
                                          struct BowstringBuffer **out,
                                          void **data,
                                          struct BowstringError *error);
BowstringStatus bowstring_buffer_to_device(const struct BowstringBuffer *buffer,
                                           struct BowstringDevice device,
                                           const struct BowstringTransferOptions *options,
                                           struct BowstringBuffer **out,
                                           bool *shared,
                                           struct BowstringError *error);
struct BowstringBuffer *bowstring_buffer_retain(const struct BowstringBuffer *buffer);
void bowstring_buffer_release(struct BowstringBuffer *buffer);
BowstringStatus bowstring_buffer_info(const struct BowstringBuffer *buffer,
                                      struct BowstringBufferMemory *out,
                                      struct BowstringError *error);
BowstringStatus bowstring_buffer_slice(const struct BowstringBuffer *buffer,
                                       int64_t offset,
                                       int64_t length,
                                       struct BowstringBuffer **out,
                                       struct BowstringError *error);
BowstringStatus bowstring_buffer_read(const struct BowstringBuffer *buffer,
                                      int64_t offset,
                                      void *dst,
                                      int64_t n,
                                      const struct BowstringSync *sync,
                                      struct BowstringError *error);
BowstringStatus bowstring_buffer_into_owned(struct BowstringBuffer **buffer,
                                            struct BowstringOwnedBuffer *out,
                                            struct BowstringError *error);
BowstringStatus bowstring_device_register(ArrowDeviceType type,
                                          const struct BowstringDeviceBackend *backend,
                                          struct BowstringError *error);
BowstringStatus bowstring_device_probe(ArrowDeviceType type,
                                       int64_t *count,
                                       struct BowstringError *error);
BowstringStatus bowstring_device_collect(struct BowstringDevice device,
                                         bool block,
                                         size_t *pending,
                                         struct BowstringError *error);
BowstringStatus bowstring_device_array_release_after(struct ArrowDeviceArray *array,
                                                     const struct BowstringSync *sync,
                                                     struct BowstringError *error);
BowstringStatus bowstring_callback_scope_set(const struct BowstringCallbackScope *scope,
                                             struct BowstringError *error);
void bowstring_callback_scope_close(void);
void bowstring_live_counts(struct BowstringLiveCounts *out);
const char *bowstring_version(void);
uint32_t bowstring_abi_version(void);
BowstringStatus bowstring_array_to_tensor(const struct BowstringArray *array,
                                          const struct BowstringTensorOptions *options,
                                          struct DLManagedTensorVersioned **out,
                                          struct BowstringError *error);
BowstringStatus bowstring_array_validity_to_tensor(const struct BowstringArray *array,
                                                   const struct BowstringTensorOptions *options,
                                                   struct DLManagedTensorVersioned **out,
                                                   int64_t *bit_offset,
                                                   struct BowstringError *error);
BowstringStatus bowstring_buffer_to_tensor(const struct BowstringBuffer *buffer,
                                           struct BowstringDataType dtype,
                                           int32_t ndim,
                                           const int64_t *shape,
                                           const struct BowstringTensorOptions *options,
                                           struct DLManagedTensorVersioned **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_array_from_tensor(struct DLManagedTensorVersioned **tensor,
                                            const struct BowstringType *type,
                                            const struct BowstringTensorOptions *options,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);
BowstringStatus bowstring_tensor_from_legacy(struct DLManagedTensor **tensor,
                                             const struct BowstringTensorOptions *options,
                                             struct DLManagedTensorVersioned **out,
                                             struct BowstringError *error);
BowstringStatus bowstring_tensor_to_legacy(struct DLManagedTensorVersioned **tensor,
                                           const struct BowstringTensorOptions *options,
                                           struct DLManagedTensor **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_schema_validate(const struct ArrowSchema *schema,
                                          const struct BowstringValidateOptions *options,
                                          struct BowstringError *error);
BowstringStatus bowstring_device_array_validate(const struct ArrowDeviceArray *array,
                                                const struct BowstringType *type,
                                                const struct BowstringValidateOptions *options,
                                                struct BowstringError *error);
BowstringStatus bowstring_host_array_validate(const struct ArrowArray *array,
                                              const struct BowstringType *type,
                                              const struct BowstringValidateOptions *options,
                                              struct BowstringError *error);
BowstringStatus bowstring_array_validate(const struct BowstringArray *array,
                                         const struct BowstringValidateOptions *options,
                                         struct BowstringError *error);
BowstringStatus bowstring_array_conform(const struct BowstringArray *array,
                                        int32_t profile,
                                        const struct BowstringSync *sync,
                                        uint32_t flags,
                                        struct BowstringArray **out,
                                        struct BowstringError *error);
BowstringStatus bowstring_device_stream_validate(const struct ArrowDeviceArrayStream *stream,
                                                 const struct BowstringValidateOptions *options,
                                                 struct BowstringError *error);
BowstringStatus bowstring_host_stream_validate(const struct ArrowArrayStream *stream,
                                               const struct BowstringValidateOptions *options,
                                               struct BowstringError *error);
BowstringStatus bowstring_tensor_validate(const struct DLManagedTensorVersioned *tensor,
                                          const struct BowstringValidateOptions *options,
                                          struct BowstringError *error);
BowstringStatus bowstring_legacy_tensor_validate(const struct DLManagedTensor *tensor,
                                                 const struct BowstringValidateOptions *options,
                                                 struct BowstringError *error);
const struct BowstringType *bowstring_stream_type(const struct BowstringStream *stream);
struct BowstringDevice bowstring_stream_device(const struct BowstringStream *stream);
void bowstring_stream_cancel(struct BowstringStream *stream);
void bowstring_stream_release(struct BowstringStream *stream);
BowstringStatus bowstring_stream_next(struct BowstringStream *stream,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);
BowstringStatus bowstring_stream_next_device_array(struct BowstringStream *stream,
                                                   struct ArrowDeviceArray *out,
                                                   struct BowstringError *error);
BowstringStatus bowstring_stream_collect(struct BowstringStream **stream,
                                         const struct BowstringSync *sync,
                                         struct BowstringArray **out,
                                         struct BowstringError *error);
BowstringStatus bowstring_stream_to_async(struct BowstringStream **stream,
                                          struct ArrowAsyncDeviceStreamHandler *handler,
                                          struct BowstringError *error);
BowstringStatus bowstring_stream_from_async(size_t capacity,
                                            struct ArrowAsyncDeviceStreamHandler *out_handler,
                                            struct BowstringStream **out,
                                            struct BowstringError *error);
BowstringStatus bowstring_stream_from_callbacks(const struct BowstringType *type,
                                                struct BowstringStreamCallbacks *callbacks,
                                                struct BowstringStream **out,
                                                struct BowstringError *error);
BowstringStatus bowstring_stream_export(struct BowstringStream **stream,
                                        struct ArrowDeviceArrayStream *out,
                                        struct BowstringError *error);
BowstringStatus bowstring_stream_export_host(struct BowstringStream **stream,
                                             const struct BowstringSync *sync,
                                             struct ArrowArrayStream *out,
                                             struct BowstringError *error);
BowstringStatus bowstring_stream_import(struct ArrowDeviceArrayStream *stream,
                                        struct BowstringStream **out,
                                        struct BowstringError *error);
BowstringStatus bowstring_stream_import_host(struct ArrowArrayStream *stream,
                                             struct BowstringStream **out,
                                             struct BowstringError *error);
BowstringStatus bowstring_stream_from_arrays(const struct BowstringType *type,
                                             const struct BowstringArray *const *arrays,
                                             size_t n_arrays,
                                             struct BowstringStream **out,
                                             struct BowstringError *error);
BowstringStatus bowstring_stream_validated(struct BowstringStream **stream,
                                           const struct BowstringValidateOptions *options,
                                           struct BowstringStream **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_stream_select(struct BowstringStream **stream,
                                        const size_t *columns,
                                        size_t n_columns,
                                        struct BowstringStream **out,
                                        struct BowstringError *error);
BowstringStatus bowstring_stream_to_device(struct BowstringStream **stream,
                                           struct BowstringDevice device,
                                           const struct BowstringTransferOptions *options,
                                           struct BowstringStream **out,
                                           struct BowstringError *error);
BowstringStatus bowstring_python_init(const struct BowstringPythonApi *api,
                                      struct BowstringError *error);
void bowstring_python_capsule_destructor(void *capsule);
void *bowstring_python_array_import(void *module,
                                    void *const *args,
                                    ptrdiff_t nargs);
void *bowstring_python_array_import_raw(void *module,
                                        void *const *args,
                                        ptrdiff_t nargs);
void *bowstring_python_array_export(void *module,
                                    void *const *args,
                                    ptrdiff_t nargs);
void *bowstring_python_array_release(void *module,
                                     void *handle);
void *bowstring_python_buffer_release(void *module,
                                      void *handle);
void *bowstring_python_type_release(void *module,
                                    void *handle);
void *bowstring_python_array_take(void *known,
                                  void *producer);
void *bowstring_python_array_give(void *instance,
                                  void *const *args,
                                  ptrdiff_t nargs,
                                  void *names);
void bowstring_python_array_finalize(void *instance);
int bowstring_python_get_buffer(void *exporter,
                                void *view,
                                int flags);
