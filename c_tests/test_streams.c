/* Streams there and back: ten thousand batches through every way of handing one on, and nanoarrow's streams on devices. */
#include "build.h"
#include "check.h"

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 10000, ROWS = 8 };

static struct ArrowError peer_error;
#define PEER_OK(call)                                                             \
  do {                                                                            \
    int peer_result = (call);                                                     \
    if (peer_result != NANOARROW_OK) fprintf(stderr, "%s\n", peer_error.message); \
    CHECK_INT(peer_result, NANOARROW_OK);                                         \
  } while (0)

/* ---- a producer that builds each batch when it is asked ---- */

struct producer {
  const BowstringType *type;
  int64_t given, end;
  int64_t fails_at; /* -1: never */
  int released, as_handles;
  char text[32]; /* one for all failures */
};

static void build(struct producer *self, struct ArrowDeviceArray *out) {
  const BowstringNode nodes[2] = {{ROWS, 0, 0, 1}, {ROWS, 0, 0, 2}};
  int64_t *numbers = malloc(ROWS * sizeof *numbers);
  CHECK(numbers != NULL);
  for (int i = 0; i < ROWS; i++) numbers[i] = self->given;
  BowstringOwnedBuffer buffers[3] = {{0}, {0}, {numbers, ROWS * sizeof *numbers, numbers, free}};
  CHECK_OK(bowstring_device_array_from_buffers(self->type, nodes, 2, buffers, 3, NULL, out, &report));
}

static int next(void *ctx, struct ArrowDeviceArray *out) {
  struct producer *self = ctx;
  CHECK(!self->released && out->array.release == NULL);
  if (self->given == self->end) return 0;
  build(self, out);
  if (self->given == self->fails_at) {
    /* What is in `out` is the consumer's to release. */
    strcpy(self->text, "the disk is full");
    return EIO;
  }
  self->given++;
  return 0;
}

static int next_array(void *ctx, BowstringArray **out) {
  struct producer *self = ctx;
  struct ArrowDeviceArray raw = {0};
  int code = next(ctx, &raw);
  if (raw.array.release != NULL) CHECK_OK(bowstring_array_import_typed(&raw, self->type, out, &report));
  return code;
}

static const char *last_error(void *ctx) { return ((struct producer *)ctx)->text; }
static void let_go(void *ctx) { ((struct producer *)ctx)->released++; }

static BowstringStream *stream_of(struct producer *self) {
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .ctx = self, .release = let_go};
  callbacks.get_last_error = last_error;
  if (self->as_handles)
    callbacks.get_next_array = next_array;
  else
    callbacks.get_next = next;
  BowstringStream *stream = NULL;
  CHECK_OK(bowstring_stream_from_callbacks(self->type, &callbacks, &stream, &report));
  CHECK(callbacks.ctx == NULL && callbacks.release == NULL);
  return stream;
}

/* ---- ways from a stream to a stream ---- */

static BowstringStream *as_it_is(BowstringStream *stream) { return stream; }

/* A struct whose release is not known to be ours, so that the import makes a stream of its own around it. */
static void (*device_release)(struct ArrowDeviceArrayStream *);
static void (*host_release)(struct ArrowArrayStream *);
static void released_device(struct ArrowDeviceArrayStream *raw) { device_release(raw); }
static void released_host(struct ArrowArrayStream *raw) { host_release(raw); }

static BowstringStream *through_device_struct(BowstringStream *stream) {
  struct ArrowDeviceArrayStream raw, moved;
  memset(&raw, 0xAA, sizeof raw);
  CHECK_OK(bowstring_stream_export(&stream, &raw, &report));
  CHECK(stream == NULL && raw.device_type == ARROW_DEVICE_CPU);
  bowstring_device_stream_move(&raw, &moved);
  device_release = moved.release;
  moved.release = released_device;
  CHECK_OK(bowstring_stream_import(&moved, &stream, &report));
  CHECK(moved.release == NULL);
  return stream;
}

static BowstringStream *through_host_struct(BowstringStream *stream) {
  struct ArrowArrayStream raw;
  memset(&raw, 0xAA, sizeof raw);
  CHECK_OK(bowstring_stream_export_host(&stream, NULL, &raw, &report));
  host_release = raw.release;
  raw.release = released_host;
  CHECK_OK(bowstring_stream_import_host(&raw, &stream, &report));
  CHECK(raw.release == NULL);
  return stream;
}

