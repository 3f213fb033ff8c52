/* What is wrong with a call itself: NULL, overlap, sizes of structs, and what the error record says. */
#include "build.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char table[] = "struct<a: int32, b: utf8>";

/* A call that is wrong says so with and without a record. `call` has `R` where the record goes. */
#define WRONG(call)                                       \
  do {                                                    \
    BowstringError *R = &report;                          \
    memset(&report, 0xAA, sizeof report);                 \
    CHECK_FAILS(call, BOWSTRING_INVALID_ARGUMENT);        \
    CHECK_INT(report.status, BOWSTRING_INVALID_ARGUMENT); \
    CHECK_INT(report.rule, 0);                            \
    CHECK_INT(report.row, -1);                            \
    CHECK_HAS(report.message, "expected");                \
    CHECK_HAS(report.message, "found");                   \
    R = NULL;                                             \
    CHECK_FAILS(call, BOWSTRING_INVALID_ARGUMENT);        \
  } while (0)

/* As WRONG, and the out-parameter, which held garbage, is NULL afterwards. */
#define WRONG_NULL(out, call)       \
  do {                              \
    memset(&out, 0xAA, sizeof out); \
    WRONG(call);                    \
    CHECK_PTR(out, NULL);           \
  } while (0)

/* As WRONG, and the raw struct is released afterwards. */
#define WRONG_RELEASED(out, member, call) \
  do {                                    \
    memset(&out, 0xAA, sizeof out);       \
    WRONG(call);                          \
    CHECK(out member == NULL);            \
  } while (0)

static void test_null_types(void) {
  BowstringType *type = NULL, *out = NULL;
  const BowstringType *borrowed = NULL;
  struct ArrowSchema schema;
  BowstringTypeNodeInfo info = {.struct_size = sizeof info};
  size_t needed = 7;
  CHECK_OK(bowstring_type_parse("dictionary<int8, utf8>", &type, NULL));
  check_about("types");
  WRONG_NULL(out, bowstring_type_import(NULL, &out, R));
  sample_schema(sample_named(table), &schema);
  struct ArrowSchema before = schema;
  WRONG(bowstring_type_import(&schema, NULL, R));
  WRONG(bowstring_type_copy_from(&schema, NULL, R));
  CHECK_MEM(&schema, &before, sizeof schema);
  bowstring_schema_release(&schema);
  WRONG_NULL(out, bowstring_type_copy_from(NULL, &out, R));
  WRONG_NULL(out, bowstring_type_new(NULL, "", 0, NULL, 0, NULL, NULL, 0, &out, R));
  WRONG_NULL(out, bowstring_type_new("+s", "", 0, NULL, 1, NULL, NULL, 0, &out, R));
  WRONG_NULL(out, bowstring_type_new("i", "", 0, NULL, 0, NULL, NULL, 1, &out, R));
  WRONG_NULL(out, bowstring_type_new("+s", "", 0, NULL, SIZE_MAX, NULL, NULL, 0, &out, R));
  WRONG(bowstring_type_new("i", "", 0, NULL, 0, NULL, NULL, 0, NULL, R));
  WRONG_NULL(out, bowstring_type_parse(NULL, &out, R));
  WRONG(bowstring_type_parse("int32", NULL, R));
  WRONG(bowstring_type_to_text(NULL, NULL, 0, &needed, R));
  CHECK_INT(needed, 0);
  WRONG(bowstring_type_to_text(type, NULL, 1, &needed, R));
  WRONG(bowstring_type_to_text(type, NULL, SIZE_MAX, &needed, R));
  CHECK_OK(bowstring_type_to_text(type, NULL, 0, NULL, &report));
  WRONG_RELEASED(schema, .release, bowstring_type_export(NULL, &schema, R));
  WRONG(bowstring_type_export(type, NULL, R));
  WRONG(bowstring_type_node_info(NULL, 0, &info, R));
  WRONG(bowstring_type_node_info(type, 0, NULL, R));
  WRONG(bowstring_type_node_info(type, 2, &info, R));
  WRONG(bowstring_type_node_info(type, SIZE_MAX, &info, R));
  WRONG_NULL(borrowed, bowstring_type_child(NULL, 0, &borrowed, R));
  WRONG_NULL(borrowed, bowstring_type_child(type, 0, &borrowed, R));
  WRONG(bowstring_type_child(type, 0, NULL, R));
  WRONG_NULL(borrowed, bowstring_type_dictionary(NULL, &borrowed, R));
  WRONG(bowstring_type_dictionary(type, NULL, R));
  WRONG(bowstring_type_layout(NULL, NULL, 0, &needed, R));
  WRONG(bowstring_type_layout(type, NULL, 1, &needed, R));
  CHECK_OK(bowstring_type_layout(type, NULL, 0, NULL, &report));
  CHECK(!bowstring_type_equals(NULL, type, 0) && !bowstring_type_equals(type, NULL, 0));
  CHECK_PTR(bowstring_type_retain(NULL), NULL);
  bowstring_type_release(NULL);
  bowstring_type_release(type);
  owners_all_gone();
}

