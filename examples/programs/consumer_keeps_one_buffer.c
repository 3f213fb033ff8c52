/* A consumer that receives a table and keeps a single buffer of it: the numbers of one column, which stay alive on their
 * own while everything else goes. */
#include <bowstring.h>
#include <stdio.h>
#include <string.h>

static void let_go(void *owner) { printf("  the producer lets %s go\n", (const char *)owner); }

/* What some producer hands over: a table of two columns, each buffer with an owner. */
static int produce(struct ArrowDeviceArray *array, struct ArrowSchema *schema, BowstringError *error) {
  static const double price[] = {9.5, 12.25, 3.0};
  static const int32_t name_offsets[] = {0, 3, 8, 11};
  static const char name[] = "rosbasilsage";
  const BowstringNode nodes[] = {{3, 0, 0, 1}, {3, 0, 0, 2}, {3, 0, 0, 3}};
  BowstringOwnedBuffer buffers[] = {
      {0},
      {0}, {price, sizeof(price), "the prices", let_go},
      {0}, {name_offsets, sizeof(name_offsets), "the offsets", let_go}, {name, 11, "the names", let_go},
  };
  BowstringType *type;
  if (bowstring_type_parse("struct<price: float64, name: utf8>", &type, error)) return 1;
  int failed = bowstring_device_array_from_buffers(type, nodes, 3, buffers, 6, NULL, array, error) ||
               bowstring_type_export(type, schema, error);
  bowstring_type_release(type);
  return failed;
}

/* The buffer with a role in the column of a name; NULL when there is none. */
static BowstringBuffer *find(const BowstringArray *table, const char *column, int32_t role, BowstringError *error) {
  size_t n_nodes, n_buffers;
  if (bowstring_array_count(table, &n_nodes, &n_buffers, error)) return NULL;
  for (size_t i = 0; i < n_buffers; i++) {
    BowstringBufferInfo buffer = {.struct_size = sizeof(buffer)};
    BowstringNodeInfo node = {.struct_size = sizeof(node)};
    if (bowstring_array_buffer_info(table, i, &buffer, error)) return NULL;
    if (bowstring_array_node_info(table, buffer.node, &node, error)) return NULL;
    if (strcmp(node.name, column) != 0 || buffer.role != role) continue;
    BowstringBuffer *found;
    return bowstring_array_buffer(table, i, &found, error) ? NULL : found;
  }
  return NULL;
}

int main(void) {
  BowstringError error = {0};
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  BowstringArray *table;
  if (produce(&array, &schema, &error) || bowstring_array_import(&array, &schema, &table, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }

  BowstringBuffer *prices = find(table, "price", BOWSTRING_ROLE_DATA, &error);
  if (prices == NULL) {
    fprintf(stderr, "no prices: %s\n", error.message);
    return 1;
  }
  printf("the table goes:\n");
  bowstring_array_release(table);

  BowstringBufferMemory memory = {.struct_size = sizeof(memory)};
  if (bowstring_buffer_info(prices, &memory, &error)) return 1;
  const double *price = memory.data;
  double sum = 0;
  for (int64_t i = 0; i < memory.size_bytes / (int64_t)sizeof(double); i++) sum += price[i];
  printf("the prices are still there: %.2f in all\n", sum);
  bowstring_buffer_release(prices);
  return sum == 24.75 ? 0 : 1;
}
