/* Arrays handed to nanoarrow's device extension and taken from it, for every type that it knows. */
#include "build.h"
#include "check.h"

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include <stdio.h>
#include <string.h>

static struct ArrowError peer_error;

/* A call to nanoarrow; its message is shown when it fails. */
#define PEER_OK(call)                                                             \
  do {                                                                            \
    int peer_result = (call);                                                     \
    if (peer_result != NANOARROW_OK) fprintf(stderr, "%s\n", peer_error.message); \
    CHECK_INT(peer_result, NANOARROW_OK);                                         \
  } while (0)

/* nanoarrow takes a width of 0 for a fault. */
static int peer_knows(const struct sample *sample) { return strcmp(sample->field.format, "w:0") != 0; }

/* ---- what nanoarrow sees of an array ---- */

/* The array is seen as the sample says: the same numbers in each node, and the same bytes behind each buffer, at the
 * same `addresses`. Only the columns of a struct at the root are cut to its length. */
static const struct ArrowArray *cut_column;

static void check_view(const struct sample *sample, const struct ArrowArrayView *view, const void *const *addresses,
                       int *node, int *buffer) {
  const BowstringNode *facts = &sample->nodes[(*node)++];
  int64_t length = facts->length;
  if (view->array == cut_column) length = sample->nodes[0].length;
  CHECK_INT(view->length, length);
  CHECK_INT(view->offset, facts->offset);
  CHECK_INT(view->array->n_buffers, facts->n_buffers);
  CHECK(view->array->null_count == facts->null_count || view->storage_type == NANOARROW_TYPE_NA);
  for (int64_t i = 0; i < facts->n_buffers; i++, (*buffer)++) {
    const struct bytes *bytes = &sample->buffers[*buffer];
    const void *found = view->array->buffers[i];
    if (bytes->size > 0) CHECK_MEM(found, bytes->data, (size_t)bytes->size);
    if (bytes->size > 0) CHECK_PTR(found, addresses[*buffer]);
    if (i > 0) CHECK(found != NULL); /* The strict reading: only a validity buffer may be missing. */
    if (i < NANOARROW_MAX_FIXED_BUFFERS && view->n_variadic_buffers == 0 && bytes->size > 0)
      CHECK(view->buffer_views[i].size_bytes <= bytes->size);
  }
  int is_table = *node == 1 && strcmp(sample->field.format, "+s") == 0;
  for (int64_t i = 0; i < view->n_children; i++) {
    cut_column = is_table ? view->children[i]->array : NULL;
    check_view(sample, view->children[i], addresses, node, buffer);
  }
  if (view->dictionary) check_view(sample, view->dictionary, addresses, node, buffer);
}

static void check_by_peer(const struct sample *sample, struct ArrowDeviceArray *array, struct ArrowSchema *schema,
                          const void *const *addresses) {
  struct ArrowDeviceArrayView view;
  int node = 0, buffer = 0;
  ArrowDeviceArrayViewInit(&view);
  PEER_OK(ArrowArrayViewInitFromSchema(&view.array_view, schema, &peer_error));
  PEER_OK(ArrowDeviceArrayViewSetArray(&view, array, &peer_error));
  PEER_OK(ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &peer_error));
  check_view(sample, &view.array_view, addresses, &node, &buffer);
  CHECK_INT(node, sample->n_nodes);
  CHECK_INT(buffer, sample->n_buffers);
  ArrowDeviceArrayViewReset(&view);
}

/* ---- from us to nanoarrow ---- */

static void test_to_peer(const struct sample *sample) {
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  const void *addresses[MAX_BUFFERS];
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *array = NULL;
  BowstringType *type = sample_type(sample);
  sample_buffers(sample, buffers);
  for (int i = 0; i < sample->n_buffers; i++) addresses[i] = buffers[i].data;
  CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                               (size_t)sample->n_buffers, NULL, &raw, &report));
  CHECK_OK(bowstring_type_export(type, &schema, &report));
  check_by_peer(sample, &raw, &schema, addresses);
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));
  CHECK_OK(bowstring_array_export(array, &raw, &schema, &report));
  bowstring_array_release(array);
  bowstring_type_release(type);
  check_by_peer(sample, &raw, &schema, addresses);
  bowstring_device_array_release(&raw);
  bowstring_schema_release(&schema);
  owners_all_gone();
}

/* ---- from nanoarrow to us ---- */

static void fill_by_peer(const struct sample *sample, const struct field *field, struct ArrowArray *array, int *node,
                         int *buffer) {
  const BowstringNode *facts = &sample->nodes[(*node)++];
  int is_view = field->format[0] == 'v';
  if (is_view) PEER_OK(ArrowArrayAddVariadicBuffers(array, (int32_t)facts->n_buffers - 3));
  CHECK_INT(array->n_buffers, facts->n_buffers);
  for (int64_t i = 0; i < facts->n_buffers; i++, (*buffer)++) {
    const struct bytes *bytes = &sample->buffers[*buffer];
    /* nanoarrow keeps the sizes of variadic buffers itself. */
    if (is_view && i == facts->n_buffers - 1) continue;
    if (bytes->data) PEER_OK(ArrowBufferAppend(ArrowArrayBuffer(array, i), bytes->data, bytes->size));
  }
  array->length = facts->length;
  array->null_count = facts->null_count;
  array->offset = facts->offset;
  for (int i = 0; i < field->n_children; i++)
    fill_by_peer(sample, &field->children[i], array->children[i], node, buffer);
  if (field->dictionary) fill_by_peer(sample, field->dictionary, array->dictionary, node, buffer);
}