static void test_null_imports(void) {
  const struct sample *sample = sample_named(table);
  struct ArrowDeviceArray raw, raw_before;
  struct ArrowSchema schema, schema_before;
  BowstringArray *out = NULL;
  BowstringType *type = sample_type(sample);
  sample_array(sample, &raw);
  sample_schema(sample, &schema);
  raw_before = raw;
  schema_before = schema;
  check_about("imports");
  WRONG_NULL(out, bowstring_array_import(NULL, &schema, &out, R));
  WRONG_NULL(out, bowstring_array_import(&raw, NULL, &out, R));
  WRONG(bowstring_array_import(&raw, &schema, NULL, R));
  WRONG_NULL(out, bowstring_array_import_typed(NULL, type, &out, R));
  WRONG_NULL(out, bowstring_array_import_typed(&raw, NULL, &out, R));
  WRONG(bowstring_array_import_typed(&raw, type, NULL, R));
  WRONG_NULL(out, bowstring_array_import_host(NULL, &schema, &out, R));
  WRONG_NULL(out, bowstring_array_import_host(&raw.array, NULL, &out, R));
  WRONG(bowstring_array_import_host(&raw.array, &schema, NULL, R));
  WRONG_NULL(out, bowstring_array_import_host_typed(NULL, type, &out, R));
  WRONG_NULL(out, bowstring_array_import_host_typed(&raw.array, NULL, &out, R));
  WRONG(bowstring_array_import_host_typed(&raw.array, type, NULL, R));
  struct owner *owner = owner_new(NULL);
  WRONG_NULL(out, bowstring_array_import_borrowed(NULL, type, owner, owner_release, &out, R));
  WRONG_NULL(out, bowstring_array_import_borrowed(&raw, NULL, owner, owner_release, &out, R));
  WRONG(bowstring_array_import_borrowed(&raw, type, owner, owner_release, NULL, R));

  /* What is taken and what is written may not be the same memory. */
  WRONG(bowstring_array_import(&raw, &schema, (BowstringArray **)&raw.array.private_data, R));
  WRONG(bowstring_array_import(&raw, &schema, (BowstringArray **)&schema.format, R));
  WRONG(bowstring_array_import_typed(&raw, type, (BowstringArray **)&raw.sync_event, R));
  WRONG(bowstring_array_import_host(&raw.array, &schema, (BowstringArray **)&raw.array.buffers, R));
  WRONG(bowstring_array_import_host_typed(&raw.array, type, (BowstringArray **)&raw.array.release, R));
  WRONG(bowstring_type_import(&schema, (BowstringType **)&schema.release, R));
  WRONG(bowstring_array_import(&raw, (struct ArrowSchema *)&raw.array.offset, &out, R));
  CHECK_INT(owner->runs, 0);
  owner_release(owner);
  CHECK_MEM(&raw, &raw_before, sizeof raw);
  CHECK_MEM(&schema, &schema_before, sizeof schema);
  bowstring_device_array_release(&raw);
  bowstring_schema_release(&schema);

  /* A struct that was released before is told apart. */
  out = (BowstringArray *)8;
  sample_schema(sample, &schema);
  CHECK_FAILS(bowstring_array_import(&raw, &schema, &out, &report), BOWSTRING_RELEASED);
  CHECK_PTR(out, NULL);
  CHECK_RULE("M2");
  CHECK(schema.release != NULL);
  bowstring_schema_release(&schema);
  sample_array(sample, &raw);
  out = (BowstringArray *)8;
  CHECK_FAILS(bowstring_array_import(&raw, &schema, &out, &report), BOWSTRING_RELEASED);
  CHECK_PTR(out, NULL);
  CHECK(raw.array.release != NULL);
  bowstring_device_array_release(&raw);
  bowstring_type_release(type);
  owners_all_gone();
}

