/* A device that a program brings: memory behind a table of its own, which nobody can read but through the table. The
 * library copies a nested column there and back, without knowing more of it than six functions. */
#include <bowstring.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE_TYPE = 100, MOST_PIECES = 64, OUT_OF_PIECES = 1, NO_SUCH_PIECE = 2 };

/* An address of the device is the number of a piece and a place in it; there is no memory there. */
static struct {
  unsigned char *bytes;
  int64_t size;
} pieces[MOST_PIECES];

static unsigned char *at(const void *address, int64_t n) {
  const uint64_t piece = (uint64_t)(uintptr_t)address >> 32, place = (uintptr_t)address & UINT32_MAX;
  if (piece == 0 || piece >= MOST_PIECES || pieces[piece].bytes == NULL) return NULL;
  return (int64_t)place + n <= pieces[piece].size ? pieces[piece].bytes + place : NULL;
}

static int32_t allocate(void *ctx, int64_t id, int64_t size, void *queue, void **data) {
  (void)ctx, (void)id, (void)queue;
  for (uintptr_t piece = 1; piece < MOST_PIECES; piece++) {
    if (pieces[piece].bytes != NULL) continue;
    pieces[piece].bytes = malloc((size_t)size);
    pieces[piece].size = size;
    /* NULL says that there is no memory. */
    *data = pieces[piece].bytes == NULL ? NULL : (void *)(piece << 32);
    return 0;
  }
  return OUT_OF_PIECES;
}

static int32_t release(void *ctx, int64_t id, void *data, int64_t size, void *queue) {
  (void)ctx, (void)id, (void)queue;
  if (at(data, size) == NULL) return NO_SUCH_PIECE;
  const uintptr_t piece = (uintptr_t)data >> 32;
  free(pieces[piece].bytes);
  pieces[piece].bytes = NULL;
  return 0;
}

static int32_t copy_in(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  (void)ctx, (void)id, (void)queue;
  if (at(to, n) == NULL) return NO_SUCH_PIECE;
  memcpy(at(to, n), from, (size_t)n);
  return 0;
}

static int32_t copy_out(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  (void)ctx, (void)id, (void)queue;
  if (at(from, n) == NULL) return NO_SUCH_PIECE;
  memcpy(to, at(from, n), (size_t)n);
  return 0;
}

static const char *error_text(void *ctx, int32_t code) {
  (void)ctx;
  return code == OUT_OF_PIECES ? "the device's table is full" : "there is no such memory on the device";
}

static BowstringError error;

static void must(BowstringStatus status) {
  if (status == BOWSTRING_OK) return;
  fprintf(stderr, "%s: %s\n", bowstring_status_name(status), error.message);
  exit(1);
}

/* [[{1, "one"}, {2, "two"}], [], [{3, NULL}]] as list<struct<n: int32, word: utf8>>, in memory that needs no owner. */
static BowstringArray *column_of_the_cpu(void) {
  static const int32_t lists[] = {0, 2, 2, 3}, numbers[] = {1, 2, 3}, words[] = {0, 3, 6, 6};
  static const uint8_t has_word[] = {3};
  const BowstringNode nodes[] = {{3, 0, 0, 2}, {3, 0, 0, 1}, {3, 0, 0, 2}, {3, 1, 0, 3}};
  BowstringOwnedBuffer buffers[] = {{NULL, 0, NULL, NULL},
                                    {lists, sizeof(lists), NULL, NULL},
                                    {NULL, 0, NULL, NULL},
                                    {NULL, 0, NULL, NULL},
                                    {numbers, sizeof(numbers), NULL, NULL},
                                    {has_word, sizeof(has_word), NULL, NULL},
                                    {words, sizeof(words), NULL, NULL},
                                    {"onetwo", 6, NULL, NULL}};
  BowstringType *type;
  BowstringArray *array;
  struct ArrowDeviceArray raw;
  must(bowstring_type_parse("list<struct<n: int32, word: utf8>>", &type, &error));
  must(bowstring_device_array_from_buffers(type, nodes, 4, buffers, 8, NULL, &raw, &error));
  must(bowstring_array_import_typed(&raw, type, &array, &error));
  bowstring_type_release(type);
  return array;
}

static const void *values(const BowstringArray *array, size_t buffer) {
  BowstringBufferInfo info = {.struct_size = sizeof(info)};
  must(bowstring_array_buffer_info(array, buffer, &info, &error));
  return info.data;
}

int main(void) {
  const BowstringDeviceBackend backend = {.struct_size = sizeof(backend),
                                          .allocate = allocate,
                                          .free = release,
                                          .copy_from_host = copy_in,
                                          .copy_to_host = copy_out,
                                          .error_text = error_text};
  const BowstringDevice device = {DEVICE_TYPE, 0}, cpu = {ARROW_DEVICE_CPU, -1};
  must(bowstring_device_register(DEVICE_TYPE, &backend, &error));

  BowstringArray *column = column_of_the_cpu(), *there, *back;
  must(bowstring_array_to_device(column, device, NULL, &there, NULL, &error));
  bowstring_array_release(column);
  printf("on the device: numbers at %p\n", values(there, 4));
  must(bowstring_array_to_device(there, cpu, NULL, &back, NULL, &error));
  bowstring_array_release(there);

  const int32_t *lists = values(back, 1), *numbers = values(back, 4), *words = values(back, 6);
  const uint8_t *has_word = values(back, 5);
  const char *text = values(back, 7);
  for (int list = 0; list < 3; list++) {
    printf("list %d:", list);
    for (int32_t i = lists[list]; i < lists[list + 1]; i++) {
      const int length = (has_word[0] >> i & 1) != 0 ? (int)(words[i + 1] - words[i]) : 4;
      const char *word = (has_word[0] >> i & 1) != 0 ? text + words[i] : "NULL";
      printf(" {%" PRId32 ", %.*s}", numbers[i], length, word);
    }
    printf("\n");
  }
  bowstring_array_release(back);
  for (int piece = 1; piece < MOST_PIECES; piece++) {
    if (pieces[piece].bytes != NULL) return 1;
  }
  return 0;
}
