/* Handing the same array back and forth: our own export is recognised, and nothing grows. */
#include "allocations.h"
#include "build.h"
#include "check.h"

#include <string.h>

enum { ROUNDS = 1000 };

static const char nested[] =
    "struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>";

struct state {
  BowstringLiveCounts counts;
  long allocations;
};

static struct state state_now(void) { return (struct state){live_counts(), allocations_live()}; }

static void same_state(const struct state *before) {
  live_as_before(&before->counts);
  CHECK_INT(allocations_live(), before->allocations);
}

static BowstringArray *reimport(BowstringArray *array) {
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *again = NULL;
  CHECK_OK(bowstring_array_export(array, &raw, &schema, &report));
  bowstring_array_release(array);
  CHECK_OK(bowstring_array_import(&raw, &schema, &again, &report));
  CHECK(raw.array.release == NULL && schema.release == NULL);
  return again;
}

/* Takes an array apart and builds it again from the very same parts. */
static BowstringArray *rebuild(BowstringArray *array, struct ArrowDeviceArray *raw) {
  BowstringNode nodes[MAX_NODES];
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement = {.struct_size = sizeof placement};
  size_t n_nodes = 0, n_buffers = 0;
  BowstringArray *again = NULL;
  CHECK_OK(bowstring_array_count(array, &n_nodes, &n_buffers, &report));
  CHECK(n_nodes <= MAX_NODES && n_buffers <= MAX_BUFFERS);
  CHECK_OK(bowstring_array_to_buffers(array, nodes, n_nodes, buffers, n_buffers, &placement, &report));
  BowstringType *type = bowstring_type_retain(bowstring_array_type(array));
  bowstring_array_release(array);
  CHECK_OK(bowstring_device_array_from_buffers(type, nodes, n_nodes, buffers, n_buffers, &placement, raw, &report));
  CHECK_OK(bowstring_array_import_typed(raw, type, &again, &report));
  bowstring_type_release(type);
  return again;
}

static void test_nothing_grows(const struct sample *sample, int rounds, int foreign) {
  struct state before = state_now(), steady = before;
  struct ArrowDeviceArray raw;
  check_about("%s, foreign %d", sample->text, foreign);
  BowstringArray *array = foreign ? sample_foreign(sample) : sample_import(sample);
  for (int round = 0; round < rounds; round++) {
    array = rebuild(reimport(array), &raw);
    if (round == 2) steady = state_now();
    if (round > 2) same_state(&steady);
  }
  for (int round = 0; round < rounds; round++) {
    array = reimport(array);
    if (round == 2) steady = state_now();
    if (round > 2) same_state(&steady);
  }
  for (int i = 0; i < sample->n_buffers; i++) {
    BowstringBufferInfo info = {.struct_size = sizeof info};
    if (!sample->buffers[i].data) continue;
    CHECK_OK(bowstring_array_buffer_info(array, (size_t)i, &info, &report));
    CHECK_MEM(info.data, sample->buffers[i].data, (size_t)sample->buffers[i].size);
    CHECK(owners_left() > 0);
  }
  bowstring_array_release(array);
  same_state(&before);
  owners_all_gone();
}

