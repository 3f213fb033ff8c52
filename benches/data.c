#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* ---- memory that stays until the program ends ---- */

static void *zeroes(int64_t size) {
  void *memory = calloc(1, (size_t)size);
  EXPECT(memory != NULL);
  return memory;
}

static struct bytes new_values(int64_t width) { return (struct bytes){zeroes(ROWS * width), ROWS * width}; }

static struct bytes new_validity(void) {
  unsigned char *bits = zeroes(ROWS / 8);
  memset(bits, 0xff, ROWS / 8);
  bits[0] = 0xfe;
  return (struct bytes){bits, ROWS / 8};
}

static struct bytes new_offsets(int64_t n, int32_t step) {
  int32_t *offsets = zeroes((n + 1) * 4);
  for (int64_t i = 0; i <= n; i++) offsets[i] = (int32_t)i * step;
  return (struct bytes){offsets, (n + 1) * 4};
}

struct column *new_columns(int64_t n) {
  struct column *columns = zeroes(n * (int64_t)sizeof(struct column));
  for (int64_t i = 0; i < n; i++) {
    snprintf(columns[i].name, sizeof columns[i].name, "column_%d", (int)i);
    columns[i].validity = new_validity();
    columns[i].values = new_values(8);
  }
  return columns;
}

struct nested new_nested(void) {
  return (struct nested){.offsets = new_offsets(1, ROWS), .a = new_values(4), .b_offsets = new_offsets(ROWS, 12),
                         .b_text = new_values(12), .c_offsets = new_offsets(ROWS, 1), .c_values = new_values(8)};
}

/* ---- foreign structs ---- */

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static void release_array(struct ArrowArray *array) { array->release = NULL; }

static void fill_schema(struct ArrowSchema *out, const char *format, const char *name, int64_t n_children) {
  *out = (struct ArrowSchema){.format = format, .name = name, .flags = ARROW_FLAG_NULLABLE,
                              .n_children = n_children, .release = release_schema};
  if (n_children == 0) return;
  out->children = zeroes(n_children * (int64_t)sizeof *out->children);
  for (int64_t i = 0; i < n_children; i++) out->children[i] = zeroes(sizeof **out->children);
}

static void fill_array(struct ArrowArray *out, const void *validity, const void *values, int64_t n_children) {
  *out = (struct ArrowArray){.length = ROWS, .null_count = validity ? NULLS : 0, .n_buffers = values ? 2 : 1,
                             .n_children = n_children, .release = release_array};
  out->buffers = zeroes(2 * sizeof *out->buffers);
  out->buffers[0] = validity;
  out->buffers[1] = values;
  if (n_children == 0) return;
  out->children = zeroes(n_children * (int64_t)sizeof *out->children);
  for (int64_t i = 0; i < n_children; i++) out->children[i] = zeroes(sizeof **out->children);
}

void column_schema(const struct column *column, struct ArrowSchema *out) { fill_schema(out, "l", column->name, 0); }

void batch_schema(const struct column *columns, int64_t n, struct ArrowSchema *out) {
  fill_schema(out, "+s", "", n);
  for (int64_t i = 0; i < n; i++) column_schema(&columns[i], out->children[i]);
}

struct foreign new_foreign(struct column *columns, int64_t n) {
  struct foreign foreign;
  memset(&foreign, 0, sizeof foreign);
  fill_array(&foreign.array.array, NULL, NULL, n);
  for (int64_t i = 0; i < n; i++)
    fill_array(foreign.array.array.children[i], columns[i].validity.data, columns[i].values.data, 0);
  foreign.array.device_type = ARROW_DEVICE_CPU;
  foreign.array.device_id = -1;
  batch_schema(columns, n, &foreign.schema);
  return foreign;
}

static struct {
  const struct foreign *foreign;
  int left;
} flow;

static int flow_schema(struct ArrowDeviceArrayStream *stream, struct ArrowSchema *out) {
  (void)stream;
  *out = flow.foreign->schema;
  return 0;
}

static int flow_next(struct ArrowDeviceArrayStream *stream, struct ArrowDeviceArray *out) {
  (void)stream;
  *out = flow.foreign->array;
  if (flow.left-- == 0) out->array.release = NULL;
  return 0;
}

