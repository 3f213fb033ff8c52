/* A program that was built against another release's header: with one member more, or one less, in each struct that
 * starts with struct_size. It is compiled twice, with LATER as 1 and 0. */
#include "check.h"
#include "released_sizes.h"

#include <stdio.h>
#include <string.h>

#if LATER
#define ADDED(info) (info).added_later
#define SET_ADDED(info, value) ((info).added_later = (value))
#else
#define ADDED(info) 0
#define SET_ADDED(info, value) ((void)(value))
#endif

/* What is shorter than its first release is refused. */
#define EXPECTED(type) (sizeof(type) < FIRST_##type ? BOWSTRING_INVALID_ARGUMENT : BOWSTRING_OK)

static int refused;

/* A struct that the caller did not zero is written whole, or left alone. */
#define ASK(type, info, call)                                  \
  do {                                                         \
    type untouched;                                            \
    memset(&untouched, 0x5A, sizeof untouched);                \
    memset(&(info), 0x5A, sizeof(info));                       \
    (info).struct_size = untouched.struct_size = sizeof(info); \
    check_about(#type);                                        \
    CHECK_INT((call), EXPECTED(type));                         \
    CHECK_INT((info).struct_size, sizeof(info));               \
    if (EXPECTED(type) != BOWSTRING_OK) {                      \
      CHECK_MEM(&(info), &untouched, sizeof(info));            \
      refused++;                                               \
    } else {                                                   \
      CHECK_INT(ADDED(info), 0);                               \
    }                                                          \
  } while (0)

static int releases;
static void release(void *owner) {
  CHECK_PTR(owner, &releases);
  releases++;
}

static BowstringStatus counts(BowstringLiveCounts *out) {
  bowstring_live_counts(out);
  return EXPECTED(BowstringLiveCounts);
}

static const int32_t numbers[] = {1, 2, 3};

static BowstringStatus build(const BowstringType *type, BowstringPlacement *placement, struct ArrowDeviceArray *out) {
  const BowstringNode node = {3, 0, 0, 2};
  BowstringOwnedBuffer buffers[2] = {{0}, {numbers, sizeof numbers, NULL, NULL}};
  return bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, placement, out, &report);
}

static BowstringPlacement owned(int added) {
  BowstringPlacement placement = {.struct_size = sizeof placement, .owner = &releases};
#if LATER
  placement.release_owner = release;
#else
  /* The member that is gone is the last one. */
  placement.owner = NULL;
  (void)release;
#endif
  SET_ADDED(placement, added);
  return placement;
}

static int nothing_more(void *ctx, struct ArrowDeviceArray *out) {
  (void)ctx;
  return out->array.release != NULL;
}

int main(void) {
  BowstringTypeNodeInfo type_node;
  BowstringNodeInfo node;
  BowstringBufferInfo info;
  BowstringBufferMemory memory;
  BowstringLiveCounts live;
  BowstringPlacement placement;
  BowstringType *type = NULL;
  BowstringArray *array = NULL;
  BowstringBuffer *buffer = NULL;
  struct ArrowDeviceArray raw;
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  CHECK_OK(build(type, NULL, &raw));
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  CHECK_OK(bowstring_array_buffer(array, 1, &buffer, &report));

  ASK(BowstringTypeNodeInfo, type_node, bowstring_type_node_info(type, 0, &type_node, &report));
  ASK(BowstringNodeInfo, node, bowstring_array_node_info(array, 0, &node, &report));
  ASK(BowstringBufferInfo, info, bowstring_array_buffer_info(array, 1, &info, &report));
  ASK(BowstringBufferMemory, memory, bowstring_buffer_info(buffer, &memory, &report));
  ASK(BowstringLiveCounts, live, counts(&live));
  BowstringNode nodes[1];
  BowstringOwnedBuffer buffers[2] = {{0}};
  ASK(BowstringPlacement, placement, bowstring_array_to_buffers(array, nodes, 1, buffers, 2, &placement, &report));
  for (int i = 0; i < 2; i++)
    if (buffers[i].release_owner) buffers[i].release_owner(buffers[i].owner);
  if (EXPECTED(BowstringTypeNodeInfo) == BOWSTRING_OK) CHECK_STR(type_node.format, "i");
  if (EXPECTED(BowstringNodeInfo) == BOWSTRING_OK) CHECK_INT(node.length, 3);
  if (EXPECTED(BowstringBufferInfo) == BOWSTRING_OK) CHECK_PTR(info.data, numbers);
  if (EXPECTED(BowstringBufferMemory) == BOWSTRING_OK) CHECK_PTR(memory.data, numbers);
  if (EXPECTED(BowstringLiveCounts) == BOWSTRING_OK) CHECK_INT(live.arrays, 1);
  if (EXPECTED(BowstringPlacement) == BOWSTRING_OK) CHECK_INT(placement.device.type, ARROW_DEVICE_CPU);
  bowstring_buffer_release(buffer);

  check_about("BowstringValidateOptions, read");
  BowstringValidateOptions options = {.struct_size = sizeof options};
  CHECK_INT(bowstring_array_validate(array, &options, &report), EXPECTED(BowstringValidateOptions));
  refused += EXPECTED(BowstringValidateOptions) != BOWSTRING_OK;
#if LATER
  options.added_later = 1;
  CHECK_FAILS(bowstring_array_validate(array, &options, &report), BOWSTRING_UNSUPPORTED);
#endif

  check_about("BowstringStreamCallbacks, read");
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .get_next = nothing_more};
  BowstringStream *stream;
  CHECK_INT(bowstring_stream_from_callbacks(type, &callbacks, &stream, &report), EXPECTED(BowstringStreamCallbacks));
  refused += EXPECTED(BowstringStreamCallbacks) != BOWSTRING_OK;
  bowstring_stream_release(stream);