static void find_addresses(const struct ArrowArray *array, const void **addresses, int *buffer) {
  for (int64_t i = 0; i < array->n_buffers; i++) addresses[(*buffer)++] = array->buffers[i];
  for (int64_t i = 0; i < array->n_children; i++) find_addresses(array->children[i], addresses, buffer);
  if (array->dictionary) find_addresses(array->dictionary, addresses, buffer);
}

static void test_from_peer(const struct sample *sample) {
  struct ArrowSchema schema;
  struct ArrowArray built;
  struct ArrowDeviceArray raw;
  const void *addresses[MAX_BUFFERS];
  int node = 0, buffer = 0;
  sample_schema(sample, &schema);
  PEER_OK(ArrowArrayInitFromSchema(&built, &schema, &peer_error));
  fill_by_peer(sample, &sample->field, &built, &node, &buffer);
  PEER_OK(ArrowArrayFinishBuilding(&built, NANOARROW_VALIDATION_LEVEL_MINIMAL, &peer_error));
  buffer = 0;
  find_addresses(&built, addresses, &buffer);
  CHECK_INT(buffer, sample->n_buffers);
  PEER_OK(ArrowDeviceArrayInit(ArrowDeviceCpu(), &raw, &built, NULL));

  BowstringArray *array = NULL;
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));
  for (int i = 0; i < sample->n_buffers; i++) {
    BowstringBufferInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_buffer_info(array, (size_t)i, &info, &report));
    CHECK_PTR(info.data, addresses[i]);
    if (sample->buffers[i].size > 0) CHECK_MEM(info.data, sample->buffers[i].data, (size_t)sample->buffers[i].size);
  }

  /* Taken apart, built again, and handed back. */
  BowstringNode nodes[MAX_NODES];
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement = {.struct_size = sizeof placement};
  size_t n_nodes = 0, n_buffers = 0;
  CHECK_OK(bowstring_array_count(array, &n_nodes, &n_buffers, &report));
  CHECK_OK(bowstring_array_to_buffers(array, nodes, n_nodes, buffers, n_buffers, &placement, &report));
  CHECK_OK(bowstring_type_export(bowstring_array_type(array), &schema, &report));
  CHECK_OK(bowstring_device_array_from_buffers(bowstring_array_type(array), nodes, n_nodes, buffers, n_buffers,
                                               &placement, &raw, &report));
  bowstring_array_release(array);
  check_by_peer(sample, &raw, &schema, addresses);
  bowstring_device_array_release(&raw);
  bowstring_schema_release(&schema);
  owners_all_gone();
}

/* ---- windows ---- */

/* A window that goes through us is the same values to nanoarrow as one that it made itself. */
static void test_windows(void) {
  const struct sample *sample = sample_named("struct<a: int32, b: utf8>");
  for (int64_t offset = 0; offset <= 3; offset++) {
    for (int64_t length = 0; length <= 3 - offset; length++) {
      struct ArrowDeviceArray raw;
      struct ArrowSchema schema;
      struct ArrowDeviceArrayView view;
      BowstringArray *array = sample_import(sample), *part = NULL;
      check_about("window of %lld from %lld", (long long)length, (long long)offset);
      CHECK_OK(bowstring_array_slice(array, offset, length, &part, &report));
      CHECK_OK(bowstring_array_export(part, &raw, &schema, &report));
      bowstring_array_release(array);
      bowstring_array_release(part);
      ArrowDeviceArrayViewInit(&view);
      PEER_OK(ArrowArrayViewInitFromSchema(&view.array_view, &schema, &peer_error));
      PEER_OK(ArrowDeviceArrayViewSetArray(&view, &raw, &peer_error));
      PEER_OK(ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &peer_error));
      CHECK_INT(view.array_view.length, length);
      for (int64_t row = 0; row < length; row++) {
        static const char letters[] = "abcd";
        int64_t at = view.array_view.offset + row;
        CHECK_INT(ArrowArrayViewIsNull(&view.array_view, row), offset + row == 1);
        CHECK_INT(ArrowArrayViewGetIntUnsafe(view.array_view.children[0], at), 10 * (offset + row + 1));
        struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(view.array_view.children[1], at);
        CHECK(text.size_bytes == 1 && text.data[0] == letters[offset + row]);
      }
      ArrowDeviceArrayViewReset(&view);
      bowstring_device_array_release(&raw);
      bowstring_schema_release(&schema);
      owners_all_gone();
    }
  }
}

/* ---- values that nanoarrow appended ---- */

