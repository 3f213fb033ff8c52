/* Arrays of every type, whole and every part of them, copied between the CPU and devices whose memory faults under it.
 * What comes back is, byte for byte, what a copy from the CPU to the CPU is. Threads copy at once. */
#define _GNU_SOURCE
#include "build.h"
#include "check.h"

#include <plugin_device/plugin_device.h>

#include <pthread.h>
#include <string.h>

enum { N_PLUGINS = 3, N_THREADS = 4 };

static Plugin *plugins[N_PLUGINS];
static const BowstringDevice cpu = {ARROW_DEVICE_CPU, -1};
/* Everything; events that are handles; neither queues nor anything else. */
static const BowstringDevice there[] = {
    {ARROW_DEVICE_EXT_DEV, 0}, {ARROW_DEVICE_EXT_DEV, 1}, {ARROW_DEVICE_ROCM, 0}, {100, 0}};
enum { N_THERE = sizeof there / sizeof *there };

static void register_all(void) {
  static const struct {
    ArrowDeviceType type;
    unsigned features;
  } kinds[N_PLUGINS] = {
      {ARROW_DEVICE_EXT_DEV, PLUGIN_EVENTS | PLUGIN_LIBRARY_QUEUE | PLUGIN_WITHIN | PLUGIN_BETWEEN | PLUGIN_PROBE |
                                 PLUGIN_LOCATE},
      {ARROW_DEVICE_ROCM, PLUGIN_EVENTS},
      {100, 0},
  };
  for (int i = 0; i < N_PLUGINS; i++) {
    BowstringDeviceBackend backend;
    plugins[i] = plugin_new(kinds[i].type, 2, kinds[i].features);
    plugin_backend(plugins[i], &backend);
    CHECK_OK(bowstring_device_register(kinds[i].type, &backend, &report));
  }
}

static BowstringArray *copied(const BowstringArray *array, BowstringDevice device) {
  const BowstringTransferOptions options = {.struct_size = sizeof options, .sync = {BOWSTRING_SYNC_LIBRARY, 0, NULL}};
  BowstringArray *copy;
  bool shared = true;
  CHECK_OK(bowstring_array_to_device(array, device, &options, &copy, &shared, &report));
  CHECK(!shared);
  return copy;
}

static BowstringArray *moved(BowstringArray *array, BowstringDevice device) {
  BowstringArray *copy = copied(array, device);
  bowstring_array_release(array);
  return copy;
}

/* Both have the same bytes, as far as the first one's reach. */
static void are_same(const BowstringArray *expected, const BowstringArray *found) {
  size_t n, n_found;
  CHECK_OK(bowstring_array_count(expected, NULL, &n, &report));
  CHECK_OK(bowstring_array_count(found, NULL, &n_found, &report));
  CHECK_INT(n_found, n);
  for (size_t i = 0; i < n; i++) {
    BowstringBufferInfo one = {.struct_size = sizeof one}, other = {.struct_size = sizeof other};
    CHECK_OK(bowstring_array_buffer_info(expected, i, &one, &report));
    CHECK_OK(bowstring_array_buffer_info(found, i, &other, &report));
    CHECK_INT(other.role, one.role);
    CHECK(other.size_bytes >= one.size_bytes && one.size_bytes >= 0);
    CHECK_INT((uintptr_t)other.data % 64, 0);
    if (one.size_bytes > 0) CHECK_MEM(other.data, one.data, (size_t)one.size_bytes);
  }
}

/* Rows that only share a byte of bits with a part come along, until the bits are known to say nothing. */
static BowstringArray *settled(BowstringArray *array) {
  return moved(moved(array, cpu), cpu);
}

/* Every part of an array that is on a device: to the CPU, by way of another device. */
static void test_parts(const BowstringArray *host, const BowstringArray *device, BowstringDevice by) {
  BowstringNodeInfo root = {.struct_size = sizeof root};
  CHECK_OK(bowstring_array_node_info(host, 0, &root, &report));
  for (int64_t start = 0; start <= root.length; start++) {
    for (int64_t length = 0; length <= root.length - start; length++) {
      BowstringArray *part, *part_there;
      CHECK_OK(bowstring_array_slice(host, start, length, &part, &report));
      CHECK_OK(bowstring_array_slice(device, start, length, &part_there, &report));
      BowstringArray *expected = settled(copied(part, cpu)), *found = settled(moved(moved(part_there, by), cpu));
      check_about("rows %d to %d", (int)start, (int)(start + length));
      are_same(expected, found);
      bowstring_array_release(part);
      bowstring_array_release(expected);
      bowstring_array_release(found);
    }
  }
}

static void test_sample(const struct sample *sample, int which) {
  BowstringArray *host = sample_import(sample), *expected = copied(host, cpu);
  BowstringArray *device = copied(host, there[which % N_THERE]);
  for (int i = 0; i < N_THERE; i++) {
    check_about("%s by way of %d", sample->text, (int)there[i].type);
    BowstringArray *back = moved(copied(device, there[i]), cpu);
    are_same(expected, back);
    bowstring_array_release(back);
  }
  test_parts(host, device, there[(which / N_THERE) % N_THERE]);
  bowstring_array_release(host);
  bowstring_array_release(expected);
  bowstring_array_release(device);
}

static void *run(void *first) {
  for (int i = *(int *)first; i < n_samples; i += N_THREADS) test_sample(&samples[i], i);
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[N_THREADS];
  int firsts[N_THREADS];
  for (int i = 0; i < N_THREADS; i++) {
    firsts[i] = i;
    CHECK_INT(pthread_create(&threads[i], NULL, run, &firsts[i]), 0);
  }
  for (int i = 0; i < N_THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
}

int main(void) {
  register_all();
  test_threads();
  for (int i = 0; i < N_THERE; i++) CHECK_OK(bowstring_device_collect(there[i], true, NULL, &report));
  for (int i = 0; i < N_PLUGINS; i++) {
    plugin_settle(plugins[i]);
    const char *fault = plugin_fault(plugins[i]);
    check_about("%s", fault == NULL ? "no fault" : fault);
    CHECK(fault == NULL);
    CHECK_INT(plugin_live_memory(plugins[i]), 0);
    CHECK_INT(plugin_live_events(plugins[i]), 0);
    plugin_end(plugins[i]);
  }
  owners_all_gone();
  return check_end(5000);
}