#if LATER
  callbacks.added_later = 1;
  CHECK_FAILS(bowstring_stream_from_callbacks(type, &callbacks, &stream, &report), BOWSTRING_UNSUPPORTED);
#endif

  check_about("BowstringTensorOptions, read");
  BowstringTensorOptions how = {.struct_size = sizeof how};
  struct DLManagedTensorVersioned *tensor;
  CHECK_INT(bowstring_array_to_tensor(array, &how, &tensor, &report), EXPECTED(BowstringTensorOptions));
  refused += EXPECTED(BowstringTensorOptions) != BOWSTRING_OK;
  bowstring_tensor_release(tensor);
#if LATER
  how.added_later = 1;
  CHECK_FAILS(bowstring_array_to_tensor(array, &how, &tensor, &report), BOWSTRING_UNSUPPORTED);
#endif

  check_about("BowstringTransferOptions, read");
  BowstringTransferOptions transfer = {.struct_size = sizeof transfer};
  const BowstringDevice cpu = {ARROW_DEVICE_CPU, -1};
  BowstringArray *copy = NULL;
  CHECK_INT(bowstring_array_to_device(array, cpu, &transfer, &copy, NULL, &report),
            EXPECTED(BowstringTransferOptions));
  refused += EXPECTED(BowstringTransferOptions) != BOWSTRING_OK;
  bowstring_array_release(copy);
#if LATER
  transfer.added_later = 1;
  CHECK_FAILS(bowstring_array_to_device(array, cpu, &transfer, &copy, NULL, &report), BOWSTRING_UNSUPPORTED);
#endif

  check_about("BowstringDeviceBackend, read");
  /* What is built in is refused last. */
  BowstringDeviceBackend backend = {.struct_size = sizeof backend};
  CHECK_FAILS(bowstring_device_register(ARROW_DEVICE_CPU, &backend, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(report.message, EXPECTED(BowstringDeviceBackend) == BOWSTRING_OK ? "allocate" : "struct_size");
  refused += EXPECTED(BowstringDeviceBackend) != BOWSTRING_OK;
#if LATER
  backend.added_later = 1;
  CHECK_FAILS(bowstring_device_register(ARROW_DEVICE_CPU, &backend, &report), BOWSTRING_UNSUPPORTED);
#endif
  bowstring_array_release(array);

  check_about("BowstringPlacement, read");
  placement = owned(0);
  CHECK_INT(build(type, &placement, &raw), EXPECTED(BowstringPlacement));
  refused += EXPECTED(BowstringPlacement) != BOWSTRING_OK;
  bowstring_device_array_release(&raw);
  CHECK_INT(releases, LATER);
  BowstringCallbackScope scope = {.struct_size = sizeof scope};
#if LATER
  placement = owned(1);
  CHECK_FAILS(build(type, &placement, &raw), BOWSTRING_UNSUPPORTED);
  CHECK(raw.array.release == NULL && placement.owner == &releases && placement.release_owner == release);
  scope.added_later = 1;
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_UNSUPPORTED);
#else
  CHECK_INT(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(report.message, sizeof scope < FIRST_BowstringCallbackScope ? "struct_size" : "");
#endif

  check_about("BowstringPythonApi, read");
  BowstringPythonApi api = {.struct_size = sizeof api};
#if LATER
  api.added_later = 1;
  CHECK_FAILS(bowstring_python_init(&api, &report), BOWSTRING_UNSUPPORTED);
#else
  CHECK_FAILS(bowstring_python_init(&api, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(report.message, sizeof api < FIRST_BowstringPythonApi ? "struct_size" : "first six");
#endif
  refused += sizeof api < FIRST_BowstringPythonApi;
  CHECK_INT(releases, LATER);
  bowstring_type_release(type);
  printf("%d structs refused\n", refused);
  return check_end(20);
}