static void test_appended(void) {
  struct ArrowSchema schema;
  struct ArrowArray built;
  struct ArrowDeviceArray raw;
  BowstringArray *array = NULL;
  BowstringType *type = NULL;
  check_about("appended");
  CHECK_OK(bowstring_type_parse("struct<n: int64, t: utf8, v: utf8_view, l: list<float64>>", &type, &report));
  CHECK_OK(bowstring_type_export(type, &schema, &report));
  PEER_OK(ArrowArrayInitFromSchema(&built, &schema, &peer_error));
  PEER_OK(ArrowArrayStartAppending(&built));
  enum { ROWS = 500 };
  char text[64];
  for (int row = 0; row < ROWS; row++) {
    int length = snprintf(text, sizeof text, "row %d %.*s", row, row % 30, "abcdefghijklmnopqrstuvwxyzabcdef");
    struct ArrowStringView view = {text, length};
    if (row % 7 == 3) {
      PEER_OK(ArrowArrayAppendNull(built.children[0], 1));
    } else {
      PEER_OK(ArrowArrayAppendInt(built.children[0], row * 1000000007LL));
    }
    PEER_OK(ArrowArrayAppendString(built.children[1], view));
    PEER_OK(ArrowArrayAppendString(built.children[2], view));
    for (int i = 0; i < row % 4; i++) PEER_OK(ArrowArrayAppendDouble(built.children[3]->children[0], row + 0.5 * i));
    PEER_OK(ArrowArrayFinishElement(built.children[3]));
    PEER_OK(ArrowArrayFinishElement(&built));
  }
  PEER_OK(ArrowArrayFinishBuildingDefault(&built, &peer_error));
  PEER_OK(ArrowDeviceArrayInit(ArrowDeviceCpu(), &raw, &built, NULL));
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));

  int64_t nulls = -1;
  BowstringArray *numbers = NULL, *sized = NULL;
  CHECK_OK(bowstring_array_child(array, 0, &numbers, &report));
  CHECK_OK(bowstring_array_null_count(numbers, NULL, &nulls, &report));
  CHECK_INT(nulls, (ROWS + 3) / 7);
  bowstring_array_release(numbers);
  CHECK_OK(bowstring_array_resolve_sizes(array, NULL, &sized, &report));
  BowstringBufferInfo info = {.struct_size = sizeof info};
  CHECK_OK(bowstring_array_buffer_info(sized, 5, &info, &report));
  CHECK_INT(info.role, BOWSTRING_ROLE_DATA);
  int64_t bytes = 0;
  for (int row = 0; row < ROWS; row++) bytes += snprintf(text, sizeof text, "row %d %*s", row, row % 30, "");
  CHECK_INT(info.size_bytes, bytes);
  bowstring_array_release(array);

  CHECK_OK(bowstring_array_export(sized, &raw, &schema, &report));
  bowstring_array_release(sized);
  struct ArrowDeviceArrayView view;
  ArrowDeviceArrayViewInit(&view);
  PEER_OK(ArrowArrayViewInitFromSchema(&view.array_view, &schema, &peer_error));
  PEER_OK(ArrowDeviceArrayViewSetArray(&view, &raw, &peer_error));
  PEER_OK(ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &peer_error));
  for (int row = 0; row < ROWS; row++) {
    int length = snprintf(text, sizeof text, "row %d %.*s", row, row % 30, "abcdefghijklmnopqrstuvwxyzabcdef");
    CHECK_INT(ArrowArrayViewIsNull(view.array_view.children[0], row), row % 7 == 3);
    if (row % 7 != 3) CHECK_INT(ArrowArrayViewGetIntUnsafe(view.array_view.children[0], row), row * 1000000007LL);
    for (int i = 1; i < 3; i++) {
      struct ArrowStringView found = ArrowArrayViewGetStringUnsafe(view.array_view.children[i], row);
      CHECK_INT(found.size_bytes, length);
      CHECK_MEM(found.data, text, (size_t)length);
    }
    CHECK_INT(ArrowArrayViewListChildOffset(view.array_view.children[3], row + 1) -
                  ArrowArrayViewListChildOffset(view.array_view.children[3], row),
              row % 4);
  }
  ArrowDeviceArrayViewReset(&view);
  bowstring_device_array_release(&raw);
  bowstring_schema_release(&schema);
  bowstring_type_release(type);
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  int types = 0, seen = 0;
  for (int i = 0; i < n_samples; i++) {
    if (!peer_knows(&samples[i])) continue;
    check_about("%s to nanoarrow", samples[i].text);
    test_to_peer(&samples[i]);
    check_about("%s from nanoarrow", samples[i].text);
    test_from_peer(&samples[i]);
    seen++;
    int is_new = 1;
    for (int k = 0; k < i; k++) is_new &= strcmp(samples[k].text, samples[i].text) != 0;
    if (is_new) printf("%s\n", samples[i].text);
    types += is_new;
  }
  test_windows();
  test_appended();
  live_as_before(&before);
  printf("%d types in %d arrays, both ways\n", types, seen);
  CHECK(types >= 57);
  return check_end(13000);
}