static void test_null_arrays(void) {
  BowstringArray *array = sample_import(sample_named(table)), *out = NULL;
  BowstringBuffer *buffer = NULL;
  struct ArrowDeviceArray raw;
  struct ArrowArray host;
  struct ArrowSchema schema;
  BowstringNodeInfo node = {.struct_size = sizeof node};
  BowstringBufferInfo info = {.struct_size = sizeof info};
  BowstringPlacement placement = {.struct_size = sizeof placement};
  BowstringNode nodes[3];
  BowstringOwnedBuffer buffers[6];
  int64_t nulls = 5;
  size_t needed = 5;
  BowstringDevice device;
  void *event = NULL;
  check_about("arrays");
  WRONG_RELEASED(raw, .array.release, bowstring_array_export(NULL, &raw, NULL, R));
  WRONG_RELEASED(schema, .release, bowstring_array_export(NULL, &raw, &schema, R));
  WRONG_RELEASED(schema, .release, bowstring_array_export(array, NULL, &schema, R));
  WRONG(bowstring_array_export(array, NULL, NULL, R));
  WRONG(bowstring_array_export(array, &raw, (struct ArrowSchema *)&raw, R));
  WRONG_RELEASED(host, .release, bowstring_array_export_host(NULL, NULL, &host, NULL, R));
  WRONG(bowstring_array_export_host(array, NULL, NULL, NULL, R));
  WRONG(bowstring_array_export_host(array, NULL, &host, (struct ArrowSchema *)&host, R));
  static const BowstringSync unknown[] = {{4, 0, NULL}, {-1, 0, NULL}, {INT32_MAX, 0, NULL}};
  for (int i = 0; i < 3; i++) {
    WRONG_RELEASED(host, .release, bowstring_array_export_host(array, &unknown[i], &host, NULL, R));
    WRONG(bowstring_array_null_count(array, &unknown[i], &nulls, R));
    CHECK_INT(nulls, -1);
    WRONG_NULL(out, bowstring_array_resolve_sizes(array, &unknown[i], &out, R));
  }
  CHECK_PTR(bowstring_array_type(NULL), NULL);
  CHECK_PTR(bowstring_array_retain(NULL), NULL);
  bowstring_array_release(NULL);
  WRONG(bowstring_array_count(NULL, &needed, &needed, R));
  CHECK_OK(bowstring_array_count(array, NULL, NULL, &report));
  WRONG(bowstring_array_node_info(NULL, 0, &node, R));
  WRONG(bowstring_array_node_info(array, 0, NULL, R));
  WRONG(bowstring_array_buffer_info(NULL, 0, &info, R));
  WRONG(bowstring_array_buffer_info(array, 0, NULL, R));
  WRONG(bowstring_array_device(NULL, &device, &event, R));
  CHECK_OK(bowstring_array_device(array, NULL, NULL, &report));
  WRONG_NULL(out, bowstring_array_child(NULL, 0, &out, R));
  WRONG(bowstring_array_child(array, 0, NULL, R));
  WRONG_NULL(out, bowstring_array_dictionary(NULL, &out, R));
  WRONG_NULL(out, bowstring_array_dictionary(array, &out, R));
  WRONG(bowstring_array_dictionary(array, NULL, R));
  WRONG_NULL(out, bowstring_array_slice(NULL, 0, 0, &out, R));
  WRONG(bowstring_array_slice(array, 0, 0, NULL, R));
  nulls = 5;
  WRONG(bowstring_array_null_count(NULL, NULL, &nulls, R));
  CHECK_INT(nulls, -1);
  WRONG(bowstring_array_null_count(array, NULL, NULL, R));
  WRONG_NULL(out, bowstring_array_resolve_sizes(NULL, NULL, &out, R));
  WRONG(bowstring_array_resolve_sizes(array, NULL, NULL, R));
  WRONG_NULL(out, bowstring_array_resolve_sizes_with(NULL, device_read, NULL, &out, R));
  WRONG_NULL(out, bowstring_array_resolve_sizes_with(array, NULL, NULL, &out, R));
  WRONG(bowstring_array_resolve_sizes_with(array, device_read, NULL, NULL, R));
  struct owner *owner = owner_new(NULL);
  WRONG_NULL(out, bowstring_array_with_owner(NULL, owner, owner_release, &out, R));
  WRONG_NULL(out, bowstring_array_with_owner(array, owner, NULL, &out, R));
  WRONG(bowstring_array_with_owner(array, owner, owner_release, NULL, R));
  CHECK_INT(owner->runs, 0);
  owner_release(owner);
  WRONG_NULL(buffer, bowstring_array_buffer(NULL, 0, &buffer, R));
  WRONG_NULL(buffer, bowstring_array_buffer(array, 6, &buffer, R));
  WRONG_NULL(buffer, bowstring_array_buffer(array, SIZE_MAX, &buffer, R));
  WRONG(bowstring_array_buffer(array, 0, NULL, R));
  WRONG(bowstring_array_to_text(NULL, NULL, 0, &needed, R));
  WRONG(bowstring_array_to_text(array, NULL, 1, &needed, R));

  memset(nodes, 0xAA, sizeof nodes);
  memset(buffers, 0xAA, sizeof buffers);
  WRONG(bowstring_array_to_buffers(NULL, nodes, 3, buffers, 6, &placement, R));
  WRONG(bowstring_array_to_buffers(array, NULL, 3, buffers, 6, &placement, R));
  WRONG(bowstring_array_to_buffers(array, nodes, 3, NULL, 6, &placement, R));
  WRONG(bowstring_array_to_buffers(array, nodes, 2, buffers, 6, &placement, R));
  WRONG(bowstring_array_to_buffers(array, nodes, 4, buffers, 6, &placement, R));
  WRONG(bowstring_array_to_buffers(array, nodes, 3, buffers, 5, &placement, R));
  WRONG(bowstring_array_to_buffers(array, nodes, 3, buffers, SIZE_MAX, &placement, R));
  placement.struct_size = sizeof placement - 1;
  WRONG(bowstring_array_to_buffers(array, nodes, 3, buffers, 6, &placement, R));
  for (size_t i = 0; i < sizeof nodes; i++) CHECK_INT(((unsigned char *)nodes)[i], 0xAA);
  for (size_t i = 0; i < sizeof buffers; i++) CHECK_INT(((unsigned char *)buffers)[i], 0xAA);
  CHECK_OK(bowstring_array_to_buffers(array, nodes, 3, buffers, 6, NULL, &report));
  for (int i = 0; i < 6; i++)
    if (buffers[i].release_owner) buffers[i].release_owner(buffers[i].owner);
  bowstring_array_release(array);
  owners_all_gone();
}

