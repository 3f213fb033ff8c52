/* Exports that come back changed below their root: the structs there lie in the library's block, and a consumer wrote to
 * them all the same. What the structs say now counts. */
#include <string.h>

#include <bowstring.h>

#include "build.h"
#include "check.h"

static const int32_t list_offsets[] = {0, 4, 10};
static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const int32_t others[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

static BowstringType *list_type(void) {
  BowstringType *type;
  CHECK_OK(bowstring_type_parse("list<int32>", &type, &report));
  return type;
}

/* An export of an array that was built, or that one as the builder gave it. */
static struct ArrowDeviceArray exported(BowstringType *type, int is_built) {
  const BowstringNode nodes[] = {{2, 0, 0, 2}, {10, 0, 0, 2}};
  BowstringOwnedBuffer buffers[] = {
      {.data = NULL},
      {list_offsets, sizeof list_offsets, owner_new(NULL), owner_release},
      {.data = NULL},
      {numbers, sizeof numbers, owner_new(NULL), owner_release},
  };
  struct ArrowDeviceArray raw;
  CHECK_OK(bowstring_device_array_from_buffers(type, nodes, 2, buffers, 4, NULL, &raw, &report));
  if (is_built) return raw;
  BowstringArray *array;
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
  bowstring_array_release(array);
  return raw;
}

static void check_child(BowstringArray *array, int64_t length, int64_t offset, int64_t nulls, const void *data) {
  BowstringNodeInfo node = {.struct_size = sizeof node};
  BowstringBufferInfo buffer = {.struct_size = sizeof buffer};
  CHECK_OK(bowstring_array_node_info(array, 1, &node, &report));
  CHECK_INT(node.length, length);
  CHECK_INT(node.offset, offset);
  CHECK_INT(node.null_count, nulls);
  CHECK_OK(bowstring_array_buffer_info(array, 3, &buffer, &report));
  CHECK_PTR(buffer.data, data);
}

static void test_numbers(int is_built) {
  BowstringType *type = list_type();
  struct ArrowDeviceArray raw = exported(type, is_built);
  raw.array.length = 1;
  raw.array.children[0]->offset = 2;
  raw.array.children[0]->length = 8;
  BowstringArray *array;
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  check_child(array, 8, 2, 0, numbers);
  bowstring_array_release(array);
  bowstring_type_release(type);
  owners_all_gone();
}

static void test_exchanged_list(int is_built) {
  BowstringType *type = list_type();
  struct ArrowDeviceArray raw = exported(type, is_built);
  const void *list[] = {NULL, others};
  raw.array.children[0]->buffers = list;
  BowstringArray *array;
  BowstringBuffer *buffer;
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  check_child(array, 10, 0, 0, others);
  CHECK_OK(bowstring_array_buffer(array, 3, &buffer, &report));
  bowstring_array_release(array);
  BowstringBufferMemory memory = {.struct_size = sizeof memory};
  CHECK_OK(bowstring_buffer_info(buffer, &memory, &report));
  CHECK_PTR(memory.data, others);
  bowstring_buffer_release(buffer);
  bowstring_type_release(type);
  owners_all_gone();
}

/* Longer than the memory that the library knows of. */
static void test_longer_than_known(void) {
  BowstringType *type = list_type();
  struct ArrowDeviceArray raw = exported(type, 1);
  raw.array.children[0]->length = 11;
  BowstringArray *array;
  CHECK_FAILS(bowstring_array_import_typed(&raw, type, &array, &report), BOWSTRING_INVALID_DATA);
  CHECK_RULE("A4");
  CHECK_STR(report.path, "$.item");
  CHECK_HAS(report.message, "expected at least 44 bytes of data in buffer 1, found 40");
  CHECK(raw.array.release != NULL);
  bowstring_device_array_release(&raw);
  bowstring_type_release(type);
  owners_all_gone();
}

int main(void) {
  for (int is_built = 0; is_built < 2; is_built++) {
    test_numbers(is_built);
    test_exchanged_list(is_built);
  }
  test_longer_than_known();
  BowstringLiveCounts live = {.struct_size = sizeof live};
  bowstring_live_counts(&live);
  CHECK_INT(live.types + live.arrays + live.buffers + live.blocks, 0);
  return check_end(60);
}
