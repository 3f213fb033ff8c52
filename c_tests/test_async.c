/* Asynchronous streams: a thousand batches through bowstring's two sides, whoever stops first, and a producer that does wrong. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 1000, ROWS = 8 };

struct source {
  const BowstringType *type;
  int64_t given, end, fails_at;
  int released;
};

static int next(void *ctx, struct ArrowDeviceArray *out) {
  struct source *self = ctx;
  CHECK(!self->released && out->array.release == NULL);
  if (self->given == self->fails_at) return ENOENT;
  if (self->given == self->end) return 0;
  const BowstringNode node = {ROWS, 0, 0, 2};
  int64_t *numbers = malloc(ROWS * sizeof *numbers);
  CHECK(numbers != NULL);
  for (int i = 0; i < ROWS; i++) numbers[i] = self->given;
  BowstringOwnedBuffer buffers[2] = {{0}, {numbers, ROWS * sizeof *numbers, numbers, free}};
  BowstringError error;
  CHECK_OK(bowstring_device_array_from_buffers(self->type, &node, 1, buffers, 2, NULL, out, &error));
  self->given++;
  return 0;
}

static void let_go(void *ctx) { ((struct source *)ctx)->released++; }

static void nap(void) {
  const struct timespec moment = {0, 1000000};
  nanosleep(&moment, NULL);
}

static void all_gone(void) {
  /* What another thread still lets go is waited for. */
  for (int i = 0; i < 20000; i++) {
    BowstringLiveCounts live = {.struct_size = sizeof live};
    bowstring_live_counts(&live);
    if (live.arrays + live.blocks + live.streams == 0) return;
    nap();
  }
  CHECK(!"everything is let go");
}

static BowstringStream *joined(struct source *self, size_t capacity, struct ArrowAsyncDeviceStreamHandler *handler) {
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .ctx = self, .get_next = next, .release = let_go};
  BowstringStream *stream = NULL, *out = NULL;
  memset(handler, 0xAA, sizeof *handler);
  CHECK_OK(bowstring_stream_from_callbacks(self->type, &callbacks, &stream, &report));
  CHECK_OK(bowstring_stream_from_async(capacity, handler, &out, &report));
  CHECK_OK(bowstring_stream_to_async(&stream, handler, &report));
  CHECK(stream == NULL);
  return out;
}

static int64_t drain(BowstringStream *stream, int64_t most, BowstringStatus *last) {
  for (int64_t i = 0; i < most; i++) {
    struct ArrowDeviceArray raw;
    memset(&raw, 0xAA, sizeof raw);
    *last = bowstring_stream_next_device_array(stream, &raw, &report);
    if (*last != BOWSTRING_OK || raw.array.release == NULL) return i;
    CHECK(raw.array.length == ROWS && ((const int64_t *)raw.array.buffers[1])[0] == i);
    bowstring_device_array_release(&raw);
  }
  return most;
}

static void test_all_of_it(const BowstringType *type) {
  const size_t capacities[] = {1, 2, 16};
  for (int i = 0; i < 3; i++) {
    struct source self = {type, 0, BATCHES, -1, 0};
    struct ArrowAsyncDeviceStreamHandler handler;
    BowstringStatus last = BOWSTRING_OK;
    BowstringStream *stream = joined(&self, capacities[i], &handler);
    CHECK(drain(stream, BATCHES + 1, &last) == BATCHES && last == BOWSTRING_OK);
    CHECK(handler.release == NULL);
    bowstring_stream_release(stream);
    all_gone();
    CHECK(self.released == 1);
  }
}

static void test_errors(const BowstringType *type) {
  for (int64_t at = 0; at < 5; at++) {
    struct source self = {type, 0, 9, at, 0};
    struct ArrowAsyncDeviceStreamHandler handler;
    BowstringStatus last = BOWSTRING_OK;
    BowstringStream *stream = joined(&self, 2, &handler);
    CHECK(drain(stream, 9, &last) == at && last == BOWSTRING_CALLBACK_ERROR);
    CHECK(report.native_code == ENOENT && report.batch == at && handler.release == NULL);
    bowstring_stream_release(stream);
    all_gone();
    CHECK(self.released == 1);
  }
}

static void test_whoever_stops_first(const BowstringType *type) {
  for (int i = 0; i < 100; i++) {
    struct source self = {type, 0, 20, -1, 0};
    struct ArrowAsyncDeviceStreamHandler handler;
    BowstringStatus last = BOWSTRING_OK;
    BowstringStream *stream = joined(&self, 1 + (size_t)(i % 3), &handler);
    CHECK(drain(stream, i % 7, &last) == i % 7 && last == BOWSTRING_OK);
    if (i % 2) bowstring_stream_cancel(stream);
    bowstring_stream_release(stream);
    all_gone();
    CHECK(self.released == 1 && handler.release == NULL);
  }
}