static void test_null_produce(void) {
  const struct sample *sample = sample_named("utf8");
  BowstringType *type = sample_type(sample);
  BowstringOwnedBuffer buffers[3], before[3];
  struct ArrowDeviceArray raw;
  BowstringPlacement placement = {.struct_size = sizeof placement};
  sample_buffers(sample, buffers);
  memcpy(before, buffers, sizeof before);
  check_about("from_buffers");
#define BUILD(type, nodes, n, buffers, m, placement, out) \
  bowstring_device_array_from_buffers(type, nodes, n, buffers, m, placement, out, R)
  WRONG_RELEASED(raw, .array.release, BUILD(NULL, sample->nodes, 1, buffers, 3, NULL, &raw));
  WRONG_RELEASED(raw, .array.release, BUILD(type, NULL, 1, buffers, 3, NULL, &raw));
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 0, buffers, 3, NULL, &raw));
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, SIZE_MAX, buffers, 3, NULL, &raw));
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, NULL, 3, NULL, &raw));
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, buffers, 2, NULL, &raw));
  WRONG(BUILD(type, sample->nodes, 1, buffers, SIZE_MAX, NULL, &raw)); /* All memory, and so the output too. */
  WRONG(BUILD(type, sample->nodes, 1, buffers, 3, NULL, NULL));
  placement.record_on.mode = BOWSTRING_SYNC_HOST;
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, buffers, 3, &placement, &raw));
  placement.record_on.mode = 9;
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, buffers, 3, &placement, &raw));
  placement.record_on.mode = 0;
  placement.event = &placement; /* The CPU has no events. */
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, buffers, 3, &placement, &raw));
  placement.event = NULL;
  placement.struct_size--;
  WRONG_RELEASED(raw, .array.release, BUILD(type, sample->nodes, 1, buffers, 3, &placement, &raw));
  placement.struct_size++;
  CHECK_MEM(buffers, before, sizeof buffers);

  /* Sizes below -1 are none, and what is written may not lie in what is taken. */
  union {
    BowstringOwnedBuffer buffers[8];
    struct ArrowDeviceArray raw;
    BowstringPlacement placement;
  } shared;
  memset(&shared, 0, sizeof shared);
  memcpy(shared.buffers, buffers, sizeof buffers);
  WRONG(BUILD(type, sample->nodes, 1, shared.buffers, 3, NULL, &shared.raw));
  CHECK_MEM(shared.buffers, before, sizeof before);
  memset(&shared, 0, sizeof shared);
  shared.placement.struct_size = sizeof shared.placement;
  WRONG(BUILD(type, sample->nodes, 1, buffers, 3, &shared.placement, &shared.raw));
  CHECK_INT(shared.placement.struct_size, sizeof shared.placement);
  CHECK_MEM(buffers, before, sizeof buffers);
  for (int i = 0; i < 3; i++) owner_release(buffers[i].owner);
  bowstring_type_release(type);
  owners_all_gone();
}

