/* How often each call allocates: a promise, whatever the size of what is handed over. */
#include "allocations.h"
#include "build.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COSTS(call, expected)                         \
  do {                                                \
    long before = allocations_made();                 \
    CHECK_OK(call);                                   \
    CHECK_INT(allocations_made() - before, expected); \
  } while (0)

#define COSTS_NOTHING(call)                    \
  do {                                         \
    long before = allocations_made();          \
    call;                                      \
    CHECK_INT(allocations_made() - before, 0); \
  } while (0)

enum { MOST_COLUMNS = 1000 };

/* A struct of integer columns, with an owner each. */
struct table {
  size_t n;
  BowstringType *type;
  BowstringNode nodes[1 + MOST_COLUMNS];
  BowstringOwnedBuffer buffers[1 + 2 * MOST_COLUMNS];
  size_t n_buffers;
};

static void make_table(struct table *table, size_t n) {
  static char text[32 * MOST_COLUMNS];
  size_t length = (size_t)sprintf(text, "struct<");
  for (size_t i = 0; i < n; i++) length += (size_t)sprintf(text + length, "%sc%zu: int32", i ? ", " : "", i);
  sprintf(text + length, ">");
  table->n = n;
  CHECK_OK(bowstring_type_parse(text, &table->type, &report));
  table->nodes[0] = (BowstringNode){4, 0, 0, 1};
  table->buffers[0] = (BowstringOwnedBuffer){NULL, 0, NULL, NULL};
  for (size_t i = 1; i <= n; i++) {
    table->nodes[i] = (BowstringNode){4, 1, 0, 2};
    void *bits = malloc(1), *values = malloc(16);
    CHECK(bits != NULL && values != NULL);
    memset(bits, 0x0B, 1);
    memset(values, 1, 16);
    table->buffers[2 * i - 1] = (BowstringOwnedBuffer){bits, 1, owner_new(bits), owner_release};
    table->buffers[2 * i] = (BowstringOwnedBuffer){values, 16, owner_new(values), owner_release};
  }
  table->n_buffers = 1 + 2 * n;
}

static void test_columns(size_t n) {
  static struct table table;
  struct ArrowDeviceArray raw, moved;
  struct ArrowSchema schema, moved_schema;
  BowstringArray *array = NULL, *again = NULL, *part = NULL;
  check_about("%zu columns", n);
  make_table(&table, n);
  COSTS(bowstring_device_array_from_buffers(table.type, table.nodes, 1 + n, table.buffers, table.n_buffers, NULL, &raw,
                                            &report),
        1);
  COSTS_NOTHING(bowstring_device_array_move(&raw, &moved));
  COSTS(bowstring_array_import_typed(&moved, table.type, &array, &report), 1);

  COSTS(bowstring_array_export(array, &raw, NULL, &report), 1);
  COSTS_NOTHING(bowstring_device_array_release(&raw));
  COSTS(bowstring_array_export(array, &raw, &schema, &report), 2);
  COSTS_NOTHING(bowstring_schema_move(&schema, &moved_schema));
  COSTS(bowstring_array_import(&raw, &moved_schema, &again, &report), 2);
  COSTS_NOTHING(bowstring_array_release(again));

  struct ArrowArray host;
  COSTS(bowstring_array_export_host(array, NULL, &host, NULL, &report), 1);
  COSTS(bowstring_array_import_host_typed(&host, table.type, &again, &report), 1);
  bowstring_array_release(again);
  COSTS(bowstring_array_export_host(array, NULL, &host, &schema, &report), 2);
  COSTS(bowstring_array_import_host(&host, &schema, &again, &report), 2);
  bowstring_array_release(again);
  COSTS(bowstring_array_export(array, &raw, NULL, &report), 1);
  COSTS(bowstring_array_import_borrowed(&raw, table.type, NULL, NULL, &again, &report), 1);
  bowstring_array_release(again);
  bowstring_device_array_release(&raw);

  COSTS(bowstring_array_slice(array, 1, 2, &part, &report), 1);
  COSTS(bowstring_array_export(part, &raw, NULL, &report), 1);
  bowstring_device_array_release(&raw);
  COSTS_NOTHING(bowstring_array_release(part));
  COSTS(bowstring_array_child(array, n - 1, &part, &report), 1);
  bowstring_array_release(part);
  COSTS(bowstring_array_resolve_sizes(array, NULL, &part, &report), 1);
  bowstring_array_release(part);
  COSTS(bowstring_array_with_owner(array, owner_new(NULL), owner_release, &part, &report), 1);
  bowstring_array_release(part);
  BowstringBuffer *buffer = NULL, *slice = NULL;
  COSTS(bowstring_array_buffer(array, 2 * n, &buffer, &report), 1);
  COSTS(bowstring_buffer_slice(buffer, 4, 8, &slice, &report), 1);
  COSTS_NOTHING(bowstring_buffer_release(slice));
  COSTS_NOTHING(CHECK_PTR(bowstring_buffer_retain(buffer), buffer));
  bowstring_buffer_release(buffer);

  /* Looking and counting references cost nothing. */
  BowstringNodeInfo node = {.struct_size = sizeof node};
  BowstringBufferInfo info = {.struct_size = sizeof info};
  BowstringBufferMemory memory = {.struct_size = sizeof memory};
  BowstringTypeNodeInfo type_node = {.struct_size = sizeof type_node};
  BowstringDevice device;
  BowstringLayoutEntry entries[4];
  const BowstringType *child = NULL;
  size_t needed = 0, n_nodes = 0, n_buffers = 0;
  int64_t nulls = 0;
  char text[256];
  void *event = NULL;
  COSTS(bowstring_array_node_info(array, n, &node, &report), 0);
  COSTS(bowstring_array_buffer_info(array, 2 * n, &info, &report), 0);
  COSTS(bowstring_array_count(array, &n_nodes, &n_buffers, &report), 0);
  COSTS(bowstring_array_device(array, &device, &event, &report), 0);
  COSTS(bowstring_array_null_count(array, NULL, &nulls, &report), 0);
  COSTS(bowstring_array_to_text(array, text, sizeof text, &needed, &report), 0);
  COSTS(bowstring_buffer_info(buffer, &memory, &report), 0);
  COSTS(bowstring_buffer_read(buffer, 0, text, 4, NULL, &report), 0);
  COSTS(bowstring_type_node_info(table.type, n, &type_node, &report), 0);
  COSTS(bowstring_type_child(table.type, n - 1, &child, &report), 0);
  COSTS(bowstring_type_layout(table.type, entries, 4, &needed, &report), 0);
  COSTS(bowstring_type_to_text(table.type, text, sizeof text, &needed, &report), 0);
  COSTS_NOTHING(CHECK(bowstring_type_equals(table.type, bowstring_array_type(array), 0)));
  COSTS_NOTHING(CHECK_PTR(bowstring_array_retain(array), array));
  COSTS_NOTHING(bowstring_array_release(array));
  COSTS_NOTHING(CHECK_PTR(bowstring_type_retain(child), child));
  COSTS_NOTHING(bowstring_type_release((BowstringType *)child));
  COSTS_NOTHING(live_counts());

  BowstringOwnedBuffer owned;
  COSTS(bowstring_buffer_into_owned(&buffer, &owned, &report), 0);
  BowstringBuffer *wrapped = NULL;
  COSTS(bowstring_buffer_wrap(&owned, NULL, &wrapped, &report), 1);
  COSTS_NOTHING(bowstring_buffer_release(wrapped));

  /* Taking the array apart costs nothing, and building it again one allocation. */
  static BowstringNode nodes[1 + MOST_COLUMNS];
  static BowstringOwnedBuffer buffers[1 + 2 * MOST_COLUMNS];
  BowstringPlacement placement = {.struct_size = sizeof placement};
  COSTS(bowstring_array_to_buffers(array, nodes, 1 + n, buffers, table.n_buffers, &placement, &report), 0);
  COSTS_NOTHING(bowstring_array_release(array));
  COSTS(bowstring_device_array_from_buffers(table.type, nodes, 1 + n, buffers, table.n_buffers, &placement, &raw,
                                            &report),
        1);
  CHECK_INT(owners_left(), 2 * n);
  COSTS_NOTHING(bowstring_device_array_release(&raw));

  COSTS(bowstring_type_export(table.type, &schema, &report), 1);
  COSTS_NOTHING(bowstring_schema_release(&schema));
  COSTS_NOTHING(bowstring_type_release(table.type));
  owners_all_gone();
}

