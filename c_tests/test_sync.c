/* Events that are waited on before memory is read: who shows them, who keeps them, and who refuses to read without. */
#include "build.h"
#include "check.h"

#include <string.h>

static char handle;
static const BowstringSync none = {BOWSTRING_SYNC_NONE, 0, NULL}, queue = {BOWSTRING_SYNC_QUEUE, 0, NULL};
static const BowstringSync host = {BOWSTRING_SYNC_HOST, 0, NULL}, library = {BOWSTRING_SYNC_LIBRARY, 0, NULL};
static const BowstringSync unknown = {7, 0, NULL};
static const BowstringSync *const modes[] = {NULL, &none, &queue, &host, &library, &unknown};

/* What a call that would read answers without a driver; NULL and NONE do not wait. */
static BowstringStatus answer(int mode, int has_event) {
  if (modes[mode] == &unknown) return BOWSTRING_INVALID_ARGUMENT;
  return has_event && mode < 2 ? BOWSTRING_SYNC_REQUIRED : BOWSTRING_DEVICE_UNAVAILABLE;
}

static BowstringArray *on_device(int is_foreign, void **event_cell) {
  const struct sample *sample = sample_named("utf8");
  struct ArrowDeviceArray raw;
  BowstringArray *array = NULL;
  BowstringType *type = sample_type(sample);
  if (is_foreign) {
    sample_array(sample, &raw);
    raw.array.null_count = -1;
    raw.array.buffers[0] = device_copy("\3", 1);
    raw.array.buffers[1] = device_copy(sample->buffers[1].data, (size_t)sample->buffers[1].size);
    raw.array.buffers[2] = device_copy(sample->buffers[2].data, (size_t)sample->buffers[2].size);
    raw.device_type = ARROW_DEVICE_CUDA;
    raw.device_id = 2;
    raw.sync_event = event_cell;
  } else {
    BowstringOwnedBuffer buffers[3];
    BowstringNode node = {2, -1, 0, 3};
    BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 2}};
    sample_device_buffers(sample, buffers);
    buffers[0].data = device_copy("\3", 1);
    buffers[0].size_bytes = 1;
    if (event_cell) {
      placement.event = *event_cell;
      placement.event_ctx = owner_new(NULL);
      placement.destroy_event = owner_destroy_event;
    }
    CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 3, &placement, &raw, &report));
  }
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  bowstring_type_release(type);
  return array;
}

static void test_array(int is_foreign, int has_event) {
  void *cell = &handle, *event = NULL;
  BowstringDevice device;
  BowstringArray *array = on_device(is_foreign, has_event ? &cell : NULL), *part = NULL;
  CHECK_OK(bowstring_array_device(array, &device, &event, &report));
  CHECK_INT(device.type, ARROW_DEVICE_CUDA);
  CHECK_INT(device.id, 2);
  CHECK_INT(event != NULL, has_event);
  if (has_event) CHECK_PTR(*(void **)event, &handle);
  if (has_event && is_foreign) CHECK_PTR(event, &cell);

  for (int mode = 0; mode < 6; mode++) {
    struct ArrowArray out;
    BowstringBuffer *buffer = NULL;
    int64_t nulls = 5;
    char copy[4];
    BowstringStatus expected = answer(mode, has_event);
    check_about("foreign %d, event %d, mode %d", is_foreign, has_event, mode);
    CHECK_FAILS(bowstring_array_null_count(array, modes[mode], &nulls, &report), expected);
    CHECK_INT(nulls, -1);
    part = (BowstringArray *)8;
    if (!is_foreign && !has_event && expected == BOWSTRING_DEVICE_UNAVAILABLE) {
      /* Its maker said how large everything is, so nothing is read. */
      CHECK_OK(bowstring_array_resolve_sizes(array, modes[mode], &part, &report));
      bowstring_array_release(part);
    } else {
      CHECK_FAILS(bowstring_array_resolve_sizes(array, modes[mode], &part, &report), expected);
      CHECK_PTR(part, NULL);
    }
    memset(&out, 0xAA, sizeof out);
    CHECK_FAILS(bowstring_array_export_host(array, modes[mode], &out, NULL, &report), expected);
    CHECK(out.release == NULL);
    CHECK_OK(bowstring_array_buffer(array, 2, &buffer, &report));
    CHECK_FAILS(bowstring_buffer_read(buffer, 0, copy, 4, modes[mode], &report), expected);
    BowstringBufferMemory memory = {.struct_size = sizeof memory};
    CHECK_OK(bowstring_buffer_info(buffer, &memory, &report));
    CHECK_INT(memory.sync_event != NULL, has_event);
    if (has_event) CHECK_PTR(*(void **)memory.sync_event, &handle);
    bowstring_buffer_release(buffer);
  }

  /* What does not read does not wait, and goes out with the event. */
  struct ArrowDeviceArray out;
  CHECK_OK(bowstring_array_slice(array, 1, 1, &part, &report));
  CHECK_OK(bowstring_array_export(part, &out, NULL, &report));
  bowstring_array_release(part);
  CHECK_INT(out.device_id, 2);
  CHECK_INT(out.array.null_count, -1);
  CHECK_INT(out.sync_event != NULL, has_event);
  bowstring_array_release(array);
  if (has_event) CHECK_PTR(*(void **)out.sync_event, &handle);
  CHECK(owners_left() > 0);
  bowstring_device_array_release(&out);
  owners_all_gone();
  device_free_all();
}

/* In CPU memory there is nothing to wait for, however one asks. */
static void test_cpu(void) {
  BowstringArray *array = sample_import(sample_named("utf8")), *part = NULL;
  for (int mode = 0; mode < 5; mode++) {
    struct ArrowArray out;
    BowstringBuffer *buffer = NULL;
    int64_t nulls = 5;
    char copy[4];
    check_about("CPU, mode %d", mode);
    CHECK_OK(bowstring_array_null_count(array, modes[mode], &nulls, &report));
    CHECK_INT(nulls, 0);
    CHECK_OK(bowstring_array_resolve_sizes(array, modes[mode], &part, &report));
    bowstring_array_release(part);
    CHECK_OK(bowstring_array_export_host(array, modes[mode], &out, NULL, &report));
    bowstring_host_array_release(&out);
    CHECK_OK(bowstring_array_buffer(array, 2, &buffer, &report));
    CHECK_OK(bowstring_buffer_read(buffer, 0, copy, 4, modes[mode], &report));
    CHECK_MEM(copy, "abcd", 4);
    bowstring_buffer_release(buffer);
  }
  bowstring_array_release(array);
  owners_all_gone();
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  for (int is_foreign = 0; is_foreign < 2; is_foreign++)
    for (int has_event = 0; has_event < 2; has_event++) test_array(is_foreign, has_event);
  test_cpu();
  live_as_before(&before);
  return check_end(300);
}
