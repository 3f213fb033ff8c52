/* The workloads with nanoarrow's C library, each in the cheapest way that it offers. */
#include <stdlib.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include "data.h"
#include "measure.h"

#define OK(call) EXPECT((call) == NANOARROW_OK)

/* ---- memory that exists already, with nanoarrow's own counts ---- */

static struct ArrowBuffer new_shared(const struct bytes *bytes) {
  struct ArrowBuffer plain, shared;
  ArrowBufferInit(&plain);
  /* The bytes themselves, so that both libraries are handed the same memory; they are never freed. */
  plain.data = (uint8_t *)bytes->data;
  plain.size_bytes = plain.capacity_bytes = bytes->size;
  plain.allocator = ArrowBufferDeallocator(NULL, NULL);
  OK(ArrowSharedBufferInit(&shared, &plain));
  return shared;
}

static void set_shared(struct ArrowArray *array, int64_t i, struct ArrowBuffer *shared) {
  struct ArrowBuffer clone;
  OK(ArrowSharedBufferClone(shared, &clone));
  OK(ArrowArraySetBuffer(array, i, &clone));
}

static void finish(struct ArrowArray *array, struct ArrowDeviceArray *out) {
  OK(ArrowArrayFinishBuilding(array, NANOARROW_VALIDATION_LEVEL_NONE, NULL));
  OK(ArrowDeviceArrayInit(ArrowDeviceCpu(), out, array, NULL));
}

/* ---- W1, W2 ---- */

struct batch {
  int64_t n;
  struct column *columns;
  struct ArrowBuffer *shared; /* two for each column */
};

static struct batch new_batch(int64_t n) {
  struct batch batch = {n, new_columns(n), calloc((size_t)(2 * n), sizeof(struct ArrowBuffer))};
  EXPECT(batch.shared != NULL);
  for (int64_t i = 0; i < n; i++) {
    batch.shared[2 * i] = new_shared(&batch.columns[i].validity);
    batch.shared[2 * i + 1] = new_shared(&batch.columns[i].values);
  }
  return batch;
}

static void fill_column(struct batch *batch, int64_t i, int nullable, struct ArrowArray *out) {
  OK(ArrowArrayInitFromType(out, NANOARROW_TYPE_INT64));
  if (nullable) set_shared(out, 0, &batch->shared[2 * i]);
  set_shared(out, 1, &batch->shared[2 * i + 1]);
  out->length = ROWS;
  out->null_count = nullable ? NULLS : 0;
}

static void export_column(struct batch *batch, struct ArrowDeviceArray *out, struct ArrowSchema *out_schema) {
  struct ArrowArray array;
  OK(ArrowSchemaInitFromType(out_schema, NANOARROW_TYPE_INT64));
  OK(ArrowSchemaSetName(out_schema, batch->columns->name));
  fill_column(batch, 0, 0, &array);
  finish(&array, out);
}

static void run_column(void *state, long times) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  while (times-- > 0) {
    export_column(state, &array, &schema);
    touch(&array);
    array.array.release(&array.array);
    schema.release(&schema);
  }
}

static void export_batch(struct batch *batch, struct ArrowDeviceArray *out) {
  struct ArrowArray array;
  OK(ArrowArrayInitFromType(&array, NANOARROW_TYPE_STRUCT));
  OK(ArrowArrayAllocateChildren(&array, batch->n));
  for (int64_t i = 0; i < batch->n; i++) fill_column(batch, i, 1, array.children[i]);
  array.length = ROWS;
  finish(&array, out);
}

static void export_batch_schema(struct batch *batch, struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  OK(ArrowSchemaSetTypeStruct(out, batch->n));
  for (int64_t i = 0; i < batch->n; i++) {
    OK(ArrowSchemaSetType(out->children[i], NANOARROW_TYPE_INT64));
    OK(ArrowSchemaSetName(out->children[i], batch->columns[i].name));
  }
}

static void run_array(void *state, long times) {
  struct ArrowDeviceArray array;
  while (times-- > 0) {
    export_batch(state, &array);
    touch(&array);
    array.array.release(&array.array);
  }
}

static void run_both(void *state, long times) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  while (times-- > 0) {
    export_batch_schema(state, &schema);
    export_batch(state, &array);
    touch(&array);
    array.array.release(&array.array);
    schema.release(&schema);
  }
}

static void measure_w1(void) {
  struct batch batch = new_batch(1);
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  export_column(&batch, &array, &schema);
  expect_column(&array.array, batch.columns, 0);
  expect_column_schema(&schema, batch.columns);
  array.array.release(&array.array);
  schema.release(&schema);
  measure((struct job){run_column, &batch}, "W1 column, array+schema");
}

