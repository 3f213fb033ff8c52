/* The callback scope: entered around every foreign callback, closed before the interpreter ends. A process has one,
 * so each test runs in its own. */
#define _GNU_SOURCE
#include "alone.h"
#include "build.h"
#include "check.h"
#include "released_sizes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int entered, left, is_alive = 1;
static _Thread_local int tokens[64], depth;

static int alive_now(void) { return is_alive; }

static int enter(void) {
  int token = atomic_fetch_add(&entered, 1) + 1;
  CHECK(depth < 64);
  tokens[depth++] = token;
  return token;
}

static void leave(int token) {
  atomic_fetch_add(&left, 1);
  CHECK(depth > 0);
  CHECK_INT(tokens[--depth], token); /* Innermost first, on the thread that entered. */
}

static void set_scope(void) {
  BowstringCallbackScope scope = {.struct_size = sizeof scope, .alive = alive_now, .enter = enter, .leave = leave};
  CHECK_OK(bowstring_callback_scope_set(&scope, &report));
}

static int callbacks;

static void owner_inside(void *owner) {
  CHECK(depth > 0);
  callbacks++;
  owner_release(owner);
}

static void event_inside(void *owner, void *event) {
  (void)event;
  owner_inside(owner);
}

static void (*foreign_release)(struct ArrowArray *);

static void release_inside(struct ArrowArray *array) {
  CHECK(depth > 0);
  callbacks++;
  array->release = foreign_release;
  foreign_release(array);
}

static void (*foreign_schema_release)(struct ArrowSchema *);

static void schema_release_inside(struct ArrowSchema *schema) {
  CHECK(depth > 0);
  callbacks++;
  schema->release = foreign_schema_release;
  foreign_schema_release(schema);
}

static BowstringArray *foreign_inside(void) {
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *array = NULL;
  sample_array(sample_named("utf8"), &raw);
  sample_schema(sample_named("utf8"), &schema);
  foreign_release = raw.array.release;
  raw.array.release = release_inside;
  foreign_schema_release = schema.release;
  schema.release = schema_release_inside;
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));
  CHECK_INT(callbacks, 1); /* The schema's */
  return array;
}

/* An array with an owner a buffer, one of the whole and an event. */
static void build_inside(struct ArrowDeviceArray *out, void (*release)(void *)) {
  const struct sample *sample = sample_named("utf8");
  BowstringType *type = sample_type(sample);
  BowstringOwnedBuffer buffers[3];
  BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 0}};
  sample_buffers(sample, buffers);
  for (int i = 0; i < 3; i++) buffers[i].release_owner = release;
  placement.owner = owner_new(NULL);
  placement.release_owner = release;
  placement.event = &callbacks;
  placement.event_ctx = owner_new(NULL);
  placement.destroy_event = event_inside;
  CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, 1, buffers, 3, &placement, out, &report));
  bowstring_type_release(type);
}

static void balanced(int n) {
  CHECK_INT(callbacks, n);
  CHECK_INT(entered, n);
  CHECK_INT(left, n);
  CHECK_INT(depth, 0);
}

static void forget_counts(void) {
  callbacks = 0;
  entered = 0;
  left = 0;
}

static int read_outside(void *ctx, void *dst, const void *src, size_t n) {
  ++*(int *)ctx;
  CHECK_INT(depth, 0);
  memcpy(dst, src, n);
  return 0;
}

static void test_entered(const void *unused) {
  struct ArrowDeviceArray raw;
  (void)unused;
  set_scope();
  check_about("our own array");
  build_inside(&raw, owner_inside);
  forget_counts(); /* The schema of its type was released before. */
  bowstring_device_array_release(&raw);
  balanced(5);
  forget_counts();

  check_about("a foreign array");
  BowstringArray *array = foreign_inside(), *owned = NULL, *sized = NULL;
  balanced(1);
  CHECK_OK(bowstring_array_with_owner(array, owner_new(NULL), owner_inside, &owned, &report));
  bowstring_array_release(array);
  int reads = 0;
  CHECK_OK(bowstring_array_resolve_sizes_with(owned, read_outside, &reads, &sized, &report));
  CHECK(reads > 0);
  balanced(1);
  bowstring_array_release(sized);
  bowstring_array_release(owned);
  balanced(3);
  forget_counts();

  check_about("a borrowed array");
  struct ArrowDeviceArray lent;
  sample_array(sample_named("int32"), &lent);
  BowstringType *type = NULL;
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  CHECK_OK(bowstring_array_import_borrowed(&lent, type, owner_new(NULL), owner_inside, &array, &report));
  bowstring_array_release(array);
  bowstring_type_release(type);
  balanced(1);
  bowstring_device_array_release(&lent);
  forget_counts();

  check_about("a buffer");
  static char bytes[4];
  BowstringOwnedBuffer memory = {bytes, 4, owner_new(NULL), owner_inside};
  BowstringBuffer *buffer = NULL;
  CHECK_OK(bowstring_buffer_wrap(&memory, NULL, &buffer, &report));
  bowstring_buffer_release(buffer);
  balanced(1);
  CHECK_INT(live_counts().leaked_callbacks, 0);
}

