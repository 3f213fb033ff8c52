/* Broken and hostile arrays, each in a process of its own: every one is refused with its rule, or accepted on
 * purpose, in CPU memory and on a device alike, without a buffer being read, and whoever owned it still does. */
#include "alone.h"
#include "build.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum member {
  NO_EDIT,
  LENGTH,
  NULLS,
  OFFSET,
  N_BUFFERS,
  N_CHILDREN,
  NO_BUFFERS,
  NO_BUFFER,
  NO_CHILDREN,
  NO_CHILD,
  SELF_CHILD,
  NO_DICTIONARY,
  A_DICTIONARY,
  RELEASED,
  NULL_FIRST,
  BITMAP_FIRST,
  BITMAP,
  DEVICE_TYPE,
  DEVICE_ID,
  SYNC_EVENT,
  RESERVED
};

struct edit {
  int node;
  enum member member;
  int64_t value;
};

/* `rule` is NULL where the array is accepted. */
struct array_case {
  const char *name, *sample;
  struct edit edits[3];
  const char *rule, *path;
};

static const char nested[] =
    "struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>";
static const char table[] = "struct<a: int32, b: utf8>";
static const char dense[] = "dense_union(5, 7)<x: int32, y: utf8>";
static const char sparse[] = "sparse_union(5, 7)<x: int32, y: utf8>";
static const char runs[] = "run_end_encoded<int16, utf8>";
static const char coded[] = "dictionary<int8, utf8>";
static const char triple[] = "binary_view";

#define CASE(name, sample, rule, path, ...) {name, sample, {__VA_ARGS__}, rule, path}

