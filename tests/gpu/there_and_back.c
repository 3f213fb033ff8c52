/* Copies a column to a device and back, and compares: `there_and_back cpu`, `plugin` or `cuda`. A program in C needs nothing else. */
#define _POSIX_C_SOURCE 200809L
#include <bowstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../plugin_device/plugin_device.h"

enum { ROWS = 5, SKIPPED = 77 };

static BowstringError error;

static int failed(const char *what) {
  fprintf(stderr, "%s: %s %s: %s (%lld)\n", what, bowstring_status_name(error.status), error.path, error.message,
          (long long)error.native_code);
  return 1;
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static const uint8_t validity[8] = {0x1d};
static const int64_t numbers[ROWS] = {1, -2, 3, 4, 5};
static const int32_t lists[ROWS + 1] = {0, 2, 2, 3, 3, 4};
static const int32_t offsets[5] = {0, 1, 4, 4, 9};
static const char text[] = "abcdefghi";

/* struct<n: int64, words: list<utf8>>, whose second row has no number. */
static BowstringArray *column(void) {
  BowstringType *type = NULL;
  BowstringArray *made = NULL;
  struct ArrowDeviceArray raw;
  const BowstringNode nodes[] = {{ROWS, 0, 0, 1}, {ROWS, 1, 0, 2}, {ROWS, 0, 0, 2}, {4, 0, 0, 3}};
  BowstringOwnedBuffer buffers[] = {
      {0}, {validity, 8, NULL, NULL}, {numbers, sizeof numbers, NULL, NULL}, {0}, {lists, sizeof lists, NULL, NULL},
      {0}, {offsets, sizeof offsets, NULL, NULL}, {text, 9, NULL, NULL},
  };
  if (bowstring_type_parse("struct<n: int64, words: list<utf8>>", &type, &error)) return NULL;
  if (!bowstring_device_array_from_buffers(type, nodes, 4, buffers, 8, NULL, &raw, &error) &&
      bowstring_array_import_typed(&raw, type, &made, &error))
    bowstring_device_array_release(&raw);
  bowstring_type_release(type);
  return made;
}

static int is_same(const void *a, const void *b, size_t n) { return b != NULL && memcmp(a, b, n) == 0; }

/* Whether a copy in CPU memory is the column. */
static int is_the_column(const BowstringArray *array) {
  struct ArrowArray raw;
  if (bowstring_array_export_host(array, NULL, &raw, NULL, &error)) return 0;
  const struct ArrowArray *n = raw.children[0], *words = raw.children[1], *item = words->children[0];
  int same = raw.length == ROWS && n->length == ROWS && n->null_count == 1 && n->offset == 0 && item->length == 4 &&
             (((const uint8_t *)n->buffers[0])[0] & 0x1f) == 0x1d && is_same(numbers, n->buffers[1], sizeof numbers) &&
             is_same(lists, words->buffers[1], sizeof lists) && is_same(offsets, item->buffers[1], sizeof offsets) &&
             is_same(text, item->buffers[2], 9) && n->buffers[1] != (const void *)numbers;
  bowstring_host_array_release(&raw);
  if (!same) fprintf(stderr, "the copy is not the column\n");
  return same;
}

static int there_and_back(const BowstringArray *array, BowstringDevice device, const char *name) {
  BowstringArray *there = NULL, *back = NULL;
  BowstringTransferOptions options = {.struct_size = sizeof options};
  size_t pending = 1;
  options.sync.mode = BOWSTRING_SYNC_LIBRARY;
  double begun = now();
  if (bowstring_array_to_device(array, device, &options, &there, NULL, &error)) return failed("to the device");
  double between = now();
  if (bowstring_array_to_device(there, (BowstringDevice){ARROW_DEVICE_CPU, -1}, &options, &back, NULL, &error)) return failed("back");
  printf("figure: %s: to the device %.0f us, back %.0f us\n", name, between - begun, now() - between);
  int same = is_the_column(back);
  bowstring_array_release(there);
  bowstring_array_release(back);
  if (bowstring_device_collect(device, true, &pending, &error)) return failed("collect");
  if (pending != 0) fprintf(stderr, "%zu pieces are pending\n", pending);
  return same && pending == 0 ? 0 : 1;
}

static int on_cuda(const BowstringArray *array) {
  static const struct { ArrowDeviceType type; const char *name; } kinds[] = {
      {ARROW_DEVICE_CUDA, "CUDA"}, {ARROW_DEVICE_CUDA_HOST, "CUDA_HOST"}, {ARROW_DEVICE_CUDA_MANAGED, "CUDA_MANAGED"}};
  int64_t count = 0;
  if (bowstring_device_probe(ARROW_DEVICE_CUDA, &count, &error)) {
    int is_here = access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    if (error.status != BOWSTRING_DEVICE_UNAVAILABLE || (is_here && !getenv("BOWSTRING_CUDA_SIM"))) return failed("probe");
    printf("skipped: %s\n", error.message);
    return SKIPPED;
  }
  /* The first round makes contexts and streams. */
  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
      if (there_and_back(array, (BowstringDevice){kinds[i].type, 0}, kinds[i].name)) return 1;
  return 0;
}

static int on_plugin(const BowstringArray *array) {
  Plugin *plugin = plugin_new(ARROW_DEVICE_EXT_DEV, 2, PLUGIN_EVENTS | PLUGIN_LIBRARY_QUEUE | PLUGIN_WITHIN | PLUGIN_PROBE);
  BowstringDeviceBackend backend;
  plugin_backend(plugin, &backend);
  if (bowstring_device_register(ARROW_DEVICE_EXT_DEV, &backend, &error)) return failed("register");
  for (int64_t id = 0; id < 2; id++)
    if (there_and_back(array, (BowstringDevice){ARROW_DEVICE_EXT_DEV, id}, "plug-in")) return 1;
  plugin_settle(plugin);
  const char *fault = plugin_fault(plugin);
  if (fault) fprintf(stderr, "%s\n", fault);
  return fault != NULL || plugin_live_memory(plugin) != 0 || plugin_live_events(plugin) != 0;
}

int main(int argc, char **argv) {
  const char *where = argc == 2 ? argv[1] : "";
  BowstringArray *array = column();
  if (!array) return failed("the column");
  int code = !strcmp(where, "cpu")      ? there_and_back(array, (BowstringDevice){ARROW_DEVICE_CPU, -1}, "CPU")
             : !strcmp(where, "plugin") ? on_plugin(array)
             : !strcmp(where, "cuda")   ? on_cuda(array)
                                        : 2;
  bowstring_array_release(array);
  BowstringLiveCounts live = {.struct_size = sizeof live};
  bowstring_live_counts(&live);
  if (code == 0 && live.arrays + live.types + live.blocks + live.pending + live.buffers != 0) {
    fprintf(stderr, "something of the library's is left\n");
    return 1;
  }
  if (code == 0) printf("the end\n");
  return code;
}
