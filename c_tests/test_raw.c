/* Moving, releasing, making and freeing the five raw structs. */
#include "build.h"
#include "check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int released;

static int no_schema(struct ArrowArrayStream *self, struct ArrowSchema *out) { return (void)self, (void)out, 5; }
static int no_next(struct ArrowArrayStream *self, struct ArrowArray *out) { return (void)self, (void)out, 5; }
static const char *no_error(struct ArrowArrayStream *self) { return (void)self, NULL; }
static int no_device_schema(struct ArrowDeviceArrayStream *self, struct ArrowSchema *out) {
  return (void)self, (void)out, 5;
}
static int no_device_next(struct ArrowDeviceArrayStream *self, struct ArrowDeviceArray *out) {
  return (void)self, (void)out, 5;
}
static const char *no_device_error(struct ArrowDeviceArrayStream *self) { return (void)self, NULL; }

/* Defines a test of one raw struct. `release` is its member, `live` writes a live one whose release counts. */
#define RAW_TEST(raw, Type, base, member)                                                             \
  static void release_##raw(struct base *self) {                                                      \
    released++;                                                                                       \
    CHECK_PTR(self->private_data, &released);                                                         \
    self->release = NULL;                                                                             \
  }                                                                                                   \
  static void test_##raw(const struct Type *live) {                                                   \
    struct Type from, to, copy;                                                                       \
    check_about(#Type);                                                                               \
    released = 0;                                                                                     \
                                                                                                      \
    /* The destination is never read and is written whole. */                                         \
    from = *live;                                                                                     \
    memset(&to, 0xAA, sizeof to);                                                                     \
    CHECK(!bowstring_##raw##_is_released(&from));                                                     \
    bowstring_##raw##_move(&from, &to);                                                               \
    CHECK_MEM(&to, live, sizeof to);                                                                  \
    CHECK(bowstring_##raw##_is_released(&from) && from member.release == NULL);                       \
    CHECK_INT(released, 0);                                                                           \
                                                                                                      \
    /* A struct moved onto itself, or onto or from nothing, stays as it was. */                       \
    bowstring_##raw##_move(&to, &to);                                                                 \
    bowstring_##raw##_move(&to, NULL);                                                                \
    bowstring_##raw##_move(NULL, &to);                                                                \
    bowstring_##raw##_move(NULL, NULL);                                                               \
    CHECK_MEM(&to, live, sizeof to);                                                                  \
    CHECK_INT(released, 0);                                                                           \
                                                                                                      \
    /* What was moved out has nothing to move on: the destination is released, whatever was there. */ \
    memset(&copy, 0xAA, sizeof copy);                                                                 \
    bowstring_##raw##_move(&from, &copy);                                                             \
    CHECK(bowstring_##raw##_is_released(&copy) && bowstring_##raw##_is_released(&from));              \
                                                                                                      \
    /* It is released where it lies now, once, however often that is asked for. */                    \
    copy = to;                                                                                        \
    memset(&to, 0xFF, sizeof to);                                                                     \
    bowstring_##raw##_release(&copy);                                                                 \
    CHECK_INT(released, 1);                                                                           \
    CHECK(bowstring_##raw##_is_released(&copy));                                                      \
    bowstring_##raw##_release(&copy);                                                                 \
    bowstring_##raw##_release(&from);                                                                 \
    bowstring_##raw##_release(NULL);                                                                  \
    CHECK_INT(released, 1);                                                                           \
    CHECK(bowstring_##raw##_is_released(NULL));                                                       \
                                                                                                      \
    /* On the heap. */                                                                                \
    struct Type *made = bowstring_##raw##_new();                                                      \
    CHECK(made != NULL && bowstring_##raw##_is_released(made));                                       \
    bowstring_##raw##_free(made);                                                                     \
    CHECK_INT(released, 1);                                                                           \
    made = bowstring_##raw##_new();                                                                   \
    CHECK(made != NULL);                                                                              \
    from = *live;                                                                                     \
    bowstring_##raw##_move(&from, made);                                                              \
    bowstring_##raw##_free(made);                                                                     \
    CHECK_INT(released, 2);                                                                           \
    made = bowstring_##raw##_new();                                                                   \
    CHECK(made != NULL);                                                                              \
    *made = *live;                                                                                    \
    bowstring_##raw##_release(made);                                                                  \
    CHECK_INT(released, 3);                                                                           \
    bowstring_##raw##_free(made);                                                                     \
    bowstring_##raw##_free(NULL);                                                                     \
    CHECK_INT(released, 3);                                                                           \
  }

#define ITSELF
RAW_TEST(schema, ArrowSchema, ArrowSchema, ITSELF)
RAW_TEST(host_array, ArrowArray, ArrowArray, ITSELF)
RAW_TEST(device_array, ArrowDeviceArray, ArrowArray, .array)
RAW_TEST(host_stream, ArrowArrayStream, ArrowArrayStream, ITSELF)
RAW_TEST(device_stream, ArrowDeviceArrayStream, ArrowDeviceArrayStream, ITSELF)

/* Exports of the library behave like anybody's. */
static void test_own_exports(void) {
  BowstringLiveCounts before = live_counts();
  for (int i = 0; i < n_samples; i++) {
    struct ArrowDeviceArray raw, moved;
    struct ArrowSchema schema, moved_schema;
    check_about("%s", samples[i].text);
    BowstringArray *array = sample_import(&samples[i]);
    CHECK_OK(bowstring_array_export(array, &raw, &schema, &report));
    bowstring_array_release(array);
    memset(&moved, 0xAA, sizeof moved);
    memset(&moved_schema, 0xAA, sizeof moved_schema);
    bowstring_device_array_move(&raw, &moved);
    bowstring_schema_move(&schema, &moved_schema);
    memset(&raw, 0xFF, sizeof raw);
    memset(&schema, 0xFF, sizeof schema);
    if (samples[i].n_buffers > 0) CHECK(owners_left() > 0);
    bowstring_device_array_release(&moved);
    bowstring_device_array_release(&moved);
    bowstring_schema_release(&moved_schema);
    bowstring_schema_release(&moved_schema);
    owners_all_gone();
  }
  live_as_before(&before);
}

int main(void) {
  /* Every member has a value of its own, so that a member that was not moved is seen. */
  struct ArrowSchema schema = {
      "i", "name", "metadata", 2, 3, (struct ArrowSchema **)4, (struct ArrowSchema *)5, release_schema, &released};
  struct ArrowArray array = {
      1, 2, 3, 4, 5, (const void **)6, (struct ArrowArray **)7, (struct ArrowArray *)8, release_host_array, &released};
  struct ArrowDeviceArray device_array;
  memset(&device_array, 0, sizeof device_array);
  device_array.array = array;
  device_array.array.release = release_device_array;
  device_array.device_id = 9;
  device_array.device_type = ARROW_DEVICE_CUDA;
  device_array.sync_event = &released;
  device_array.reserved[2] = 11;
  struct ArrowArrayStream stream = {no_schema, no_next, no_error, release_host_stream, &released};
  struct ArrowDeviceArrayStream device_stream;
  memset(&device_stream, 0, sizeof device_stream);
  device_stream.device_type = ARROW_DEVICE_CUDA;
  device_stream.get_schema = no_device_schema;
  device_stream.get_next = no_device_next;
  device_stream.get_last_error = no_device_error;
  device_stream.release = release_device_stream;
  device_stream.private_data = &released;

  test_schema(&schema);
  test_host_array(&array);
  test_device_array(&device_array);
  test_host_stream(&stream);
  test_device_stream(&device_stream);
  test_own_exports();
  return check_end(300);
}