static void test_null_buffers(void) {
  static char bytes[8] = "01234567";
  BowstringOwnedBuffer memory = {bytes, 8, NULL, NULL}, before, owned;
  BowstringBuffer *out = NULL, *buffer = NULL;
  BowstringBufferMemory info = {.struct_size = sizeof info};
  BowstringDevice cpu = {0, 0};
  void *data = NULL;
  char copy[8];
  struct owner *owner = owner_new(NULL);
  memory.owner = owner;
  memory.release_owner = owner_release;
  before = memory;
  check_about("buffers");
  WRONG_NULL(out, bowstring_buffer_wrap(NULL, NULL, &out, R));
  WRONG(bowstring_buffer_wrap(&memory, NULL, NULL, R));
  WRONG(bowstring_buffer_wrap(&memory, NULL, (BowstringBuffer **)&memory.owner, R));
  memory.size_bytes = -2;
  WRONG_NULL(out, bowstring_buffer_wrap(&memory, NULL, &out, R));
  memory.size_bytes = 8;
  memory.data = NULL;
  WRONG_NULL(out, bowstring_buffer_wrap(&memory, NULL, &out, R));
  memory.data = bytes;
  CHECK_MEM(&memory, &before, sizeof memory);
  CHECK_OK(bowstring_buffer_wrap(&memory, NULL, &buffer, &report));
  memset(&data, 0xAA, sizeof data);
  WRONG(bowstring_buffer_allocate(cpu, 8, NULL, NULL, &data, R));
  WRONG_NULL(out, bowstring_buffer_allocate(cpu, 8, NULL, &out, NULL, R));
  WRONG_NULL(out, bowstring_buffer_allocate(cpu, -1, NULL, &out, &data, R));
  WRONG_NULL(out, bowstring_buffer_allocate(cpu, INT64_MIN, NULL, &out, &data, R));
  CHECK_PTR(data, NULL);
  out = (BowstringBuffer *)8;
  CHECK_FAILS(bowstring_buffer_allocate(cpu, INT64_MAX, NULL, &out, &data, &report), BOWSTRING_OUT_OF_MEMORY);
  CHECK_PTR(out, NULL);
  out = (BowstringBuffer *)8;
  CHECK_FAILS(bowstring_buffer_allocate((BowstringDevice){ARROW_DEVICE_CUDA, 0}, 8, NULL, &out, &data, &report),
              BOWSTRING_DEVICE_UNAVAILABLE);
  CHECK_PTR(out, NULL);
  CHECK_PTR(bowstring_buffer_retain(NULL), NULL);
  bowstring_buffer_release(NULL);
  WRONG(bowstring_buffer_info(NULL, &info, R));
  WRONG(bowstring_buffer_info(buffer, NULL, R));
  WRONG_NULL(out, bowstring_buffer_slice(NULL, 0, 0, &out, R));
  WRONG(bowstring_buffer_slice(buffer, 0, 0, NULL, R));
  static const int64_t outside[][2] = {{-1, 1},       {0, -1}, {0, 9}, {9, 0}, {8, 1}, {INT64_MAX, INT64_MAX},
                                       {INT64_MIN, 8}};
  for (int i = 0; i < 7; i++) {
    WRONG_NULL(out, bowstring_buffer_slice(buffer, outside[i][0], outside[i][1], &out, R));
    WRONG(bowstring_buffer_read(buffer, outside[i][0], copy, outside[i][1], NULL, R));
  }
  WRONG(bowstring_buffer_read(NULL, 0, copy, 8, NULL, R));
  WRONG(bowstring_buffer_read(buffer, 0, NULL, 8, NULL, R));
  CHECK_OK(bowstring_buffer_read(buffer, 8, NULL, 0, NULL, &report));
  CHECK_OK(bowstring_buffer_read(buffer, 0, copy, 8, NULL, &report));
  CHECK_MEM(copy, bytes, 8);
  WRONG(bowstring_buffer_into_owned(NULL, &owned, R));
  WRONG(bowstring_buffer_into_owned(&buffer, NULL, R));
  BowstringBuffer *none = NULL;
  WRONG(bowstring_buffer_into_owned(&none, &owned, R));
  union {
    BowstringBuffer *buffer;
    BowstringOwnedBuffer owned;
  } shared = {.buffer = buffer};
  WRONG(bowstring_buffer_into_owned(&shared.buffer, &shared.owned, R));
  CHECK_PTR(shared.buffer, buffer);
  CHECK_INT(owner->runs, 0);
  bowstring_buffer_release(buffer);
  owners_all_gone();
}

