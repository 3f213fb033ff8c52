/* Owners that are passed on: what was taken out of one array goes into the next, and neither memory nor events go before
 * the last that shows them. */
#include <string.h>

#include <bowstring.h>

#include "build.h"
#include "check.h"

static void *const event_handle = (void *)0x42;
static void *const memory = (void *)0x1000; /* on a device: never read */
static const BowstringNode four_numbers = {4, 0, 0, 2};

static int runs(struct owner *owner) { return atomic_load(&owner->runs); }

/* Memory whose owner is one of the library's own: a buffer. */
static BowstringOwnedBuffer wrapped(struct owner *owner) {
  BowstringOwnedBuffer given = {memory, 16, owner, owner_release};
  BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 0}};
  BowstringBuffer *buffer;
  CHECK_OK(bowstring_buffer_wrap(&given, &placement, &buffer, &report));
  CHECK_OK(bowstring_buffer_into_owned(&buffer, &given, &report));
  CHECK_INT(runs(owner), 0);
  return given;
}

static BowstringPlacement with_event(struct owner *event) {
  BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 0}};
  placement.event = event_handle;
  placement.event_ctx = event;
  placement.destroy_event = owner_destroy_event;
  return placement;
}

static void build(BowstringType *type, BowstringOwnedBuffer *numbers, BowstringPlacement *placement,
                  struct ArrowDeviceArray *out) {
  BowstringOwnedBuffer buffers[2] = {{NULL, 0, NULL, NULL}, *numbers};
  CHECK_OK(bowstring_device_array_from_buffers(type, &four_numbers, 1, buffers, 2, placement, out, &report));
}

/* Takes an exported array apart; the placement has the event by value, which the owner keeps. */
static BowstringPlacement apart(BowstringType *type, struct ArrowDeviceArray *raw, BowstringOwnedBuffer *numbers) {
  BowstringNode node;
  BowstringOwnedBuffer buffers[2];
  BowstringPlacement placement = {.struct_size = sizeof placement};
  BowstringArray *array;
  CHECK_OK(bowstring_array_import_typed(raw, type, &array, &report));
  CHECK_OK(bowstring_array_to_buffers(array, &node, 1, buffers, 2, &placement, &report));
  bowstring_array_release(array);
  *numbers = buffers[1];
  return placement;
}

/* An event that its owner keeps is still there while the next array shows it. */
static void test_event_is_shown_again(BowstringType *type) {
  struct owner *owner = owner_new(NULL), *event = owner_new(NULL);
  BowstringOwnedBuffer numbers = wrapped(owner);
  BowstringPlacement placement = with_event(event);
  struct ArrowDeviceArray raw;
  build(type, &numbers, &placement, &raw);
  for (int round = 0; round < 5; round++) {
    placement = apart(type, &raw, &numbers);
    CHECK_PTR(placement.event, event_handle);
    CHECK(placement.destroy_event == NULL);
    CHECK_INT(runs(event), 0);
    build(type, &numbers, &placement, &raw);
    CHECK_PTR(*(void **)raw.sync_event, event_handle);
    CHECK_INT(runs(event) + runs(owner), 0);
  }
  bowstring_device_array_release(&raw);
  CHECK_INT(runs(owner), 1);
  CHECK_INT(runs(event), 1);
  CHECK(atomic_load(&owner->turn) < atomic_load(&event->turn));
  owners_all_gone();
}

/* A buffer with an event of its own hands that event on with its owner. */
static void test_buffer_keeps_its_event(BowstringType *type) {
  struct owner *owner = owner_new(NULL), *event = owner_new(NULL);
  BowstringOwnedBuffer numbers = wrapped(owner);
  BowstringPlacement placement = with_event(event);
  BowstringBuffer *buffer;
  CHECK_OK(bowstring_buffer_wrap(&numbers, &placement, &buffer, &report));
  CHECK_OK(bowstring_buffer_into_owned(&buffer, &numbers, &report));
  CHECK_INT(runs(event), 0);
  BowstringPlacement shown = {.struct_size = sizeof shown, .device = {ARROW_DEVICE_CUDA, 0}, .event = event_handle};
  struct ArrowDeviceArray raw;
  build(type, &numbers, &shown, &raw);
  CHECK_INT(runs(event) + runs(owner), 0);
  bowstring_device_array_release(&raw);
  CHECK_INT(runs(event) + runs(owner), 2);
  owners_all_gone();
}