static void measure_w2(void) {
  for (int n = 1; n <= 1000; n *= 10) {
    struct batch batch = new_batch(n);
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    export_batch(&batch, &array);
    expect_batch(&array.array, batch.columns, n);
    array.array.release(&array.array);
    export_batch_schema(&batch, &schema);
    expect_batch_schema(&schema, batch.columns, n);
    schema.release(&schema);
    measure((struct job){run_array, &batch}, "W2 %d columns, array", n);
    measure((struct job){run_both, &batch}, "W2 %d columns, array+schema", n);
  }
}

/* ---- W3 ---- */

struct list {
  struct nested data;
  struct ArrowBuffer offsets, a, b_offsets, b_text, c_offsets, c_values;
};

static void name_child(struct ArrowSchema *child, enum ArrowType type, const char *name) {
  OK(ArrowSchemaSetType(child, type));
  OK(ArrowSchemaSetName(child, name));
}

static void export_list_schema(struct ArrowSchema *out) {
  ArrowSchemaInit(out);
  OK(ArrowSchemaSetType(out, NANOARROW_TYPE_LIST));
  OK(ArrowSchemaSetName(out, "nested"));
  struct ArrowSchema *item = out->children[0];
  OK(ArrowSchemaSetTypeStruct(item, 3));
  OK(ArrowSchemaSetName(item, "item"));
  name_child(item->children[0], NANOARROW_TYPE_INT32, "a");
  name_child(item->children[1], NANOARROW_TYPE_STRING, "b");
  name_child(item->children[2], NANOARROW_TYPE_LIST, "c");
  name_child(item->children[2]->children[0], NANOARROW_TYPE_DOUBLE, "item");
}

static void start(struct ArrowArray *out, enum ArrowType type, int64_t length, int64_t n_children) {
  OK(ArrowArrayInitFromType(out, type));
  if (n_children > 0) OK(ArrowArrayAllocateChildren(out, n_children));
  out->length = length;
}

static void export_list(struct list *list, struct ArrowDeviceArray *out) {
  struct ArrowArray array;
  start(&array, NANOARROW_TYPE_LIST, 1, 1);
  set_shared(&array, 1, &list->offsets);
  struct ArrowArray *item = array.children[0];
  start(item, NANOARROW_TYPE_STRUCT, ROWS, 3);
  start(item->children[0], NANOARROW_TYPE_INT32, ROWS, 0);
  set_shared(item->children[0], 1, &list->a);
  start(item->children[1], NANOARROW_TYPE_STRING, ROWS, 0);
  set_shared(item->children[1], 1, &list->b_offsets);
  set_shared(item->children[1], 2, &list->b_text);
  struct ArrowArray *inner = item->children[2];
  start(inner, NANOARROW_TYPE_LIST, ROWS, 1);
  set_shared(inner, 1, &list->c_offsets);
  start(inner->children[0], NANOARROW_TYPE_DOUBLE, ROWS, 0);
  set_shared(inner->children[0], 1, &list->c_values);
  finish(&array, out);
}

static void run_list(void *state, long times) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  while (times-- > 0) {
    export_list_schema(&schema);
    export_list(state, &array);
    touch(&array);
    array.array.release(&array.array);
    schema.release(&schema);
  }
}

static void measure_w3(void) {
  struct list list = {.data = new_nested()};
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  list.offsets = new_shared(&list.data.offsets);
  list.a = new_shared(&list.data.a);
  list.b_offsets = new_shared(&list.data.b_offsets);
  list.b_text = new_shared(&list.data.b_text);
  list.c_offsets = new_shared(&list.data.c_offsets);
  list.c_values = new_shared(&list.data.c_values);
  export_list_schema(&schema);
  expect_nested_schema(&schema);
  schema.release(&schema);
  export_list(&list, &array);
  expect_nested(&array.array, &list.data);
  array.array.release(&array.array);
  measure((struct job){run_list, &list}, "W3 nested, array+schema");
}

/* ---- W4: views, which own nothing and are what nanoarrow has for looking at an array ---- */

struct import {
  struct foreign foreign;
  struct ArrowDeviceArrayView view; /* used again and again where the type is known */
};

static void view_with_schema(const struct import *import, struct ArrowDeviceArray *raw,
                             struct ArrowDeviceArrayView *view) {
  struct ArrowSchema schema = import->foreign.schema;
  *raw = import->foreign.array;
  ArrowDeviceArrayViewInit(view);
  OK(ArrowArrayViewInitFromSchema(&view->array_view, &schema, NULL));
  OK(ArrowDeviceArrayViewSetArray(view, raw, NULL));
  schema.release(&schema);
}

static void run_import(void *state, long times) {
  while (times-- > 0) {
    struct ArrowDeviceArray raw;
    struct ArrowDeviceArrayView view;
    view_with_schema(state, &raw, &view);
    touch(&view);
    ArrowDeviceArrayViewReset(&view);
    raw.array.release(&raw.array);
  }
}

