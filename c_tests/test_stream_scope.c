/* Streams and the callback scope: entered around what lets a producer and its arrays go, never around what asks for them. */
#define _GNU_SOURCE
#include "alone.h"
#include "build.h"
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int depth, entered, asked, let_go;

static int enter(void) {
  depth++;
  return ++entered;
}
static void leave(int token) {
  CHECK(token == entered && depth == 1);
  depth--;
}

static void set_scope(void) {
  BowstringCallbackScope scope = {.struct_size = sizeof scope, .enter = enter, .leave = leave};
  CHECK_OK(bowstring_callback_scope_set(&scope, &report));
}

/* ---- a producer that gives one foreign array ---- */

static void (*array_release)(struct ArrowArray *);

static void released_inside(struct ArrowArray *array) {
  CHECK_INT(depth, 1);
  let_go++;
  array->release = array_release;
  array_release(array);
}

static void give(struct ArrowDeviceArray *out) {
  CHECK_INT(depth, 0);
  if (asked++ > 0) return;
  sample_array(sample_named("utf8"), out);
  array_release = out->array.release;
  out->array.release = released_inside;
}

static int next(void *ctx, struct ArrowDeviceArray *out) {
  CHECK_PTR(ctx, &asked);
  give(out);
  return asked > 2 ? 5 : 0;
}

static const char *last_error(void *ctx) {
  CHECK_PTR(ctx, &asked);
  CHECK_INT(depth, 0);
  return "no more";
}

static void producer_inside(void *ctx) {
  CHECK_PTR(ctx, &asked);
  CHECK_INT(depth, 1);
  let_go++;
}

static int raw_schema(struct ArrowDeviceArrayStream *raw, struct ArrowSchema *out) {
  (void)raw;
  CHECK_INT(depth, 0);
  sample_schema(sample_named("utf8"), out);
  return 0;
}

static int raw_next(struct ArrowDeviceArrayStream *raw, struct ArrowDeviceArray *out) {
  return next(raw->private_data, out);
}

static const char *raw_error(struct ArrowDeviceArrayStream *raw) { return last_error(raw->private_data); }

static void raw_release(struct ArrowDeviceArrayStream *raw) {
  producer_inside(raw->private_data);
  raw->release = NULL;
}

static BowstringStream *of_callbacks(void) {
  BowstringStream *stream = NULL;
  BowstringType *type = sample_type(sample_named("utf8"));
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .ctx = &asked, .get_next = next};
  callbacks.get_last_error = last_error;
  callbacks.release = producer_inside;
  CHECK_OK(bowstring_stream_from_callbacks(type, &callbacks, &stream, &report));
  bowstring_type_release(type);
  return stream;
}

static BowstringStream *of_struct(void) {
  BowstringStream *stream = NULL;
  struct ArrowDeviceArrayStream raw = {ARROW_DEVICE_CPU, raw_schema, raw_next, raw_error, raw_release, &asked};
  CHECK_OK(bowstring_stream_import(&raw, &stream, &report));
  return stream;
}

static BowstringStream *(*const makers[])(void) = {of_callbacks, of_struct};

/* ---- the tests, each in a process of its own ---- */

static void test_entered(const void *maker) {
  set_scope();
  BowstringStream *stream = makers[*(const int *)maker]();
  BowstringArray *array = NULL;
  int before = entered; /* The schema of the sample is let go inside. */
  CHECK_OK(bowstring_stream_next(stream, &array, &report));
  CHECK_INT(entered, before);
  bowstring_array_release(array);
  CHECK(entered == before + 1 && let_go == 1 && depth == 0);
  CHECK_OK(bowstring_stream_next(stream, &array, &report));
  CHECK(array == NULL && entered == before + 1);
  bowstring_stream_release(stream);
  CHECK(entered == before + 2 && let_go == 2 && depth == 0);
}

static void test_after_an_error(const void *maker) {
  set_scope();
  BowstringStream *stream = makers[*(const int *)maker]();
  BowstringArray *array = NULL;
  asked = 2;
  CHECK_FAILS(bowstring_stream_next(stream, &array, &report), BOWSTRING_CALLBACK_ERROR);
  CHECK_HAS(report.message, "no more");
  bowstring_stream_release(stream);
  CHECK(let_go == 1 && depth == 0);
}