static const struct array_case array_cases[] = {
    CASE("negative length", "int32", "A1", "$", {0, LENGTH, -1}),
    CASE("least length", "int32", "A1", "$", {0, LENGTH, INT64_MIN}),
    CASE("negative offset", "int32", "A1", "$", {0, OFFSET, -1}),
    CASE("length and offset overflow", "int64", "A1", "$", {0, LENGTH, INT64_C(1) << 62},
         {0, OFFSET, INT64_C(1) << 62}),
    CASE("greatest length", "int32", "A1", "$", {0, LENGTH, INT64_MAX}, {0, OFFSET, 1}),
    CASE("size overflows", "int64", "A1", "$", {0, LENGTH, INT64_C(1) << 61}, {0, OFFSET, 0}),
    CASE("size of wide values overflows", "decimal256(76, 10)", "A1", "$", {0, LENGTH, INT64_C(1) << 59}),
    CASE("offsets overflow", "utf8", "A1", "$", {0, LENGTH, INT64_C(1) << 61}),
    CASE("no room for the last offset", "utf8", "A1", "$", {0, LENGTH, INT64_MAX}, {0, OFFSET, 0}),
    CASE("views overflow", "utf8_view", "A1", "$", {0, LENGTH, INT64_C(1) << 60}),
    CASE("null count below -1", "int32", "A2", "$", {0, NULLS, -2}),
    CASE("more nulls than values", "int32", "A2", "$", {0, NULLS, 6}),
    CASE("least null count", "int32", "A2", "$", {0, NULLS, INT64_MIN}),
    CASE("nulls of a union", dense, "A2", "$", {0, NULLS, 1}),
    CASE("nulls of a sparse union", sparse, "A2", "$", {0, NULLS, 1}),
    CASE("nulls of runs", runs, "A2", "$", {0, NULLS, 1}),
    CASE("no buffers", "int32", "A3", "$", {0, N_BUFFERS, 0}),
    CASE("one buffer", "int32", "A3", "$", {0, N_BUFFERS, 1}),
    CASE("a buffer too many", "int32", "A3", "$", {0, N_BUFFERS, 3}),
    CASE("negative number of buffers", "int32", "A3", "$", {0, N_BUFFERS, -1}),
    CASE("greatest number of buffers", "int32", "A3", "$", {0, N_BUFFERS, INT64_MAX}),
    CASE("text without data", "utf8", "A3", "$", {0, N_BUFFERS, 2}),
    CASE("list with data", "list<int32>", "A3", "$", {0, N_BUFFERS, 3}),
    CASE("struct without validity", table, "A3", "$", {0, N_BUFFERS, 0}),
    CASE("struct with two", table, "A3", "$", {0, N_BUFFERS, 2}),
    CASE("views without sizes of buffers", "utf8_view", "A3", "$", {0, N_BUFFERS, 2}),
    CASE("views without any", "utf8_view", "A3", "$", {0, N_BUFFERS, 0}),
    CASE("views with too many", "utf8_view", "A3", "$", {0, N_BUFFERS, INT64_C(1) << 33}),
    CASE("list views without sizes", "list_view<int16>", "A3", "$", {0, N_BUFFERS, 2}),
    CASE("dense union without offsets", dense, "A3", "$", {0, N_BUFFERS, 1}),
    CASE("runs with a NULL bitmap", runs, "A3", "$", {0, NULL_FIRST, 1}),
    CASE("grandchild's buffers", nested, "A3", "$.nested.l.item.y", {8, N_BUFFERS, 1}),
    CASE("dictionary's buffers", nested, "A3", "$.nested.d<dictionary>", {4, N_BUFFERS, 2}),
    CASE("no list of buffers", "int32", "A4", "$", {0, NO_BUFFERS, 0}),
    CASE("no list of a struct", table, "A4", "$", {0, NO_BUFFERS, 0}),
    CASE("no list in an empty array", "int32", "A4", "$", {0, NO_BUFFERS, 0}, {0, LENGTH, 0}, {0, NULLS, 0}),
    CASE("no list in a grandchild", nested, "A4", "$.nested.l.item.x", {7, NO_BUFFERS, 0}),
    CASE("no values", "int32", "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no values before the offset", "int32", "A5", "$", {0, NO_BUFFER, 1}, {0, LENGTH, 0}, {0, NULLS, 0}),
    CASE("no bitmap for nulls", "int32", "A5", "$", {0, NO_BUFFER, 0}),
    CASE("no offsets", "utf8", "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no offsets of a list", "list<int32>", "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no sizes", "list_view<int16>", "A5", "$", {0, NO_BUFFER, 2}),
    CASE("no type ids", sparse, "A5", "$", {0, NO_BUFFER, 0}),
    CASE("no dense offsets", dense, "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no views", triple, "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no sizes of variadic buffers", triple, "A5", "$", {0, NO_BUFFER, 5}),
    CASE("no indices", coded, "A5", "$", {0, NO_BUFFER, 1}),
    CASE("no bitmap in a grandchild", nested, "A5", "$.nested.l.item.x", {7, NO_BUFFER, 0}),
    CASE("a child of none", "int32", "A7", "$", {0, N_CHILDREN, 1}),
    CASE("negative number of children", table, "A7", "$", {0, N_CHILDREN, -1}),
    CASE("greatest number of children", table, "A7", "$", {0, N_CHILDREN, INT64_MAX}),
    CASE("a child too few", table, "A7", "$", {0, N_CHILDREN, 1}),
    CASE("a child too many", table, "A7", "$", {0, N_CHILDREN, 3}),
    CASE("no list of children", table, "A7", "$", {0, NO_CHILDREN, 0}),
    CASE("first child NULL", table, "A7", "$.a", {0, NO_CHILD, 0}),
    CASE("second child NULL", table, "A7", "$.b", {0, NO_CHILD, 1}),
    CASE("itself as a child", table, "A7", "$.a", {0, SELF_CHILD, 0}),
    CASE("child released", table, "A7", "$.b", {2, RELEASED, 0}),
    CASE("grandchild released", nested, "A7", "$.nested.l.item", {6, RELEASED, 0}),
    CASE("dictionary released", coded, "A7", "$<dictionary>", {1, RELEASED, 0}),
    CASE("no dictionary", coded, "A7", "$<dictionary>", {0, NO_DICTIONARY, 0}),
    CASE("a dictionary of none", "int32", "A7", "$", {0, A_DICTIONARY, 0}),
    CASE("bitmap of a union", dense, "A8", "$", {0, BITMAP_FIRST, 3}),
    CASE("bitmap of a sparse union", sparse, "A8", "$", {0, BITMAP_FIRST, 2}),
    CASE("bitmap of nulls", "null", "A8", "$", {0, BITMAP_FIRST, 1}),
    CASE("child too short", table, "B4", "$.a", {1, LENGTH, 2}),
    CASE("child too short for the offset", table, "B4", "$.a", {0, OFFSET, 1}),
    CASE("grandchild too short", nested, "B4", "$.nested.l.item.y", {8, LENGTH, 3}),
    CASE("struct longer than its children", nested, "B4", "$.a", {0, LENGTH, 4}),
    CASE("sparse child too short", sparse, "B4", "$.y", {2, LENGTH, 3}),
    CASE("item too short", "fixed_size_list<int32, 2>", "B4", "$.item", {1, LENGTH, 7}),
    CASE("items overflow", "fixed_size_list<int32, 2>", "B4", "$.item", {0, LENGTH, INT64_C(1) << 62}),
    CASE("nulls in run ends", runs, "B7", "$.run_ends", {1, NULLS, 1}, {1, BITMAP, 0}),
    CASE("fewer values than runs", runs, "B7", "$.values", {2, LENGTH, 2}),
    CASE("no runs", runs, "B7", "$.run_ends", {1, LENGTH, 0}),
    CASE("released", "int32", "M2", "$", {0, RELEASED, 0}),
    CASE("device 0", "int32", "D2", NULL, {0, DEVICE_TYPE, 0}),
    CASE("device 5", "int32", "D2", NULL, {0, DEVICE_TYPE, 5}),
    CASE("device 6", "int32", "D2", NULL, {0, DEVICE_TYPE, 6}),
    CASE("device -1", "int32", "D2", NULL, {0, DEVICE_TYPE, -1}),
    CASE("least device", "int32", "D2", NULL, {0, DEVICE_TYPE, INT32_MIN}),
    CASE("CPU 5", "int32", "D3", NULL, {0, DEVICE_TYPE, 1}, {0, DEVICE_ID, 5}),
    CASE("CPU -2", "int32", "D3", NULL, {0, DEVICE_TYPE, 1}, {0, DEVICE_ID, -2}),
    CASE("event on the CPU", "int32", "D4", NULL, {0, DEVICE_TYPE, 1}, {0, DEVICE_ID, -1}, {0, SYNC_EVENT, 0}),
    CASE("event on VPI", "int32", "D4", NULL, {0, DEVICE_TYPE, 9}, {0, SYNC_EVENT, 0}),
    CASE("event on WEBGPU", "int32", "D4", NULL, {0, DEVICE_TYPE, 15}, {0, SYNC_EVENT, 0}),
    CASE("event on HEXAGON", "int32", "D4", NULL, {0, DEVICE_TYPE, 16}, {0, SYNC_EVENT, 0}),

    CASE("as it is", "int32", NULL, NULL, {0, NO_EDIT, 0}),
    CASE("as it is, nested", nested, NULL, NULL, {0, NO_EDIT, 0}),
    CASE("nulls not counted", "int32", NULL, NULL, {0, NULLS, -1}),
    CASE("nulls not counted, no bitmap", "int32", NULL, NULL, {0, NULLS, -1}, {0, NO_BUFFER, 0}),
    CASE("no nulls, no bitmap", "int32", NULL, NULL, {0, NULLS, 0}, {0, NO_BUFFER, 0}),
    CASE("empty without values", "int32", NULL, NULL, {0, LENGTH, 0}, {0, OFFSET, 0}, {0, NULLS, 0}),
    CASE("empty text without offsets", "utf8", NULL, NULL, {0, LENGTH, 0}, {0, NO_BUFFER, 1}, {0, NO_BUFFER, 2}),
    CASE("empty list without offsets", "large_list<utf8>", NULL, NULL, {0, LENGTH, 0}, {0, NULLS, 0},
         {0, NO_BUFFER, 1}),
    CASE("nulls of a union not counted", dense, NULL, NULL, {0, NULLS, -1}),
    CASE("nulls of runs not counted", runs, NULL, NULL, {0, NULLS, -1}),
    CASE("union with a NULL bitmap", dense, NULL, NULL, {0, NULL_FIRST, 3}),
    CASE("sparse union with a NULL bitmap", sparse, NULL, NULL, {0, NULL_FIRST, 2}),
    CASE("nulls with a NULL bitmap", "null", NULL, NULL, {0, NULL_FIRST, 1}),
    CASE("nulls that say they are none", "null", NULL, NULL, {0, NULLS, 0}),
    CASE("child longer than needed", table, NULL, NULL, {0, LENGTH, 2}, {0, NULLS, 1}),
    CASE("many rows without columns", "struct<>", NULL, NULL, {0, LENGTH, INT64_C(1) << 40}),
    CASE("device 17", "int32", NULL, NULL, {0, DEVICE_TYPE, 17}),
    CASE("greatest device", "int32", NULL, NULL, {0, DEVICE_TYPE, INT32_MAX}),
    CASE("pinned memory", "int32", NULL, NULL, {0, DEVICE_TYPE, 3}),
    CASE("negative id", "int32", NULL, NULL, {0, DEVICE_TYPE, 2}, {0, DEVICE_ID, -1}),
    CASE("CPU 0", "int32", NULL, NULL, {0, DEVICE_TYPE, 1}, {0, DEVICE_ID, 0}),
    CASE("event on CUDA", "int32", NULL, NULL, {0, DEVICE_TYPE, 2}, {0, SYNC_EVENT, 0}),
    CASE("event on EXT_DEV", "int32", NULL, NULL, {0, DEVICE_TYPE, 12}, {0, SYNC_EVENT, 0}),
    CASE("reserved members used", "int32", NULL, NULL, {0, RESERVED, -1}),
};

