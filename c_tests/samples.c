/* One or more arrays of every type, with offsets and nulls wherever the type allows them. */
#include "build.h"
#include "check.h"
#include "literals.h"

#include <string.h>

/* Bytes for values whose meaning does not matter. */
static const unsigned char filler[256] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
};

/* Eight values from which the array shows the last five; the fourth and the seventh are null. */
#define FIXED(text, format, width) \
  {text, LEAF(format, ""), NODES({5, 2, 3, 2}), BUFFERS(BITS(0xB7), {filler, 8 * (width)})}

const struct sample samples[] = {
    {"null", LEAF("n", ""), NODES({4, 4, 0, 0}), 0, NULL},
    {"bool", LEAF("b", ""), NODES({6, 1, 3, 2}), BUFFERS(BITS(0xEF, 0x01), BITS(0xB4, 0x01))},
    FIXED("int8", "c", 1),
    FIXED("uint8", "C", 1),
    FIXED("int16", "s", 2),
    FIXED("uint16", "S", 2),
    FIXED("int32", "i", 4),
    FIXED("uint32", "I", 4),
    FIXED("int64", "l", 8),
    FIXED("uint64", "L", 8),
    FIXED("float16", "e", 2),
    FIXED("float32", "f", 4),
    FIXED("float64", "g", 8),
    FIXED("decimal32(9, 2)", "d:9,2,32", 4),
    FIXED("decimal64(18, 3)", "d:18,3,64", 8),
    FIXED("decimal128(38, -4)", "d:38,-4", 16),
    FIXED("decimal256(76, 10)", "d:76,10,256", 32),
    FIXED("fixed_size_binary(3)", "w:3", 3),
    {"fixed_size_binary(0)", LEAF("w:0", ""), NODES({3, 0, 0, 2}), BUFFERS(NOTHING, NOTHING)},
    FIXED("date32", "tdD", 4),
    FIXED("date64", "tdm", 8),
    FIXED("time32(s)", "tts", 4),
    FIXED("time32(ms)", "ttm", 4),
    FIXED("time64(us)", "ttu", 8),
    FIXED("time64(ns)", "ttn", 8),
    FIXED("timestamp(s)", "tss:", 8),
    FIXED("timestamp(ms, \"UTC\")", "tsm:UTC", 8),
    FIXED("timestamp(us, \"+05:30\")", "tsu:+05:30", 8),
    FIXED("timestamp(ns, \"America/Argentina/Buenos_Aires\")", "tsn:America/Argentina/Buenos_Aires", 8),
    FIXED("duration(s)", "tDs", 8),
    FIXED("duration(ms)", "tDm", 8),
    FIXED("duration(us)", "tDu", 8),
    FIXED("duration(ns)", "tDn", 8),
    FIXED("interval(months)", "tiM", 4),
    FIXED("interval(day_time)", "tiD", 8),
    FIXED("interval(month_day_nano)", "tin", 16),
    {"binary", LEAF("z", ""), NODES({2, 1, 1, 3}), BUFFERS(BITS(0x05), I32(0, 1, 3, 5), TEXT("abcde"))},
    {"large_binary", LEAF("Z", ""), NODES({2, 0, 1, 3}), BUFFERS(NOTHING, I64(0, 1, 3, 5), TEXT("abcde"))},
    {"utf8", LEAF("u", ""), NODES({2, 0, 0, 3}), BUFFERS(NOTHING, I32(3, 5, 8), TEXT("abcdefgh"))},
    {"large_utf8", LEAF("U", ""), NODES({2, 0, 1, 3}), BUFFERS(NOTHING, I64(0, 3, 5, 8), TEXT("abcdefgh"))},
    {"utf8_view", LEAF("vu", ""), NODES({2, 0, 0, 3}),
     BUFFERS(NOTHING, I32(INLINE_VIEW(3, 0x6f6f66, 0, 0), INLINE_VIEW(3, 0x7a6162, 0, 0)), NOTHING)},
    {"utf8_view", LEAF("vu", ""), NODES({2, 1, 1, 4}),
     BUFFERS(BITS(0x05), I32(INLINE_VIEW(0, 0, 0, 0), INLINE_VIEW(0, 0, 0, 0), VIEW(26, 0x64636261, 0, 0)),
             TEXT("abcdefghijklmnopqrstuvwxyz"), I64(26))},
    {"binary_view", LEAF("vz", ""), NODES({3, 0, 0, 6}),
     BUFFERS(NOTHING, I32(VIEW(13, 0x64636261, 0, 0), VIEW(14, 0x44434241, 2, 1), INLINE_VIEW(12, 0x34333231, 0, 0)),
             TEXT("abcdefghijklm"), NOTHING, TEXT(".ABCDEFGHIJKLMN"), I64(13, 0, 15))},
    {"list<int32>", PARENT("+l", "", LEAF("i", "item")), NODES({2, 0, 1, 2}, {6, 1, 0, 2}),
     BUFFERS(NOTHING, I32(0, 1, 3, 5), BITS(0x2F), I32(1, 2, 3, 4, 5, 6))},
    {"large_list<utf8>", PARENT("+L", "", LEAF("u", "item")), NODES({3, 1, 0, 2}, {4, 0, 1, 3}),
     BUFFERS(BITS(0x05), I64(0, 2, 2, 4), NOTHING, I32(0, 1, 2, 4, 4, 6), TEXT("abcdef"))},
    {"list_view<int16>", PARENT("+vl", "", LEAF("s", "item")), NODES({3, 1, 1, 3}, {5, 0, 0, 2}),
     BUFFERS(BITS(0x0B), I32(9, 4, 0, 2), I32(9, 1, 2, 3), NOTHING, I16(1, 2, 3, 4, 5))},
    {"large_list_view<int16>", PARENT("+vL", "", LEAF("s", "item")), NODES({3, 0, 0, 3}, {5, 0, 0, 2}),
     BUFFERS(NOTHING, I64(4, 0, 2), I64(1, 2, 3), NOTHING, I16(1, 2, 3, 4, 5))},
    {"fixed_size_list<int32, 2>", PARENT("+w:2", "", LEAF("i", "item")), NODES({3, 1, 1, 1}, {8, 2, 1, 2}),
     BUFFERS(BITS(0x0D), BITS(0xFB, 0x00), I32(0, 1, 2, 3, 4, 5, 6, 7, 8))},
    {"fixed_size_list<int32, 0>", PARENT("+w:0", "", LEAF("i", "item")), NODES({3, 1, 0, 1}, {0, 0, 0, 2}),
     BUFFERS(BITS(0x05), NOTHING, NOTHING)},
    {"fixed_size_list<struct<a: int8, b: utf8>, 2>",
     PARENT("+w:2", "", PARENT("+s", "item", LEAF("c", "a"), LEAF("u", "b"))),
     NODES({2, 0, 1, 1}, {6, 1, 0, 1}, {6, 0, 0, 2}, {6, 0, 0, 3}),
     BUFFERS(NOTHING, BITS(0x2F), NOTHING, I8(1, 2, 3, 4, 5, 6), NOTHING, I32(0, 1, 2, 3, 4, 5, 6), TEXT("abcdef"))},
    {"struct<a: int32, b: utf8>", PARENT("+s", "", LEAF("i", "a"), LEAF("u", "b")),
     NODES({3, 1, 0, 1}, {3, 0, 1, 2}, {4, 0, 0, 3}),
     BUFFERS(BITS(0x05), NOTHING, I32(0, 10, 20, 30), NOTHING, I32(0, 1, 2, 3, 4), TEXT("abcd"))},
    {"struct<>", LEAF("+s", ""), NODES({5, 0, 0, 1}), BUFFERS(NOTHING)},
    {"struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>",
     PARENT("+s", "", KEPT("i", "a"),
            PARENT("+s", "nested", INDEX("c", "d", LEAF("u", "")),
                   PARENT("+l", "l", PARENT("+s", "item", LEAF("l", "x"), LEAF("b", "y"))))),
     NODES({3, 0, 0, 1}, {3, 0, 0, 2}, {3, 1, 0, 1}, {3, 0, 0, 2}, {2, 0, 0, 3}, {3, 1, 0, 2}, {4, 0, 0, 1},
           {4, 1, 0, 2}, {4, 0, 0, 2}),
     BUFFERS(NOTHING, NOTHING, I32(1, 2, 3), BITS(0x05), NOTHING, I8(0, 1, 0), NOTHING, I32(0, 2, 3), TEXT("abc"),
             BITS(0x03), I32(0, 2, 4, 4), NOTHING, BITS(0x0E), I64(1, 2, 3, 4), NOTHING, BITS(0x0A))},
    {"map<utf8, int32>", PARENT("+m", "", KEPT_PARENT("+s", "entries", KEPT("u", "key"), LEAF("i", "value"))),
     NODES({2, 0, 1, 2}, {4, 0, 0, 1}, {4, 0, 0, 3}, {4, 1, 0, 2}),
     BUFFERS(NOTHING, I32(0, 1, 3, 4), NOTHING, NOTHING, I32(0, 1, 2, 3, 4), TEXT("abcd"), BITS(0x0B),
             I32(1, 2, 3, 4))},
    {"dense_union(5, 7)<x: int32, y: utf8>", PARENT("+ud:5,7", "", LEAF("i", "x"), LEAF("u", "y")),
     NODES({3, 0, 1, 2}, {2, 1, 0, 2}, {2, 0, 0, 3}),
     BUFFERS(I8(5, 7, 5, 7), I32(0, 0, 1, 1), BITS(0x01), I32(10, 20), NOTHING, I32(0, 1, 2), TEXT("ab"))},
    {"sparse_union(5, 7)<x: int32, y: utf8>", PARENT("+us:5,7", "", LEAF("i", "x"), LEAF("u", "y")),
     NODES({3, 0, 1, 1}, {4, 1, 0, 2}, {4, 0, 0, 3}),
     BUFFERS(I8(5, 7, 5, 7), BITS(0x0E), I32(1, 2, 3, 4), NOTHING, I32(0, 1, 2, 3, 4), TEXT("abcd"))},
    {"sparse_union<>", LEAF("+us:", ""), NODES({0, 0, 0, 1}), BUFFERS(NOTHING)},
    {"run_end_encoded<int16, utf8>", PARENT("+r", "", KEPT("s", "run_ends"), LEAF("u", "values")),
     NODES({6, 0, 1, 0}, {3, 0, 0, 2}, {3, 1, 0, 3}),
     BUFFERS(NOTHING, I16(2, 5, 7), BITS(0x05), I32(0, 1, 1, 2), TEXT("ab"))},
    {"dictionary<int8, utf8>", INDEX("c", "", LEAF("u", "")), NODES({4, 1, 1, 2}, {2, 0, 1, 3}),
     BUFFERS(BITS(0x1B), I8(9, 0, 1, 1, 0), NOTHING, I32(0, 1, 2, 3), TEXT("xab"))},
};

const int n_samples = COUNT(samples);

const struct sample *sample_named(const char *text) {
  for (int i = 0; i < n_samples; i++)
    if (strcmp(samples[i].text, text) == 0) return &samples[i];
  check_about("%s", text);
  CHECK(!"a sample of this type");
  return NULL;
}