static void test_closed(const void *maker) {
  set_scope();
  BowstringStream *stream = makers[*(const int *)maker]();
  struct ArrowDeviceArrayStream raw;
  CHECK_OK(bowstring_stream_export(&stream, &raw, &report));
  bowstring_callback_scope_close();
  int before = entered;
  /* What is ours needs no scope, only the producer behind it. */
  bowstring_device_stream_release(&raw);
  CHECK(raw.release == NULL);
  /* The producer is leaked and counted, and its stream is gone all the same. */
  CHECK(entered == before && let_go == 0);
  CHECK(live_counts().leaked_callbacks == 1 && live_counts().streams == 0 && live_counts().types == 0);
  owners_all_gone();
  exit(0);
}

/* ---- a lock that the producer needs, as an interpreter's ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int has_lock;
static int pauses;

static int lock_is_held(void) { return has_lock; }

static int lock_enter(void) {
  if (has_lock) return 1;
  pthread_mutex_lock(&lock);
  has_lock = 1;
  return 0;
}

static void lock_leave(int had_it) {
  CHECK(has_lock);
  if (had_it) return;
  has_lock = 0;
  pthread_mutex_unlock(&lock);
}

static void *lock_pause(void) {
  CHECK(has_lock);
  pauses++;
  has_lock = 0;
  pthread_mutex_unlock(&lock);
  return &lock;
}

static void lock_resume(void *token) {
  CHECK_PTR(token, &lock);
  pthread_mutex_lock(&lock);
  has_lock = 1;
}

static int next_needs_lock(void *ctx, struct ArrowDeviceArray *out) {
  int token = lock_enter();
  (void)ctx;
  nanosleep(&(struct timespec){0, 2000000}, NULL);
  sample_array(sample_named("utf8"), out);
  lock_leave(token);
  return 0;
}

static BowstringStream *ahead_under_lock(void) {
  BowstringCallbackScope scope = {.struct_size = sizeof scope, .enter = lock_enter, .leave = lock_leave};
  BowstringType *type = sample_type(sample_named("utf8"));
  BowstringStreamCallbacks callbacks = {.struct_size = sizeof callbacks, .get_next = next_needs_lock};
  BowstringTransferOptions options = {.struct_size = sizeof options, .depth = 2};
  BowstringStream *stream = NULL, *ahead = NULL;
  scope.held = lock_is_held;
  scope.pause = lock_pause;
  scope.resume = lock_resume;
  CHECK_OK(bowstring_callback_scope_set(&scope, &report));
  CHECK_OK(bowstring_stream_from_callbacks(type, &callbacks, &stream, &report));
  bowstring_type_release(type);
  lock_enter();
  CHECK_OK(bowstring_stream_to_device(&stream, (BowstringDevice){0, 0}, &options, &ahead, &report));
  return ahead;
}

/* Without the pause each of these would wait for ever, and the alarm end it. */
static void test_next_lets_the_lock_go(const void *unused) {
  BowstringArray *array = NULL;
  (void)unused;
  alarm(20);
  BowstringStream *ahead = ahead_under_lock();
  for (int i = 0; i < 5; i++) {
    CHECK_OK(bowstring_stream_next(ahead, &array, &report));
    CHECK(array != NULL && has_lock);
    bowstring_array_release(array);
  }
  bowstring_stream_release(ahead);
  CHECK(has_lock && pauses > 0);
  lock_leave(0);
}

static void test_release_lets_the_lock_go(const void *unused) {
  struct ArrowDeviceArrayStream raw;
  (void)unused;
  alarm(20);
  BowstringStream *ahead = ahead_under_lock();
  CHECK_OK(bowstring_stream_export(&ahead, &raw, &report));
  bowstring_device_stream_release(&raw);
  CHECK(has_lock && pauses > 0);
  lock_leave(0);
}

int main(void) {
  for (int maker = 0; maker < 2; maker++) {
    alone(test_entered, &maker);
    alone(test_after_an_error, &maker);
    alone(test_closed, &maker);
  }
  alone(test_next_lets_the_lock_go, NULL);
  alone(test_release_lets_the_lock_go, NULL);
  CHECK_INT(alone_count(), 8);
  return check_end(33);
}
