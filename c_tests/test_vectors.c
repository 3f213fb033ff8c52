/* Small arrays on which real consumers and producers went wrong: what they are worth here, imported as they are and
 * built from their buffers, in CPU memory and on a device. Each runs in a process of its own, on buffers without a
 * byte to spare. */
#include "alone.h"
#include "build.h"
#include "check.h"
#include "literals.h"

#include <stdio.h>
#include <string.h>

enum { ANY = -2 }; /* a number that is not looked at */

struct vector {
  const char *name;
  struct sample sample;
  const char *import_rule;  /* NULL: it is imported */
  const char *resolve_rule; /* NULL: its sizes can be told */
  int64_t nulls;            /* in the root */
  int buffer;               /* whose size is looked at once resolved */
  int64_t size;
  const char *build_rule; /* NULL: it can be built */
};

/* The type's text is not needed here. */
#define SAMPLE(field, ...) {NULL, field, __VA_ARGS__}
#define FINE NULL

static const struct vector vectors[] = {
    /* Offsets: the size of the data is the last one, wherever the first is. */
    {"text whose offsets start behind 0",
     SAMPLE(LEAF("u", ""), NODES({2, 0, 0, 3}), BUFFERS(NOTHING, I32(3, 5, 8), TEXT("abcdefgh"))), FINE, FINE, 0, 2, 8,
     FINE},
    {"text behind an offset",
     SAMPLE(LEAF("u", ""), NODES({2, 0, 1, 3}), BUFFERS(NOTHING, I32(0, 3, 5, 8), TEXT("abcdefgh"))), FINE, FINE, 0, 2,
     8, FINE},
    {"large text", SAMPLE(LEAF("U", ""), NODES({2, 0, 0, 3}), BUFFERS(NOTHING, I64(3, 5, 8), TEXT("abcdefgh"))), FINE,
     FINE, 0, 2, 8, FINE},
    {"list",
     SAMPLE(PARENT("+l", "", LEAF("c", "item")), NODES({2, 0, 0, 2}, {8, 0, 0, 2}),
            BUFFERS(NOTHING, I32(3, 5, 8), NOTHING, I8(0, 1, 2, 3, 4, 5, 6, 7))),
     FINE, FINE, 0, 3, 8, FINE},
    {"list beyond its items",
     SAMPLE(PARENT("+l", "", LEAF("c", "item")), NODES({2, 0, 0, 2}, {5, 0, 0, 2}),
            BUFFERS(NOTHING, I32(3, 5, 8), NOTHING, I8(0, 1, 2, 3, 4))),
     FINE, "B1", 0, 0, 0, "B1"},
    {"large list beyond its items",
     SAMPLE(PARENT("+L", "", LEAF("c", "item")), NODES({1, 0, 0, 2}, {5, 0, 0, 2}),
            BUFFERS(NOTHING, I64(0, INT64_MAX), NOTHING, I8(0, 1, 2, 3, 4))),
     FINE, "B1", 0, 0, 0, "B1"},
    {"text with a negative end", SAMPLE(LEAF("u", ""), NODES({1, 0, 0, 3}), BUFFERS(NOTHING, I32(0, -1), TEXT("a"))),
     FINE, "B1", 0, 0, 0, "B1"},
    {"large text with a negative end",
     SAMPLE(LEAF("Z", ""), NODES({1, 0, 0, 3}), BUFFERS(NOTHING, I64(0, INT64_MIN), TEXT("a"))), FINE, "B1", 0, 0, 0,
     "B1"},
    {"list with a negative end",
     SAMPLE(PARENT("+l", "", LEAF("c", "item")), NODES({1, 0, 0, 2}, {1, 0, 0, 2}),
            BUFFERS(NOTHING, I32(0, -5), NOTHING, I8(0))),
     FINE, "B1", 0, 0, 0, "B1"},

    /* NULL where there are no bytes. */
    {"no values", SAMPLE(LEAF("i", ""), NODES({0, 0, 0, 2}), BUFFERS(NOTHING, NOTHING)), FINE, FINE, 0, 1, 0, FINE},
    {"no text, no offsets", SAMPLE(LEAF("u", ""), NODES({0, 0, 0, 3}), BUFFERS(NOTHING, NOTHING, NOTHING)), FINE, FINE,
     0, 2, 0, FINE},
    {"no lists, no offsets",
     SAMPLE(PARENT("+l", "", LEAF("c", "item")), NODES({0, 0, 0, 2}, {0, 0, 0, 2}),
            BUFFERS(NOTHING, NOTHING, NOTHING, NOTHING)),
     FINE, FINE, 0, 1, 0, FINE},
    {"empty bytes, no data", SAMPLE(LEAF("z", ""), NODES({2, 0, 0, 3}), BUFFERS(NOTHING, I32(0, 0, 0), NOTHING)), FINE,
     FINE, 0, 2, 0, FINE},
    {"text without data", SAMPLE(LEAF("u", ""), NODES({1, 0, 0, 3}), BUFFERS(NOTHING, I32(0, 3), NOTHING)), FINE, "A5",
     0, 2, ANY, "A5"},
    {"rows without columns", SAMPLE(LEAF("+s", ""), NODES({5, 0, 0, 1}), BUFFERS(NOTHING)), FINE, FINE, 0, 0, 0, FINE},

    /* An empty array's lone offset says nothing. */
    {"an offset that was never written",
     SAMPLE(LEAF("u", ""), NODES({0, 0, 0, 3}), BUFFERS(NOTHING, I32(123), NOTHING)), FINE, FINE, 0, 2, 0, FINE},
    {"a negative one", SAMPLE(LEAF("u", ""), NODES({0, 0, 0, 3}), BUFFERS(NOTHING, I32(-7), NOTHING)), FINE, FINE, 0, 2,
     0, FINE},
    {"one of a list",
     SAMPLE(PARENT("+L", "", LEAF("c", "item")), NODES({0, 0, 0, 2}, {0, 0, 0, 2}),
            BUFFERS(NOTHING, I64(99), NOTHING, NOTHING)),
     FINE, FINE, 0, 3, 0, FINE},
    {"nothing behind an offset",
     SAMPLE(LEAF("u", ""), NODES({0, 0, 1, 3}), BUFFERS(NOTHING, I32(0, 1, 3, 5), TEXT("xaabb"))), FINE, FINE, 0, 2,
     ANY, FINE},

    /* Null counts. */
    {"nulls that are not counted", SAMPLE(LEAF("i", ""), NODES({4, -1, 0, 2}), BUFFERS(BITS(0x0B), I32(1, 2, 99, 4))),
     FINE, FINE, 1, 1, 16, FINE},
    {"no bitmap, not counted", SAMPLE(LEAF("i", ""), NODES({2, -1, 0, 2}), BUFFERS(NOTHING, I32(1, 2))), FINE, FINE, 0,
     1, 8, FINE},
    {"below -1", SAMPLE(LEAF("i", ""), NODES({4, -2, 0, 2}), BUFFERS(BITS(0x0B), I32(1, 2, 3, 4))), "A2", FINE, 0, 0, 0,
     "A2"},
    {"more than values", SAMPLE(LEAF("i", ""), NODES({4, 5, 0, 2}), BUFFERS(BITS(0x0B), I32(1, 2, 3, 4))), "A2", FINE,
     0, 0, 0, "A2"},

    /* Offsets into bits and values. */
    {"values behind an offset",
     SAMPLE(LEAF("i", ""), NODES({6, 0, 2, 2}), BUFFERS(NOTHING, I32(0, 1, 2, 3, 4, 5, 6, 7))), FINE, FINE, 0, 1, 32,
     FINE},
    {"bits behind an offset", SAMPLE(LEAF("b", ""), NODES({6, 0, 3, 2}), BUFFERS(NOTHING, BITS(0xB4, 0x01))), FINE,
     FINE, 0, 1, 2, FINE},
    {"nulls behind an offset", SAMPLE(LEAF("b", ""), NODES({6, -1, 3, 2}), BUFFERS(BITS(0xEF, 0x01), BITS(0xB4, 0x01))),
     FINE, FINE, 1, 1, 2, FINE},
    {"nulls outside are not counted",
     SAMPLE(LEAF("b", ""), NODES({6, -1, 3, 2}), BUFFERS(BITS(0xF8, 0x01), BITS(0xB4, 0x01))), FINE, FINE, 0, 0, 2,
     FINE},

    /* A struct's offset is on top of its children's. */
    {"struct behind an offset",
     SAMPLE(PARENT("+s", "", LEAF("i", "a")), NODES({2, 0, 1, 1}, {3, 0, 0, 2}),
            BUFFERS(NOTHING, NOTHING, I32(10, 20, 30))),
     FINE, FINE, 0, 2, 12, FINE},
    {"both behind one",
     SAMPLE(PARENT("+s", "", LEAF("i", "a")), NODES({2, 0, 1, 1}, {3, 0, 1, 2}),
            BUFFERS(NOTHING, NOTHING, I32(0, 10, 20, 30))),
     FINE, FINE, 0, 2, 16, FINE},
    {"a child too short for it",
     SAMPLE(PARENT("+s", "", LEAF("i", "a")), NODES({2, 0, 1, 1}, {2, 0, 0, 2}),
            BUFFERS(NOTHING, NOTHING, I32(10, 20))),
     "B4", FINE, 0, 0, 0, "B4"},
    {"nulls of a struct",
     SAMPLE(PARENT("+s", "", LEAF("i", "a")), NODES({2, 1, 1, 1}, {3, 0, 0, 2}),
            BUFFERS(BITS(0x05), NOTHING, I32(10, 20, 30))),
     FINE, FINE, 1, 2, 12, FINE},

    /* String views: two buffers, any number of others, and the sizes of those. */
    {"short strings",
     SAMPLE(LEAF("vu", ""), NODES({2, 0, 0, 3}),
            BUFFERS(NOTHING, I32(INLINE_VIEW(3, 0x6f6f66, 0, 0), INLINE_VIEW(3, 0x7a6162, 0, 0)), NOTHING)),
     FINE, FINE, 0, 2, 0, FINE},
    {"without sizes", SAMPLE(LEAF("vu", ""), NODES({1, 0, 0, 2}), BUFFERS(NOTHING, I32(INLINE_VIEW(0, 0, 0, 0)))), "A3",
     FINE, 0, 0, 0, "A3"},
    {"a long string",
     SAMPLE(LEAF("vu", ""), NODES({1, 0, 0, 4}),
            BUFFERS(NOTHING, I32(VIEW(26, 0x64636261, 0, 0)), TEXT("abcdefghijklmnopqrstuvwxyz"), I64(26))),
     FINE, FINE, 0, 2, 26, FINE},
    {"a negative size",
     SAMPLE(LEAF("vu", ""), NODES({1, 0, 0, 4}),
            BUFFERS(NOTHING, I32(VIEW(26, 0x64636261, 0, 0)), TEXT("abcdefghijklmnopqrstuvwxyz"), I64(-26))),
     FINE, "B2", 0, 0, 0, "B2"},
    {"a size beyond the buffer",
     SAMPLE(LEAF("vu", ""), NODES({1, 0, 0, 4}),
            BUFFERS(NOTHING, I32(VIEW(26, 0x64636261, 0, 0)), TEXT("abcdefghijklmnopqrstuvwxyz"), I64(27))),
     FINE, FINE, 0, 2, 27, "B2"},

    /* Unions, nulls and runs have no bitmap. */
    {"sparse union",
     SAMPLE(PARENT("+us:0,1", "", LEAF("i", "x"), LEAF("u", "y")), NODES({2, 0, 0, 1}, {2, 0, 0, 2}, {2, 0, 0, 3}),
            BUFFERS(I8(0, 1), NOTHING, I32(7, 8), NOTHING, I32(0, 1, 2), TEXT("xy"))),
     FINE, FINE, 0, 5, 2, FINE},
    {"dense union behind an offset",
     SAMPLE(PARENT("+ud:5,7", "", LEAF("i", "x"), LEAF("i", "y")), NODES({2, 0, 1, 2}, {2, 0, 0, 2}, {1, 0, 0, 2}),
            BUFFERS(I8(5, 7, 5), I32(0, 0, 1), NOTHING, I32(1, 2), NOTHING, I32(10))),
     FINE, FINE, 0, 1, 12, FINE},
    {"sparse union too short",
     SAMPLE(PARENT("+us:5,7", "", LEAF("i", "x"), LEAF("i", "y")), NODES({2, 0, 1, 1}, {3, 0, 0, 2}, {2, 0, 0, 2}),
            BUFFERS(I8(5, 7, 5), NOTHING, I32(1, 2, 3), NOTHING, I32(10, 20))),
     "B4", FINE, 0, 0, 0, "B4"},
    {"nulls", SAMPLE(LEAF("n", ""), NODES({3, 3, 0, 0}), 0, NULL), FINE, FINE, 3, -1, 0, FINE},
    {"nulls that say 0", SAMPLE(LEAF("n", ""), NODES({3, 0, 0, 0}), 0, NULL), FINE, FINE, 3, -1, 0, FINE},
    {"no union", SAMPLE(LEAF("+ud:", ""), NODES({0, 0, 0, 2}), BUFFERS(NOTHING, NOTHING)), FINE, FINE, 0, 0, 0, FINE},
    {"runs",
     SAMPLE(PARENT("+r", "", KEPT("i", "run_ends"), LEAF("i", "values")),
            NODES({5, 0, 0, 0}, {2, 0, 0, 2}, {2, 1, 0, 2}), BUFFERS(NOTHING, I32(2, 5), BITS(0x01), I32(7, 8))),
     FINE, FINE, 0, 1, 8, FINE},
    {"runs with a count of nulls",
     SAMPLE(PARENT("+r", "", KEPT("i", "run_ends"), LEAF("i", "values")),
            NODES({5, 3, 0, 0}, {2, 0, 0, 2}, {2, 1, 0, 2}), BUFFERS(NOTHING, I32(2, 5), BITS(0x01), I32(7, 8))),
     "A2", FINE, 0, 0, 0, "A2"},

    /* A dictionary has an offset of its own. */
    {"indices behind an offset",
     SAMPLE(INDEX("c", "", LEAF("u", "")), NODES({4, 0, 3, 2}, {3, 0, 0, 3}),
            BUFFERS(NOTHING, I8(0, 1, 2, 2, 1, 0, 2), NOTHING, I32(0, 1, 2, 3), TEXT("abc"))),
     FINE, FINE, 0, 4, 3, FINE},
    {"values behind an offset of their own",
     SAMPLE(INDEX("c", "", LEAF("u", "")), NODES({2, 0, 0, 2}, {2, 0, 1, 3}),
            BUFFERS(NOTHING, I8(0, 1), NOTHING, I32(0, 1, 2, 3), TEXT("xab"))),
     FINE, FINE, 0, 4, 3, FINE},
    {"an index under a null is not read",
     SAMPLE(INDEX("c", "", LEAF("u", "")), NODES({2, 1, 0, 2}, {3, 0, 0, 3}),
            BUFFERS(BITS(0x01), I8(1, 99), NOTHING, I32(0, 1, 2, 3), TEXT("abc"))),
     FINE, FINE, 1, 4, 3, FINE},

    /* Widths of nothing, and more than there is memory. */
    {"lists of no items",
     SAMPLE(PARENT("+w:0", "", LEAF("i", "item")), NODES({3, 1, 0, 1}, {0, 0, 0, 2}),
            BUFFERS(BITS(0x05), NOTHING, NOTHING)),
     FINE, FINE, 1, 2, 0, FINE},
    {"values of no bytes", SAMPLE(LEAF("w:0", ""), NODES({3, 0, 0, 2}), BUFFERS(NOTHING, NOTHING)), FINE, FINE, 0, 1, 0,
     FINE},
    {"lists of too many items",
     SAMPLE(PARENT("+w:2147483647", "", LEAF("i", "item")), NODES({INT64_C(1) << 40, 0, 0, 1}, {0, 0, 0, 2}),
            BUFFERS(NOTHING, NOTHING, NOTHING)),
     "B4", FINE, 0, 0, 0, "B4"},
    {"values of too many bytes",
     SAMPLE(LEAF("w:2147483647", ""), NODES({INT64_C(1) << 40, 0, 0, 2}), BUFFERS(NOTHING, BITS(1))), "A1", FINE, 0, 0,
     0, "A1"},
    {"far more values than bytes", SAMPLE(LEAF("l", ""), NODES({INT64_C(1) << 58, 0, 0, 2}), BUFFERS(NOTHING, I64(1))),
     FINE, FINE, 0, 1, INT64_C(1) << 61, "A4"},

    /* Misaligned buffers are read where they lie; see shifted(). */
    {"decimals", SAMPLE(LEAF("d:19,2", ""), NODES({2, 0, 0, 2}), BUFFERS(NOTHING, I64(123, 0, -5, -1))), FINE, FINE, 0,
     1, 32, FINE},
    {"integers", SAMPLE(LEAF("l", ""), NODES({2, 1, 0, 2}), BUFFERS(BITS(0x01), I64(7, -7))), FINE, FINE, 1, 1, 16,
     FINE},

    /* What is given is too little. */
    {"a value too few", SAMPLE(LEAF("i", ""), NODES({3, 0, 0, 2}), BUFFERS(NOTHING, I32(1, 2))), FINE, FINE, 0, 1, 12,
     "A4"},
    {"a bit too few", SAMPLE(LEAF("b", ""), NODES({9, 0, 0, 2}), BUFFERS(NOTHING, BITS(0xff))), FINE, FINE, 0, 1, 2,
     "A4"},
    {"a bitmap too short",
     SAMPLE(LEAF("c", ""), NODES({9, 1, 0, 2}), BUFFERS(BITS(0xff), I8(1, 2, 3, 4, 5, 6, 7, 8, 9))), FINE, FINE, 1, 0,
     2, "A4"},
    {"data too short", SAMPLE(LEAF("u", ""), NODES({1, 0, 0, 3}), BUFFERS(NOTHING, I32(0, 4), TEXT("abc"))), FINE, FINE,
     0, 2, 4, "A4"},
};