/* A buffer taken out after any number of round trips keeps its own owner and no other. */
static void test_own_owner_only(int round_trips) {
  const struct sample *sample = sample_named(nested);
  for (int buffer = 0; buffer < sample->n_buffers; buffer++) {
    for (int rebuilt = 0; rebuilt < 2; rebuilt++) {
      BowstringOwnedBuffer buffers[MAX_BUFFERS];
      struct owner *owners[MAX_BUFFERS], *event = owner_new(NULL);
      BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 0}};
      struct ArrowDeviceArray raw;
      BowstringArray *array = NULL;
      BowstringBuffer *kept = NULL;
      check_about("buffer %d after %d round trips, rebuilt %d", buffer, round_trips, rebuilt);
      BowstringType *type = sample_type(sample);
      sample_buffers(sample, buffers);
      for (int i = 0; i < sample->n_buffers; i++) owners[i] = buffers[i].owner;
      placement.event = &event;
      placement.event_ctx = event;
      placement.destroy_event = owner_destroy_event;
      CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                                   (size_t)sample->n_buffers, &placement, &raw, &report));
      CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
      for (int i = 0; i < round_trips; i++) array = rebuilt ? rebuild(reimport(array), &raw) : reimport(array);
      CHECK_OK(bowstring_array_buffer(array, (size_t)buffer, &kept, &report));
      BowstringBufferMemory memory = {.struct_size = sizeof memory};
      CHECK_OK(bowstring_buffer_info(kept, &memory, &report));
      bowstring_array_release(array);
      for (int i = 0; i < sample->n_buffers; i++) {
        int may_be_gone = rebuilt && !sample->buffers[buffer].data;
        if (!may_be_gone) CHECK_INT(owners[i]->runs, i != buffer);
      }
      if (sample->buffers[buffer].data) {
        CHECK_INT(event->runs, 0);
        CHECK_PTR(*(void **)memory.sync_event, &event);
      }
      bowstring_buffer_release(kept);
      bowstring_type_release(type);
      owners_all_gone();
    }
  }
}

/* Another producer's array is kept whole by each of its buffers, through any number of hands. */
static void test_foreign(void) {
  const struct sample *sample = sample_named(nested);
  for (int buffer = 0; buffer < sample->n_buffers; buffer++) {
    BowstringBuffer *kept = NULL;
    check_about("buffer %d", buffer);
    BowstringArray *array = sample_foreign(sample);
    CHECK_INT(owners_left(), 1); /* The schema was copied and released. */
    for (int i = 0; i < 5; i++) array = reimport(array);
    CHECK_OK(bowstring_array_buffer(array, (size_t)buffer, &kept, &report));
    bowstring_array_release(array);
    CHECK_INT(owners_left(), 1);
    bowstring_buffer_release(kept);
    owners_all_gone();
  }
}

/* One export's parts, changed by a consumer, still come back whole. */
static void test_changed_exports(void) {
  const struct sample *sample = sample_named("struct<a: int32, b: utf8>");
  struct state before = state_now();
  BowstringType *type = sample_type(sample);
  for (int change = 0; change < 4; change++) {
    struct ArrowDeviceArray raw, other;
    BowstringArray *array = NULL;
    check_about("change %d", change);
    sample_built(sample, type, &raw);
    sample_built(sample, type, &other);
    struct ArrowArray *child = raw.array.children[1];
    if (change == 0) {
      /* The same column of another export, in the place of a column that is released. */
      child->release(child);
      *child = *other.array.children[1];
      other.array.children[1]->release = NULL;
    } else if (change == 1) {
      child->offset = 1;
      child->length = 3;
    } else if (change == 2) {
      child->null_count = -1;
    } else {
      struct ArrowArray *pointer = raw.array.children[1];
      raw.array.children[1] = other.array.children[1];
      other.array.children[1] = pointer;
    }
    if (change != 3) other.array.release(&other.array);
    CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
    BowstringNodeInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_node_info(array, 2, &info, &report));
    CHECK_INT(info.offset, change == 1);
    CHECK_INT(info.length, 3);
    array = reimport(array);
    BowstringBuffer *kept = NULL;
    CHECK_OK(bowstring_array_buffer(array, 5, &kept, &report));
    bowstring_array_release(array);
    if (change == 3) other.array.release(&other.array);
    char text[4];
    CHECK_OK(bowstring_buffer_read(kept, 0, text, 4, NULL, &report));
    CHECK_MEM(text, "abcd", 4);
    bowstring_buffer_release(kept);
    owners_all_gone();
  }
  bowstring_type_release(type);
  same_state(&before);
}

int main(void) {
  allocations_watch();
  test_nothing_grows(sample_named(nested), ROUNDS, 0);
  test_nothing_grows(sample_named(nested), ROUNDS, 1);
  for (int i = 0; i < n_samples; i++)
    for (int foreign = 0; foreign < 2; foreign++) test_nothing_grows(&samples[i], 6, foreign);
  for (int round_trips = 0; round_trips < 4; round_trips++) test_own_owner_only(round_trips);
  test_foreign();
  test_changed_exports();
  return check_end(85000);
}