static BowstringStream *selected(BowstringStream *stream) {
  BowstringStream *out = NULL;
  const size_t columns[] = {0};
  CHECK_OK(bowstring_stream_select(&stream, columns, 1, &out, &report));
  CHECK(stream == NULL);
  return out;
}

static BowstringStream *validated(BowstringStream *stream) {
  BowstringStream *out = NULL;
  CHECK_OK(bowstring_stream_validated(&stream, NULL, &out, &report));
  CHECK(stream == NULL);
  return out;
}

static BowstringStream *(*const ways[])(BowstringStream *) = {
    as_it_is, through_device_struct, through_host_struct, selected, validated,
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static int64_t number_of(const struct ArrowArray *array) {
  CHECK(array->length == ROWS && array->n_children == 1);
  const struct ArrowArray *column = array->children[0];
  return ((const int64_t *)column->buffers[1])[column->offset];
}

static void drain(BowstringStream *stream, int64_t expected) {
  for (int64_t i = 0; i < expected; i++) {
    struct ArrowDeviceArray raw;
    memset(&raw, 0xAA, sizeof raw);
    CHECK_OK(bowstring_stream_next_device_array(stream, &raw, &report));
    CHECK(number_of(&raw.array) == i && raw.device_id == -1 && raw.reserved[0] == 0 && raw.reserved[2] == 0);
    bowstring_device_array_release(&raw);
  }
}

static void test_many_batches(const BowstringType *type) {
  for (int way = 0; way < N_WAYS; way++) {
    for (int as_handles = 0; as_handles < 2; as_handles++) {
      check_about("way %d, %s", way, as_handles ? "handles" : "structs");
      struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1, .as_handles = as_handles};
      BowstringStream *stream = ways[way](stream_of(&producer));
      drain(stream, BATCHES);
      for (int i = 0; i < 2; i++) {
        BowstringArray *array = (void *)&array;
        CHECK_OK(bowstring_stream_next(stream, &array, &report));
        CHECK(array == NULL && producer.released == 0);
      }
      bowstring_stream_release(stream);
      CHECK_INT(producer.released, 1);
    }
  }
}

static void test_failures(const BowstringType *type) {
  for (int first = 0; first < N_WAYS; first++) {
    for (int second = 0; second < N_WAYS; second++) {
      check_about("a failure, way %d and then way %d", first, second);
      struct producer producer = {.type = type, .end = 10, .fails_at = 3, .as_handles = second & 1};
      BowstringStream *stream = ways[second](ways[first](stream_of(&producer)));
      drain(stream, 3);
      for (int i = 0; i < 2; i++) {
        struct ArrowDeviceArray raw;
        CHECK_FAILS(bowstring_stream_next_device_array(stream, &raw, &report), BOWSTRING_CALLBACK_ERROR);
        CHECK(raw.array.release == NULL && report.batch == 3 && report.native_code == EIO);
        CHECK_HAS(report.message, "the disk is full");
        strcpy(producer.text, "something else");
      }
      bowstring_stream_release(stream);
      CHECK_INT(producer.released, 1);
      /* Some are given up on the way. */
      producer = (struct producer){.type = type, .end = 10, .fails_at = -1};
      stream = ways[second](ways[first](stream_of(&producer)));
      drain(stream, first);
      bowstring_stream_release(stream);
      CHECK_INT(producer.released, 1);
    }
  }
}

static void test_collecting(const BowstringType *type) {
  check_about("all batches as one");
  struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1};
  BowstringStream *stream = stream_of(&producer);
  BowstringArray *array = NULL;
  CHECK_OK(bowstring_stream_collect(&stream, NULL, &array, &report));
  CHECK(stream == NULL && producer.released == 1);
  struct ArrowArray raw;
  CHECK_OK(bowstring_array_export_host(array, NULL, &raw, NULL, &report));
  bowstring_array_release(array);
  const int64_t *numbers = raw.children[0]->buffers[1];
  CHECK_INT(raw.length, BATCHES * ROWS);
  for (int64_t i = 0; i < BATCHES * ROWS; i++)
    if (numbers[i] != i / ROWS) CHECK_INT(numbers[i], i / ROWS);
  bowstring_host_array_release(&raw);
}

/* ---- nanoarrow ---- */