static const char *flow_error(struct ArrowDeviceArrayStream *stream) {
  (void)stream;
  return NULL;
}

static void flow_release(struct ArrowDeviceArrayStream *stream) { stream->release = NULL; }

void foreign_stream(const struct foreign *foreign, int n, struct ArrowDeviceArrayStream *out) {
  flow.foreign = foreign;
  flow.left = n;
  *out = (struct ArrowDeviceArrayStream){
      ARROW_DEVICE_CPU, flow_schema, flow_next, flow_error, flow_release, NULL,
  };
}

void nested_schema(struct ArrowSchema *out) {
  fill_schema(out, "+l", "nested", 1);
  struct ArrowSchema *item = out->children[0];
  fill_schema(item, "+s", "item", 3);
  fill_schema(item->children[0], "i", "a", 0);
  fill_schema(item->children[1], "u", "b", 0);
  fill_schema(item->children[2], "+l", "c", 1);
  fill_schema(item->children[2]->children[0], "g", "item", 0);
}

/* ---- checks ---- */

static void expect_node(const struct ArrowArray *array, int64_t length, int64_t n_buffers, int64_t n_children) {
  EXPECT(array->release != NULL);
  EXPECT(array->length == length && array->offset == 0);
  EXPECT(array->n_buffers == n_buffers && array->n_children == n_children);
}

void expect_column(const struct ArrowArray *array, const struct column *column, int64_t null_count) {
  expect_node(array, ROWS, 2, 0);
  EXPECT(array->null_count == null_count);
  EXPECT(array->buffers[0] == (null_count ? column->validity.data : NULL));
  EXPECT(array->buffers[1] == column->values.data);
}

void expect_batch(const struct ArrowArray *array, const struct column *columns, int64_t n) {
  expect_node(array, ROWS, 1, n);
  EXPECT(array->null_count == 0 && array->buffers[0] == NULL);
  for (int64_t i = 0; i < n; i++) expect_column(array->children[i], &columns[i], NULLS);
}

static void expect_field(const struct ArrowSchema *schema, const char *format, const char *name, int64_t n_children) {
  EXPECT(schema->release != NULL && schema->n_children == n_children);
  EXPECT(strcmp(schema->format, format) == 0);
  EXPECT(schema->flags == ARROW_FLAG_NULLABLE);
  /* The batch itself has no name to speak of, which nanoarrow may leave NULL. */
  EXPECT(*name == '\0' || strcmp(schema->name, name) == 0);
}

void expect_column_schema(const struct ArrowSchema *schema, const struct column *column) {
  expect_field(schema, "l", column->name, 0);
}

void expect_batch_schema(const struct ArrowSchema *schema, const struct column *columns, int64_t n) {
  expect_field(schema, "+s", "", n);
  for (int64_t i = 0; i < n; i++) expect_column_schema(schema->children[i], &columns[i]);
}

void expect_nested(const struct ArrowArray *array, const struct nested *nested) {
  expect_node(array, 1, 2, 1);
  EXPECT(array->buffers[0] == NULL && array->buffers[1] == nested->offsets.data);
  const struct ArrowArray *item = array->children[0];
  expect_node(item, ROWS, 1, 3);
  const struct ArrowArray *a = item->children[0], *b = item->children[1], *c = item->children[2];
  expect_node(a, ROWS, 2, 0);
  EXPECT(a->buffers[1] == nested->a.data);
  expect_node(b, ROWS, 3, 0);
  EXPECT(b->buffers[1] == nested->b_offsets.data && b->buffers[2] == nested->b_text.data);
  expect_node(c, ROWS, 2, 1);
  EXPECT(c->buffers[1] == nested->c_offsets.data);
  expect_node(c->children[0], ROWS, 2, 0);
  EXPECT(c->children[0]->buffers[1] == nested->c_values.data);
}

void expect_nested_schema(const struct ArrowSchema *schema) {
  expect_field(schema, "+l", "nested", 1);
  const struct ArrowSchema *item = schema->children[0];
  expect_field(item, "+s", "item", 3);
  expect_field(item->children[0], "i", "a", 0);
  expect_field(item->children[1], "u", "b", 0);
  expect_field(item->children[2], "+l", "c", 1);
  expect_field(item->children[2]->children[0], "g", "item", 0);
}