static int nothing(struct ArrowAsyncTask *task, struct ArrowDeviceArray *out) {
  CHECK(task->private_data != NULL);
  ++*(int *)task->private_data;
  CHECK(out == NULL);
  return 0;
}

/* Tasks before the schema: each is asked for its array once, and the stream says what was wrong. */
static void test_a_producer_that_does_wrong(void) {
  struct ArrowAsyncDeviceStreamHandler handler;
  BowstringStream *stream = NULL;
  BowstringArray *array = NULL;
  int asked = 0;
  CHECK_OK(bowstring_stream_from_async(1, &handler, &stream, &report));
  for (int i = 0; i < 3; i++) {
    struct ArrowAsyncTask task = {nothing, &asked};
    CHECK(handler.on_next_task(&handler, &task, NULL) == EINVAL);
  }
  CHECK(asked == 3);
  CHECK(bowstring_stream_next(stream, &array, &report) == BOWSTRING_INVALID_DATA);
  CHECK(strcmp(bowstring_rule_name(report.rule), "AS3") == 0);
  bowstring_stream_release(stream);
  handler.release(&handler);
  CHECK(handler.release == NULL);
}

/* A consumer of ours, and what it has heard on the thread that hands over. */
static struct {
  atomic_int has_schema, is_released, errors;
} heard;

static int hears_schema(struct ArrowAsyncDeviceStreamHandler *self, struct ArrowSchema *schema) {
  schema->release(schema);
  self->producer->request(self->producer, 1);
  atomic_store(&heard.has_schema, 1);
  return 0;
}

static int hears_task(struct ArrowAsyncDeviceStreamHandler *self, struct ArrowAsyncTask *task, const char *metadata) {
  (void)self, (void)task, (void)metadata;
  atomic_fetch_add(&heard.errors, 1);
  return 0;
}

static void hears_error(struct ArrowAsyncDeviceStreamHandler *self, int code, const char *message, const char *metadata) {
  (void)self, (void)code, (void)message, (void)metadata;
  atomic_fetch_add(&heard.errors, 1);
}

static void hears_release(struct ArrowAsyncDeviceStreamHandler *self) {
  self->release = NULL;
  atomic_store(&heard.is_released, 1);
}

static void is_asked(struct ArrowAsyncProducer *self, int64_t n) { (void)self, (void)n; }

static size_t streams_while_cancelled;

/* Takes so long that the thread above has let its handler go, and all that it can. */
static void is_cancelled(struct ArrowAsyncProducer *self) {
  (void)self;
  for (int i = 0; i < 20000 && !atomic_load(&heard.is_released); i++) nap();
  for (int i = 0; i < 20; i++) nap();
  BowstringLiveCounts live = {.struct_size = sizeof live};
  bowstring_live_counts(&live);
  streams_while_cancelled = live.streams;
}

/* A cancel ends the thread that it is for, and what it goes through is there until it returns. */
static void test_a_cancel_that_takes_long(const BowstringType *type) {
  struct ArrowAsyncDeviceStreamHandler inner, outer = {
    .on_schema = hears_schema, .on_next_task = hears_task, .on_error = hears_error, .release = hears_release};
  struct ArrowAsyncProducer below = {.device_type = ARROW_DEVICE_CPU, .request = is_asked, .cancel = is_cancelled};
  struct ArrowSchema schema;
  BowstringStream *stream = NULL;
  CHECK_OK(bowstring_stream_from_async(1, &inner, &stream, &report));
  CHECK_OK(bowstring_type_export(type, &schema, &report));
  inner.producer = &below;
  CHECK_INT(inner.on_schema(&inner, &schema), 0);
  CHECK_OK(bowstring_stream_to_async(&stream, &outer, &report));
  for (int i = 0; i < 20000 && !atomic_load(&heard.has_schema); i++) nap();
  outer.producer->cancel(outer.producer);
  CHECK(atomic_load(&heard.is_released) && atomic_load(&heard.errors) == 0);
  CHECK_INT(streams_while_cancelled, 1);
  inner.release(&inner);
  all_gone();
}

int main(void) {
  BowstringType *type = NULL;
  CHECK_OK(bowstring_type_parse("int64", &type, &report));
  test_all_of_it(type);
  test_errors(type);
  test_whoever_stops_first(type);
  test_a_producer_that_does_wrong();
  test_a_cancel_that_takes_long(type);
  bowstring_type_release(type);
  all_gone();
  return check_end(7000);
}
