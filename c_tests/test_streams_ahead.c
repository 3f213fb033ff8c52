/* Streams whose batches are copied by a thread that is ahead: order, bounds, cancelling and releasing at any moment. */
/* kill and pthread_sigmask are POSIX. */
#define _POSIX_C_SOURCE 200809L

#include "build.h"
#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCHES = 1000, ROWS = 8 };

struct producer {
  const BowstringType *type;
  int64_t end, fails_at; /* -1: never */
  atomic_llong given;
  atomic_int released;
};

static int next(void *ctx, struct ArrowDeviceArray *out) {
  struct producer *self = ctx;
  CHECK(!self->released && out->array.release == NULL);
  int64_t number = self->given;
  if (number == self->end) return 0;
  if (number == self->fails_at) return ENOSPC;
  const BowstringNode nodes[1] = {{ROWS, 0, 0, 2}};
  int64_t *numbers = malloc(ROWS * sizeof *numbers);
  CHECK(numbers != NULL);
  for (int i = 0; i < ROWS; i++) numbers[i] = number;
  BowstringOwnedBuffer buffers[2] = {{0}, {numbers, ROWS * sizeof *numbers, numbers, free}};
  CHECK_OK(bowstring_device_array_from_buffers(self->type, nodes, 1, buffers, 2, NULL, out, &report));
  self->given++;
  return 0;
}

static void let_go(void *ctx) { ((struct producer *)ctx)->released++; }

static BowstringStream *ahead_of(struct producer *self, uint32_t depth) {
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .ctx = self, .get_next = next, .release = let_go};
  BowstringTransferOptions options = {.struct_size = sizeof options, .depth = depth};
  BowstringStream *from = NULL, *out = NULL;
  CHECK_OK(bowstring_stream_from_callbacks(self->type, &callbacks, &from, &report));
  CHECK_OK(bowstring_stream_to_device(&from, (BowstringDevice){0, 0}, &options, &out, &report));
  CHECK(from == NULL && out != NULL);
  return out;
}

static void check_number(struct ArrowDeviceArray *array, int64_t expected) {
  CHECK(array->array.length == ROWS && array->device_type == ARROW_DEVICE_CPU);
  CHECK_INT(((const int64_t *)array->array.buffers[1])[ROWS - 1], expected);
  array->array.release(&array->array);
}

static void test_many_batches(const BowstringType *type) {
  for (uint32_t depth = 0; depth < 9; depth += 2) {
    struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1};
    BowstringStream *stream = ahead_of(&producer, depth);
    struct ArrowDeviceArray array;
    for (int64_t i = 0; i < BATCHES; i++) {
      CHECK_OK(bowstring_stream_next_device_array(stream, &array, &report));
      CHECK(producer.given <= i + 1 + depth);
      check_number(&array, i);
    }
    CHECK_OK(bowstring_stream_next_device_array(stream, &array, &report));
    CHECK(array.array.release == NULL);
    bowstring_stream_release(stream);
    CHECK_INT(producer.released, 1);
  }
}

static void test_an_error_comes_in_turn(const BowstringType *type) {
  for (int64_t at = 0; at < 8; at++) {
    struct producer producer = {.type = type, .end = BATCHES, .fails_at = at};
    BowstringStream *stream = ahead_of(&producer, 3);
    BowstringArray *array = NULL;
    for (int64_t i = 0; i < at; i++) {
      CHECK_OK(bowstring_stream_next(stream, &array, &report));
      bowstring_array_release(array);
    }
    for (int i = 0; i < 2; i++) {
      CHECK_INT(bowstring_stream_next(stream, &array, &report), BOWSTRING_CALLBACK_ERROR);
      CHECK(array == NULL && report.batch == at && report.native_code == ENOSPC);
    }
    bowstring_stream_release(stream);
    CHECK_INT(producer.released, 1);
  }
}

static void *cancel(void *stream) {
  bowstring_stream_cancel(stream);
  return NULL;
}

static void test_cancelling(const BowstringType *type) {
  for (int round = 0; round < 200; round++) {
    struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1};
    BowstringStream *stream = ahead_of(&producer, 1 + round % 4);
    pthread_t thread;
    struct ArrowDeviceArray array;
    BowstringStatus status = BOWSTRING_OK;
    for (int64_t i = 0; status == BOWSTRING_OK; i++) {
      if (i == round % 7) CHECK_INT(pthread_create(&thread, NULL, cancel, stream), 0);
      status = bowstring_stream_next_device_array(stream, &array, &report);
      if (status != BOWSTRING_OK) break;
      if (array.array.release == NULL) {
        CHECK_INT(i, BATCHES);
        break;
      }
      check_number(&array, i);
    }
    CHECK(status == BOWSTRING_OK || status == BOWSTRING_CANCELLED);
    CHECK_INT(pthread_join(thread, NULL), 0);
    bowstring_stream_release(stream);
    CHECK_INT(producer.released, 1);
  }
}

static void test_releasing(const BowstringType *type) {
  for (int round = 0; round < 200; round++) {
    struct producer producer = {.type = type, .end = 6, .fails_at = round % 5 == 4 ? 3 : -1};
    BowstringStream *stream = ahead_of(&producer, 1 + round % 3);
    struct ArrowDeviceArray array;
    for (int64_t i = 0; i < round % 4; i++) {
      CHECK_OK(bowstring_stream_next_device_array(stream, &array, &report));
      check_number(&array, i);
    }
    bowstring_stream_release(stream);
    CHECK_INT(producer.released, 1);
  }
}

/* ---- signals are the program's own threads' business ---- */

static atomic_int signalled;
static pthread_t main_thread;
static void on_signal(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), main_thread)) abort();
  signalled++;
}

static void test_signals(const BowstringType *type) {
  struct producer producer = {.type = type, .end = BATCHES, .fails_at = -1};
  main_thread = pthread_self();
  signal(SIGINT, on_signal);
  sigset_t before, after, some;
  CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
  BowstringStream *stream = ahead_of(&producer, 2);
  CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
  CHECK_INT(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
  /* While this thread takes none, one that is for the process would go to any other that does. */
  sigemptyset(&some);
  sigaddset(&some, SIGINT);
  CHECK_INT(pthread_sigmask(SIG_BLOCK, &some, NULL), 0);
  CHECK_INT(kill(getpid(), SIGINT), 0);
  struct ArrowDeviceArray array;
  for (int64_t i = 0; i < BATCHES; i++) {
    CHECK_OK(bowstring_stream_next_device_array(stream, &array, &report));
    check_number(&array, i);
  }
  CHECK_INT(signalled, 0);
  CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
  CHECK_INT(signalled, 1);
  signal(SIGINT, SIG_DFL);
  bowstring_stream_release(stream);
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  BowstringType *type = NULL;
  CHECK_OK(bowstring_type_parse("int64", &type, &report));
  test_many_batches(type);
  test_an_error_comes_in_turn(type);
  test_cancelling(type);
  test_releasing(type);
  test_signals(type);
  bowstring_type_release(type);
  live_as_before(&before);
  return check_end(30000);
}