/* ---- import ---- */

static void import_vector(const struct vector *given, int on_device) {
  struct ArrowDeviceArray raw, before;
  struct ArrowSchema schema;
  BowstringArray *array = (BowstringArray *)8, *sized = (BowstringArray *)8;
  sample_array(&given->sample, &raw);
  sample_schema(&given->sample, &schema);
  if (on_device) device_hide(&given->sample, &raw);
  before = raw;
  BowstringStatus status = bowstring_array_import(&raw, &schema, &array, &report);
  if (given->import_rule) {
    CHECK_INT(status, BOWSTRING_INVALID_DATA);
    check_refusal(BOWSTRING_INVALID_DATA, given->import_rule, NULL);
    CHECK_PTR(array, NULL);
    CHECK_MEM(&raw, &before, sizeof raw);
    bowstring_device_array_release(&raw);
    bowstring_schema_release(&schema);
    return;
  }
  CHECK_OK(status);
  int64_t nulls = 77;
  BowstringNodeInfo node = {.struct_size = sizeof node};
  CHECK_OK(bowstring_array_node_info(array, 0, &node, &report));
  CHECK_INT(node.length, given->sample.nodes[0].length);
  CHECK_INT(node.offset, given->sample.nodes[0].offset);
  if (!on_device || node.null_count >= 0) {
    CHECK_OK(bowstring_array_null_count(array, NULL, &nulls, &report));
    /* A count that the producer gives is believed; nothing here gives a wrong one but those that say so. */
    if (strcmp(given->name, "a bitmap too short") != 0) CHECK_INT(nulls, given->nulls);
  }
  status = on_device ? bowstring_array_resolve_sizes_with(array, device_read, NULL, &sized, &report)
                     : bowstring_array_resolve_sizes(array, NULL, &sized, &report);
  if (given->resolve_rule) {
    CHECK_INT(status, BOWSTRING_INVALID_DATA);
    check_refusal(BOWSTRING_INVALID_DATA, given->resolve_rule, NULL);
    CHECK_PTR(sized, NULL);
  } else {
    CHECK_OK(status);
    BowstringBufferInfo info = {.struct_size = sizeof info};
    if (given->buffer >= 0 && given->size != ANY) {
      CHECK_OK(bowstring_array_buffer_info(sized, (size_t)given->buffer, &info, &report));
      CHECK_INT(info.size_bytes, given->size);
    }
    bowstring_array_release(sized);
  }
  bowstring_array_release(array);
}