static struct ArrowDeviceArray nested;

static void owner_with_more(void *owner) {
  CHECK(depth > 0);
  int outer = depth;
  bowstring_device_array_release(&nested);
  CHECK_INT(depth, outer);
  owner_inside(owner);
}

static void test_nested(const void *unused) {
  struct ArrowDeviceArray raw;
  (void)unused;
  set_scope();
  build_inside(&nested, owner_inside);
  build_inside(&raw, owner_with_more);
  forget_counts();
  bowstring_device_array_release(&raw);
  balanced(10);
}

static void test_wrong_scopes(const void *unused) {
  BowstringCallbackScope scope = {.struct_size = sizeof scope, .enter = enter, .leave = leave};
  struct {
    BowstringCallbackScope known;
    size_t later;
  } larger = {{.struct_size = sizeof larger, .enter = enter, .leave = leave}, 1};
  (void)unused;
  CHECK_FAILS(bowstring_callback_scope_set(NULL, &report), BOWSTRING_INVALID_ARGUMENT);
  scope.struct_size = FIRST_BowstringCallbackScope - 1;
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  scope.struct_size = sizeof scope;
  scope.held = alive_now;
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  scope.held = NULL;
  scope.enter = NULL;
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  scope.enter = enter;
  scope.leave = NULL;
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  scope.leave = leave;
  CHECK_FAILS(bowstring_callback_scope_set(&larger.known, &report), BOWSTRING_UNSUPPORTED);
  CHECK_FAILS(bowstring_callback_scope_set(&scope, NULL), BOWSTRING_OK);
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
  bowstring_callback_scope_close();
  CHECK_FAILS(bowstring_callback_scope_set(&scope, &report), BOWSTRING_INVALID_ARGUMENT);
}

static void test_close_without_scope(const void *unused) {
  struct ArrowDeviceArray raw;
  (void)unused;
  bowstring_callback_scope_close();
  build_inside(&raw, owner_release);
  depth = 1; /* Nobody enters for the event. */
  bowstring_device_array_release(&raw);
  CHECK_INT(owners_left(), 0);
  CHECK_INT(live_counts().leaked_callbacks, 0);
}

/* Owners whose callbacks are skipped are the test's again. */
static void release_skipped(size_t skipped) {
  BowstringLiveCounts counts = live_counts();
  CHECK_INT(counts.leaked_callbacks, skipped);
  CHECK_INT(owners_left(), skipped);
  CHECK(counts.arrays == 0 && counts.blocks == 0 && counts.buffers == 0);
  owners_let_go();
}

static void end_with_leaks(void) {
  owners_all_gone();
  exit(0);
}

static void test_closed(const void *unused) {
  struct ArrowDeviceArray raw;
  (void)unused;
  set_scope();
  build_inside(&raw, owner_inside);
  forget_counts();
  bowstring_callback_scope_close();
  bowstring_callback_scope_close();
  bowstring_device_array_release(&raw);
  CHECK(raw.array.release == NULL);
  balanced(0);
  release_skipped(5);
  end_with_leaks();
}

static void test_not_alive(const void *unused) {
  struct ArrowDeviceArray raw;
  (void)unused;
  set_scope();
  build_inside(&raw, owner_inside);
  forget_counts();
  is_alive = 0;
  bowstring_device_array_release(&raw);
  balanced(0);
  release_skipped(5);
  end_with_leaks();
}

/* ---- closing while callbacks run ---- */

static atomic_int inside, may_go, closed;

static void owner_waits(void *owner) {
  inside = 1;
  while (!may_go) {
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
  CHECK(!closed);
  owner_inside(owner);
}

static void *release_raw(void *raw) {
  bowstring_device_array_release(raw);
  return NULL;
}

static void *close_scope(void *unused) {
  bowstring_callback_scope_close();
  closed = 1;
  return unused;
}

static void pause_until(const atomic_int *flag) {
  struct timespec pause = {0, 1000000};
  while (!*flag) nanosleep(&pause, NULL);
}

static void test_close_waits(const void *unused) {
  static char bytes[4];
  BowstringOwnedBuffer memory = {bytes, 4, owner_new(NULL), owner_waits};
  const BowstringNode node = {1, 0, 0, 2};
  BowstringOwnedBuffer buffers[2] = {{NULL, 0, NULL, NULL}, memory};
  BowstringType *type = NULL;
  struct ArrowDeviceArray raw;
  pthread_t releasing, closing;
  struct timespec pause = {0, 50000000};
  (void)unused;
  set_scope();
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, NULL, &raw, &report));
  bowstring_type_release(type);
  CHECK_INT(pthread_create(&releasing, NULL, release_raw, &raw), 0);
  pause_until(&inside);
  CHECK_INT(pthread_create(&closing, NULL, close_scope, NULL), 0);
  nanosleep(&pause, NULL);
  CHECK(!closed);
  may_go = 1;
  CHECK_INT(pthread_join(releasing, NULL) | pthread_join(closing, NULL), 0);
  CHECK(closed);
  CHECK_INT(callbacks, 1);
  CHECK_INT(live_counts().leaked_callbacks, 0);
}

