/* The workloads with bowstring. A type is parsed once and used for every array, as a program would keep it. */
#include <stdatomic.h>
#include <stdlib.h>

#include <arrow/c/dlpack_abi.h>
#include <bowstring.h>

#include "data.h"
#include "measure.h"

#define OK(call) EXPECT((call) == BOWSTRING_OK)

static BowstringError error;

/* ---- owners of memory that exists already, counted as a program would count them ---- */

struct owner {
  _Alignas(64) atomic_long count;
};

static struct owner *new_owners(int64_t n) {
  struct owner *owners = aligned_alloc(64, (size_t)n * sizeof(struct owner));
  EXPECT(owners != NULL);
  for (int64_t i = 0; i < n; i++) atomic_init(&owners[i].count, 1);
  return owners;
}

static void let_go(void *owner) {
  struct owner *own = owner;
  /* The program keeps the first one for itself. */
  EXPECT(atomic_fetch_sub_explicit(&own->count, 1, memory_order_acq_rel) > 1);
}

static void hold(struct owner *owner) { atomic_fetch_add_explicit(&owner->count, 1, memory_order_relaxed); }

static BowstringOwnedBuffer owned(const struct bytes *bytes, struct owner *owner) {
  hold(owner);
  return (BowstringOwnedBuffer){bytes->data, bytes->size, owner, let_go};
}

static BowstringOwnedBuffer shared(const struct bytes *bytes) {
  return (BowstringOwnedBuffer){bytes->data, bytes->size, NULL, NULL};
}

/* ---- W1, W2 ---- */

struct batch {
  int64_t n;
  struct column *columns;
  BowstringType *type;
  struct owner *owners; /* two for each column */
  BowstringNode *nodes;
  BowstringOwnedBuffer *buffers;
};

static BowstringType *type_of(struct ArrowSchema *schema) {
  BowstringType *type = NULL;
  OK(bowstring_type_import(schema, &type, &error));
  return type;
}

static struct batch new_batch(int64_t n) {
  struct batch batch = {.n = n, .columns = new_columns(n), .owners = new_owners(2 * n)};
  struct ArrowSchema schema;
  batch_schema(batch.columns, n, &schema);
  batch.type = type_of(&schema);
  batch.nodes = calloc((size_t)n + 1, sizeof *batch.nodes);
  batch.buffers = calloc((size_t)(2 * n) + 1, sizeof *batch.buffers);
  EXPECT(batch.nodes && batch.buffers);
  return batch;
}

static void export_column(struct batch *batch, struct ArrowDeviceArray *out, struct ArrowSchema *out_schema) {
  const BowstringNode node = {ROWS, 0, 0, 2};
  BowstringOwnedBuffer buffers[2] = {{NULL, 0, NULL, NULL}, owned(&batch->columns->values, batch->owners)};
  OK(bowstring_type_export(batch->type, out_schema, &error));
  OK(bowstring_device_array_from_buffers(batch->type, &node, 1, buffers, 2, NULL, out, &error));
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

/* The array, with an owner for each buffer or one for all. */
static void export_batch(struct batch *batch, int one_owner, struct ArrowDeviceArray *out) {
  BowstringNode *nodes = batch->nodes;
  BowstringOwnedBuffer *buffers = batch->buffers;
  *nodes++ = (BowstringNode){ROWS, 0, 0, 1};
  *buffers++ = (BowstringOwnedBuffer){NULL, 0, NULL, NULL};
  for (int64_t i = 0; i < batch->n; i++) {
    const struct column *column = &batch->columns[i];
    struct owner *owners = &batch->owners[2 * i];
    *nodes++ = (BowstringNode){ROWS, NULLS, 0, 2};
    *buffers++ = one_owner ? shared(&column->validity) : owned(&column->validity, &owners[0]);
    *buffers++ = one_owner ? shared(&column->values) : owned(&column->values, &owners[1]);
  }
  BowstringPlacement placement = {.struct_size = sizeof placement};
  if (one_owner) {
    hold(batch->owners);
    placement.owner = batch->owners;
    placement.release_owner = let_go;
  }
  OK(bowstring_device_array_from_buffers(batch->type, batch->nodes, (size_t)batch->n + 1, batch->buffers,
                                         (size_t)(2 * batch->n) + 1, one_owner ? &placement : NULL, out, &error));
}

/* Inlined, so that each run has the choices made already. */
static inline void run_batch(struct batch *batch, int one_owner, int with_schema, long times) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  while (times-- > 0) {
    if (with_schema) OK(bowstring_type_export(batch->type, &schema, &error));
    export_batch(batch, one_owner, &array);
    touch(&array);
    array.array.release(&array.array);
    if (with_schema) schema.release(&schema);
  }
}

static void run_array(void *state, long times) { run_batch(state, 0, 0, times); }
static void run_both(void *state, long times) { run_batch(state, 0, 1, times); }
static void run_array_one_owner(void *state, long times) { run_batch(state, 1, 0, times); }
static void run_both_one_owner(void *state, long times) { run_batch(state, 1, 1, times); }