static void run_import_known(void *state, long times) {
  struct import *import = state;
  while (times-- > 0) {
    struct ArrowDeviceArray raw = import->foreign.array;
    OK(ArrowDeviceArrayViewSetArray(&import->view, &raw, NULL));
    touch(&import->view);
    raw.array.release(&raw.array);
  }
}

static void expect_view(const struct ArrowDeviceArrayView *view, const struct column *columns, int64_t n) {
  EXPECT(view->array_view.n_children == n);
  const struct ArrowBufferView *last = &view->array_view.children[n - 1]->buffer_views[1];
  EXPECT(last->data.data == columns[n - 1].values.data && last->size_bytes == ROWS * 8);
}

static void measure_w4(void) {
  for (int n = 1; n <= 1000; n *= n == 1 ? 100 : 10) {
    struct column *columns = new_columns(n);
    struct import import = {.foreign = new_foreign(columns, n)};
    struct ArrowDeviceArray raw;
    view_with_schema(&import, &raw, &import.view);
    expect_view(&import.view, columns, n);
    measure((struct job){run_import, &import}, "W4 %d columns, with schema", n);
    measure((struct job){run_import_known, &import}, "W4 %d columns, known type", n);
  }
}

/* ---- W5 ---- */

static void run_move(void *state, long times) {
  struct ArrowDeviceArray *one = state, other;
  for (long i = 0; i < times; i += 2) {
    ArrowDeviceArrayMove(one, &other);
    touch(&other);
    ArrowDeviceArrayMove(&other, one);
    touch(one);
  }
}

static void measure_w5(void) {
  struct ArrowDeviceArray array = new_foreign(new_columns(1), 1).array, moved;
  ArrowDeviceArrayMove(&array, &moved);
  EXPECT(array.array.release == NULL && moved.array.release != NULL && moved.array.n_children == 1);
  measure((struct job){run_move, &moved}, "W5 move");
}

/* ---- W7 ---- */

enum { STREAM_BATCHES = 100, STREAM_COLUMNS = 10 };

/* nanoarrow has a stream of arrays that are there, and none of arrays that are made when they are asked for. */
static void run_flow(void *state, long times) {
  while (times-- > 0) {
    struct ArrowSchema schema;
    struct ArrowArrayStream host;
    struct ArrowDeviceArrayStream stream;
    export_batch_schema(state, &schema);
    OK(ArrowBasicArrayStreamInit(&host, &schema, STREAM_BATCHES));
    for (int i = 0; i < STREAM_BATCHES; i++) {
      struct ArrowDeviceArray array;
      export_batch(state, &array);
      ArrowBasicArrayStreamSetArray(&host, i, &array.array);
    }
    OK(ArrowDeviceBasicArrayStreamInit(&stream, &host, ArrowDeviceCpu()));
    int batches = 0;
    for (;;) {
      struct ArrowDeviceArray array;
      OK(stream.get_next(&stream, &array));
      if (array.array.release == NULL) break;
      batches++;
      touch(&array);
      ArrowArrayRelease(&array.array);
    }
    EXPECT(batches == STREAM_BATCHES);
    stream.release(&stream);
  }
}

static void run_consume(void *state, long times) {
  while (times-- > 0) {
    struct ArrowDeviceArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowDeviceArrayView view;
    foreign_stream(state, STREAM_BATCHES, &stream);
    OK(stream.get_schema(&stream, &schema));
    ArrowDeviceArrayViewInit(&view);
    OK(ArrowArrayViewInitFromSchema(&view.array_view, &schema, NULL));
    ArrowSchemaRelease(&schema);
    int batches = 0;
    for (;;) {
      struct ArrowDeviceArray array;
      OK(stream.get_next(&stream, &array));
      if (array.array.release == NULL) break;
      batches++;
      OK(ArrowDeviceArrayViewSetArray(&view, &array, NULL));
      touch(&view);
      ArrowArrayRelease(&array.array);
    }
    EXPECT(batches == STREAM_BATCHES);
    ArrowDeviceArrayViewReset(&view);
    stream.release(&stream);
  }
}

static void measure_w7(void) {
  struct batch batch = new_batch(STREAM_COLUMNS);
  struct foreign foreign = new_foreign(batch.columns, STREAM_COLUMNS);
  measure((struct job){run_flow, &batch}, "W7 100 batches, produced and drained");
  measure((struct job){run_consume, &foreign}, "W7 100 batches, consumed");
}

int main(int argc, char **argv) {
  measure_setup(argc, argv);
  if (measure_wants("W1")) measure_w1();
  if (measure_wants("W2")) measure_w2();
  if (measure_wants("W3")) measure_w3();
  if (measure_wants("W4")) measure_w4();
  if (measure_wants("W5")) measure_w5();
  if (measure_wants("W7")) measure_w7();
  return 0;
}