/* The promises hold for every type, with however many buffers. */
static void test_types(void) {
  for (int i = 0; i < n_samples; i++) {
    const struct sample *sample = &samples[i];
    struct ArrowDeviceArray raw;
    struct ArrowSchema schema;
    BowstringArray *array = NULL, *part = NULL;
    BowstringOwnedBuffer buffers[MAX_BUFFERS];
    BowstringType *type = NULL;
    check_about("%s", sample->text);
    sample_schema(sample, &schema);
    COSTS(bowstring_type_import(&schema, &type, &report), 1);
    sample_buffers(sample, buffers);
    COSTS(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                              (size_t)sample->n_buffers, NULL, &raw, &report),
          1);
    COSTS(bowstring_array_import_typed(&raw, type, &array, &report), 1);
    COSTS(bowstring_array_export(array, &raw, &schema, &report), 2);
    bowstring_schema_release(&schema);
    bowstring_device_array_release(&raw);
    if (sample->nodes[0].length > 0) {
      COSTS(bowstring_array_slice(array, 1, sample->nodes[0].length - 1, &part, &report), 1);
      COSTS(bowstring_array_export(part, &raw, NULL, &report), 1);
      bowstring_device_array_release(&raw);
      bowstring_array_release(part);
    }
    bowstring_array_release(array);
    sample_array(sample, &raw);
    COSTS(bowstring_array_import_typed(&raw, type, &array, &report), 1);
    bowstring_array_release(array);
    sample_array(sample, &raw);
    sample_schema(sample, &schema);
    COSTS(bowstring_array_import(&raw, &schema, &array, &report), 2);
    bowstring_array_release(array);
    bowstring_type_release(type);
    owners_all_gone();
  }
}

static void test_allocated_buffers(void) {
  BowstringBuffer *buffer = NULL;
  void *data = NULL;
  for (int64_t size = 0; size <= 129; size++) {
    check_about("size %lld", (long long)size);
    long before = allocations_made();
    CHECK_OK(bowstring_buffer_allocate((BowstringDevice){0, 0}, size, NULL, &buffer, &data, &report));
    CHECK(allocations_made() - before <= 2);
    CHECK(((unsigned long)data & 63) == 0);
    for (int64_t i = 0; i < (size + 63) / 64 * 64; i++) CHECK_INT(((char *)data)[i], 0);
    bowstring_buffer_release(buffer);
  }
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  allocations_watch();
  test_columns(1);
  test_columns(10);
  test_columns(MOST_COLUMNS);
  test_types();
  test_allocated_buffers();
  CHECK_INT(allocations_live(), 0);
  live_as_before(&before);
  return check_end(10000);
}
