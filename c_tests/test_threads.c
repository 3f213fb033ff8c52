/* Many threads on one array, owners let go on other threads than their makers', and at the end of the process. */
#define _GNU_SOURCE
#include "build.h"
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 2000 };

static const char nested[] =
    "struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>";

static void start(pthread_t *thread, void *(*run)(void *), void *argument) {
  CHECK_INT(pthread_create(thread, NULL, run, argument), 0);
}

static void finish(pthread_t thread) { CHECK_INT(pthread_join(thread, NULL), 0); }

/* ---- one array, eight threads ---- */

static BowstringArray *shared;
static pthread_barrier_t ready;

static void *use_shared(void *number) {
  BowstringType *type = bowstring_type_retain(bowstring_array_type(shared));
  unsigned seed = *(unsigned *)number * 7919u + 1u;
  pthread_barrier_wait(&ready);
  for (int round = 0; round < ROUNDS; round++) {
    BowstringArray *mine = bowstring_array_retain(shared), *made = NULL;
    BowstringBuffer *buffer = NULL;
    struct ArrowDeviceArray raw;
    struct ArrowSchema schema;
    int64_t nulls = -1;
    seed = seed * 1103515245u + 12345u;
    switch (seed >> 16 & 7) {
      case 0:
        CHECK_OK(bowstring_array_export(mine, &raw, &schema, &report));
        bowstring_array_release(mine);
        CHECK_OK(bowstring_array_import(&raw, &schema, &mine, &report));
        break;
      case 1:
        CHECK_OK(bowstring_array_export(mine, &raw, NULL, &report));
        bowstring_device_array_release(&raw);
        break;
      case 2: CHECK_OK(bowstring_array_child(mine, 1, &made, &report)); break;
      case 3: CHECK_OK(bowstring_array_slice(mine, 1, 2, &made, &report)); break;
      case 4:
        CHECK_OK(bowstring_array_buffer(mine, 2, &buffer, &report));
        buffer = bowstring_buffer_retain(buffer);
        bowstring_buffer_release(buffer);
        break;
      case 5:
        CHECK_OK(bowstring_array_slice(mine, 0, 2, &made, &report));
        CHECK_OK(bowstring_array_null_count(made, NULL, &nulls, &report));
        CHECK_INT(nulls, 0);
        break;
      case 6:
        CHECK_OK(bowstring_type_export(type, &schema, &report));
        bowstring_schema_release(&schema);
        break;
      default: CHECK_OK(bowstring_array_resolve_sizes(mine, NULL, &made, &report)); break;
    }
    bowstring_buffer_release(buffer);
    bowstring_array_release(made);
    bowstring_array_release(mine);
  }
  bowstring_type_release(type);
  return NULL;
}