/* ---- structs that may grow ---- */

/* A struct of twice the size, as a later version may have it. */
#define SIZED_OUTPUT(Type, first_member, call)                                                  \
  do {                                                                                          \
    union {                                                                                     \
      Type known;                                                                               \
      unsigned char bytes[2 * sizeof(Type)];                                                    \
    } larger;                                                                                   \
    Type *out = &larger.known;                                                                  \
    check_about(#Type);                                                                         \
    memset(&larger, 0xAA, sizeof larger);                                                       \
    larger.known.struct_size = sizeof larger;                                                   \
    CHECK_OK(call);                                                                             \
    CHECK_INT(larger.known.struct_size, sizeof larger);                                         \
    for (size_t i = sizeof(Type); i < sizeof larger; i++) CHECK_INT(larger.bytes[i], 0);        \
    CHECK(larger.known.first_member != (size_t)0xAAAAAAAAAAAAAAAA);                             \
    static const size_t small[] = {0, 1, sizeof(size_t), sizeof(Type) - 1, SIZE_MAX};           \
    for (int i = 0; i < 5; i++) {                                                               \
      memset(&larger, 0xAA, sizeof larger);                                                     \
      larger.known.struct_size = small[i];                                                      \
      CHECK_FAILS(call, BOWSTRING_INVALID_ARGUMENT);                                            \
      for (size_t k = sizeof(size_t); k < sizeof larger; k++) CHECK_INT(larger.bytes[k], 0xAA); \
    }                                                                                           \
  } while (0)

static BowstringStatus counts_as_status(BowstringLiveCounts *out) {
  size_t told = out->struct_size;
  bowstring_live_counts(out);
  return told < sizeof *out || told == SIZE_MAX ? BOWSTRING_INVALID_ARGUMENT : BOWSTRING_OK;
}

static void test_struct_sizes(void) {
  const struct sample *sample = sample_named("utf8");
  BowstringArray *array = sample_import(sample);
  BowstringBuffer *buffer = NULL;
  const BowstringType *type = bowstring_array_type(array);
  CHECK_OK(bowstring_array_buffer(array, 2, &buffer, &report));
  SIZED_OUTPUT(BowstringTypeNodeInfo, n_children, bowstring_type_node_info(type, 0, out, &report));
  SIZED_OUTPUT(BowstringNodeInfo, parent, bowstring_array_node_info(array, 0, out, &report));
  SIZED_OUTPUT(BowstringBufferInfo, node, bowstring_array_buffer_info(array, 0, out, &report));
  SIZED_OUTPUT(BowstringBufferMemory, struct_size, bowstring_buffer_info(buffer, out, &report));
  SIZED_OUTPUT(BowstringLiveCounts, types, counts_as_status(out));
  bowstring_live_counts(NULL);
  bowstring_buffer_release(buffer);
  bowstring_array_release(array);

  /* Input from a later version is fine as long as it does not use what this one does not know. */
  union {
    BowstringPlacement known;
    unsigned char bytes[2 * sizeof(BowstringPlacement)];
  } later;
  BowstringOwnedBuffer buffers[3], before[3];
  struct ArrowDeviceArray raw;
  BowstringType *parsed = sample_type(sample);
  check_about("a later placement");
  sample_buffers(sample, buffers);
  memcpy(before, buffers, sizeof before);
  memset(&later, 0, sizeof later);
  later.known.struct_size = sizeof later;
  for (size_t i = sizeof(BowstringPlacement); i < sizeof later; i++) {
    later.bytes[i] = 1;
    CHECK_FAILS(bowstring_device_array_from_buffers(parsed, sample->nodes, 1, buffers, 3, &later.known, &raw, &report),
                BOWSTRING_UNSUPPORTED);
    CHECK(raw.array.release == NULL);
    CHECK_MEM(buffers, before, sizeof buffers);
    later.bytes[i] = 0;
  }
  CHECK_OK(bowstring_device_array_from_buffers(parsed, sample->nodes, 1, buffers, 3, &later.known, &raw, &report));
  bowstring_device_array_release(&raw);
  bowstring_type_release(parsed);
  owners_all_gone();
}

/* ---- the record ---- */

static int is_utf8(const char *text, size_t room) {
  const unsigned char *at = (const unsigned char *)text, *end = memchr(text, 0, room);
  if (!end) return 0;
  while (at < end) {
    int more = *at < 0x80 ? 0 : *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : -1;
    if (more < 0) return 0;
    for (at++; more > 0; more--, at++)
      if ((*at & 0xc0) != 0x80) return 0;
  }
  return 1;
}

/* A failing call writes every byte of the record, so that nothing of what was there is taken for part of it. */
static void check_written_whole(struct ArrowSchema *schema) {
  BowstringError first, second;
  BowstringType *type = NULL;
  memset(&first, 0xAA, sizeof first);
  memset(&second, 0x55, sizeof second);
  BowstringStatus status = bowstring_type_copy_from(schema, &type, &first);
  CHECK(status != BOWSTRING_OK);
  CHECK_INT(bowstring_type_copy_from(schema, &type, &second), status);
  CHECK_MEM(&first, &second, sizeof first);
  CHECK_INT(first.status, status);
  CHECK(is_utf8(first.path, sizeof first.path) && is_utf8(first.message, sizeof first.message));
  CHECK(strlen(first.message) > 0);
  CHECK_INT(first.native_code, 0);
  CHECK_INT(first.row, -1);
  CHECK_INT(first.batch, -1);
}

static int broken(void *ctx, void *dst, const void *src, size_t n) {
  return (void)ctx, (void)dst, (void)src, (void)n, 4711;
}

static void test_record(void) {
  BowstringType *type = NULL;
  BowstringError untouched, before;
  check_about("the record");
  memset(&untouched, 0x5A, sizeof untouched);
  before = untouched;
  CHECK_OK(bowstring_type_parse("int32", &type, &untouched));
  bowstring_type_release(type);
  CHECK_MEM(&untouched, &before, sizeof before);

  /* Long names of characters of several bytes, cut at every place there is. */
  for (int shift = 0; shift < 8; shift++) {
    for (int kind = 0; kind < 4; kind++) {
      static const char *const letters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8f\xb9", "\xff"};
      char name[512] = "abcdefgh";
      name[shift] = '\0';
      while (strlen(name) < 400) strcat(name, letters[kind]);
      struct field leaf = {"?", name, 2, 0, NULL, NULL, NULL}, middle = {"+s", name, 2, 1, &leaf, NULL, NULL};
      struct field root = {"+s", "", 2, 1, &middle, NULL, NULL};
      struct ArrowSchema schema;
      check_about("letters %d after %d", kind, shift);
      field_schema(&root, &schema);
      check_written_whole(&schema);
      bowstring_schema_release(&schema);
      /* The same in a format, which the message shows. */
      struct field zone = {name, "", 2, 0, NULL, NULL, NULL};
      char format[520];
      snprintf(format, sizeof format, "ts?%s", name);
      zone.format = format;
      field_schema(&zone, &schema);
      check_written_whole(&schema);
      bowstring_schema_release(&schema);
      owners_all_gone();
    }
  }

  /* The path names the node, quoted where a plain name would be read wrong, and dictionaries. */
  struct field values = {"+l", "", 2, 1, &(const struct field){"!", "item", 2, 0, NULL, NULL, NULL}, NULL, NULL};
  struct field index = {"i", "a b", 2, 0, NULL, &values, NULL}, root = {"+s", "", 2, 1, &index, NULL, NULL};
  struct ArrowSchema schema;
  field_schema(&root, &schema);
  CHECK_FAILS(bowstring_type_copy_from(&schema, &type, &report), BOWSTRING_INVALID_DATA);
  CHECK_STR(report.path, "$.\"a b\"<dictionary>.item");
  CHECK_RULE("F1");
  CHECK_HAS(report.message, "\"!\"");
  bowstring_schema_release(&schema);

  /* A number of a callback's is passed on. */
  BowstringArray *array = sample_foreign(sample_named("utf8")), *sized = NULL;
  CHECK_FAILS(bowstring_array_resolve_sizes_with(array, broken, NULL, &sized, &report), BOWSTRING_CALLBACK_ERROR);
  CHECK_INT(report.native_code, 4711);
  CHECK_PTR(sized, NULL);
  bowstring_array_release(array);
  owners_all_gone();
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  test_null_types();
  test_null_imports();
  test_null_arrays();
  test_null_produce();
  test_null_buffers();
  test_struct_sizes();
  test_record();
  live_as_before(&before);
  return check_end(7000);
}