/* ---- from_buffers ---- */

static void build_vector(const struct vector *given) {
  BowstringOwnedBuffer buffers[MAX_BUFFERS], before[MAX_BUFFERS];
  struct ArrowDeviceArray raw;
  BowstringType *type = sample_type(&given->sample);
  memset(buffers, 0, sizeof buffers);
  sample_buffers(&given->sample, buffers);
  memcpy(before, buffers, sizeof before);
  memset(&raw, 0xAA, sizeof raw);
  BowstringStatus status =
      bowstring_device_array_from_buffers(type, given->sample.nodes, (size_t)given->sample.n_nodes, buffers,
                                          (size_t)given->sample.n_buffers, NULL, &raw, &report);
  if (given->build_rule) {
    CHECK_INT(status, BOWSTRING_INVALID_DATA);
    check_refusal(BOWSTRING_INVALID_DATA, given->build_rule, NULL);
    CHECK(raw.array.release == NULL);
    CHECK_MEM(buffers, before, sizeof buffers);
    owners_let_go();
  } else {
    CHECK_OK(status);
    CHECK_INT(raw.array.null_count, given->nulls);
    bowstring_device_array_release(&raw);
  }
  bowstring_type_release(type);
}

/* Every buffer one byte further, so that no number in it is aligned. */
static void shifted(const struct vector *given) {
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  struct ArrowDeviceArray raw;
  BowstringArray *array = NULL, *sized = NULL;
  BowstringType *type = sample_type(&given->sample);
  static unsigned char memory[1 << 12];
  size_t at = 0;
  if (given->build_rule || given->import_rule) {
    bowstring_type_release(type);
    return;
  }
  for (int i = 0; i < given->sample.n_buffers; i++) {
    const struct bytes *bytes = &given->sample.buffers[i];
    at = (at + 15) / 16 * 16 + 1;
    CHECK(at + (size_t)bytes->size <= sizeof memory);
    buffers[i] = (BowstringOwnedBuffer){bytes->data ? memory + at : NULL, bytes->size, NULL, NULL};
    if (bytes->data) memcpy(memory + at, bytes->data, (size_t)bytes->size);
    at += (size_t)bytes->size;
  }
  CHECK_OK(bowstring_device_array_from_buffers(type, given->sample.nodes, (size_t)given->sample.n_nodes, buffers,
                                               (size_t)given->sample.n_buffers, NULL, &raw, &report));
  CHECK_INT(raw.array.null_count, given->nulls);
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  CHECK_OK(bowstring_array_resolve_sizes(array, NULL, &sized, &report));
  for (int i = 0; i < given->sample.n_buffers; i++) {
    BowstringBufferInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_buffer_info(sized, (size_t)i, &info, &report));
    if (given->sample.buffers[i].data) CHECK_MEM(info.data, given->sample.buffers[i].data, (size_t)info.size_bytes);
  }
  bowstring_array_release(sized);
  bowstring_array_release(array);
  bowstring_type_release(type);
}

