/* Two copies of the library in one process: handles of one mean nothing to the other, raw structs pass between them. */
#define _GNU_SOURCE
#include "build.h"
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The other copy's functions, named as ours. */
static struct {
  __typeof__(bowstring_type_to_text) *type_to_text;
  __typeof__(bowstring_type_retain) *type_retain;
  __typeof__(bowstring_type_release) *type_release;
  __typeof__(bowstring_type_equals) *type_equals;
  __typeof__(bowstring_type_parse) *type_parse;
  __typeof__(bowstring_array_import) *array_import;
  __typeof__(bowstring_array_import_typed) *array_import_typed;
  __typeof__(bowstring_array_export) *array_export;
  __typeof__(bowstring_array_retain) *array_retain;
  __typeof__(bowstring_array_release) *array_release;
  __typeof__(bowstring_array_type) *array_type;
  __typeof__(bowstring_array_to_text) *array_to_text;
  __typeof__(bowstring_array_slice) *array_slice;
  __typeof__(bowstring_array_buffer) *array_buffer;
  __typeof__(bowstring_buffer_retain) *buffer_retain;
  __typeof__(bowstring_buffer_release) *buffer_release;
  __typeof__(bowstring_buffer_read) *buffer_read;
  __typeof__(bowstring_buffer_slice) *buffer_slice;
  __typeof__(bowstring_buffer_into_owned) *buffer_into_owned;
  __typeof__(bowstring_device_array_release) *device_array_release;
  __typeof__(bowstring_live_counts) *live_counts;
} other;

static void copy_file(const char *from, const char *to) {
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  char block[1 << 16];
  size_t n = 0;
  CHECK(in != NULL && out != NULL);
  while ((n = fread(block, 1, sizeof block, in)) > 0) CHECK_INT(fwrite(block, 1, n, out), n);
  CHECK_INT(fclose(in) | fclose(out), 0);
}

static void find(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  CHECK(address != NULL);
  memcpy(function, &address, sizeof address);
}

/* Another file, so that the loader does not take it for the one that it has. */
static void load_copy(void) {
  char path[] = "./bowstring_copy_XXXXXX";
  Dl_info info;
  int file = mkstemp(path);
  CHECK(file >= 0 && close(file) == 0);
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "bowstring_version"), &info) != 0);
  copy_file(info.dli_fname, path);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  CHECK_INT(unlink(path), 0);
  CHECK(dlsym(library, "bowstring_version") != dlsym(RTLD_DEFAULT, "bowstring_version"));
#define FIND(name) find(library, "bowstring_" #name, &other.name)
  FIND(type_to_text), FIND(type_retain), FIND(type_release), FIND(type_equals), FIND(type_parse);
  FIND(array_import), FIND(array_import_typed), FIND(array_export), FIND(array_retain), FIND(array_release);
  FIND(array_type), FIND(array_to_text), FIND(array_slice), FIND(array_buffer);
  FIND(buffer_retain), FIND(buffer_release), FIND(buffer_read), FIND(buffer_slice), FIND(buffer_into_owned);
  FIND(device_array_release), FIND(live_counts);
}