/* ---- making them ---- */

static struct ArrowArray *node_at(struct ArrowArray *array, const struct field *field, int wanted, int *next) {
  if ((*next)++ == wanted) return array;
  for (int i = 0; i < field->n_children; i++) {
    struct ArrowArray *found = node_at(array->children[i], &field->children[i], wanted, next);
    if (found) return found;
  }
  return field->dictionary ? node_at(array->dictionary, field->dictionary, wanted, next) : NULL;
}

static void *event_cell; /* Where a handle would be. */

static void edit(const struct sample *sample, struct ArrowDeviceArray *raw, const struct edit *edit) {
  static const void *longer[8];
  int next = 0;
  struct ArrowArray *array = node_at(&raw->array, &sample->field, edit->node, &next);
  CHECK(array != NULL);
  switch (edit->member) {
    case NO_EDIT: break;
    case LENGTH: array->length = edit->value; break;
    case NULLS: array->null_count = edit->value; break;
    case OFFSET: array->offset = edit->value; break;
    case N_BUFFERS: array->n_buffers = edit->value; break;
    case N_CHILDREN: array->n_children = edit->value; break;
    case NO_BUFFERS: array->buffers = NULL; break;
    case NO_BUFFER: array->buffers[edit->value] = NULL; break;
    case NO_CHILDREN: array->children = NULL; break;
    case NO_CHILD: array->children[edit->value] = NULL; break;
    case SELF_CHILD: array->children[edit->value] = array; break;
    case NO_DICTIONARY: array->dictionary = NULL; break;
    case A_DICTIONARY: array->dictionary = array; break;
    case RELEASED: bowstring_host_array_release(array); break;
    case NULL_FIRST:
    case BITMAP_FIRST:
      longer[0] = edit->member == NULL_FIRST ? NULL : &event_cell;
      for (int64_t i = 0; i < array->n_buffers; i++) longer[i + 1] = array->buffers[i];
      array->buffers = longer;
      CHECK_INT(++array->n_buffers, edit->value);
      break;
    case BITMAP: array->buffers[0] = &event_cell; break;
    case DEVICE_TYPE: raw->device_type = (ArrowDeviceType)edit->value; break;
    case DEVICE_ID: raw->device_id = edit->value; break;
    case SYNC_EVENT: raw->sync_event = &event_cell; break;
    case RESERVED: memset(raw->reserved, (int)edit->value, sizeof raw->reserved); break;
  }
}