/* A new event in each round supersedes the one before: the old one goes, the memory stays, and nothing grows. */
static void test_new_events_grow_nothing(BowstringType *type) {
  enum { ROUNDS = 50000 };
  struct owner *owner = owner_new(NULL), *event = owner_new(NULL), *before = NULL;
  BowstringOwnedBuffer numbers = wrapped(owner);
  struct ArrowDeviceArray raw;
  for (int round = 0; round < ROUNDS; round++) {
    BowstringPlacement placement = with_event(event);
    placement.event = (void *)(uintptr_t)(0x100 + round);
    build(type, &numbers, &placement, &raw);
    if (before != NULL) CHECK_INT(runs(before), 1);
    apart(type, &raw, &numbers);
    CHECK_INT(runs(event) + runs(owner), 0);
    before = event;
    event = owner_new(NULL);
  }
  numbers.release_owner(numbers.owner);
  CHECK_INT(runs(owner), 1);
  CHECK_INT(runs(before), 1);
  owner_release(event);
  owners_all_gone();
}

/* Without memory there is nobody to keep an event, so none is given. */
static void test_no_memory_no_event(BowstringType *type) {
  struct owner *event = owner_new(NULL);
  BowstringPlacement placement = with_event(event);
  BowstringNode node = {0, 0, 0, 2};
  BowstringOwnedBuffer buffers[2];
  memset(buffers, 0, sizeof buffers);
  struct ArrowDeviceArray raw;
  CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, &placement, &raw, &report));
  placement = apart(type, &raw, &buffers[1]);
  CHECK_PTR(placement.event, NULL);
  CHECK(buffers[1].release_owner == NULL);
  CHECK_INT(runs(event), 1);
  owners_all_gone();
}

/* Sizes that the library built are in CPU memory, on every round again. */
static void test_built_sizes_are_built_again(void) {
  BowstringType *type;
  CHECK_OK(bowstring_type_parse("utf8_view", &type, &report));
  BowstringNode node = {1, 0, 0, 4};
  BowstringOwnedBuffer buffers[4] = {{.data = NULL}, {.data = memory, .size_bytes = 16}, {.data = memory, .size_bytes = 5}, {.data = NULL}};
  BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 0}};
  for (int round = 0; round < 3; round++) {
    struct ArrowDeviceArray raw;
    BowstringArray *array;
    BowstringBufferInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 4, &placement, &raw, &report));
    CHECK_INT(*(const int64_t *)raw.array.buffers[3], 5);
    CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
    CHECK_OK(bowstring_array_buffer_info(array, 3, &info, &report));
    CHECK_INT(info.device.type, ARROW_DEVICE_CPU);
    CHECK_INT(info.size_bytes, 8);
    CHECK_OK(bowstring_array_to_buffers(array, &node, 1, buffers, 4, &placement, &report));
    CHECK_PTR(buffers[3].data, NULL);
    bowstring_array_release(array);
  }
  for (int k = 0; k < 4; k++)
    if (buffers[k].release_owner != NULL) buffers[k].release_owner(buffers[k].owner);
  bowstring_type_release(type);
}

int main(void) {
  BowstringType *type;
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  test_event_is_shown_again(type);
  test_buffer_keeps_its_event(type);
  test_new_events_grow_nothing(type);
  test_no_memory_no_event(type);
  test_built_sizes_are_built_again();
  bowstring_type_release(type);
  BowstringLiveCounts live = {.struct_size = sizeof live};
  bowstring_live_counts(&live);
  CHECK_INT(live.types + live.arrays + live.buffers + live.blocks, 0);
  return check_end(100000);
}