static void expect_batch_exports(struct batch *batch) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  for (int one_owner = 0; one_owner < 2; one_owner++) {
    export_batch(batch, one_owner, &array);
    expect_batch(&array.array, batch->columns, batch->n);
    EXPECT(atomic_load(&batch->owners[0].count) == 2);
    array.array.release(&array.array);
    EXPECT(atomic_load(&batch->owners[0].count) == 1);
  }
  OK(bowstring_type_export(batch->type, &schema, &error));
  expect_batch_schema(&schema, batch->columns, batch->n);
  schema.release(&schema);
}

static void measure_w1(void) {
  struct batch batch = {.n = 1, .columns = new_columns(1), .owners = new_owners(1)};
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  column_schema(batch.columns, &schema);
  batch.type = type_of(&schema);
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
    expect_batch_exports(&batch);
    measure((struct job){run_array, &batch}, "W2 %d columns, array", n);
    measure((struct job){run_array_one_owner, &batch}, "W2 %d columns, array, one owner", n);
    measure((struct job){run_both, &batch}, "W2 %d columns, array+schema", n);
    measure((struct job){run_both_one_owner, &batch}, "W2 %d columns, array+schema, one owner", n);
  }
}

/* ---- W3 ---- */

struct list {
  struct nested data;
  BowstringType *type;
  struct owner *owners;
};

static void export_list(struct list *list, struct ArrowDeviceArray *out, struct ArrowSchema *out_schema) {
  const BowstringNode nodes[] = {{1, 0, 0, 2},    {ROWS, 0, 0, 1}, {ROWS, 0, 0, 2},
                                 {ROWS, 0, 0, 3}, {ROWS, 0, 0, 2}, {ROWS, 0, 0, 2}};
  const struct nested *data = &list->data;
  const BowstringOwnedBuffer absent = {NULL, 0, NULL, NULL};
  BowstringOwnedBuffer buffers[] = {
      absent, owned(&data->offsets, &list->owners[0]),
      absent,
      absent, owned(&data->a, &list->owners[1]),
      absent, owned(&data->b_offsets, &list->owners[2]), owned(&data->b_text, &list->owners[3]),
      absent, owned(&data->c_offsets, &list->owners[4]),
      absent, owned(&data->c_values, &list->owners[5])};
  OK(bowstring_type_export(list->type, out_schema, &error));
  OK(bowstring_device_array_from_buffers(list->type, nodes, sizeof nodes / sizeof nodes[0], buffers,
                                         sizeof buffers / sizeof buffers[0], NULL, out, &error));
}

static void run_list(void *state, long times) {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  while (times-- > 0) {
    export_list(state, &array, &schema);
    touch(&array);
    array.array.release(&array.array);
    schema.release(&schema);
  }
}

static void measure_w3(void) {
  struct list list = {.data = new_nested(), .owners = new_owners(6)};
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  nested_schema(&schema);
  list.type = type_of(&schema);
  export_list(&list, &array, &schema);
  expect_nested(&array.array, &list.data);
  expect_nested_schema(&schema);
  array.array.release(&array.array);
  schema.release(&schema);
  measure((struct job){run_list, &list}, "W3 nested, array+schema");
}

/* ---- W4 ---- */

struct import {
  struct foreign foreign;
  BowstringType *type;
};

static BowstringArray *import_with_schema(const struct import *import) {
  struct ArrowDeviceArray raw = import->foreign.array;
  struct ArrowSchema schema = import->foreign.schema;
  BowstringArray *array;
  OK(bowstring_array_import(&raw, &schema, &array, &error));
  return array;
}

static BowstringArray *import_known(const struct import *import) {
  struct ArrowDeviceArray raw = import->foreign.array;
  BowstringArray *array;
  OK(bowstring_array_import_typed(&raw, import->type, &array, &error));
  return array;
}

static void run_import(void *state, long times) {
  while (times-- > 0) {
    BowstringArray *array = import_with_schema(state);
    touch(array);
    bowstring_array_release(array);
  }
}

static void run_import_known(void *state, long times) {
  while (times-- > 0) {
    BowstringArray *array = import_known(state);
    touch(array);
    bowstring_array_release(array);
  }
}

/* Consumes a handle on an array of these columns. */
static void expect_imported(BowstringArray *array, const struct column *columns, int64_t n) {
  size_t n_nodes, n_buffers;
  OK(bowstring_array_count(array, &n_nodes, &n_buffers, &error));
  EXPECT(n_nodes == (size_t)n + 1 && n_buffers == (size_t)(2 * n) + 1);
  BowstringBufferInfo info = {.struct_size = sizeof info};
  OK(bowstring_array_buffer_info(array, n_buffers - 1, &info, &error));
  EXPECT(info.data == columns[n - 1].values.data && info.size_bytes == ROWS * 8);
  bowstring_array_release(array);
}