static int edits_device(const struct array_case *given) {
  for (int i = 0; i < 3; i++)
    if (given->edits[i].member >= DEVICE_TYPE) return 1;
  return 0;
}

static void make(const struct array_case *given, int on_device, struct ArrowDeviceArray *out) {
  const struct sample *sample = sample_named(given->sample);
  sample_array(sample, out);
  if (on_device) device_hide(sample, out);
  for (int i = 0; i < 3; i++) edit(sample, out, &given->edits[i]);
}

/* ---- handing them over ---- */

enum way { WITH_SCHEMA, TYPED, BORROWED, HOST_WITH_SCHEMA, HOST_TYPED, N_WAYS };

static void check_accepted(const struct array_case *given, BowstringArray *array, int readable);

static void hand_over(const struct array_case *given, int on_device, enum way way) {
  const struct sample *sample = sample_named(given->sample);
  struct ArrowDeviceArray raw, before;
  struct ArrowSchema schema = {.release = NULL}, schema_before;
  BowstringArray *array = (BowstringArray *)8;
  BowstringType *type = sample_type(sample);
  if (way == WITH_SCHEMA || way == HOST_WITH_SCHEMA) sample_schema(sample, &schema);
  make(given, on_device, &raw);
  before = raw;
  schema_before = schema;
  int left = owners_left();
  BowstringStatus status = BOWSTRING_INTERNAL;
  switch (way) {
    case WITH_SCHEMA: status = bowstring_array_import(&raw, &schema, &array, &report); break;
    case TYPED: status = bowstring_array_import_typed(&raw, type, &array, &report); break;
    case BORROWED: status = bowstring_array_import_borrowed(&raw, type, NULL, NULL, &array, &report); break;
    case HOST_WITH_SCHEMA: status = bowstring_array_import_host(&raw.array, &schema, &array, &report); break;
    default: status = bowstring_array_import_host_typed(&raw.array, type, &array, &report); break;
  }
  if (given->rule) {
    BowstringStatus expected = given->rule[0] == 'M' ? BOWSTRING_RELEASED : BOWSTRING_INVALID_DATA;
    CHECK_INT(status, expected);
    check_refusal(expected, given->rule, given->path);
    CHECK_PTR(array, NULL);
    CHECK_MEM(&raw, &before, sizeof raw);
    CHECK_MEM(&schema, &schema_before, sizeof schema);
    CHECK_INT(owners_left(), left);
  } else {
    CHECK_OK(status);
    CHECK(schema.release == NULL);
    if (way != BORROWED) CHECK(raw.array.release == NULL);
    check_accepted(given, array, way >= HOST_WITH_SCHEMA || raw.device_type == ARROW_DEVICE_CPU);
    bowstring_array_release(array);
  }
  bowstring_device_array_release(&raw);
  bowstring_schema_release(&schema);
  bowstring_type_release(type);
}