static void *race_one(void *buffer) {
  bowstring_buffer_release(buffer);
  return NULL;
}

/* ---- forks: the child has none of the threads that were inside a callback ---- */

/* A child that waits for ever is ended by its alarm, and so fails. */
static void close_in_child(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(10);
    bowstring_callback_scope_close();
    _exit(0);
  }
  int status = 0;
  CHECK_INT(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pid_t forked = -1;

static void owner_forks(void *owner) {
  forked = fork();
  CHECK(forked >= 0);
  owner_inside(owner);
}

static void test_forks(const void *unused) {
  static char bytes[1];
  BowstringOwnedBuffer waits = {bytes, 1, owner_new(NULL), owner_waits}, forks = {bytes, 1, owner_new(NULL), owner_forks};
  BowstringBuffer *waiting, *forking;
  pthread_t releasing;
  (void)unused;
  set_scope();
  CHECK_OK(bowstring_buffer_wrap(&waits, NULL, &waiting, &report));
  CHECK_OK(bowstring_buffer_wrap(&forks, NULL, &forking, &report));
  CHECK_INT(pthread_create(&releasing, NULL, race_one, waiting), 0);
  pause_until(&inside);
  close_in_child();
  bowstring_buffer_release(forking);
  if (forked == 0) {
    /* Out of the callback in the child as well, where nobody is inside now, and every later one is skipped. */
    alarm(10);
    bowstring_callback_scope_close();
    _exit(callbacks == 1 ? 0 : 1);
  }
  int status = 0;
  CHECK_INT(waitpid(forked, &status, 0), forked);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  may_go = 1;
  CHECK_INT(pthread_join(releasing, NULL), 0);
  CHECK_INT(callbacks, 2);
}

/* Every callback either ran before the scope was closed, or was skipped and counted. */
static atomic_int ran;

static void owner_ran(void *owner) {
  CHECK(depth > 0 && !closed);
  atomic_fetch_add(&ran, 1);
  owner_release(owner);
}

enum { RACERS = 6, RELEASES = 300 };
static BowstringBuffer *raced[RACERS][RELEASES];
static pthread_barrier_t ready;

static void *race(void *mine) {
  BowstringBuffer **buffers = mine;
  pthread_barrier_wait(&ready);
  for (int i = 0; i < RELEASES; i++) bowstring_buffer_release(buffers[i]);
  return NULL;
}

static void test_close_races(const void *unused) {
  static char bytes[1];
  pthread_t threads[RACERS];
  (void)unused;
  set_scope();
  for (int i = 0; i < RACERS; i++)
    for (int k = 0; k < RELEASES; k++) {
      BowstringOwnedBuffer memory = {bytes, 1, owner_new(NULL), owner_ran};
      CHECK_OK(bowstring_buffer_wrap(&memory, NULL, &raced[i][k], &report));
    }
  CHECK_INT(pthread_barrier_init(&ready, NULL, RACERS + 1), 0);
  for (int i = 0; i < RACERS; i++) CHECK_INT(pthread_create(&threads[i], NULL, race, raced[i]), 0);
  pthread_barrier_wait(&ready);
  close_scope(NULL);
  for (int i = 0; i < RACERS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
  CHECK_INT(ran + (int)live_counts().leaked_callbacks, RACERS * RELEASES);
  CHECK_INT(entered, left);
  CHECK_INT(entered, ran);
  release_skipped((size_t)(RACERS * RELEASES - ran));
  end_with_leaks();
}

int main(void) {
  alone(test_entered, NULL);
  alone(test_nested, NULL);
  alone(test_wrong_scopes, NULL);
  alone(test_close_without_scope, NULL);
  alone(test_closed, NULL);
  alone(test_not_alive, NULL);
  alone(test_close_waits, NULL);
  alone(test_forks, NULL);
  for (int i = 0; i < 20; i++) alone(test_close_races, NULL);
  CHECK_INT(alone_count(), 28);
  return check_end(85);
}
