/* Every allocation of every call fails in turn: OUT_OF_MEMORY, nothing taken, nothing leaked, and then it works. */
#include "allocations.h"
#include "build.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

static const char nested[] =
    "struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>";

/* What the calls work on. Inputs that a call takes are in `given`, and have to be the same bytes after a failure. */
static const struct sample *sample;
static BowstringType *type;
static BowstringArray *array;
static BowstringBuffer *buffer;

static struct {
  struct ArrowDeviceArray device;
  struct ArrowArray host;
  struct ArrowSchema schema;
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement;
} given;

static struct {
  BowstringType *type;
  BowstringArray *array;
  BowstringBuffer *buffer;
  struct ArrowDeviceArray device;
  struct ArrowArray host;
  struct ArrowSchema schema;
  void *data;
} out;

/* Out-parameters hold garbage before each call, and nothing after one that failed. */
static void spoil_out(void) { memset(&out, 0xAA, sizeof out); }

enum produced {
  A_TYPE,
  AN_ARRAY,
  A_BUFFER,
  A_DEVICE_ARRAY,
  A_HOST_ARRAY,
  A_SCHEMA,
  A_DEVICE_ARRAY_AND_SCHEMA,
  A_HOST_ARRAY_AND_SCHEMA
};

static void check_nothing_out(enum produced produced) {
  switch (produced) {
    case A_TYPE: CHECK_PTR(out.type, NULL); break;
    case AN_ARRAY: CHECK_PTR(out.array, NULL); break;
    case A_BUFFER: CHECK_PTR(out.buffer, NULL); break;
    case A_DEVICE_ARRAY_AND_SCHEMA: CHECK(out.schema.release == NULL); /* fall through */
    case A_DEVICE_ARRAY: CHECK(out.device.array.release == NULL); break;
    case A_HOST_ARRAY_AND_SCHEMA: CHECK(out.schema.release == NULL); /* fall through */
    case A_HOST_ARRAY: CHECK(out.host.release == NULL); break;
    case A_SCHEMA: CHECK(out.schema.release == NULL); break;
  }
}

static void release_out(enum produced produced) {
  switch (produced) {
    case A_TYPE: bowstring_type_release(out.type); break;
    case AN_ARRAY: bowstring_array_release(out.array); break;
    case A_BUFFER: bowstring_buffer_release(out.buffer); break;
    case A_DEVICE_ARRAY_AND_SCHEMA: bowstring_schema_release(&out.schema); /* fall through */
    case A_DEVICE_ARRAY: bowstring_device_array_release(&out.device); break;
    case A_HOST_ARRAY_AND_SCHEMA: bowstring_schema_release(&out.schema); /* fall through */
    case A_HOST_ARRAY: bowstring_host_array_release(&out.host); break;
    case A_SCHEMA: bowstring_schema_release(&out.schema); break;
  }
}

/* ---- the calls ---- */

static void give_nothing(void) {}
static void give_schema(void) { sample_schema(sample, &given.schema); }
static void give_array(void) { sample_array(sample, &given.device); }
static void give_array_and_schema(void) { give_array(), give_schema(); }
static void give_own_export(void) {
  struct ArrowDeviceArray made;
  CHECK_OK(bowstring_array_export(array, &made, &given.schema, &report));
  /* Member by member, because the bytes between them, which nobody wrote, are compared too. */
  given.device.array = made.array;
  given.device.device_id = made.device_id;
  given.device.device_type = made.device_type;
  given.device.sync_event = made.sync_event;
}
static void give_host(void) { sample_host_array(sample, &given.host); }
static void give_host_and_schema(void) { give_host(), give_schema(); }
static void give_parts(void) {
  sample_buffers(sample, given.buffers);
  given.placement = (BowstringPlacement){.struct_size = sizeof given.placement};
  given.placement.owner = owner_new(NULL);
  given.placement.release_owner = owner_release;
}
static void give_owner(void) { given.placement.owner = owner_new(NULL); }