static void array_case(const void *what) {
  const struct array_case *given = what;
  for (int on_device = 0; on_device < 2; on_device++) {
    if (on_device && edits_device(given)) continue;
    for (enum way way = 0; way < N_WAYS; way++) {
      if (way >= HOST_WITH_SCHEMA && (on_device || edits_device(given))) continue;
      check_about("%s, %s, way %d", given->name, on_device ? "device" : "CPU", way);
      hand_over(given, on_device, way);
    }
  }
}

/* What was accepted can be looked at, cut, taken apart, sent on and shown, without a byte of it being read. */
static void check_accepted(const struct array_case *given, BowstringArray *array, int readable) {
  size_t n_nodes = 0, n_buffers = 0, needed = 0;
  BowstringNodeInfo node = {.struct_size = sizeof node};
  BowstringBufferInfo buffer = {.struct_size = sizeof buffer};
  CHECK_OK(bowstring_array_count(array, &n_nodes, &n_buffers, &report));
  CHECK_INT(n_nodes, sample_named(given->sample)->n_nodes);
  CHECK_INT(n_buffers, sample_named(given->sample)->n_buffers);
  for (size_t i = 0; i < n_nodes; i++) CHECK_OK(bowstring_array_node_info(array, i, &node, &report));
  for (size_t i = 0; i < n_buffers; i++) CHECK_OK(bowstring_array_buffer_info(array, i, &buffer, &report));
  char *text = NULL;
  CHECK_OK(bowstring_array_to_text(array, NULL, 0, &needed, &report));
  CHECK((text = malloc(needed)) != NULL);
  CHECK_OK(bowstring_array_to_text(array, text, needed, &needed, &report));
  CHECK_INT(strlen(text) + 1, needed);
  free(text);

  BowstringArray *part = NULL;
  CHECK_OK(bowstring_array_node_info(array, 0, &node, &report));
  CHECK_OK(bowstring_array_slice(array, node.length / 2, node.length - node.length / 2, &part, &report));
  BowstringArray *all[2] = {array, part};
  for (int i = 0; i < 2; i++) {
    struct ArrowDeviceArray out;
    struct ArrowSchema schema;
    memset(&out, 0xAA, sizeof out);
    CHECK_OK(bowstring_array_export(all[i], &out, &schema, &report));
    CHECK(out.array.release != NULL && schema.release != NULL);
    CHECK(out.reserved[0] == 0 && out.reserved[1] == 0 && out.reserved[2] == 0);
    if (out.device_type == ARROW_DEVICE_CPU) CHECK_INT(out.device_id, -1);
    bowstring_device_array_release(&out);
    bowstring_schema_release(&schema);
  }
  bowstring_array_release(part);
  int64_t nulls = 7;
  BowstringStatus status = bowstring_array_null_count(array, NULL, &nulls, &report);
  if (readable || status == BOWSTRING_OK) {
    CHECK_OK(status);
    CHECK(nulls >= 0 && nulls <= node.length);
    if (strcmp(given->sample, "null") == 0) CHECK_INT(nulls, node.length);
  } else {
    CHECK_INT(nulls, -1);
    CHECK(status == BOWSTRING_DEVICE_UNAVAILABLE || status == BOWSTRING_SYNC_REQUIRED);
  }
}

int main(void) {
  int n = (int)(sizeof array_cases / sizeof array_cases[0]);
  for (int i = 0; i < n; i++) alone(array_case, &array_cases[i]);
  printf("%ld arrays, each in its own process\n", alone_count());
  CHECK(alone_count() >= 108);
  return check_end(300);
}