static void test_to_peer(const BowstringType *type) {
  check_about("drained by nanoarrow");
  struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1};
  BowstringStream *stream = stream_of(&producer);
  struct ArrowArrayStream raw;
  struct ArrowSchema schema;
  struct ArrowArray array;
  struct ArrowArrayView view;
  CHECK_OK(bowstring_stream_export_host(&stream, NULL, &raw, &report));
  PEER_OK(ArrowArrayStreamGetSchema(&raw, &schema, &peer_error));
  PEER_OK(ArrowArrayViewInitFromSchema(&view, &schema, &peer_error));
  for (int64_t i = 0;; i++) {
    PEER_OK(ArrowArrayStreamGetNext(&raw, &array, &peer_error));
    if (array.release == NULL) {
      CHECK_INT(i, BATCHES);
      break;
    }
    PEER_OK(ArrowArrayViewSetArray(&view, &array, &peer_error));
    PEER_OK(ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &peer_error));
    CHECK(ArrowArrayViewGetIntUnsafe(view.children[0], ROWS - 1) == i);
    ArrowArrayRelease(&array);
  }
  ArrowArrayViewReset(&view);
  ArrowSchemaRelease(&schema);
  ArrowArrayStreamRelease(&raw);
  CHECK_INT(producer.released, 1);
}

static void test_errors_to_peer(const BowstringType *type) {
  check_about("an error, read by nanoarrow");
  struct producer producer = {.type = type, .end = 10, .fails_at = 0};
  BowstringStream *stream = stream_of(&producer);
  struct ArrowArrayStream raw;
  struct ArrowArray array;
  CHECK_OK(bowstring_stream_export_host(&stream, NULL, &raw, &report));
  CHECK_INT(ArrowArrayStreamGetNext(&raw, &array, &peer_error), EIO);
  CHECK_HAS(peer_error.message, "CALLBACK_ERROR in batch 0: ");
  CHECK_HAS(peer_error.message, "the disk is full");
  ArrowArrayStreamRelease(&raw);
}

/* A stream of one array of nanoarrow's, on a device. */
static void peer_stream(const struct sample *sample, struct ArrowDeviceArrayStream *out) {
  struct ArrowSchema schema;
  struct ArrowArray array;
  struct ArrowArrayStream host;
  sample_schema(sample, &schema);
  sample_host_array(sample, &array);
  PEER_OK(ArrowBasicArrayStreamInit(&host, &schema, 1));
  ArrowBasicArrayStreamSetArray(&host, 0, &array);
  PEER_OK(ArrowDeviceBasicArrayStreamInit(out, &host, ArrowDeviceCpu()));
}

static void test_from_peer(const struct sample *sample) {
  check_about("%s in a stream of nanoarrow", sample->text);
  struct ArrowDeviceArrayStream raw;
  BowstringStream *stream = NULL, *checked = NULL;
  BowstringArray *array = NULL, *none = (void *)&array;
  peer_stream(sample, &raw);
  CHECK_OK(bowstring_stream_import(&raw, &stream, &report));
  /* The samples' values are anything. */
  const BowstringValidateOptions options = {.struct_size = sizeof options, .level = BOWSTRING_LEVEL_BOUNDS};
  CHECK_OK(bowstring_stream_validated(&stream, &options, &checked, &report));
  CHECK_INT(bowstring_stream_device(checked).type, ARROW_DEVICE_CPU);
  CHECK_OK(bowstring_stream_next(checked, &array, &report));
  CHECK_OK(bowstring_stream_next(checked, &none, &report));
  CHECK(array != NULL && none == NULL);
  BowstringNodeInfo info = {.struct_size = sizeof info};
  CHECK_OK(bowstring_array_node_info(array, 0, &info, &report));
  CHECK(info.length == sample->nodes[0].length && info.offset == sample->nodes[0].offset);
  bowstring_stream_release(checked);
  bowstring_array_release(array);
  owners_all_gone();
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  BowstringType *type = NULL;
  CHECK_OK(bowstring_type_parse("struct<n: int64>", &type, &report));
  test_many_batches(type);
  test_failures(type);
  test_collecting(type);
  test_to_peer(type);
  test_errors_to_peer(type);
  bowstring_type_release(type);
  for (int i = 0; i < n_samples; i++) test_from_peer(&samples[i]);
  live_as_before(&before);
  return check_end(500000);
}
