/* bowstring: columnar data handed between programs in one process, without copying it and without losing track of who
 * frees it: Arrow C Data, Device and Stream structs, on any device.
 *
 * Conventions. A function that can fail returns a BowstringStatus and takes a nullable BowstringError last, which is
 * written on failure only. A call that fails consumes nothing: what you owned before, you own after, and out-parameters
 * are NULL or released. `T **x` is taken: on success the library owns it and *x is NULL. A pointer to a raw Arrow struct
 * that is not const is moved: on success its release is NULL. `const` is borrowed for the call. Out-parameters are never
 * read. Every release accepts NULL. Structs that start with struct_size may grow: set it to sizeof of your own build.
 * Handles are immutable and thread safe; any thread may release them. No callback may unwind or end its thread.
 * Pointers to memory that is not there cannot be detected.
 */

#ifndef BOWSTRING_H
#define BOWSTRING_H

/* Generated from the documented Rust in src/ and core/src/ by `cargo xtask header --write`: change it there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bowstring/arrow_c_abi.h"

#if defined(_WIN32) && !defined(BOWSTRING_STATIC)
/// How the functions of the library are imported.
#define BOWSTRING_API __declspec(dllimport)
#else
/// How the functions of the library are imported.
#define BOWSTRING_API
#endif

/// The library's version, as numbers.
#define BOWSTRING_VERSION_MAJOR 0
/// The library's version, as numbers.
#define BOWSTRING_VERSION_MINOR 1
/// The library's version, as numbers.
#define BOWSTRING_VERSION_PATCH 0

/// A DLPack tensor with a version; dlpack.h says what is in it.
struct DLManagedTensorVersioned;
/// A DLPack tensor as it was before version 1.0; dlpack.h says what is in it.
struct DLManagedTensor;

/// A finding that breaks a rule, or that the named consumer would refuse, crash on or misread.
#define BOWSTRING_SEVERITY_ERROR 0

/// A finding that is legal, but that a recommendation speaks against or that makes the named consumer copy.
#define BOWSTRING_SEVERITY_WARNING 1

/// A finding that is worth knowing.
#define BOWSTRING_SEVERITY_NOTE 2

/// The most nodes on the way from a type's root to a leaf, both counted.
#define BOWSTRING_MAX_DEPTH 64

/// The most nodes in a type.
#define BOWSTRING_MAX_NODES 16777216

/// The longest format string, in bytes.
#define BOWSTRING_MAX_FORMAT 65535

/// The longest name, in bytes.
#define BOWSTRING_MAX_NAME 1048576

/// The longest encoded metadata of one node, in bytes.
#define BOWSTRING_MAX_METADATA 67108864

/// For bowstring_type_equals: types are equal though their fields have other names.
#define BOWSTRING_TYPE_IGNORE_NAMES 1

/// For bowstring_type_equals: types are equal though they carry other metadata.
#define BOWSTRING_TYPE_IGNORE_METADATA 2

/// For bowstring_type_equals: types are equal though one allows nulls where the other does not.
#define BOWSTRING_TYPE_IGNORE_NULLABLE 4

/// A bitmap with a 1 for each value that is there.
#define BOWSTRING_ROLE_VALIDITY 0

/// Where values start in the data or in the child.
#define BOWSTRING_ROLE_OFFSETS 1

/// How long the values of a list view are.
#define BOWSTRING_ROLE_SIZES 2

/// Which child of a union a value is in.
#define BOWSTRING_ROLE_TYPE_IDS 3

/// Views on strings: a length, and the bytes or where they are.
#define BOWSTRING_ROLE_VIEWS 4

/// The values themselves.
#define BOWSTRING_ROLE_DATA 5

/// Bytes that views point into; any number of such buffers.
#define BOWSTRING_ROLE_VARIADIC 6

/// The sizes of the variadic buffers, as 64-bit integers in CPU memory.
#define BOWSTRING_ROLE_VARIADIC_SIZES 7

/// Do not wait: SYNC_REQUIRED when an event is pending.
#define BOWSTRING_SYNC_NONE 0

/// Make the queue wait; a NULL queue is the driver's default stream.
#define BOWSTRING_SYNC_QUEUE 1

/// Block the thread until the event is done.
#define BOWSTRING_SYNC_HOST 2

/// Make a queue of the library wait.
#define BOWSTRING_SYNC_LIBRARY 3

/// For BowstringTransferOptions.flags: where the memory can be reached from the device already, hand it out instead of a copy.
#define BOWSTRING_TRANSFER_MAY_SHARE 1

/// The version of the ABI: goes up by one when a struct grows or a function is added, and never down.
#define BOWSTRING_ABI_VERSION 1

/// For BowstringTensorOptions.flags: values that are no numbers go out as what they consist of, such as timestamps as
/// 64-bit integers.
#define BOWSTRING_TENSOR_PHYSICAL 1

/// For BowstringTensorOptions.flags: nulls go out as whatever lies in their place.
#define BOWSTRING_TENSOR_VALUES_ONLY 2

/// For BowstringTensorOptions.flags: bits may become bytes, bytes bits, and strides rows, by a copy on the same device. On devices
/// it goes through CPU memory, and is there when the call returns.
#define BOWSTRING_TENSOR_ALLOW_COPY 4

/// For BowstringTensorOptions.flags: a legacy tensor, which cannot say so, may be made of read-only memory.
#define BOWSTRING_TENSOR_DROP_READ_ONLY 8

/// For validation: everything, each value that a rule is about and exact null counts.
#define BOWSTRING_LEVEL_FULL 0

/// For validation: the structs, and a fixed number of reads for each node and variadic buffer.
#define BOWSTRING_LEVEL_BOUNDS 1

/// For validation: the structs alone; no buffer is read.
#define BOWSTRING_LEVEL_STRUCTURE 2

/// The specification's reading of the interfaces.
#define BOWSTRING_PROFILE_SPEC 0

/// What libcudf makes of device memory as views, by cudf::from_arrow_device and cudf::from_arrow_device_column.
#define BOWSTRING_PROFILE_CUDF_DEVICE 1

/// What libcudf makes of host memory that it copies, by cudf::from_arrow_host and cudf::from_arrow_host_column.
#define BOWSTRING_PROFILE_CUDF_HOST 2

/// What libcudf makes of arrays that it takes, by cudf::interop::arrow_column and arrow_table.
#define BOWSTRING_PROFILE_CUDF_OWNING 3

/// For bowstring_array_conform: buffers in CPU memory may be copied.
#define BOWSTRING_CONFORM_ALLOW_COPY 1

/// For bowstring_array_conform: the consumer takes the root struct for a table, which has no nulls and no offset of its own.
#define BOWSTRING_CONFORM_AS_TABLE 2

/// For bowstring_array_conform: views become offsets, which is a copy.
#define BOWSTRING_CONFORM_TO_OFFSETS 4

/// For bowstring_array_conform: offsets become views, which is a copy.
#define BOWSTRING_CONFORM_TO_VIEWS 8

/// An array: a window on shared memory, its type and its owners; immutable, shared, thread safe.
typedef struct BowstringArray BowstringArray;

/// One block of memory, its owner and its event: immutable, shared, thread safe.
typedef struct BowstringBuffer BowstringBuffer;

/// A source of arrays of one type on one type of device: one owner, moved and not counted. A call that meets another one on the
/// same stream is refused.
typedef struct BowstringStream BowstringStream;

/// A parsed schema, or one node of it: immutable, shared, thread safe.
typedef struct BowstringType BowstringType;

/// What a call that can fail returns: one of `BOWSTRING_OK` to `BOWSTRING_INTERNAL`.
typedef int32_t BowstringStatus;

/// What went wrong in a call: written whole when it fails, untouched when it succeeds.
///
/// The caller owns the memory, which need not be initialised. Text is UTF-8, ends with a NUL and is never cut inside a
/// character. The layout is frozen.
typedef struct BowstringError {
    /// The status that the call returned.
    int32_t status;
    /// Number of the rule that the data breaks, 0 when it is not about a rule; see `bowstring_rule_name`.
    int32_t rule;
    /// Row at which it was found, -1 when it is not about a row.
    int64_t row;
    /// Batch of a stream at which it was found, -1 when it is not about a stream.
    int64_t batch;
    /// Error number of a driver, a callback or the system, 0 when there is none.
    int64_t native_code;
    /// The node of the tree: `$` is the root, `$.a.item` a child, `$.b<dictionary>` a dictionary; "" when it is not
    /// about a node.
    char path[256];
    /// One sentence that says what was expected and what was found.
    char message[1024];
} BowstringError;

/// One node of a type. Strings live as long as the type.
typedef struct BowstringTypeNodeInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    size_t struct_size;
    /// Format string.
    const char *format;
    /// Name; never NULL.
    const char *name;
    /// Flags of the schema, unknown bits included.
    int64_t flags;
    /// Encoded metadata, NULL when there is none.
    const void *metadata;
    /// Bytes of the metadata.
    int64_t metadata_bytes;
    /// Number of children.
    size_t n_children;
    /// The first child's node, `SIZE_MAX` when there is none; the next one is at that child's `subtree_end`.
    size_t first_child;
    /// The node of the dictionary's values, `SIZE_MAX` when the node is not dictionary-encoded.
    size_t dictionary;
    /// The node after this one's subtree.
    size_t subtree_end;
} BowstringTypeNodeInfo;

/// A type of element, laid out as DLPack's `DLDataType`. The layout is frozen.
typedef struct BowstringDataType {
    /// Kind of number: 0 signed, 1 unsigned, 2 floating point, 6 boolean.
    uint8_t code;
    /// Bits of one lane.
    uint8_t bits;
    /// Number of lanes; 0 when an element is empty or wider than 65535 bytes.
    uint16_t lanes;
} BowstringDataType;

/// One buffer that an array of the type has. The layout is frozen.
typedef struct BowstringLayoutEntry {
    /// The node that the buffer belongs to.
    size_t node;
    /// What it is for, a `BOWSTRING_ROLE_*`.
    int32_t role;
    /// Type of an element; 1 bit wide in bitmaps.
    struct BowstringDataType element;
} BowstringLayoutEntry;

/// The numbers of one node, as `ArrowArray` has them. The layout is frozen.
typedef struct BowstringNode {
    /// Number of logical values.
    int64_t length;
    /// Number of nulls, -1 when not computed.
    int64_t null_count;
    /// Physical index of the first value.
    int64_t offset;
    /// Number of buffers.
    int64_t n_buffers;
} BowstringNode;

/// Memory and its owner, as the C interface passes them.
///
/// The layout is frozen. Whoever holds the struct owns the owner: calling `release_owner(owner)` once lets the memory
/// go. A NULL `release_owner` means that nobody needs to be told.
typedef struct BowstringOwnedBuffer {
    /// Start of the memory, on whatever device it lives; may be NULL when there are no bytes.
    const void *data;
    /// Readable bytes from `data`, -1 when unknown.
    int64_t size_bytes;
    /// What keeps the memory alive.
    void *owner;
    /// Lets the owner go; called once, from any thread, and must not unwind.
    void (*release_owner)(void *owner);
} BowstringOwnedBuffer;

/// A device: its type and its number among them. All zero means the CPU.
///
/// The layout is frozen. The id of the CPU is written as -1 and read as -1 or 0.
typedef struct BowstringDevice {
    /// Type of the device, as the Arrow C Device interface numbers it; 0 means the CPU in an argument.
    ArrowDeviceType type;
    /// Number of the device among its type, -1 where devices have none.
    int64_t id;
} BowstringDevice;

/// How a call that may meet unfinished device work is to behave. NULL or all zero is NONE.
///
/// The layout is frozen.
typedef struct BowstringSync {
    /// `BOWSTRING_SYNC_NONE`, `_QUEUE`, `_HOST` or `_LIBRARY`.
    int32_t mode;
    /// Zero.
    int32_t reserved;
    /// With QUEUE, the queue of the device's driver that is made to wait; NULL is its default queue.
    void *queue;
} BowstringSync;

/// Device, event and owner of a whole tree, as the C interface passes them.
///
/// Whoever holds the struct owns the event and the owner in it. A call that takes them leaves NULL behind.
typedef struct BowstringPlacement {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// The device of every buffer; all zero is the CPU.
    struct BowstringDevice device;
    /// The event to wait on before the buffers are read, NULL when there is none: the handle by value where the device's
    /// events are handles (CUDA, ROCm, OpenCL, Vulkan), elsewhere the address of the event.
    void *event;
    /// Goes first to `destroy_event`.
    void *event_ctx;
    /// Destroys the event, once, from any thread, after the last owner is gone; NULL when somebody else does.
    void (*destroy_event)(void *event_ctx, void *event);
    /// Instead of `event`: the queue to record one on. All zero records none.
    struct BowstringSync record_on;
    /// Keeps the whole tree alive.
    void *owner;
    /// Lets the owner go, once, from any thread, after the owners of the buffers that are let go with it; NULL when nobody
    /// needs to be told.
    void (*release_owner)(void *owner);
} BowstringPlacement;

/// How a copy to a device is to be made. NULL, or all but struct_size zero: a copy in memory of the library's own, on one of
/// its queues, of memory that nothing is pending on.
typedef struct BowstringTransferOptions {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// What to do about unfinished device work. With QUEUE, copies run on that queue, which is one of the device that they go
    /// to, or, when that is the CPU, of the one that they come from. With HOST the call returns when the copy is done. With NONE
    /// and LIBRARY they run on a queue of the library's.
    struct BowstringSync sync;
    /// `BOWSTRING_TRANSFER_*`.
    uint64_t flags;
    /// Goes first to the functions below.
    void *ctx;
    /// Gives memory of the device, aligned to 64 bytes, for work on `queue`, or NULL; NULL: the device's own allocator.
    void *(*allocate)(void *ctx, int64_t size, void *queue);
    /// Takes memory of `allocate` back once the work that is on `queue` by now is done: a queue of the library's, which waits
    /// for what the library did with it. It may come long after the call, from any thread.
    void (*deallocate)(void *ctx, void *data, int64_t size, void *queue);
    /// Is told how many batches and rows there were, and how many bytes of the current one; a number other than 0 cancels. NULL:
    /// nobody is told. It runs on the thread that copies, which for a stream with a depth is one of the library's. A stream also
    /// tells when a batch is done, with 0 bytes; rows are those of the batches before and of the current one.
    int (*progress)(void *ctx, int64_t batches, int64_t rows, int64_t bytes);
    /// For bowstring_stream_to_device: how many batches may be copied before they are asked for. 0: none.
    uint32_t depth;
} BowstringTransferOptions;

/// One node of an array, as its window shows it.
///
/// Nodes are numbered depth first from the array's own, which is 0: a node, its children, then its dictionary. Length
/// and offset are those of the window, with every parent's window already applied: the node's values are those from
/// `offset` on in its own buffers. Strings live as long as the array.
typedef struct BowstringNodeInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    size_t struct_size;
    /// The node above, `SIZE_MAX` for node 0.
    size_t parent;
    /// The first child, `SIZE_MAX` when there is none; the next one is at that child's `subtree_end`.
    size_t first_child;
    /// Number of children.
    size_t n_children;
    /// The node of the dictionary's values, `SIZE_MAX` when the node is not dictionary-encoded.
    size_t dictionary;
    /// The node after this one's subtree.
    size_t subtree_end;
    /// Format string.
    const char *format;
    /// Name; never NULL.
    const char *name;
    /// Flags of the schema.
    int64_t flags;
    /// Number of values.
    int64_t length;
    /// Physical index of the first.
    int64_t offset;
    /// Number of nulls among them, -1 when it is not known without reading a buffer.
    int64_t null_count;
    /// The node's first buffer.
    size_t first_buffer;
    /// Number of the node's own buffers.
    size_t n_buffers;
} BowstringNodeInfo;

/// One buffer of an array.
typedef struct BowstringBufferInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    size_t struct_size;
    /// The node that the buffer belongs to.
    size_t node;
    /// What it is for, a `BOWSTRING_ROLE_*`.
    int32_t role;
    /// Type of an element; 1 bit wide in bitmaps.
    struct BowstringDataType element;
    /// Start of the buffer, on the array's device; NULL when it has no bytes.
    const void *data;
    /// Elements in the whole buffer, -1 when unknown.
    int64_t n_elements;
    /// First element that the window shows; 0 where only other buffers tell, as for the bytes of strings.
    int64_t first;
    /// Number of elements that the window shows, one more than the length for offsets; where only other buffers tell,
    /// all of them; -1 when unknown.
    int64_t count;
    /// Readable bytes from `data`, -1 when unknown.
    int64_t size_bytes;
    /// In buffers of bits, the bit within byte `first / 8` at which the window starts; else 0.
    int64_t bit_offset;
    /// Where the buffer is: on the array's device, but for sizes that the library built, which are in CPU memory.
    struct BowstringDevice device;
} BowstringBufferInfo;

/// What is known of a BowstringBuffer.
typedef struct BowstringBufferMemory {
    /// Size of this struct in the caller's build; the only member that is read.
    size_t struct_size;
    /// Start of the memory, on its device.
    const void *data;
    /// Readable bytes from `data`, -1 when unknown.
    int64_t size_bytes;
    /// Where the memory is.
    struct BowstringDevice device;
    /// Address of the event to wait on before the memory is read, NULL when there is none.
    void *sync_event;
} BowstringBufferMemory;

/// What a device can do, as C functions.
///
/// `device_id` is what a caller or a producer named: there need not be such a device. `queue` is one of the driver's queues. Each function gets `ctx` first,
/// may be called from any thread, several at a time, with no lock held, and must not unwind. Those that return a number return
/// 0, or an error number of their own.
///
/// Work that is enqueued on a queue runs in order. A backend whose copies are done when they return has no queues and no
/// events: it leaves all members from `library_queue` to `destroy_event` NULL.
typedef struct BowstringDeviceBackend {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// Goes first to every function; it must live as long as the process.
    void *ctx;
    /// Writes the number of devices. NULL: one, with id 0.
    int32_t (*probe)(void *ctx, int64_t *count);
    /// Writes the address of `size` bytes, aligned to 64, for work on `queue`, or NULL when there is no room. Required.
    int32_t (*allocate)(void *ctx, int64_t device_id, int64_t size, void *queue, void **data);
    /// Frees memory of `allocate` once the work that is on `queue` by now is done. Required.
    int32_t (*free)(void *ctx, int64_t device_id, void *data, int64_t size, void *queue);
    /// Copies `n` bytes from CPU memory to the device, which may be read until the copy is done. Required.
    int32_t (*copy_from_host)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    /// Copies `n` bytes from the device to CPU memory. Required.
    int32_t (*copy_to_host)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    /// Copies `n` bytes within the device. NULL: copies go through CPU memory.
    int32_t (*copy_within)(void *ctx, int64_t device_id, void *to, const void *from, int64_t n, void *queue);
    /// Copies `n` bytes to a device from another one of this type; `queue` is of the device that they go to. NULL: copies go
    /// through CPU memory.
    int32_t (*copy_between)(void *ctx,
                            int64_t to_device_id,
                            void *to,
                            int64_t from_device_id,
                            const void *from,
                            int64_t n,
                            void *queue);
    /// Writes the queue of a device that the library is to use where it has no queue of a caller; it must live as long as the
    /// process. NULL: the default queue, which is NULL.
    int32_t (*library_queue)(void *ctx, int64_t device_id, void **queue);
    /// Blocks until all that is on `queue` is done. Required with events.
    int32_t (*drain)(void *ctx, int64_t device_id, void *queue);
    /// Writes a new event, done when all that is on `queue` by now is done. It becomes the `sync_event` of arrays as it is
    /// where the interface leaves events to their producer; where events are handles, arrays point to it.
    int32_t (*record)(void *ctx, int64_t device_id, void *queue, void **event);
    /// Lets what is enqueued on `queue` from now on run after `event`, also one of another device of this type.
    int32_t (*queue_waits)(void *ctx, int64_t device_id, void *event, void *queue);
    /// Blocks until `event` is done.
    int32_t (*host_waits)(void *ctx, int64_t device_id, void *event);
    /// Writes 1 when `event` is done, else 0.
    int32_t (*is_done)(void *ctx, int64_t device_id, void *event, int32_t *done);
    /// Ends an event of `record`, done or not.
    void (*destroy_event)(void *ctx, int64_t device_id, void *event);
    /// Writes 1 when the CPU may read and write the device's memory itself once the work on it is done. NULL: it may not.
    int32_t (*host_accessible)(void *ctx, int64_t device_id, int32_t *accessible);
    /// Writes where the memory at an address is: the CPU for memory that is not the driver's, and a type of 0 where it cannot
    /// tell. NULL: it never can.
    int32_t (*locate)(void *ctx, const void *data, struct BowstringDevice *device);
    /// Text for an error number of these functions, valid until the next call on the same thread. NULL: none.
    const char *(*error_text)(void *ctx, int32_t code);
} BowstringDeviceBackend;

/// Functions to call around every foreign callback.
///
/// They must be C functions that need no lock: `enter` and `leave` are `PyGILState_Ensure` and `PyGILState_Release`; `held`, `pause`
/// and `resume` are `PyGILState_Check`, `PyEval_SaveThread` and `PyEval_RestoreThread`.
typedef struct BowstringCallbackScope {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// Says with 0 that callbacks may not run any more; NULL: always alive. Called from any thread.
    int (*alive)(void);
    /// Called before a callback; its result goes to `leave`. Called from any thread.
    int (*enter)(void);
    /// Called after a callback, on the same thread.
    void (*leave)(int);
    /// Says whether this thread holds what `enter` would take. It and the next two are all there or all NULL.
    int (*held)(void);
    /// Called where it is held and this thread has to wait for another one, which may need it; its result goes to `resume`.
    void *(*pause)(void);
    /// Called when the wait is over, on the same thread.
    void (*resume)(void*);
} BowstringCallbackScope;

/// How much of what the library made is alive.
typedef struct BowstringLiveCounts {
    /// Size of this struct in the caller's build; the only member that is read.
    size_t struct_size;
    /// Parsed schemas; a schema and its nodes count as one.
    size_t types;
    /// Array handles.
    size_t arrays;
    /// Buffer handles' blocks.
    size_t buffers;
    /// Streams: handles, and exported ones that are not released.
    size_t streams;
    /// Exported tensors.
    size_t tensors;
    /// Exported trees of arrays and of schemas.
    size_t blocks;
    /// Pieces of device work that hold memory until they are done.
    size_t pending;
    /// Callbacks that were skipped because the callback scope was closed; never goes down.
    size_t leaked_callbacks;
} BowstringLiveCounts;

/// How a tensor is to be made or taken. NULL, or all but struct_size zero: nothing but numbers without nulls, no copy.
typedef struct BowstringTensorOptions {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// `BOWSTRING_TENSOR_*`.
    uint64_t flags;
    /// What to do about unfinished device work. An array that becomes a tensor: QUEUE makes the queue that the tensor is for wait
    /// for the array's event, HOST blocks. A tensor that becomes an array: QUEUE names the queue that its producer was given, and
    /// an event is recorded there; otherwise nothing is pending. LIBRARY would let nobody wait, and is INVALID_ARGUMENT.
    struct BowstringSync sync;
} BowstringTensorOptions;

/// How to validate. NULL, or all but struct_size zero: everything, by the specification, on the calling thread.
typedef struct BowstringValidateOptions {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// How deep, a `BOWSTRING_LEVEL_*`.
    int32_t level;
    /// Whose reading counts, a `BOWSTRING_PROFILE_*`.
    int32_t profile;
    /// The device that the profile's consumer would find the array on, as if it were already there; all zero means where
    /// it is.
    struct BowstringDevice assume_device;
    /// Not 0 when the profile's consumer takes the root struct for a table, else it takes it for one column.
    int32_t as_table;
    /// The most threads that share the work of a large node; 0 and 1 are the calling thread alone.
    uint32_t threads;
    /// The most findings that on_finding is told, 0 for no limit. What comes after them can still be the first error.
    uint32_t max_findings;
    /// The most bytes of CPU memory that hold copies of device memory at once, 0 for the library's choice of 64 MiB. Larger
    /// nodes are checked in blocks of rows. One row is always copied at once, however large it is; the sizes of a node's
    /// variadic buffers have to fit, else the check says UNSUPPORTED and how much they need.
    int64_t staging_bytes;
    /// What to do about unfinished device work.
    struct BowstringSync sync;
    /// What on_finding is called with.
    void *ctx;
    /// Told of each finding with a `BOWSTRING_SEVERITY_*`, in the order of the nodes; NULL to stop at the first error.
    /// The record is only there during the call; its status is OK where the finding is no error. Not 0 stops.
    int (*on_finding)(void *ctx, int32_t severity, const struct BowstringError *finding);
} BowstringValidateOptions;

/// A producer of arrays. Its callbacks run one at a time, on whatever thread asks the stream or is ahead of who asks, must not
/// unwind, and return 0 or an error number of the system such as EIO.
typedef struct BowstringStreamCallbacks {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// The device of every array; all zero is the CPU. The id is -1 where it differs from array to array.
    struct BowstringDevice device;
    /// What each callback is called with.
    void *ctx;
    /// Fills in the next array of the stream's type, or leaves `out` released at the end. `out` is a released struct; what is in
    /// it after an error is released.
    int (*get_next)(void *ctx, struct ArrowDeviceArray *out);
    /// Instead of `get_next`: sets `*out`, which is NULL, to a handle of the next array, which is handed over, or leaves it at the
    /// end.
    int (*get_next_array)(void *ctx, struct BowstringArray **out);
    /// Text of the last failure, which is copied at once, or NULL; called after a failure only. May be NULL itself.
    const char *(*get_last_error)(void *ctx);
    /// Lets the producer go, once, when the stream is released, from whatever thread that is. May be NULL.
    void (*release)(void *ctx);
} BowstringStreamCallbacks;

/// Addresses of CPython's functions and objects, as ctypes.pythonapi or a linked libpython has them. Most are of its
/// stable ABI, which has PyObject_VectorcallMethod only from 3.12 and the buffers' only from 3.11 on, though every version since 3.9 has them.
///
/// The capsules' destructor needs the first six functions. The calls that a binding makes builtins or slots of need all members;
/// without them every member behind err_write_unraisable is NULL.
typedef struct BowstringPythonApi {
    /// Size of this struct in the caller's build.
    size_t struct_size;
    /// PyCapsule_IsValid.
    int (*capsule_is_valid)(void *capsule, const char *name);
    /// PyCapsule_GetName.
    const char *(*capsule_get_name)(void *capsule);
    /// PyCapsule_GetPointer.
    void *(*capsule_get_pointer)(void *capsule, const char *name);
    /// PyErr_Fetch.
    void (*err_fetch)(void **kind, void **value, void **traceback);
    /// PyErr_Restore.
    void (*err_restore)(void *kind, void *value, void *traceback);
    /// PyErr_WriteUnraisable.
    void (*err_write_unraisable)(void *object);
    /// PyErr_Occurred.
    void *(*err_occurred)(void);
    /// PyErr_Clear.
    void (*err_clear)(void);
    /// PyErr_SetString.
    void (*err_set_string)(void *kind, const char *message);
    /// PyCapsule_New.
    void *(*capsule_new)(void *pointer, const char *name, void (*destructor)(void *capsule));
    /// PyLong_AsVoidPtr.
    void *(*long_as_void_ptr)(void *object);
    /// PyLong_FromVoidPtr.
    void *(*long_from_void_ptr)(void *pointer);
    /// PyTuple_New.
    void *(*tuple_new)(ptrdiff_t size);
    /// PyTuple_SetItem.
    int (*tuple_set_item)(void *tuple, ptrdiff_t index, void *item);
    /// Py_IncRef.
    void (*inc_ref)(void *object);
    /// Py_DecRef.
    void (*dec_ref)(void *object);
    /// PyTuple_Size.
    ptrdiff_t (*tuple_size)(void *tuple);
    /// PyTuple_GetItem.
    void *(*tuple_get_item)(void *tuple, ptrdiff_t index);
    /// PyObject_GetAttr.
    void *(*object_get_attr)(void *object, void *name);
    /// PyUnicode_FromString.
    void *(*unicode_from_string)(const char *text);
    /// PyObject_VectorcallMethod.
    void *(*object_vectorcall_method)(void *name, void *const *args, size_t nargs, void *names);
    /// PyType_GenericAlloc.
    void *(*type_generic_alloc)(void *kind, ptrdiff_t items);
    /// PyMemoryView_FromObject.
    void *(*memoryview_from_object)(void *object);
    /// PyObject_GetBuffer.
    int (*object_get_buffer)(void *object, void *view, int flags);
    /// PyBuffer_Release.
    void (*buffer_release)(void *view);
    /// The object None: `id(None)`, or the address of _Py_NoneStruct.
    void *none;
    /// The class TypeError: `id(TypeError)`, or what PyExc_TypeError holds.
    void *type_error;
    /// The object True: `id(True)`, or the address of _Py_TrueStruct.
    void *true_object;
    /// `object.__basicsize__`: where an instance's own memory begins in a class that is derived from object.
    size_t object_size;
} BowstringPythonApi;

/// The call did what it says.
#define BOWSTRING_OK 0

/// The call itself is wrong: a NULL that may not be, an index out of range, an unknown option.
#define BOWSTRING_INVALID_ARGUMENT 1

/// The data breaks a rule of the interfaces; the error names it.
#define BOWSTRING_INVALID_DATA 2

/// The data is legal, but the named consumer would refuse, crash on or misread it.
#define BOWSTRING_NOT_CONFORMING 3

/// Legal, but not something that this build does.
#define BOWSTRING_UNSUPPORTED 4

/// Device work may still be running, and the caller did not say how to wait for it.
#define BOWSTRING_SYNC_REQUIRED 5

/// The struct was released or moved out before.
#define BOWSTRING_RELEASED 6

/// An allocation failed.
#define BOWSTRING_OUT_OF_MEMORY 7

/// The device's driver or the device itself is not there.
#define BOWSTRING_DEVICE_UNAVAILABLE 8

/// The device's driver reported an error.
#define BOWSTRING_DEVICE_ERROR 9

/// A callback of the caller or of a producer failed.
#define BOWSTRING_CALLBACK_ERROR 10

/// The operation was cancelled.
#define BOWSTRING_CANCELLED 11

/// A fault of this library.
#define BOWSTRING_INTERNAL 12

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The name of a status without its prefix, such as "INVALID_DATA"; "UNKNOWN" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
BOWSTRING_API const char *bowstring_status_name(int32_t status);

/// The short name of a rule, such as "A3"; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
BOWSTRING_API const char *bowstring_rule_name(int32_t rule);

/// A rule in one sentence; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
BOWSTRING_API const char *bowstring_rule_text(int32_t rule);

/// Where a rule is written down, such as "Arrow C Data interface, ArrowArray.buffers"; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
BOWSTRING_API
const char *bowstring_rule_source(int32_t rule);

/// How grave it is to break a rule: `BOWSTRING_SEVERITY_ERROR`, `_WARNING` or `_NOTE`; -1 for a number that is no rule.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API
int32_t bowstring_rule_severity(int32_t rule);

/// The number of the rule after `rule` in the table, 0 after the last; `rule` 0 gives the first.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API int32_t bowstring_rule_next(int32_t rule);

/// Moves a schema from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
BOWSTRING_API
void bowstring_schema_move(struct ArrowSchema *from,
                           struct ArrowSchema *to);

/// Releases a schema; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
BOWSTRING_API
void bowstring_schema_release(struct ArrowSchema *x);

/// Whether a schema was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API bool bowstring_schema_is_released(const struct ArrowSchema *x);

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_schema_free. Any thread may call it.
BOWSTRING_API struct ArrowSchema *bowstring_schema_new(void);

/// Releases a schema that is live, and frees the struct that bowstring_schema_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
BOWSTRING_API void bowstring_schema_free(struct ArrowSchema *x);

/// Moves an array from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
BOWSTRING_API
void bowstring_host_array_move(struct ArrowArray *from,
                               struct ArrowArray *to);

/// Releases an array; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
BOWSTRING_API
void bowstring_host_array_release(struct ArrowArray *x);

/// Whether an array was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API bool bowstring_host_array_is_released(const struct ArrowArray *x);

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_host_array_free. Any thread may call it.
BOWSTRING_API struct ArrowArray *bowstring_host_array_new(void);

/// Releases an array that is live, and frees the struct that bowstring_host_array_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
BOWSTRING_API void bowstring_host_array_free(struct ArrowArray *x);

/// Moves a device array from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
BOWSTRING_API
void bowstring_device_array_move(struct ArrowDeviceArray *from,
                                 struct ArrowDeviceArray *to);

/// Releases a device array; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
BOWSTRING_API
void bowstring_device_array_release(struct ArrowDeviceArray *x);

/// Whether a device array was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API bool bowstring_device_array_is_released(const struct ArrowDeviceArray *x);

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_device_array_free. Any thread may call it.
BOWSTRING_API struct ArrowDeviceArray *bowstring_device_array_new(void);

/// Releases a device array that is live, and frees the struct that bowstring_device_array_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
BOWSTRING_API
void bowstring_device_array_free(struct ArrowDeviceArray *x);

/// Moves a stream from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
BOWSTRING_API
void bowstring_host_stream_move(struct ArrowArrayStream *from,
                                struct ArrowArrayStream *to);

/// Releases a stream; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
BOWSTRING_API
void bowstring_host_stream_release(struct ArrowArrayStream *x);

/// Whether a stream was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API bool bowstring_host_stream_is_released(const struct ArrowArrayStream *x);

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_host_stream_free. Any thread may call it.
BOWSTRING_API struct ArrowArrayStream *bowstring_host_stream_new(void);

/// Releases a stream that is live, and frees the struct that bowstring_host_stream_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
BOWSTRING_API void bowstring_host_stream_free(struct ArrowArrayStream *x);

/// Moves a device stream from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
BOWSTRING_API
void bowstring_device_stream_move(struct ArrowDeviceArrayStream *from,
                                  struct ArrowDeviceArrayStream *to);

/// Releases a device stream; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
BOWSTRING_API
void bowstring_device_stream_release(struct ArrowDeviceArrayStream *x);

/// Whether a device stream was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API bool bowstring_device_stream_is_released(const struct ArrowDeviceArrayStream *x);

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_device_stream_free. Any thread may call it.
BOWSTRING_API struct ArrowDeviceArrayStream *bowstring_device_stream_new(void);

/// Releases a device stream that is live, and frees the struct that bowstring_device_stream_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
BOWSTRING_API
void bowstring_device_stream_free(struct ArrowDeviceArrayStream *x);

/// Lets a DLPack tensor go: runs its deleter once, inside the callback scope. NULL and a NULL deleter are left alone.
///
/// Of the tensor only the deleter is read, so any major version may be let go.
///
/// Ownership: the tensor and its struct are gone afterwards, and the pointer must not be used again; with a NULL deleter
/// nothing is freed. The deleter must not unwind. Any thread may call it, but not two on one tensor; the deleter runs on
/// that thread.
/// Source: DLPack, "DLManagedTensorVersioned.deleter" and "DLPackVersion" (rules 1, 3, 4 and 5).
BOWSTRING_API
void bowstring_tensor_release(struct DLManagedTensorVersioned *tensor);

/// Lets a DLPack tensor of before 1.0 go: runs its deleter once, inside the callback scope. NULL and a NULL deleter are
/// left alone.
///
/// Ownership: the tensor and its struct are gone afterwards, and the pointer must not be used again; with a NULL deleter
/// nothing is freed. The deleter must not unwind. Any thread may call it, but not two on one tensor; the deleter runs on
/// that thread.
/// Source: DLPack, "DLManagedTensor.deleter" (rules 4 and 5).
BOWSTRING_API
void bowstring_legacy_tensor_release(struct DLManagedTensor *tensor);

/// Parses a schema that is handed over.
///
/// The schema's structure is checked whole, strings and metadata up to the limits in this header. Names may be NULL.
///
/// Ownership: on success the schema was copied and released, and `schema->release` is NULL; on failure it is still the
/// caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released schema; INVALID_DATA with rule and
/// path for one that breaks a rule; OUT_OF_MEMORY. Any thread may call it.
/// Source: Arrow C Data interface, "ArrowSchema" and "Format strings".
BOWSTRING_API
BowstringStatus bowstring_type_import(struct ArrowSchema *schema,
                                      struct BowstringType **out,
                                      struct BowstringError *error);

/// Parses a schema that stays the caller's.
///
/// Ownership: the schema is borrowed for the call and copied. The caller releases `*out`.
/// Errors: as bowstring_type_import. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_copy_from(const struct ArrowSchema *schema,
                                         struct BowstringType **out,
                                         struct BowstringError *error);

/// Makes a type from its parts.
///
/// `format` is the node's own format string; children and dictionary are types made before, and keep their names.
///
/// Ownership: everything is borrowed for the call and copied. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlong arguments or a negative metadata_bytes; INVALID_DATA with rule and path
/// for parts that do not make a type; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
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

/// Parses a type's text form, such as "struct<a: int32 not null, s: list<utf8>>".
///
/// Fields are nullable unless `not null`. Metadata is not part of the text.
///
/// Ownership: the text is borrowed for the call. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments or text that is not a type, with position, expected and found;
/// INVALID_DATA for a type that breaks a rule; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_parse(const char *text,
                                     struct BowstringType **out,
                                     struct BowstringError *error);

/// Writes a type's text form, which bowstring_type_parse reads back.
///
/// `needed` receives the bytes that the whole text takes with its NUL. Too small a buffer receives a prefix, cut between
/// characters and ended with a NUL; NULL with capacity 0 only asks for `needed`.
///
/// Ownership: the buffer is the caller's; the type is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL type or a NULL buffer with a capacity. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_to_text(const struct BowstringType *type,
                                       char *out,
                                       size_t capacity,
                                       size_t *needed,
                                       struct BowstringError *error);

/// Writes a type as a schema, any number of times: one allocation, names never NULL.
///
/// Ownership: the caller releases `out`, which keeps what it needs of the type alive.
/// Errors: INVALID_ARGUMENT for NULL arguments; OUT_OF_MEMORY. Any thread may call it; any thread may release the schema.
BOWSTRING_API
BowstringStatus bowstring_type_export(const struct BowstringType *type,
                                      struct ArrowSchema *out,
                                      struct BowstringError *error);

/// Says what one node of a type is. Nodes are numbered depth first: a node, its children, then its dictionary; 0 is the
/// type itself. Allocates nothing.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the type.
/// Errors: INVALID_ARGUMENT for NULL arguments, a node out of range or a struct_size that is too small. Any thread may
/// call it.
BOWSTRING_API
BowstringStatus bowstring_type_node_info(const struct BowstringType *type,
                                         size_t node,
                                         struct BowstringTypeNodeInfo *out,
                                         struct BowstringError *error);

/// The type of a child.
///
/// Ownership: `*out` is borrowed from `type` and lives as long; retain it to keep it longer.
/// Errors: INVALID_ARGUMENT for NULL arguments or an index out of range. Allocates nothing. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_child(const struct BowstringType *type,
                                     size_t i,
                                     const struct BowstringType **out,
                                     struct BowstringError *error);

/// The type of the dictionary's values.
///
/// Ownership: `*out` is borrowed from `type` and lives as long; retain it to keep it longer.
/// Errors: INVALID_ARGUMENT for NULL arguments or a type without a dictionary. Allocates nothing. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_dictionary(const struct BowstringType *type,
                                          const struct BowstringType **out,
                                          struct BowstringError *error);

/// Lists the buffers that bowstring_device_array_from_buffers expects for a type, in its order.
///
/// A view's variadic buffers, of which there may be any number, are listed as one entry before that of their sizes.
/// `needed` receives the number of entries; too little room receives the first of them.
///
/// Ownership: the entries are the caller's; the type is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL type, or NULL entries with a capacity. Allocates nothing. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_type_layout(const struct BowstringType *type,
                                      struct BowstringLayoutEntry *out,
                                      size_t capacity,
                                      size_t *needed,
                                      struct BowstringError *error);

/// Whether two types are the same; `flags` are BOWSTRING_TYPE_IGNORE_*. NULL equals nothing, not even NULL.
///
/// Ownership: both are borrowed for the call. Allocates nothing. Any thread may call it.
BOWSTRING_API
bool bowstring_type_equals(const struct BowstringType *a,
                           const struct BowstringType *b,
                           uint32_t flags);

/// One handle more on the same type; returns `type`. NULL gives NULL. A child of a parsed type may be retained as well.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
BOWSTRING_API
struct BowstringType *bowstring_type_retain(const struct BowstringType *type);

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards. Any thread may call it, also while others use further handles.
BOWSTRING_API void bowstring_type_release(struct BowstringType *type);

/// Builds a device array of `type` from raw memory: one allocation, no copy.
///
/// `nodes` has the numbers of each node of the type, depth first: a node, its children, then its dictionary. `buffers`
/// has each node's buffers in the same order, as bowstring_type_layout lists them; a view's node says with n_buffers how
/// many variadic buffers it has. The slot of their sizes always counts; NULL data there means that they are built. A
/// validity buffer may be NULL when there are no nulls; an offsets buffer may be NULL at length 0. Sizes that are given
/// are checked against what length and offset need, and in CPU memory without an event against the last offset; -1 is
/// not checked. Null counts of -1 are counted in CPU memory. A struct's offset at the root is moved into its children
/// when the struct has no nulls. `placement` says where the memory is; NULL is the CPU, without owner or event.
///
/// Ownership: on success the array owns every owner and the event, and the owner, release_owner and event members of
/// `buffers` and `placement` are NULL; on failure nothing was touched and all of it is still the caller's. Each buffer's
/// release_owner runs once, when no node and no BowstringBuffer uses the buffer. The placement's owner is let go when no
/// node is live and no BowstringBuffer uses a buffer without a release_owner; the event is destroyed after the last
/// owner. With no owner at all the memory is immortal. The caller releases `out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, wrong numbers of nodes or buffers, an event on a device that has none,
/// unknown sizes of variadic buffers whose sizes are to be built, an unknown device or sync mode, a struct_size that is too
/// small, or overlapping arguments; INVALID_DATA with rule and
/// path for numbers that break a rule or buffers that are too small; UNSUPPORTED for record_on without a backend or members of
/// the placement that this version does not know;
/// OUT_OF_MEMORY. Any thread may call it; the owners may be let go on any thread.
/// Source: Arrow C Data interface, "ArrowArray"; Arrow C Device interface, "ArrowDeviceArray".
BOWSTRING_API
BowstringStatus bowstring_device_array_from_buffers(const struct BowstringType *type,
                                                    const struct BowstringNode *nodes,
                                                    size_t n_nodes,
                                                    struct BowstringOwnedBuffer *buffers,
                                                    size_t n_buffers,
                                                    struct BowstringPlacement *placement,
                                                    struct ArrowDeviceArray *out,
                                                    struct BowstringError *error);

/// One handle more on the same array; returns `array`. NULL gives NULL.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
BOWSTRING_API
struct BowstringArray *bowstring_array_retain(const struct BowstringArray *array);

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards; when nothing else needs the producer's struct, its release runs now, on this
/// thread. Any thread may call it, also while others use further handles.
BOWSTRING_API
void bowstring_array_release(struct BowstringArray *array);

/// The array's type; NULL for NULL.
///
/// Ownership: the result is borrowed and lives as long as the array; retain it to keep it longer. Any thread may call it.
BOWSTRING_API
const struct BowstringType *bowstring_array_type(const struct BowstringArray *array);

/// Copies what the array shows to another device, or hands out the same memory where MAY_SHARE is given and it can be reached.
///
/// Each buffer of a copy has memory of its own, aligned to 64 bytes and padded with zeroes. A slice takes along what it shows:
/// of text and lists the values that its offsets lead to, with offsets that start at 0; children that views, unions and
/// run ends lead to, and dictionaries, are copied whole. Sizes that only device memory tells are read first, under one wait, and
/// one more for each level of lists in a slice. Every read number is checked before it is used. A copy to the CPU is there when
/// the call returns. A copy to a device may still be under way, without blocking: its event says when it is done, and until then
/// the source is kept. Between devices of different drivers bytes go through CPU memory.
///
/// Ownership: nothing is taken; the caller releases `*out`, which with MAY_SHARE may keep alive what the array keeps. `*shared`,
/// which may be NULL, says whether it is the same memory.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments or a queue of another device; INVALID_DATA with rule and path for
/// numbers that cannot be; SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device without a backend, or a queue
/// that is being captured; DEVICE_UNAVAILABLE without a driver or device; DEVICE_ERROR with the driver's number as native_code;
/// CANCELLED when `progress` says so; CALLBACK_ERROR for memory of the caller's allocator that is not aligned; OUT_OF_MEMORY of
/// either side. On failure what was made is freed. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
BOWSTRING_API
BowstringStatus bowstring_array_to_device(const struct BowstringArray *array,
                                          struct BowstringDevice device,
                                          const struct BowstringTransferOptions *options,
                                          struct BowstringArray **out,
                                          bool *shared,
                                          struct BowstringError *error);

/// Waits for the array's event: with QUEUE what is enqueued there from now on runs after it, with HOST the thread blocks until it
/// is done. Without an event it does nothing.
///
/// Ownership: nothing changes hands; the array keeps its event.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or LIBRARY, which would let nobody wait; SYNC_REQUIRED for a pending
/// event with mode NONE; UNSUPPORTED for a device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR. Any thread may call it.
/// Source: rule D5.
BOWSTRING_API
BowstringStatus bowstring_array_wait(const struct BowstringArray *array,
                                     const struct BowstringSync *sync,
                                     struct BowstringError *error);

/// The same array under a new event, which is done when the queue has come this far: for whoever lets kernels write into or
/// read from its memory. The queue first waits for the array's old event.
///
/// Ownership: nothing is taken; the caller releases `*out`, which keeps alive what the array keeps, and its event. What it keeps is
/// let go when the event is done as well, in any later call that starts work, or bowstring_device_collect.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend or without events; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it.
/// Source: rules D5 and D6.
BOWSTRING_API
BowstringStatus bowstring_array_record(const struct BowstringArray *array,
                                       const struct BowstringSync *sync,
                                       struct BowstringArray **out,
                                       struct BowstringError *error);

/// The same array under one new event, which is done when its old one, the `n` others and the queue's work up to here are.
///
/// `events` has handles by value where the device's events are handles (CUDA, ROCm, OpenCL, Vulkan), elsewhere events' addresses.
///
/// Ownership: the events are borrowed for the call; else as bowstring_array_record.
/// Errors: as bowstring_array_record; INVALID_ARGUMENT for a NULL event. Any thread may call it.
/// Source: rule D6.
BOWSTRING_API
BowstringStatus bowstring_array_join_events(const struct BowstringArray *array,
                                            void *const *events,
                                            size_t n,
                                            const struct BowstringSync *sync,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);

/// Lets one handle go once the queue has come this far, without blocking: for whoever has enqueued kernels that still use the
/// array's memory. On devices without events, and on the CPU, it goes at once.
///
/// Ownership: on success the handle is taken and `*array` is NULL; what it keeps is let go later, by any call that starts work, or
/// bowstring_device_collect. On failure it is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_release_after(struct BowstringArray **array,
                                              const struct BowstringSync *sync,
                                              struct BowstringError *error);

/// Exports the array, any number of times: one allocation, and one more for the schema when it is asked for.
///
/// What goes out is the strictest reading of the interface: names are not NULL, reserved members are zero, the CPU's id
/// is -1, and a window on a struct without nulls is moved into its children. Null counts are counted in CPU memory;
/// elsewhere what is known or -1 goes out, because a device is never touched. Addresses are the originals, but for
/// buffers of no bytes in CPU memory, which are never NULL.
///
/// Ownership: the caller releases `out` and `out_schema`, each on its own; they keep alive what they show.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, `out_schema` excepted; OUT_OF_MEMORY. On failure both are
/// released structs. Any thread may call it; any thread may release what it wrote.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
BOWSTRING_API
BowstringStatus bowstring_array_export(const struct BowstringArray *array,
                                       struct ArrowDeviceArray *out,
                                       struct ArrowSchema *out_schema,
                                       struct BowstringError *error);

/// Exports the array as one in CPU memory, any number of times: one allocation, and one more for the schema.
///
/// Ownership: as bowstring_array_export.
/// Errors: as bowstring_array_export; SYNC_REQUIRED when an event is pending and the mode is NONE; UNSUPPORTED when the
/// CPU cannot read the buffers where they are; DEVICE_UNAVAILABLE, DEVICE_ERROR. Pinned memory, and managed memory where the
/// device allows concurrent access, go out after the wait as CPU memory; INVALID_DATA with rule D9 when the driver says that it is
/// not what the producer said. Any thread may call it; any thread may release what it wrote.
/// Source: Arrow C Data interface, "ArrowArray".
BOWSTRING_API
BowstringStatus bowstring_array_export_host(const struct BowstringArray *array,
                                            const struct BowstringSync *sync,
                                            struct ArrowArray *out,
                                            struct ArrowSchema *out_schema,
                                            struct BowstringError *error);

/// Imports an array and its schema, which are both handed over.
///
/// The structs' structure is checked whole; no buffer is read, on any device, also one without a backend. What the field
/// emits is accepted: NULL names, buffers of no bytes and offsets of no values that are NULL, a leading NULL validity
/// buffer of unions and null arrays, a null count of -1 with or without a bitmap, 0 as the CPU's id, and unzeroed
/// reserved members.
///
/// Ownership: on success both structs are taken, `schema->release` and `array->array.release` are NULL, and the
/// producer's release runs once, with the last handle, buffer and export, on whatever thread that is; on failure both are
/// still the caller's. The caller releases `*out`. An export of ours is recognised, and its buffers keep their own owners.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released struct; INVALID_DATA with rule and
/// path for a struct that breaks a rule; OUT_OF_MEMORY. Any thread may call it. Two allocations.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Arrow C Data interface, "Structure definitions".
BOWSTRING_API
BowstringStatus bowstring_array_import(struct ArrowDeviceArray *array,
                                       struct ArrowSchema *schema,
                                       struct BowstringArray **out,
                                       struct BowstringError *error);

/// Imports an array whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import, but for the type, which is borrowed for the call and kept by the array.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
BOWSTRING_API
BowstringStatus bowstring_array_import_typed(struct ArrowDeviceArray *array,
                                             const struct BowstringType *type,
                                             struct BowstringArray **out,
                                             struct BowstringError *error);

/// Imports an array in CPU memory and its schema, which are both handed over.
///
/// Ownership: as bowstring_array_import; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it. Two allocations.
/// Source: Arrow C Data interface, "ArrowArray".
BOWSTRING_API
BowstringStatus bowstring_array_import_host(struct ArrowArray *array,
                                            struct ArrowSchema *schema,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);

/// Imports an array in CPU memory whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import_typed; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Data interface, "ArrowArray".
BOWSTRING_API
BowstringStatus bowstring_array_import_host_typed(struct ArrowArray *array,
                                                  const struct BowstringType *type,
                                                  struct BowstringArray **out,
                                                  struct BowstringError *error);

/// Imports an array that stays somebody else's: the root struct is copied, and never released.
///
/// Ownership: what the struct points to must stay as it is until release_owner ran, once, when the last handle, buffer
/// and export are gone; with a NULL release_owner, until they are gone. On success the owner is taken; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: as bowstring_array_import. Any thread may call it; the owner may be let go on any thread.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
BOWSTRING_API
BowstringStatus bowstring_array_import_borrowed(const struct ArrowDeviceArray *array,
                                                const struct BowstringType *type,
                                                void *owner,
                                                void (*release_owner)(void *owner),
                                                struct BowstringArray **out,
                                                struct BowstringError *error);

/// The number of nodes of the array, and of all their buffers. Either pointer may be NULL.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_count(const struct BowstringArray *array,
                                      size_t *n_nodes,
                                      size_t *n_buffers,
                                      struct BowstringError *error);

/// Says what one node of the array is. Nodes are numbered depth first: a node, its children, then its dictionary; 0 is
/// the array itself. Allocates nothing and reads no buffer.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a node out of range or a struct_size that is too small. Any thread may
/// call it.
BOWSTRING_API
BowstringStatus bowstring_array_node_info(const struct BowstringArray *array,
                                          size_t node,
                                          struct BowstringNodeInfo *out,
                                          struct BowstringError *error);

/// Says what one buffer of the array is. Buffers are numbered in the order of their nodes. Allocates nothing and reads no
/// buffer: sizes that only buffers tell are -1 until bowstring_array_resolve_sizes.
///
/// Ownership: the struct is the caller's; the data lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a buffer out of range or a struct_size that is too small. Any thread may
/// call it.
BOWSTRING_API
BowstringStatus bowstring_array_buffer_info(const struct BowstringArray *array,
                                            size_t buffer,
                                            struct BowstringBufferInfo *out,
                                            struct BowstringError *error);

/// The device of the array's buffers, and the address of the event to wait on, NULL when there is none. Either pointer
/// may be NULL.
///
/// Ownership: nothing changes hands; the event lives as long as the array or any of its buffers.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
/// Source: Arrow C Device interface, "sync_event".
BOWSTRING_API
BowstringStatus bowstring_array_device(const struct BowstringArray *array,
                                       struct BowstringDevice *out,
                                       void **sync_event,
                                       struct BowstringError *error);

/// The number of nulls in the array: what is known of it, else counted and remembered.
///
/// Unions and run-end encoded arrays have no nulls of their own; every value of a null array is one; an index into a
/// dictionary counts, not the value it leads to.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; when it has to be counted, SYNC_REQUIRED for a
/// pending event with mode NONE, UNSUPPORTED for a device without a backend, DEVICE_UNAVAILABLE, DEVICE_ERROR. On failure
/// `*out` is -1. Any thread may call it. Of a device's bitmap at most 1 MiB is in CPU memory at once.
/// Source: Arrow C Data interface, "ArrowArray.null_count".
BOWSTRING_API
BowstringStatus bowstring_array_null_count(const struct BowstringArray *array,
                                           const struct BowstringSync *sync,
                                           int64_t *out,
                                           struct BowstringError *error);

/// Writes the array as text: its tree with types, lengths, nulls and device, and every buffer's role, address and size.
/// Never waits and reads no buffer.
///
/// `needed` receives the bytes that the whole text takes with its NUL. Too small a buffer receives a prefix, cut between
/// characters and ended with a NUL; NULL with capacity 0 only asks for `needed`.
///
/// Ownership: the buffer is the caller's; the array is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL array or a NULL buffer with a capacity. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_to_text(const struct BowstringArray *array,
                                        char *out,
                                        size_t capacity,
                                        size_t *needed,
                                        struct BowstringError *error);

/// A child of the array.
///
/// The children of structs, sparse unions and fixed-size lists are windowed like the array; those of lists, list views,
/// maps, dense unions and run-end encoded arrays are whole. Nulls of the array are not merged into it.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an index out of range; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_child(const struct BowstringArray *array,
                                      size_t i,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);

/// The dictionary's values, whole.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an array without a dictionary; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_dictionary(const struct BowstringArray *array,
                                           struct BowstringArray **out,
                                           struct BowstringError *error);

/// A window of `length` values from `offset` on, counted within the array. Nothing is copied or clamped.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or a range outside the array; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_slice(const struct BowstringArray *array,
                                      int64_t offset,
                                      int64_t length,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);

/// The same array with every buffer's size known: the ends of offsets and the sizes of variadic buffers are read, once.
///
/// What is read is checked: offsets at the end of a list lie within its child, and no size is negative.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; INVALID_DATA with rule, path and row for offsets
/// or sizes that cannot be; SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device
/// without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR; OUT_OF_MEMORY. On a device all is read under one wait. Any thread may call it.
/// Source: Arrow C Data interface, "Variable-size binary view".
BOWSTRING_API
BowstringStatus bowstring_array_resolve_sizes(const struct BowstringArray *array,
                                              const struct BowstringSync *sync,
                                              struct BowstringArray **out,
                                              struct BowstringError *error);

/// As bowstring_array_resolve_sizes, on any device: `read` copies `n` bytes from `src` to `dst` in CPU memory, and returns
/// 0, or an error number. It waits for the array's event itself. Each call reads one number of 4 or 8 bytes.
///
/// Ownership: `ctx` is the caller's, and is not used after the call.
/// Errors: as bowstring_array_resolve_sizes, but for SYNC_REQUIRED and UNSUPPORTED; CALLBACK_ERROR with the number that
/// `read` returned as native_code. `read` runs on the calling thread and must not unwind. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_resolve_sizes_with(const struct BowstringArray *array,
                                                   int (*read)(void *ctx, void *dst, const void *src, size_t n),
                                                   void *ctx,
                                                   struct BowstringArray **out,
                                                   struct BowstringError *error);

/// The same array with a further owner, which lives as long as the result and every export and buffer of it.
///
/// A buffer taken out of the result keeps the whole of it, and so the owner.
///
/// Ownership: on success the owner is taken: release_owner runs once, after what the array itself keeps; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, `owner` excepted; OUT_OF_MEMORY. Any thread may call it; the owner may be
/// let go on any thread.
BOWSTRING_API
BowstringStatus bowstring_array_with_owner(const struct BowstringArray *array,
                                           void *owner,
                                           void (*release_owner)(void *owner),
                                           struct BowstringArray **out,
                                           struct BowstringError *error);

/// Takes one buffer out of the array, which stays alive on its own.
///
/// Ownership: the caller releases `*out`. It keeps no more than it must: the buffer's own owner, or the placement's, when
/// the array was built by this library; the producer's struct when it is foreign; the whole array when an owner was added
/// to it.
/// Errors: INVALID_ARGUMENT for NULL arguments or a buffer out of range; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_array_buffer(const struct BowstringArray *array,
                                       size_t buffer,
                                       struct BowstringBuffer **out,
                                       struct BowstringError *error);

/// Takes the array apart: the exact inverse of bowstring_device_array_from_buffers.
///
/// `nodes` and `buffers` have room for exactly as many as bowstring_array_count says. Sizes that nobody has told or
/// resolved are -1. `out_placement`, which may be NULL, receives the device and the event, with a NULL destroy_event: the
/// event lives as long as any of the owners, and without one there is none. Sizes of variadic buffers that this library built
/// come as NULL, as they were given. Nothing is allocated.
///
/// Ownership: each entry of `buffers` owns its own owner, and the caller lets it go by release_owner(owner) or hands it
/// on; entries without memory own nothing. The array is borrowed.
/// Errors: INVALID_ARGUMENT for NULL arguments, wrong numbers or a struct_size that is too small. On failure nothing was
/// written to `nodes` and `buffers`. Any thread may call it; the owners may be let go on any thread.
BOWSTRING_API
BowstringStatus bowstring_array_to_buffers(const struct BowstringArray *array,
                                           struct BowstringNode *nodes,
                                           size_t n_nodes,
                                           struct BowstringOwnedBuffer *buffers,
                                           size_t n_buffers,
                                           struct BowstringPlacement *out_placement,
                                           struct BowstringError *error);

/// Makes a buffer of memory that somebody owns.
///
/// A NULL `placement` is the CPU, without event. With record_on an event is recorded.
///
/// Ownership: on success the buffer owns the memory's owner and the placement's owner and event, and those members are
/// NULL; the memory's owner is let go with the last handle, then the placement's, and the event is destroyed after them.
/// On failure nothing was touched. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, a size below -1, NULL data with a size, an event on a device
/// that has none, an unknown device or sync mode, or a struct_size that is too small; UNSUPPORTED for record_on on
/// a device without a backend or events, or members of the placement that this version does not know; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_wrap(struct BowstringOwnedBuffer *memory,
                                      struct BowstringPlacement *placement,
                                      struct BowstringBuffer **out,
                                      struct BowstringError *error);

/// Allocates zeroed memory of `size` bytes on a device, and says where to write to it until the buffer is handed on.
///
/// It is aligned to 64 bytes and padded with zeroes to a multiple of 64. With NONE and HOST it is ready when the call returns; with
/// QUEUE what is enqueued there from now on may use it, and with LIBRARY, or from elsewhere, whoever waits for the buffer's
/// event. On the CPU it always is.
///
/// Ownership: the caller releases `*out`; `*data` is valid as long as the buffer.
/// Errors: INVALID_ARGUMENT for NULL out-parameters, a negative size, an unknown device or sync mode; UNSUPPORTED for a
/// device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR; OUT_OF_MEMORY, also the device's. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_allocate(struct BowstringDevice device,
                                          int64_t size,
                                          const struct BowstringSync *sync,
                                          struct BowstringBuffer **out,
                                          void **data,
                                          struct BowstringError *error);

/// Copies a buffer's bytes to another device, or hands out the same memory where MAY_SHARE is given and it can be reached.
///
/// Ownership: nothing is taken; the caller releases `*out`, which with MAY_SHARE may keep alive what the buffer keeps. `*shared`,
/// which may be NULL, says whether it is the same memory.
/// Errors: as bowstring_array_to_device; INVALID_ARGUMENT for a buffer of unknown size. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_to_device(const struct BowstringBuffer *buffer,
                                           struct BowstringDevice device,
                                           const struct BowstringTransferOptions *options,
                                           struct BowstringBuffer **out,
                                           bool *shared,
                                           struct BowstringError *error);

/// One handle more on the same buffer; returns `buffer`. NULL gives NULL.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
BOWSTRING_API
struct BowstringBuffer *bowstring_buffer_retain(const struct BowstringBuffer *buffer);

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards; with the last one the owner is let go, on this thread. Any thread may call
/// it, also while others use further handles.
BOWSTRING_API
void bowstring_buffer_release(struct BowstringBuffer *buffer);

/// Says where a buffer's memory is, how large it is, and what to wait on. Allocates nothing and never waits.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the buffer.
/// Errors: INVALID_ARGUMENT for NULL arguments or a struct_size that is too small. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_info(const struct BowstringBuffer *buffer,
                                      struct BowstringBufferMemory *out,
                                      struct BowstringError *error);

/// A part of a buffer: `length` bytes from `offset` on. Where the buffer's size is unknown, the range is the caller's word.
///
/// Ownership: the part keeps the same owner alive as the whole; the caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments or a range outside the buffer, which is never clamped; OUT_OF_MEMORY.
/// Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_slice(const struct BowstringBuffer *buffer,
                                       int64_t offset,
                                       int64_t length,
                                       struct BowstringBuffer **out,
                                       struct BowstringError *error);

/// Copies `n` bytes from `offset` on into CPU memory, wherever they are, and returns when they are there. Where the buffer's size is unknown, the range is the caller's word.
///
/// Ownership: `dst` is the caller's; the buffer is borrowed for the call.
/// Errors: INVALID_ARGUMENT for NULL arguments, an unknown sync mode, or a range outside the buffer; SYNC_REQUIRED when an
/// event is pending and the mode is NONE; UNSUPPORTED for a device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR. Any
/// thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_read(const struct BowstringBuffer *buffer,
                                      int64_t offset,
                                      void *dst,
                                      int64_t n,
                                      const struct BowstringSync *sync,
                                      struct BowstringError *error);

/// Turns a buffer into memory with an owner, ready for bowstring_device_array_from_buffers.
///
/// Ownership: on success `*buffer` is NULL and `out` owns what the handle owned; the caller lets its owner go or hands it
/// on. On failure `*buffer` is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL arguments or overlapping ones. Allocates nothing. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_buffer_into_owned(struct BowstringBuffer **buffer,
                                            struct BowstringOwnedBuffer *out,
                                            struct BowstringError *error);

/// Brings a device: from now on the library allocates on devices of this type, copies to and from them, and waits for their
/// events, through these functions.
///
/// The CPU and CUDA's types are built in. Each other type may be registered once, and stays until the process ends.
///
/// Ownership: `backend` is borrowed for the call and copied; its `ctx` and functions must stay until the process ends.
/// Errors: INVALID_ARGUMENT for a NULL backend, a struct_size that is too small, a missing function that is required, a type
/// that the interface does not define, that is built in, or that was registered before, or events for one whose arrays carry none; UNSUPPORTED for members that this
/// version does not know, or more types than it has room for. Any thread may call it.
/// Source: Arrow C Device interface, "Device types".
BOWSTRING_API
BowstringStatus bowstring_device_register(ArrowDeviceType type,
                                          const struct BowstringDeviceBackend *backend,
                                          struct BowstringError *error);

/// Counts the devices of a type; when there are none that can be used, the error says why.
///
/// For CUDA's types the first call opens the driver.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for a NULL out-parameter; UNSUPPORTED for a type without a backend; DEVICE_UNAVAILABLE without a driver
/// or a device; DEVICE_ERROR with the driver's number as native_code. On failure `*count` is 0. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_device_probe(ArrowDeviceType type,
                                       int64_t *count,
                                       struct BowstringError *error);

/// Lets go what finished work on a device's queues needed: sources of copies, and what release_after was given.
///
/// This happens by itself whenever new work is started. With `block` it waits until all of it is done.
///
/// Ownership: nothing of the caller's changes hands; owners of what is let go are told on this thread.
/// Errors: INVALID_ARGUMENT for an unknown device; DEVICE_ERROR with the driver's number as native_code. `pending`, which may be
/// NULL, receives how much is still under way. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_device_collect(struct BowstringDevice device,
                                         bool block,
                                         size_t *pending,
                                         struct BowstringError *error);

/// Releases a device array once a queue of its device has come this far, without blocking: for whoever has enqueued kernels that
/// still use its memory. On devices without events, and on the CPU, it is released at once. A released one is left alone.
///
/// Ownership: on success the struct is moved and `array` is released; its producer's release runs later, in any call that starts
/// work, or in bowstring_device_collect. On failure it is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it, but not two at once on one struct.
/// Source: rules D5 and D6.
BOWSTRING_API
BowstringStatus bowstring_device_array_release_after(struct ArrowDeviceArray *array,
                                                     const struct BowstringSync *sync,
                                                     struct BowstringError *error);

/// Sets what is called around every foreign release, deleter and owner callback, once for the process.
///
/// Set it only on a copy of the library whose users are Python, before the first callback can run; C functions, never
/// ctypes callbacks: `enter` and `leave` are exactly PyGILState_Ensure and PyGILState_Release. With `held`, `pause` and `resume`,
/// which are PyGILState_Check, PyEval_SaveThread and PyEval_RestoreThread, whatever waits for another thread of the library, such
/// as the release of a stream that is ahead, lets the interpreter's lock go meanwhile if the caller holds it.
///
/// Ownership: the scope is borrowed for the call and copied; its functions must stay callable until the process ends.
/// Errors: INVALID_ARGUMENT when scope, enter or leave is NULL, only some of held, pause and resume are, struct_size is too small,
/// or a scope was set before;
/// UNSUPPORTED when the struct uses members that this version does not know. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_callback_scope_set(const struct BowstringCallbackScope *scope,
                                             struct BowstringError *error);

/// Lets no new foreign callback in, waits for those that are running, and skips all from then on.
///
/// Skipped callbacks are counted in BowstringLiveCounts as leaked. Call it from atexit, before the interpreter ends,
/// with the interpreter's lock released, and never from inside a callback. Without a scope it does nothing.
///
/// Ownership: nothing changes hands; owners whose callbacks are skipped are never let go. Any thread may call it.
BOWSTRING_API
void bowstring_callback_scope_close(void);

/// Counts what the library made and has not freed, for leak hunts.
///
/// Each thing counts until the functions that let go what it owns have returned. A NULL pointer or a struct_size that is too
/// small leaves the struct as it is.
///
/// Ownership: the struct is the caller's; only its struct_size is read. Any thread may call it, and sees some moment
/// between the calls of other threads.
BOWSTRING_API
void bowstring_live_counts(struct BowstringLiveCounts *out);

/// The library's version, such as "0.1.0".
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
BOWSTRING_API const char *bowstring_version(void);

/// The version of the ABI that this copy of the library has, see BOWSTRING_ABI_VERSION.
///
/// Ownership: nothing changes hands. Any thread may call it.
BOWSTRING_API uint32_t bowstring_abi_version(void);

/// Shows an array's values as a tensor: the same memory, never copied but for bits.
///
/// Integers and floats go out as they are, fixed-size lists as further dimensions, arrow.fixed_shape_tensor with its shape and
/// permutation. With PHYSICAL also dates, times, timestamps, durations, decimals, intervals, fixed-size binary, views and
/// indices into dictionaries go out, as integers, or as bytes in a last dimension where no integer is as wide. Booleans are
/// unpacked, with ALLOW_COPY only. Nulls at any level are refused unless VALUES_ONLY is given. The tensor has version 1.3,
/// strides, READ_ONLY or else IS_COPIED; data is NULL without elements, and byte_offset 0 where the device has addresses.
/// An arrow.fixed_shape_tensor within another is refused, because nobody says whose dimensions come first.
///
/// Ownership: nothing is taken; `*out` keeps the values' buffer and no more, works without the array, and is let go once, by
/// its deleter or bowstring_tensor_release, on any thread.
/// Errors: UNSUPPORTED with the path for nulls, types and sizes that no tensor has; SYNC_REQUIRED for a pending event with mode
/// NONE; INVALID_ARGUMENT for NULL arguments or unknown options; OUT_OF_MEMORY. Any thread may call it. One allocation.
/// Source: DLPack, "DLTensor"; Arrow columnar format, "Fixed shape tensor".
BOWSTRING_API
BowstringStatus bowstring_array_to_tensor(const struct BowstringArray *array,
                                          const struct BowstringTensorOptions *options,
                                          struct DLManagedTensorVersioned **out,
                                          struct BowstringError *error);

/// Shows an array's validity bitmap as a tensor of bytes, whose bit `*bit_offset` is the first row's; with ALLOW_COPY as a
/// boolean a row, with a bit offset of 0. An array without a bitmap, all of whose rows are valid, has none: `*out` is NULL.
///
/// Ownership: nothing is taken; `*out` keeps the bitmap alone, or is a copy, and is let go once, on any thread.
/// Errors: as bowstring_array_to_tensor. `bit_offset` may be NULL with ALLOW_COPY only. Any thread may call it.
/// Source: Arrow columnar format, "Validity bitmaps".
BOWSTRING_API
BowstringStatus bowstring_array_validity_to_tensor(const struct BowstringArray *array,
                                                   const struct BowstringTensorOptions *options,
                                                   struct DLManagedTensorVersioned **out,
                                                   int64_t *bit_offset,
                                                   struct BowstringError *error);

/// Shows a buffer as a tensor, row-major from its first byte on. Nothing is guessed: the buffer's size has to be known and large
/// enough. Elements below a byte are packed.
///
/// Ownership: nothing is taken; the shape is copied; `*out` keeps the buffer's memory, and is let go once, on any thread.
/// Errors: INVALID_ARGUMENT for NULL arguments, negative lengths, elements that DLPack does not define, or more bytes than the
/// buffer is known to have; UNSUPPORTED for more than 64 dimensions; else as bowstring_array_to_tensor. Any thread may call it.
/// One allocation.
/// Source: DLPack, "DLTensor".
BOWSTRING_API
BowstringStatus bowstring_buffer_to_tensor(const struct BowstringBuffer *buffer,
                                           struct BowstringDataType dtype,
                                           int32_t ndim,
                                           const int64_t *shape,
                                           const struct BowstringTensorOptions *options,
                                           struct DLManagedTensorVersioned **out,
                                           struct BowstringError *error);

/// Makes an array of a tensor: the same memory where rows lie as Arrow has them, else a copy with ALLOW_COPY.
///
/// Without a type, one dimension becomes numbers and more become fixed-size lists; booleans become arrow.bool8. With a type, its
/// lists' sizes and its values must be the tensor's: physical ones, such as a timestamp for 64-bit integers; bool packs booleans,
/// which is a copy; arrow.fixed_shape_tensor takes a row-major order of the dimensions as its permutation, in which dimensions
/// with equal strides stay in their order. A scalar is one row. Behind the start of a device's handle there is no array.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with the last use of the memory, or
/// at once after a copy; on failure it is still the caller's. The caller releases `*out`.
/// Errors: INVALID_DATA with the rule for a struct that breaks one; UNSUPPORTED for another major version, elements, shapes and
/// strides that the type does not have; INVALID_ARGUMENT for NULL arguments or unknown options; OUT_OF_MEMORY. Any thread may
/// call it.
/// Source: DLPack, "DLManagedTensorVersioned" (docs/rules.md, DL1 to DL18).
BOWSTRING_API
BowstringStatus bowstring_array_from_tensor(struct DLManagedTensorVersioned **tensor,
                                            const struct BowstringType *type,
                                            const struct BowstringTensorOptions *options,
                                            struct BowstringArray **out,
                                            struct BowstringError *error);

/// Wraps a tensor of before 1.0 in one with a version: READ_ONLY, because nobody said that it may be written, and with strides.
/// The data is not touched.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with that of `*out`; on failure it is
/// still the caller's.
/// Errors: INVALID_DATA with the rule for a struct that breaks one; INVALID_ARGUMENT for NULL arguments or unknown options;
/// OUT_OF_MEMORY. Any thread may call it. One allocation.
/// Source: DLPack, "DLManagedTensor".
BOWSTRING_API
BowstringStatus bowstring_tensor_from_legacy(struct DLManagedTensor **tensor,
                                             const struct BowstringTensorOptions *options,
                                             struct DLManagedTensorVersioned **out,
                                             struct BowstringError *error);

/// Wraps a tensor in one of before 1.0, for consumers that know no other. The data is not touched.
///
/// Ownership: on success the tensor is taken, `*tensor` is NULL, and its deleter runs once, with that of `*out`; on failure it is
/// still the caller's.
/// Errors: UNSUPPORTED for a read-only tensor without DROP_READ_ONLY, because a legacy tensor cannot say that it is, and for
/// another major version; else as bowstring_tensor_from_legacy. Any thread may call it. One allocation.
/// Source: DLPack, "DLManagedTensor".
BOWSTRING_API
BowstringStatus bowstring_tensor_to_legacy(struct DLManagedTensorVersioned **tensor,
                                           const struct BowstringTensorOptions *options,
                                           struct DLManagedTensor **out,
                                           struct BowstringError *error);

/// Checks a raw schema by every rule about schemas; with a profile, whether its consumer takes the type.
///
/// Ownership: nothing changes hands; the schema is borrowed for the call.
/// Errors: the first finding that is an error: INVALID_DATA with rule and path, or NOT_CONFORMING for the profile;
/// RELEASED for a released schema; CANCELLED when on_finding stopped before there was one; INVALID_ARGUMENT for NULL
/// arguments or unknown options; UNSUPPORTED for options that this version does not know; OUT_OF_MEMORY. Any thread may
/// call it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, S1 to S7 and F1 to F5.
BOWSTRING_API
BowstringStatus bowstring_schema_validate(const struct ArrowSchema *schema,
                                          const struct BowstringValidateOptions *options,
                                          struct BowstringError *error);

/// Checks a raw array that is not imported, by every rule.
///
/// The struct is looked at as it is, faults and all, whatever its release. No buffer is read at level STRUCTURE. The other levels
/// copy what they look at where it is not the CPU's, through memory of staging_bytes, after the array's event as `sync`
/// says how to wait for it, and block until it is there; with QUEUE the copies run on that queue. Where that cannot be done,
/// the structural check is made whole all the same.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_schema_validate, with the row. Only when nothing else is wrong and the level asks for what buffers
/// hold: SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device without a backend, or for staging_bytes
/// that are too few; DEVICE_UNAVAILABLE without a driver or device; DEVICE_ERROR with the driver's number as native_code.
/// Any thread may call it; on_finding runs on the calling thread and must not unwind. One allocation for CPU memory.
/// Source: docs/rules.md, A1 to A8, B1 to B8, D2 to D9 and M2.
BOWSTRING_API
BowstringStatus bowstring_device_array_validate(const struct ArrowDeviceArray *array,
                                                const struct BowstringType *type,
                                                const struct BowstringValidateOptions *options,
                                                struct BowstringError *error);

/// Checks a raw array in CPU memory that is not imported, by every rule.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_device_array_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind. One allocation.
/// Source: docs/rules.md, A1 to A8, B1 to B8 and M2.
BOWSTRING_API
BowstringStatus bowstring_host_array_validate(const struct ArrowArray *array,
                                              const struct BowstringType *type,
                                              const struct BowstringValidateOptions *options,
                                              struct BowstringError *error);

/// Checks an array of ours, as far as its window shows it. What the import checked holds already; what its buffers hold does
/// not. Device memory is read as bowstring_device_array_validate does.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_device_array_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind. Allocates nothing but for threads and copies of device memory.
/// Source: docs/rules.md, A1 to A8, B1 to B8.
BOWSTRING_API
BowstringStatus bowstring_array_validate(const struct BowstringArray *array,
                                         const struct BowstringValidateOptions *options,
                                         struct BowstringError *error);

/// The same array as a named consumer takes it, repaired where it would be refused, misread or crash.
///
/// Without copying: null counts that the CPU can count are counted, and the offset of a struct without nulls goes into its
/// children. With BOWSTRING_CONFORM_ALLOW_COPY, in CPU memory, those buffers are copied that have to be: indices into
/// dictionaries of another type, offsets of large and fixed-size lists and of list views one behind the other, misaligned
/// buffers, unaligned or unpadded validity bitmaps, and with _AS_TABLE the root's nulls into its children's bitmaps.
/// _TO_OFFSETS makes offsets of string and list views, _TO_VIEWS views of offsets, for any profile; a copy as well. Text of
/// more than 2147483647 bytes gets 64-bit offsets. All else is shared with the array, each buffer with its own owner.
///
/// Ownership: nothing is taken; the caller releases `*out`, which keeps of the array what it shares.
/// Errors: NOT_CONFORMING with rule and path for what cannot be repaired; INVALID_DATA with rule, path and row when copying
/// meets data that breaks a rule; INVALID_ARGUMENT for NULL arguments, unknown profiles, flags or sync modes, or both kinds
/// of views;
/// OUT_OF_MEMORY. Any thread may call it.
/// Source: docs/rules.md, C1 and following.
BOWSTRING_API
BowstringStatus bowstring_array_conform(const struct BowstringArray *array,
                                        int32_t profile,
                                        const struct BowstringSync *sync,
                                        uint32_t flags,
                                        struct BowstringArray **out,
                                        struct BowstringError *error);

/// Checks the struct of a stream of arrays on a device, without calling it.
///
/// Ownership: nothing changes hands; the stream is borrowed for the call.
/// Errors: INVALID_DATA with the rule; RELEASED for a released stream; else as bowstring_schema_validate. Any thread may call
/// it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, ST1, D2 and M2.
BOWSTRING_API
BowstringStatus bowstring_device_stream_validate(const struct ArrowDeviceArrayStream *stream,
                                                 const struct BowstringValidateOptions *options,
                                                 struct BowstringError *error);

/// Checks the struct of a stream of arrays in CPU memory, without calling it.
///
/// Ownership: nothing changes hands; the stream is borrowed for the call.
/// Errors: as bowstring_device_stream_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind.
/// Source: docs/rules.md, ST1 and M2.
BOWSTRING_API
BowstringStatus bowstring_host_stream_validate(const struct ArrowArrayStream *stream,
                                               const struct BowstringValidateOptions *options,
                                               struct BowstringError *error);

/// Checks a DLPack tensor by every rule that its struct can break. Its data is not read.
///
/// Of a tensor of another major version than 1 only that is read. At most 64 dimensions are looked at.
///
/// Ownership: nothing changes hands; the tensor is borrowed for the call.
/// Errors: INVALID_DATA with the rule; UNSUPPORTED for another major version or more dimensions; else as
/// bowstring_schema_validate, and of the options only max_findings and on_finding count. Any thread may call it; on_finding
/// runs on the calling thread and must not unwind.
/// Source: docs/rules.md, DL1 to DL18.
BOWSTRING_API
BowstringStatus bowstring_tensor_validate(const struct DLManagedTensorVersioned *tensor,
                                          const struct BowstringValidateOptions *options,
                                          struct BowstringError *error);

/// Checks a DLPack tensor of before 1.0 by every rule that its struct can break. Its data is not read.
///
/// Ownership: nothing changes hands; the tensor is borrowed for the call.
/// Errors: as bowstring_tensor_validate. Any thread may call it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, DL2 to DL18.
BOWSTRING_API
BowstringStatus bowstring_legacy_tensor_validate(const struct DLManagedTensor *tensor,
                                                 const struct BowstringValidateOptions *options,
                                                 struct BowstringError *error);

/// The type of every array of the stream; NULL for NULL.
///
/// An asynchronous producer tells it when it wants to: of a stream that bowstring_stream_from_async made, this waits until then, and
/// is NULL where no type comes.
///
/// Ownership: the result is borrowed and lives as long as the stream; retain it to keep it longer. Any thread may call it,
/// also while another one asks the stream.
BOWSTRING_API
const struct BowstringType *bowstring_stream_type(const struct BowstringStream *stream);

/// The device of the stream: its type is that of every array's device, its id -1 unless all arrays are known to be on the same.
/// All zero for NULL, and where bowstring_stream_type has none; it waits as that does.
///
/// Ownership: nothing changes hands. Any thread may call it, also while another one asks the stream.
BOWSTRING_API
struct BowstringDevice bowstring_stream_device(const struct BowstringStream *stream);

/// Ends the stream: the next call, and one that is running, say CANCELLED, and so do all after that. A producer that is
/// running is not interrupted; a call that waits for the thread of a bowstring_stream_to_device, or for an asynchronous producer,
/// comes back at once. A stream that has ended or failed stays as it is. NULL is fine.
///
/// Ownership: nothing changes hands; the stream still has to be released. Any thread may call it, also while another one asks
/// the stream, but not while another one releases it or hands it over.
BOWSTRING_API
void bowstring_stream_cancel(struct BowstringStream *stream);

/// Lets the stream go, and the producer with it. Arrays that it gave live on. NULL is fine.
///
/// Ownership: the handle is gone afterwards; the producer's release runs now, on this thread, once the thread of a
/// bowstring_stream_to_device has left the producer. Any thread may call it, but not while another one uses the stream, and not
/// from inside its producer.
BOWSTRING_API
void bowstring_stream_release(struct BowstringStream *stream);

/// Gives the next array; NULL at the end, again and again.
///
/// A stream that has failed says the same again, without asking its producer. An error of a producer is told with its number, in
/// native_code, and its text: ENOMEM as OUT_OF_MEMORY, ENOSYS and ENOTSUP as UNSUPPORTED, ECANCELED as CANCELLED, all else as
/// CALLBACK_ERROR. Every error that is about an array says which, in batch.
///
/// Ownership: the caller releases `*out`, which lives on without the stream. What a producer gave with an error, and an array that
/// fails its check, are released.
/// Errors: INVALID_ARGUMENT for NULL arguments, and with rule ST6 for a call that meets another one; INVALID_DATA with rule, path
/// and batch for an array that breaks one; CALLBACK_ERROR; CANCELLED after bowstring_stream_cancel; OUT_OF_MEMORY; INTERNAL for a
/// producer in Rust that panicked; else what the producer says. Any thread may call it, one at a time.
/// Source: docs/rules.md, ST2 to ST6 and DS1.
BOWSTRING_API
BowstringStatus bowstring_stream_next(struct BowstringStream *stream,
                                      struct BowstringArray **out,
                                      struct BowstringError *error);

/// Gives the next array as a struct; a released one at the end, again and again.
///
/// It is what bowstring_stream_next and bowstring_array_export give, without the handle between them.
///
/// Ownership: the caller releases `out`, which lives on without the stream.
/// Errors: as bowstring_stream_next. On failure `out` is a released struct. Any thread may call it, one at a time.
/// Source: docs/rules.md, ST2 to ST6 and DS1.
BOWSTRING_API
BowstringStatus bowstring_stream_next_device_array(struct BowstringStream *stream,
                                                   struct ArrowDeviceArray *out,
                                                   struct BowstringError *error);

/// Asks until the end, and gives all arrays as one, of the stream's type.
///
/// A single array is given as it is, on any device; several are copied, in CPU memory; none make an array without rows. Dictionaries
/// that say the same are kept, others are put one behind the other. Bytes that views point into are shared and not copied. Slots of
/// list views, unions and indices under nulls may change.
///
/// Ownership: on success the stream is taken and released, and `*stream` is NULL; the caller releases `*out`. On failure the stream
/// is still the caller's; unless it was not asked at all, it has failed, and the arrays that it gave are released.
/// Errors: as bowstring_stream_next; SYNC_REQUIRED for a pending event with mode NONE, and UNSUPPORTED for memory that the CPU cannot
/// read, where there are several arrays; INVALID_DATA with rule, path and row for offsets, views, runs and indices that lead nowhere;
/// UNSUPPORTED with the path for more values than the type's offsets, indices or run ends can count. Any thread may call it, one at
/// a time.
BOWSTRING_API
BowstringStatus bowstring_stream_collect(struct BowstringStream **stream,
                                         const struct BowstringSync *sync,
                                         struct BowstringArray **out,
                                         struct BowstringError *error);

/// Hands the stream's arrays to an asynchronous handler, from one thread of ours. Experimental: the interface may change, and this
/// with it.
///
/// Returns at once. The thread calls on_schema, then on_next_task for each array that was requested, with NULL behind the last, which
/// takes a request as well, or on_error, and at the end release; never two at a time. It asks the stream, so that the stream's own
/// producer runs on it. request and cancel may be called by any thread until release is called, also inside on_schema and
/// on_next_task, and never call back. Requests add up to at most 2^64 - 1; one below 1 is an error, told with rule AS6. After cancel
/// comes release and no error; so it is after a callback that returned another number than 0. extract_data has to be called once for
/// each task, also for one that nobody wants, with NULL, also where on_next_task returns an error; it may be called later, with a copy
/// of the task, by any thread. The number of an error is as bowstring_stream_export has it, its text as get_last_error.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; it is released behind the handler and the last task. The handler
/// stays the caller's memory, must not be moved, and is not touched after its release was called. On failure nothing happened, and
/// none of the callbacks was called.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, and with rule ST6 while another call on the stream is running; RELEASED
/// for a released handler; INVALID_DATA with rule AS2 for one without its callbacks; OUT_OF_MEMORY, also where no thread can be started.
/// All later errors go to on_error. Any thread may call it. After a fork the child has no such thread: it must not use the handler.
/// Source: Arrow C Device interface, "ArrowAsyncDeviceStreamHandler"; docs/rules.md, AS2 to AS6.
BOWSTRING_API
BowstringStatus bowstring_stream_to_async(struct BowstringStream **stream,
                                          struct ArrowAsyncDeviceStreamHandler *handler,
                                          struct BowstringError *error);

/// Makes a stream of what an asynchronous producer hands to `out_handler`. Experimental: the interface may change, and this with it.
///
/// The handler goes to a producer, which may call it on any thread. The stream is asked as every stream is; a call waits for the
/// producer. When the type came, `capacity` arrays are requested, and one more for each that was taken, so that there are never more
/// on their way. What a call needs the type for waits for it: bowstring_stream_type, _device, _export and all that take the stream. The
/// text and number of on_error become the stream's error, behind the arrays that came before. The end, and such an error, are given
/// when the producer has let the handler go. A producer that does what it should not do is an error of the stream, with the rule.
/// Metadata of tasks is not read. bowstring_stream_cancel and _release cancel the producer; what comes later is dropped, each task
/// asked for its array once, with NULL.
///
/// Ownership: the caller releases `*out`. The handler stays the caller's memory: it must not be moved, and has to be there until its
/// release was called, once, by the producer, or by the caller if it never went to one. To free it then, put a function of your own
/// in the place of its release, which calls the one that was there first. On failure `*out` is NULL, and the handler is a released
/// one.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments and a capacity of 0; OUT_OF_MEMORY. The stream says what
/// bowstring_stream_next does, and INVALID_DATA with rules AS2 to AS8. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowAsyncDeviceStreamHandler"; docs/rules.md, AS2 to AS8.
BOWSTRING_API
BowstringStatus bowstring_stream_from_async(size_t capacity,
                                            struct ArrowAsyncDeviceStreamHandler *out_handler,
                                            struct BowstringStream **out,
                                            struct BowstringError *error);

/// Makes a stream of a producer's callbacks.
///
/// The next array is asked for when the stream is asked. What get_next gives is checked as bowstring_stream_import has it; what
/// this library built goes on as it is, without a further allocation, where the consumer takes structs.
///
/// Ownership: on success the producer is taken, `ctx` and `release` in `callbacks` are NULL, and its release runs once, when the
/// stream is released; on failure it is still the caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, both or neither of get_next and get_next_array, an unknown device, or a struct_size
/// that is too small; UNSUPPORTED for members that this version does not know; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_stream_from_callbacks(const struct BowstringType *type,
                                                struct BowstringStreamCallbacks *callbacks,
                                                struct BowstringStream **out,
                                                struct BowstringError *error);

/// Exports the stream as a struct for its device. Allocates nothing.
///
/// Its get_schema may be called at any time and any number of times; its get_next gives what bowstring_stream_next_device_array
/// does. An error is returned as a number: EINVAL for INVALID_ARGUMENT, INVALID_DATA, NOT_CONFORMING, SYNC_REQUIRED and RELEASED;
/// ENOMEM for OUT_OF_MEMORY; ENOSYS for UNSUPPORTED; ECANCELED for CANCELLED; for CALLBACK_ERROR the producer's own number;
/// EIO for all else. get_last_error has status, rule, batch, path, row and message as text until the next call, and NULL after a
/// success. The struct may be moved; its release may run on any thread.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `out`. Schemas and arrays that it gave live
/// on without it. On failure nothing happened.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, and with rule ST6 while another call on the stream is running. On
/// failure `out` is a released struct. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArrayStream"; docs/rules.md, ST1 to ST6 and DS1.
BOWSTRING_API
BowstringStatus bowstring_stream_export(struct BowstringStream **stream,
                                        struct ArrowDeviceArrayStream *out,
                                        struct BowstringError *error);

/// Exports the stream as a struct in CPU memory. Allocates nothing.
///
/// `sync` says how the CPU is to wait for each array that comes with an event, as bowstring_array_export_host has it; NULL is NONE.
/// An array that the CPU cannot read is an error of get_next: ENOSYS.
///
/// Ownership: as bowstring_stream_export; the sync is copied, and its queue has to live as long as the stream.
/// Errors: as bowstring_stream_export; INVALID_ARGUMENT for an unknown sync mode. Any thread may call it.
/// Source: Arrow C Stream interface, "ArrowArrayStream"; docs/rules.md, ST1 to ST6.
BOWSTRING_API
BowstringStatus bowstring_stream_export_host(struct BowstringStream **stream,
                                             const struct BowstringSync *sync,
                                             struct ArrowArrayStream *out,
                                             struct BowstringError *error);

/// Takes over a stream of arrays on a device, and asks it for its schema.
///
/// Each array is checked as it comes: its device by the stream's type, its structure by the schema, as
/// bowstring_array_import_typed does. Ids of devices may differ. A struct that this library exported is taken back as it went
/// out.
///
/// Ownership: on success the struct is taken, `stream->release` is NULL, and its release runs once, when the stream is
/// released; on failure it is still the caller's, and the schema that it gave was released. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released stream; INVALID_DATA with the rule for
/// missing callbacks, an unknown device and a schema that breaks one; what bowstring_stream_next says where get_schema fails;
/// OUT_OF_MEMORY. Any thread may call it.
/// Source: docs/rules.md, ST1, ST2 and D2; Arrow C Device interface, "ArrowDeviceArrayStream".
BOWSTRING_API
BowstringStatus bowstring_stream_import(struct ArrowDeviceArrayStream *stream,
                                        struct BowstringStream **out,
                                        struct BowstringError *error);

/// Takes over a stream of arrays in CPU memory, and asks it for its schema.
///
/// Ownership: as bowstring_stream_import.
/// Errors: as bowstring_stream_import. Any thread may call it.
/// Source: docs/rules.md, ST1 and ST2; Arrow C Stream interface, "ArrowArrayStream".
BOWSTRING_API
BowstringStatus bowstring_stream_import_host(struct ArrowArrayStream *stream,
                                             struct BowstringStream **out,
                                             struct BowstringError *error);

/// Makes a stream of arrays that are there already.
///
/// All of them have to be of the same type, names and metadata included, and on the same type of device. A NULL `type` is that
/// of the first array; without arrays it has to be given, and the stream is one of the CPU.
///
/// Ownership: the arrays are borrowed for the call, and the stream has a handle of its own on each until it was given. The caller
/// releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, `type` excepted where there are arrays; INVALID_DATA with rule ST5 or DS1 and the
/// batch for an array that does not belong to the others; OUT_OF_MEMORY. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_stream_from_arrays(const struct BowstringType *type,
                                             const struct BowstringArray *const *arrays,
                                             size_t n_arrays,
                                             struct BowstringStream **out,
                                             struct BowstringError *error);

/// The stream with each of its arrays checked as bowstring_array_validate does, by the options.
///
/// An array is checked when it is asked for, and what breaks a rule ends the stream with that error, which says in batch which
/// array it was. Structure, type and device are checked by every stream.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `*out`. On failure nothing happened. The
/// options are copied; ctx and the sync's queue have to live as long as the stream.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, unknown options, and with rule ST6 while another call on the stream
/// is running; UNSUPPORTED for options that this version does not know; OUT_OF_MEMORY. What `*out` says when it is asked is what
/// bowstring_stream_next and bowstring_array_validate say. Any thread may call it; on_finding runs on the thread that asks.
/// Source: docs/rules.md, A1 to A8, B1 to B8, ST2 to ST6 and DS1.
BOWSTRING_API
BowstringStatus bowstring_stream_validated(struct BowstringStream **stream,
                                           const struct BowstringValidateOptions *options,
                                           struct BowstringStream **out,
                                           struct BowstringError *error);

/// The stream of structs with some of their columns, by number and in the order given; a column may come more than once.
///
/// Nothing is copied. The structs' own nulls, length, name and metadata stay, and so does all below the columns.
///
/// Ownership: as bowstring_stream_validated; the numbers are borrowed for the call.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, a stream whose type is no struct, a number out of range, and with rule
/// ST6 while another call on the stream is running; INVALID_DATA for more nodes than a type can have; OUT_OF_MEMORY. Any thread may
/// call it.
BOWSTRING_API
BowstringStatus bowstring_stream_select(struct BowstringStream **stream,
                                        const size_t *columns,
                                        size_t n_columns,
                                        struct BowstringStream **out,
                                        struct BowstringError *error);

/// The stream with each of its arrays copied to a device as bowstring_array_to_device does, by the options.
///
/// With depth 0 the producer is asked, and its array copied, inside each call that asks `*out`. Else one thread of the library's does
/// both from now on, in order, and up to `depth` arrays ahead of what was asked for: never more are held, the one that is being
/// copied among them. The producer's get_next and the options' functions then run on that thread, which has no context of
/// a driver current, takes no signals, and never enters the callback scope for get_next. An error is met behind the arrays
/// that came before it.
///
/// Copies run on a queue of the library's. With QUEUE and depth 0 they run on that queue, inside the call that asks; with QUEUE
/// and a depth, that queue waits for the copy inside the call that asks, so that what is enqueued there afterwards comes behind it.
///
/// bowstring_stream_cancel ends a call that waits for the thread. Releasing `*out` waits for the thread: for a producer that is
/// inside get_next until it comes back. Whoever releases must hold no lock that the producer or an owner needs, such as an
/// interpreter's. A process that forks has no such thread in the child, where the stream may not be used or released.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `*out`. On failure nothing happened. The
/// options are copied; ctx, the functions and the sync's queue have to live as long as the stream, the allocator's until all of
/// its memory went back.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, unknown options or devices, and with rule ST6 while another call
/// on the stream is running; UNSUPPORTED for a device without a backend, or options that this version does not know;
/// DEVICE_UNAVAILABLE without a driver or device; OUT_OF_MEMORY, with the system's number as native_code where no thread could be
/// started. What `*out` says when it is asked is what bowstring_stream_next and bowstring_array_to_device say: SYNC_REQUIRED for an
/// array with a pending event with mode NONE; CANCELLED when `progress` says so. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArrayStream".
BOWSTRING_API
BowstringStatus bowstring_stream_to_device(struct BowstringStream **stream,
                                           struct BowstringDevice device,
                                           const struct BowstringTransferOptions *options,
                                           struct BowstringStream **out,
                                           struct BowstringError *error);

/// Tells the library where CPython's functions are, once for a copy of the library.
///
/// Until then bowstring_python_capsule_destructor does nothing, and the calls for builtins fail.
///
/// Ownership: the struct is borrowed for the call and copied; what it leads to must stay until the process ends.
/// Errors: INVALID_ARGUMENT when api or one of the first six functions is NULL, when only some of the other members are,
/// when struct_size is too small, or after a call with other addresses, while the same addresses are fine; UNSUPPORTED when
/// the struct uses members that this version does not know. Any thread may call it.
BOWSTRING_API
BowstringStatus bowstring_python_init(const struct BowstringPythonApi *api,
                                      struct BowstringError *error);

/// The destructor of a capsule with any of the seven names: arrow_schema, arrow_array, arrow_array_stream,
/// arrow_device_array, arrow_device_array_stream, dltensor and dltensor_versioned.
///
/// A struct of Arrow's is released, unless a consumer moved it out, and freed; it must come from bowstring_schema_new and
/// the like. A tensor's own deleter runs, which frees it. A capsule with another name, such as used_dltensor, or without
/// one is left alone. An exception that is pending stays so; one that comes up is written as unraisable. Before
/// bowstring_python_init it does nothing.
///
/// Ownership: what the capsule held is gone afterwards; the capsule itself is the interpreter's. The calling thread holds
/// the interpreter's lock, as in every destructor; a release that has to wait for a device waits with it.
/// Source: Arrow PyCapsule interface, "Lifetime semantics"; DLPack, Python specification, "Semantics".
BOWSTRING_API
void bowstring_python_capsule_destructor(void *capsule);

/// Imports what two capsules hold: a builtin of four arguments by METH_FASTCALL.
///
/// The arguments are: a capsule arrow_schema, or None with a type; a capsule arrow_device_array or arrow_array; the
/// address of a BowstringType as an int, or 0; the address of a BowstringError as an int, or 0. The result is an int, the
/// address of a BowstringArray; or None after a failure, with the record written. With a type the schema is not looked at,
/// and nothing is parsed: one allocation of ours instead of two. The import itself is that of bowstring_array_import,
/// bowstring_array_import_host and their typed forms. The PyMethodDef of a builtin has to stay until the process ends: the
/// interpreter reads it when it destroys the builtin, which may be after all that is the binding's.
///
/// Ownership: on success the struct is moved out of the array's capsule, and the caller releases the handle; the schema is
/// only read, and stays in its capsule. On failure both capsules hold what they held; when Python's memory does not suffice
/// for the int, an export of ours that shows the same.
/// Errors: in the record, as bowstring_array_import; INVALID_ARGUMENT also for a capsule of another name and for what is no
/// int. As an exception: a TypeError or OverflowError for another number of arguments or a record's address that is none;
/// a SystemError, because the result is NULL, before bowstring_python_init or without its optional members. The
/// calling thread holds the interpreter's lock.
/// Source: Arrow PyCapsule interface, "ArrowArray Export"; Python C API, "METH_FASTCALL".
BOWSTRING_API
void *bowstring_python_array_import(void *module,
                                    void *const *args,
                                    ptrdiff_t nargs);

/// Imports an ArrowDeviceArray by its address: a builtin of three arguments by METH_FASTCALL.
///
/// The arguments are ints: the address of the struct; the address of a BowstringType; the address of a BowstringError, or
/// 0. For producers that export to an address; it is bowstring_array_import_typed. The result is an int, the address of a
/// BowstringArray, or None after a failure.
///
/// Ownership: on success the struct is moved out, and the caller releases the handle; on failure it stays the caller's, as
/// it was or, when Python's memory does not suffice for the int, as an export of ours that shows the same. The type is
/// borrowed.
/// Errors: as bowstring_python_array_import. The calling thread holds the interpreter's lock. One allocation of ours.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Python C API, "METH_FASTCALL".
BOWSTRING_API
void *bowstring_python_array_import_raw(void *module,
                                        void *const *args,
                                        ptrdiff_t nargs);

/// Exports an array into two capsules: a builtin of three arguments by METH_FASTCALL.
///
/// The arguments are ints: the address of a BowstringArray; 0 for a device array, anything else for a host array; the
/// address of a BowstringError, or 0. The result is a tuple, a capsule arrow_schema and a capsule arrow_device_array or
/// arrow_array, as `__arrow_c_device_array__` and `__arrow_c_array__` return it; or None after a failure, with the record
/// written. The export itself is that of bowstring_array_export, or bowstring_array_export_host without a sync: an event that is
/// pending is SYNC_REQUIRED, because nothing may wait while the interpreter's lock is held.
///
/// Ownership: the handle is borrowed; the capsules are the caller's, and own what they hold.
/// Errors: as bowstring_python_array_import and bowstring_array_export_host. The calling thread holds the interpreter's lock.
/// Four allocations of ours: two structs and the two trees.
/// Source: Arrow PyCapsule interface, "ArrowArray Export"; Python C API, "METH_FASTCALL".
BOWSTRING_API
void *bowstring_python_array_export(void *module,
                                    void *const *args,
                                    ptrdiff_t nargs);

/// Lets an array handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_array_release. The producer's release may run now, on this thread and with the interpreter's lock
/// held, as in the destructor of any extension's object.
/// Errors: an exception, for what is no int or before bowstring_python_init. The calling thread holds the interpreter's
/// lock.
/// Source: Python C API, "METH_O".
BOWSTRING_API
void *bowstring_python_array_release(void *module,
                                     void *handle);

/// Lets a buffer handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_buffer_release. An owner's release may run now, on this thread and with the interpreter's lock held.
/// Errors: as bowstring_python_array_release. The calling thread holds the interpreter's lock.
/// Source: Python C API, "METH_O".
BOWSTRING_API
void *bowstring_python_buffer_release(void *module,
                                      void *handle);

/// Lets a type handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_type_release.
/// Errors: as bowstring_python_array_release. The calling thread holds the interpreter's lock.
/// Source: Python C API, "METH_O".
BOWSTRING_API
void *bowstring_python_type_release(void *module,
                                    void *handle);

/// The array of a producer that exports to an address, under a schema that was seen before: a builtin by METH_O.
///
/// PyCFunction_NewEx is given a tuple, which is what the first parameter is: a class; the names of the producer's schema, of
/// the method by which schemas compare, and of the one that exports to an address, such as "schema", "equals" and
/// "_export_to_c_device"; and then any number of triples: a schema, an object that keeps its type alive, and the address of
/// the BowstringType as an int. A schema is known that is one of these, or for which `known.equals(schema, True)` is True. The
/// result is a new instance of the class, with the handle of an array; or None when the schema is not known or the array does
/// not fit it: bowstring_python_array_import_raw says why.
///
/// Ownership: the instance is the caller's, and its class lets the array go; what the producer exported is the array's, or
/// was released.
/// Errors: as an exception, whatever the producer raises, or Python's own for a tuple that is none or is too short; a
/// SystemError, because the result is NULL, before bowstring_python_init or without its optional members. The calling
/// thread holds the interpreter's lock. One allocation of ours.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Python C API, "METH_O", "PyObject_VectorcallMethod".
BOWSTRING_API
void *bowstring_python_array_take(void *known,
                                  void *producer);

/// Exports the array of an instance into two capsules: a method by METH_FASTCALL and METH_KEYWORDS, for PyDescr_NewMethod.
///
/// It is `__arrow_c_device_array__(requested_schema=None, **kwargs)` for nothing in particular: with another request than
/// None, with a keyword, or when the export fails it returns what the instance's method `_answer_device_array` does with the
/// same arguments.
///
/// Ownership: the array is borrowed from the instance; the capsules are the caller's, and own what they hold.
/// Errors: those of `_answer_device_array`, as an exception; a SystemError, because the result is NULL, before
/// bowstring_python_init or without its optional members. The calling thread holds the interpreter's lock. Four allocations
/// of ours.
/// Source: Arrow PyCapsule interface, "ArrowDeviceArray Export"; Python C API, "METH_FASTCALL | METH_KEYWORDS".
BOWSTRING_API
void *bowstring_python_array_give(void *instance,
                                  void *const *args,
                                  ptrdiff_t nargs,
                                  void *names);

/// Lets the array of an instance go: the Py_tp_finalize of a class.
///
/// Ownership: the handle is let go, and the instance has none afterwards. The producer's release may run now, on this thread
/// and with the interpreter's lock held. An exception that is pending stays so.
/// Errors: none. The calling thread holds the interpreter's lock; before bowstring_python_init it does nothing.
/// Source: Python C API, "tp_finalize".
BOWSTRING_API
void bowstring_python_array_finalize(void *instance);

/// The buffer protocol of objects that have a method `__buffer__`, as classes do from Python 3.12 on: the slot Py_bf_getbuffer of a
/// type for the versions before.
///
/// A binding makes a type with this slot by PyType_FromSpec, and derives its classes from it. The method is called with the
/// flags, and returns a memoryview, or another object of the buffer protocol, but not the exporter. There is nothing to do when a view
/// is released, so that the type needs no Py_bf_releasebuffer.
///
/// Ownership: exporter is borrowed; view refers to it and to what the method returned, until PyBuffer_Release.
/// Errors: -1 with an exception: the method's own, or that of a memoryview which cannot answer the flags; then view's obj is
/// NULL. Before bowstring_python_init or without its optional members there is no exception, which the interpreter makes a
/// SystemError. The calling thread holds the interpreter's lock.
/// Source: Python C API, "getbufferproc"; PEP 688.
BOWSTRING_API
int bowstring_python_get_buffer(void *exporter,
                                void *view,
                                int flags);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BOWSTRING_H */