static BowstringStatus type_import(void) { return bowstring_type_import(&given.schema, &out.type, &report); }
static BowstringStatus type_copy_from(void) {
  BowstringStatus status = bowstring_type_copy_from(&given.schema, &out.type, &report);
  if (status == BOWSTRING_OK) bowstring_schema_release(&given.schema);
  return status;
}
static BowstringStatus type_new(void) {
  const BowstringType *children[] = {type, type, type};
  return bowstring_type_new("+s", "a name", 2, children, 3, NULL, NULL, 0, &out.type, &report);
}
static BowstringStatus type_parse(void) { return bowstring_type_parse(nested, &out.type, &report); }
static BowstringStatus type_export(void) { return bowstring_type_export(type, &out.schema, &report); }
static BowstringStatus from_buffers(void) {
  return bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, given.buffers,
                                             (size_t)sample->n_buffers, &given.placement, &out.device, &report);
}
static BowstringStatus import(void) {
  return bowstring_array_import(&given.device, &given.schema, &out.array, &report);
}
static BowstringStatus import_typed(void) {
  return bowstring_array_import_typed(&given.device, type, &out.array, &report);
}
static BowstringStatus import_host(void) {
  return bowstring_array_import_host(&given.host, &given.schema, &out.array, &report);
}
static BowstringStatus import_host_typed(void) {
  return bowstring_array_import_host_typed(&given.host, type, &out.array, &report);
}
static struct ArrowDeviceArray lent;
static BowstringStatus import_borrowed(void) {
  return bowstring_array_import_borrowed(&lent, type, given.placement.owner, owner_release, &out.array, &report);
}
static BowstringStatus export_alone(void) { return bowstring_array_export(array, &out.device, NULL, &report); }
static BowstringStatus export_both(void) { return bowstring_array_export(array, &out.device, &out.schema, &report); }
static BowstringStatus export_host(void) {
  return bowstring_array_export_host(array, NULL, &out.host, &out.schema, &report);
}
static BowstringStatus child(void) { return bowstring_array_child(array, 0, &out.array, &report); }
static BowstringStatus dictionary(void) { return bowstring_array_dictionary(array, &out.array, &report); }
static BowstringStatus slice(void) { return bowstring_array_slice(array, 1, 1, &out.array, &report); }
static BowstringStatus resolve_sizes(void) { return bowstring_array_resolve_sizes(array, NULL, &out.array, &report); }
static BowstringStatus resolve_sizes_with(void) {
  return bowstring_array_resolve_sizes_with(array, device_read, NULL, &out.array, &report);
}
static BowstringStatus with_owner(void) {
  return bowstring_array_with_owner(array, given.placement.owner, owner_release, &out.array, &report);
}
static BowstringStatus array_buffer(void) { return bowstring_array_buffer(array, 0, &out.buffer, &report); }
static BowstringStatus buffer_wrap(void) {
  return bowstring_buffer_wrap(&given.buffers[0], &given.placement, &out.buffer, &report);
}
static void give_one_buffer(void) {
  static char memory[4];
  give_parts();
  for (int i = 0; i < sample->n_buffers; i++) owner_release(given.buffers[i].owner);
  given.buffers[0] = (BowstringOwnedBuffer){memory, 4, owner_new(NULL), owner_release};
}
static BowstringStatus buffer_allocate(void) {
  return bowstring_buffer_allocate((BowstringDevice){0, 0}, 100, NULL, &out.buffer, &out.data, &report);
}
static BowstringStatus buffer_slice(void) { return bowstring_buffer_slice(buffer, 0, 0, &out.buffer, &report); }