static void measure_w4(void) {
  for (int n = 1; n <= 1000; n *= n == 1 ? 100 : 10) {
    struct column *columns = new_columns(n);
    struct import import = {.foreign = new_foreign(columns, n)};
    struct ArrowSchema schema = import.foreign.schema;
    import.type = type_of(&schema);
    expect_imported(import_with_schema(&import), columns, n);
    expect_imported(import_known(&import), columns, n);
    measure((struct job){run_import, &import}, "W4 %d columns, with schema", n);
    measure((struct job){run_import_known, &import}, "W4 %d columns, known type", n);
  }
}

/* ---- W5 ---- */

static void run_move(void *state, long times) {
  struct ArrowDeviceArray *one = state, other;
  for (long i = 0; i < times; i += 2) {
    bowstring_device_array_move(one, &other);
    touch(&other);
    bowstring_device_array_move(&other, one);
    touch(one);
  }
}

static void measure_w5(void) {
  struct ArrowDeviceArray array = new_foreign(new_columns(1), 1).array, moved;
  bowstring_device_array_move(&array, &moved);
  EXPECT(array.array.release == NULL && moved.array.release != NULL && moved.array.n_children == 1);
  measure((struct job){run_move, &moved}, "W5 move");
}

/* ---- W7 ---- */

enum { STREAM_BATCHES = 100, STREAM_COLUMNS = 10 };

struct flow {
  struct batch *batch;
  int one_owner;
  int left;
};

static int next_batch(void *ctx, struct ArrowDeviceArray *out) {
  struct flow *flow = ctx;
  if (flow->left-- > 0) export_batch(flow->batch, flow->one_owner, out);
  return 0;
}

static inline void run_flow(struct batch *batch, int one_owner, long times) {
  while (times-- > 0) {
    struct flow flow = {batch, one_owner, STREAM_BATCHES};
    BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .ctx = &flow, .get_next = next_batch};
    BowstringStream *made = NULL;
    struct ArrowDeviceArrayStream stream;
    OK(bowstring_stream_from_callbacks(batch->type, &callbacks, &made, &error));
    OK(bowstring_stream_export(&made, &stream, &error));
    int batches = 0;
    for (;;) {
      struct ArrowDeviceArray array;
      EXPECT(stream.get_next(&stream, &array) == 0);
      if (array.array.release == NULL) break;
      batches++;
      touch(&array);
      array.array.release(&array.array);
    }
    EXPECT(batches == STREAM_BATCHES);
    stream.release(&stream);
  }
}

static void run_flow_each(void *state, long times) { run_flow(state, 0, times); }
static void run_flow_one_owner(void *state, long times) { run_flow(state, 1, times); }

static void run_consume(void *state, long times) {
  while (times-- > 0) {
    struct ArrowDeviceArrayStream raw;
    foreign_stream(state, STREAM_BATCHES, &raw);
    BowstringStream *stream = NULL;
    OK(bowstring_stream_import(&raw, &stream, &error));
    int batches = 0;
    for (;;) {
      BowstringArray *array;
      OK(bowstring_stream_next(stream, &array, &error));
      if (array == NULL) break;
      batches++;
      touch(array);
      bowstring_array_release(array);
    }
    EXPECT(batches == STREAM_BATCHES);
    bowstring_stream_release(stream);
  }
}

static void measure_w7(void) {
  struct batch batch = new_batch(STREAM_COLUMNS);
  struct foreign foreign = new_foreign(batch.columns, STREAM_COLUMNS);
  expect_batch_exports(&batch);
  measure((struct job){run_flow_each, &batch}, "W7 100 batches, produced and drained");
  measure((struct job){run_flow_one_owner, &batch}, "W7 100 batches, produced and drained, one owner");
  measure((struct job){run_consume, &foreign}, "W7 100 batches, consumed");
}

/* ---- W8 ---- */

static void run_tensor(void *state, long times) {
  while (times-- > 0) {
    struct DLManagedTensorVersioned *tensor;
    OK(bowstring_array_to_tensor(state, NULL, &tensor, &error));
    touch(tensor);
    tensor->deleter(tensor);
  }
}

static void measure_w8(void) {
  struct batch batch = {.n = 1, .columns = new_columns(1), .owners = new_owners(1)};
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *array = NULL;
  struct DLManagedTensorVersioned *tensor = NULL;
  column_schema(batch.columns, &schema);
  batch.type = type_of(&schema);
  export_column(&batch, &raw, &schema);
  OK(bowstring_array_import(&raw, &schema, &array, &error));
  OK(bowstring_array_to_tensor(array, NULL, &tensor, &error));
  EXPECT(tensor->dl_tensor.data == batch.columns->values.data && tensor->dl_tensor.shape[0] == ROWS);
  tensor->deleter(tensor);
  measure((struct job){run_tensor, array}, "W8 column, tensor");
}

int main(int argc, char **argv) {
  measure_setup(argc, argv);
  if (measure_wants("W1")) measure_w1();
  if (measure_wants("W2")) measure_w2();
  if (measure_wants("W3")) measure_w3();
  if (measure_wants("W4")) measure_w4();
  if (measure_wants("W5")) measure_w5();
  if (measure_wants("W7")) measure_w7();
  if (measure_wants("W8")) measure_w8();
  return 0;
}