static void refused(BowstringStatus status) {
  CHECK_INT(status, BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(report.message, "another copy");
}

/* Whatever the other copy is asked to do with our handles, it does nothing. */
static void test_handles(void) {
  BowstringArray *array = sample_import(sample_named("struct<a: int32, b: utf8>")), *part = (BowstringArray *)8;
  BowstringBuffer *buffer = NULL, *slice = (BowstringBuffer *)8;
  const BowstringType *type = bowstring_array_type(array);
  struct ArrowDeviceArray raw;
  BowstringOwnedBuffer owned;
  char text[64];
  size_t needed = 0;
  BowstringLiveCounts before = live_counts();
  CHECK_OK(bowstring_array_buffer(array, 2, &buffer, &report));
  check_about("handles");
  refused(other.type_to_text(type, text, sizeof text, &needed, &report));
  CHECK_PTR(other.type_retain(type), NULL);
  other.type_release((BowstringType *)type);
  CHECK(!other.type_equals(type, type, 0));

  refused(other.array_to_text(array, text, sizeof text, &needed, &report));
  CHECK_PTR(other.array_retain(array), NULL);
  CHECK_PTR(other.array_type(array), NULL);
  other.array_release(array);
  refused(other.array_slice(array, 0, 1, &part, &report));
  CHECK_PTR(part, NULL);
  refused(other.array_export(array, &raw, NULL, &report));
  CHECK(raw.array.release == NULL);
  refused(other.array_buffer(array, 0, &slice, &report));
  CHECK_PTR(slice, NULL);
  sample_array(sample_named("struct<a: int32, b: utf8>"), &raw);
  refused(other.array_import_typed(&raw, type, &part, &report));
  CHECK_PTR(part, NULL);
  CHECK(raw.array.release != NULL);
  bowstring_device_array_release(&raw);

  slice = (BowstringBuffer *)8;
  CHECK_PTR(other.buffer_retain(buffer), NULL);
  other.buffer_release(buffer);
  refused(other.buffer_read(buffer, 0, text, 1, NULL, &report));
  refused(other.buffer_slice(buffer, 0, 1, &slice, &report));
  CHECK_PTR(slice, NULL);
  BowstringBuffer *kept = buffer;
  refused(other.buffer_into_owned(&buffer, &owned, &report));
  CHECK_PTR(buffer, kept);

  /* They are as alive as before. */
  CHECK_OK(bowstring_buffer_read(buffer, 0, text, 16, NULL, &report));
  bowstring_buffer_release(buffer);
  live_as_before(&before);
  CHECK_OK(bowstring_array_to_text(array, text, sizeof text, &needed, &report));
  bowstring_array_release(array);
  owners_all_gone();
}

/* Raw structs go to the other copy and back, and are let go by whoever holds them last. */
static void test_structs(void) {
  for (int i = 0; i < n_samples; i++) {
    for (int last = 0; last < 3; last++) {
      struct ArrowDeviceArray raw;
      struct ArrowSchema schema;
      BowstringArray *ours = sample_import(&samples[i]), *theirs = NULL, *again = NULL;
      const void *address = NULL;
      check_about("%s, %d", samples[i].text, last);
      BowstringBufferInfo info = {.struct_size = sizeof info};
      if (samples[i].n_buffers > 1) {
        CHECK_OK(bowstring_array_buffer_info(ours, 1, &info, &report));
        address = info.data;
      }
      CHECK_OK(bowstring_array_export(ours, &raw, &schema, &report));
      bowstring_array_release(ours);
      CHECK_OK(other.array_import(&raw, &schema, &theirs, &report));
      CHECK(raw.array.release == NULL && schema.release == NULL);
      CHECK_OK(other.array_export(theirs, &raw, &schema, &report));
      other.array_release(theirs);
      CHECK(samples[i].n_buffers == 0 || owners_left() > 0);
      if (last == 0) {
        /* The release function is in the struct, so any copy will do. */
        bowstring_device_array_release(&raw);
        bowstring_schema_release(&schema);
      } else {
        CHECK_OK(bowstring_array_import(&raw, &schema, &again, &report));
        if (address) {
          CHECK_OK(bowstring_array_buffer_info(again, 1, &info, &report));
          CHECK_PTR(info.data, address);
        }
        CHECK_OK(bowstring_array_export(again, &raw, NULL, &report));
        bowstring_array_release(again);
        CHECK(samples[i].n_buffers == 0 || owners_left() > 0);
        last == 1 ? bowstring_device_array_release(&raw) : other.device_array_release(&raw);
      }
      owners_all_gone();
    }
  }
}

int main(void) {
  BowstringLiveCounts before = live_counts(), theirs = {.struct_size = sizeof theirs};
  load_copy();
  test_handles();
  test_structs();
  live_as_before(&before);
  other.live_counts(&theirs);
  CHECK_INT(theirs.arrays + theirs.types + theirs.blocks + theirs.buffers, 0);
  return check_end(4500);
}