static const struct call {
  const char *name;
  void (*give)(void);
  BowstringStatus (*call)(void);
  enum produced produced;
} calls[] = {
    {"type_import", give_schema, type_import, A_TYPE},
    {"type_copy_from", give_schema, type_copy_from, A_TYPE},
    {"type_new", give_nothing, type_new, A_TYPE},
    {"type_parse", give_nothing, type_parse, A_TYPE},
    {"type_export", give_nothing, type_export, A_SCHEMA},
    {"from_buffers", give_parts, from_buffers, A_DEVICE_ARRAY},
    {"import", give_array_and_schema, import, AN_ARRAY},
    {"import of our own export", give_own_export, import, AN_ARRAY},
    {"import_typed", give_array, import_typed, AN_ARRAY},
    {"import_host", give_host_and_schema, import_host, AN_ARRAY},
    {"import_host_typed", give_host, import_host_typed, AN_ARRAY},
    {"import_borrowed", give_owner, import_borrowed, AN_ARRAY},
    {"export", give_nothing, export_alone, A_DEVICE_ARRAY},
    {"export with schema", give_nothing, export_both, A_DEVICE_ARRAY_AND_SCHEMA},
    {"export_host", give_nothing, export_host, A_HOST_ARRAY_AND_SCHEMA},
    {"child", give_nothing, child, AN_ARRAY},
    {"dictionary", give_nothing, dictionary, AN_ARRAY},
    {"slice", give_nothing, slice, AN_ARRAY},
    {"resolve_sizes", give_nothing, resolve_sizes, AN_ARRAY},
    {"resolve_sizes_with", give_nothing, resolve_sizes_with, AN_ARRAY},
    {"with_owner", give_owner, with_owner, AN_ARRAY},
    {"array_buffer", give_nothing, array_buffer, A_BUFFER},
    {"buffer_wrap", give_one_buffer, buffer_wrap, A_BUFFER},
    {"buffer_allocate", give_nothing, buffer_allocate, A_BUFFER},
    {"buffer_slice", give_nothing, buffer_slice, A_BUFFER},
};

static long failures;

static void fail_each(const struct call *call) {
  memset(&given, 0, sizeof given);
  BowstringLiveCounts before_all = live_counts();
  long blocks_before_all = allocations_live();
  call->give();
  BowstringLiveCounts before = live_counts();
  long blocks = allocations_live();
  int left = owners_left();
  unsigned char kept[sizeof given];
  memcpy(kept, &given, sizeof given);
  for (long n = 1;; n++) {
    CHECK(n < 100);
    check_about("%s, allocation %ld", call->name, n);
    spoil_out();
    memset(&report, 0xAA, sizeof report);
    allocations_fail_at(n);
    BowstringStatus status = call->call();
    int failed = allocations_have_failed();
    allocations_fail_at(0);
    if (!failed) {
      CHECK_INT(status, BOWSTRING_OK);
      CHECK(n > 1); /* Else nothing was tested. */
      break;
    }
    CHECK_FAILS(status, BOWSTRING_OUT_OF_MEMORY);
    CHECK_INT(report.status, BOWSTRING_OUT_OF_MEMORY);
    CHECK(strlen(report.message) > 0);
    CHECK_MEM(&given, kept, sizeof given);
    check_nothing_out(call->produced);
    CHECK_INT(owners_left(), left);
    CHECK_INT(allocations_live(), blocks);
    live_as_before(&before);
    failures++;
  }
  release_out(call->produced);
  CHECK_INT(allocations_live(), blocks_before_all);
  live_as_before(&before_all);
}

static void test_calls(void) {
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (calls[i].call == child && sample->field.n_children == 0) continue;
    if (calls[i].call == dictionary && !sample->field.dictionary) continue;
    fail_each(&calls[i]);
  }
}

#define NEW_FAILS(raw)                      \
  do {                                      \
    check_about(#raw);                      \
    allocations_fail_at(1);                 \
    CHECK(bowstring_##raw##_new() == NULL); \
    failures++;                             \
    allocations_fail_at(0);                 \
  } while (0)

int main(void) {
  allocations_watch();
  BowstringLiveCounts before = live_counts();
  NEW_FAILS(schema);
  NEW_FAILS(host_array);
  NEW_FAILS(device_array);
  NEW_FAILS(host_stream);
  NEW_FAILS(device_stream);
  for (int i = 0; i < n_samples; i++) {
    sample = &samples[i];
    /* Arrays without a buffer or a second value have nothing to take out or to slice. */
    if (sample->n_buffers == 0 || sample->nodes[0].length < 2) continue;
    type = sample_type(sample);
    array = sample_import(sample);
    sample_array(sample, &lent);
    CHECK_OK(bowstring_array_buffer(array, (size_t)sample->n_buffers - 1, &buffer, &report));
    test_calls();
    bowstring_buffer_release(buffer);
    bowstring_array_release(array);
    bowstring_type_release(type);
    lent.array.release(&lent.array);
    owners_all_gone();
  }
  CHECK_INT(allocations_live(), 0);
  live_as_before(&before);
  printf("%ld failed allocations\n", failures);
  return check_end(45000);
}