static void run_vector(const void *what) {
  const struct vector *given = what;
  check_about("%s, imported", given->name);
  import_vector(given, 0);
  check_about("%s, on a device", given->name);
  import_vector(given, 1);
  check_about("%s, built", given->name);
  build_vector(given);
  check_about("%s, misaligned", given->name);
  shifted(given);
}

/* Buffers at addresses where nothing is: a device's array goes through whole, and what would read it says no. */
static void run_unmapped(const void *what) {
  const struct sample *sample = sample_named(what);
  struct ArrowDeviceArray raw;
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement = {.struct_size = sizeof placement, .device = {ARROW_DEVICE_CUDA, 1}};
  BowstringType *type = sample_type(sample);
  BowstringArray *array = NULL, *sized = NULL;
  check_about("%s, unmapped", sample->text);
  for (int i = 0; i < sample->n_buffers; i++) {
    uintptr_t address = sample->buffers[i].data ? (uintptr_t)(i + 1) * 16 : 0;
    buffers[i] = (BowstringOwnedBuffer){(const void *)address, sample->buffers[i].size, NULL, NULL};
  }
  CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                               (size_t)sample->n_buffers, &placement, &raw, &report));
  for (int round = 0; round < 2; round++) {
    CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
    for (int i = 0; i < sample->n_buffers; i++) {
      BowstringBufferInfo info = {.struct_size = sizeof info};
      CHECK_OK(bowstring_array_buffer_info(array, (size_t)i, &info, &report));
      CHECK_PTR(info.data, buffers[i].data);
    }
    /* Without the driver nothing can be read, and where all sizes are known nothing need be. */
    BowstringStatus status = bowstring_array_resolve_sizes(array, NULL, &sized, &report);
    CHECK(status == BOWSTRING_DEVICE_UNAVAILABLE || status == BOWSTRING_OK);
    CHECK_INT(sized != NULL, status == BOWSTRING_OK);
    bowstring_array_release(sized);
    CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
    CHECK_INT(raw.device_id, 1);
    bowstring_array_release(array);
  }
  bowstring_device_array_release(&raw);
  bowstring_type_release(type);
}

int main(void) {
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) alone(run_vector, &vectors[i]);
  for (int i = 0; i < n_samples; i++)
    if (strstr(samples[i].text, "view") != samples[i].text + strlen("utf8_") && !strstr(samples[i].text, "binary_view"))
      alone(run_unmapped, samples[i].text);
  printf("%ld arrays, each in its own process\n", alone_count());
  CHECK(alone_count() >= 110);
  return check_end(300);
}