static void test_shared(void) {
  pthread_t threads[THREADS];
  unsigned numbers[THREADS];
  check_about("shared");
  shared = sample_import(sample_named(nested));
  CHECK_INT(pthread_barrier_init(&ready, NULL, THREADS), 0);
  for (unsigned i = 0; i < THREADS; i++) {
    numbers[i] = i;
    start(&threads[i], use_shared, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) finish(threads[i]);
  pthread_barrier_destroy(&ready);
  CHECK(owners_left() > 0);
  bowstring_array_release(shared);
  owners_all_gone();
}

/* ---- the last one lets go, whoever that is ---- */

struct part {
  struct ArrowArray moved;
  BowstringBuffer *buffer;
  BowstringArray *handle;
};

static void *release_part(void *argument) {
  struct part *part = argument;
  pthread_barrier_wait(&ready);
  bowstring_host_array_release(&part->moved);
  bowstring_buffer_release(part->buffer);
  bowstring_array_release(part->handle);
  return NULL;
}

/* Root, moved-out child, buffers and handles of one tree end at the same time on different threads. */
static void test_last_holders(void) {
  for (int round = 0; round < 100; round++) {
    struct part parts[THREADS];
    pthread_t threads[THREADS];
    struct ArrowDeviceArray raw, child_of;
    check_about("last holders, round %d", round);
    memset(parts, 0, sizeof parts);
    BowstringArray *array = sample_import(sample_named(nested));
    CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
    CHECK_OK(bowstring_array_export(array, &child_of, NULL, &report));
    parts[0].moved = raw.array;
    parts[1].moved = *child_of.array.children[1];
    child_of.array.children[1]->release = NULL;
    parts[2].moved = child_of.array;
    parts[3].handle = array;
    for (size_t i = 4; i < THREADS; i++) CHECK_OK(bowstring_array_buffer(array, i, &parts[i].buffer, &report));
    CHECK_INT(pthread_barrier_init(&ready, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) start(&threads[i], release_part, &parts[i]);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    pthread_barrier_destroy(&ready);
    owners_all_gone();
  }
}

/* ---- makers that are gone ---- */

static void *make_and_end(void *out) {
  BowstringArray *array = sample_import(sample_named(nested));
  struct part *part = out;
  struct ArrowDeviceArray raw;
  CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
  part->moved = raw.array;
  CHECK_OK(bowstring_array_buffer(array, 2, &part->buffer, &report));
  part->handle = array;
  return NULL;
}

static void test_makers_gone(void) {
  for (int order = 0; order < 3; order++) {
    struct part part;
    pthread_t thread;
    int32_t value = 0;
    check_about("maker gone, order %d", order);
    start(&thread, make_and_end, &part);
    finish(thread);
    for (int i = 0; i < 3; i++) {
      switch ((order + i) % 3) {
        case 0: bowstring_host_array_release(&part.moved); break;
        case 1: bowstring_array_release(part.handle); break;
        default:
          CHECK_OK(bowstring_buffer_read(part.buffer, 4, &value, 4, NULL, &report));
          CHECK_INT(value, 2);
          bowstring_buffer_release(part.buffer);
          break;
      }
      CHECK_INT(owners_left() > 0, i < 2);
    }
    owners_all_gone();
  }
}

/* ---- owners that call the library ---- */

static struct ArrowDeviceArray inner;
static int depth;

/* Frees another export, and makes and frees a third, while the first is being let go. */
static void release_reentrant(void *owner) {
  bowstring_device_array_release(&inner);
  if (depth++ == 0) {
    BowstringArray *array = sample_import(sample_named(nested));
    struct ArrowDeviceArray raw;
    CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
    bowstring_array_release(array);
    bowstring_device_array_release(&raw);
  }
  owner_release(owner);
}

static void test_reentrant(void) {
  for (int on_whole = 0; on_whole < 2; on_whole++) {
    const struct sample *sample = sample_named(nested);
    BowstringOwnedBuffer buffers[MAX_BUFFERS];
    BowstringPlacement placement = {.struct_size = sizeof placement};
    struct ArrowDeviceArray raw;
    BowstringType *type = sample_type(sample);
    check_about("reentrant, %d", on_whole);
    depth = 0;
    sample_built(sample, type, &inner);
    sample_buffers(sample, buffers);
    for (int i = 0; i < sample->n_buffers && !on_whole; i++) buffers[i].release_owner = release_reentrant;
    if (on_whole) {
      placement.owner = owner_new(NULL);
      placement.release_owner = release_reentrant;
    }
    CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                                 (size_t)sample->n_buffers, &placement, &raw, &report));
    bowstring_device_array_release(&raw);
    CHECK(depth > 0);
    CHECK(inner.array.release == NULL);
    bowstring_type_release(type);
    owners_all_gone();
  }
}

/* ---- chains ---- */

/* Arrays made of arrays, more than anybody would stack, end without needing as much of the thread's stack. */
static void *let_chain_go(void *array) {
  bowstring_array_release(array);
  return NULL;
}

static void test_chain(void) {
  check_about("chain");
  BowstringArray *array = sample_import(sample_named("int32"));
  for (int i = 0; i < 100000; i++) {
    BowstringArray *next = NULL;
    CHECK_OK(bowstring_array_slice(array, 0, 5, &next, &report));
    bowstring_array_release(array);
    CHECK_OK(bowstring_array_resolve_sizes(next, NULL, &array, &report));
    bowstring_array_release(next);
  }
  pthread_t thread;
  pthread_attr_t small;
  CHECK_INT(pthread_attr_init(&small), 0);
  CHECK_INT(pthread_attr_setstacksize(&small, 1 << 18), 0);
  CHECK_INT(pthread_create(&thread, &small, let_chain_go, array), 0);
  finish(thread);
  pthread_attr_destroy(&small);
  owners_all_gone();
}

/* ---- the end of the process ---- */

static struct ArrowDeviceArray left_over;
static BowstringLiveCounts at_start;

static void release_at_exit(void) {
  bowstring_device_array_release(&left_over);
  owners_all_gone();
  live_as_before(&at_start);
}

int main(void) {
  at_start = live_counts();
  CHECK_INT(atexit(release_at_exit), 0);
  test_shared();
  test_last_holders();
  test_makers_gone();
  test_reentrant();
  test_chain();
  live_as_before(&at_start);
  BowstringArray *array = sample_import(sample_named(nested));
  CHECK_OK(bowstring_array_export(array, &left_over, NULL, &report));
  bowstring_array_release(array);
  return check_end(100000);
}
