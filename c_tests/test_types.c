/* Types: from schemas, parts and text and back, their nodes, layouts and handles. */
#include "build.h"
#include "check.h"
#include "layouts.h"

#include <stdlib.h>
#include <string.h>

static BowstringType *parse(const char *text) {
  BowstringType *type = NULL;
  CHECK_OK(bowstring_type_parse(text, &type, &report));
  return type;
}

static char *text_of(const BowstringType *type) {
  size_t needed = 0;
  CHECK_OK(bowstring_type_to_text(type, NULL, 0, &needed, &report));
  char *text = malloc(needed);
  CHECK(text != NULL);
  CHECK_OK(bowstring_type_to_text(type, text, needed, &needed, &report));
  CHECK_INT(strlen(text) + 1, needed);
  return text;
}

static void check_text_of(const BowstringType *type, const char *expected) {
  char *text = text_of(type);
  CHECK_STR(text, expected);
  free(text);
}

/* ---- one type, every way ---- */

static void check_schema(const struct ArrowSchema *schema, const struct field *field) {
  CHECK_STR(schema->format, field->format);
  CHECK_STR(schema->name, field->name);
  CHECK_INT(schema->flags, field->flags);
  CHECK_PTR(schema->metadata, NULL);
  CHECK_INT(schema->n_children, field->n_children);
  CHECK_INT(schema->dictionary != NULL, field->dictionary != NULL);
  CHECK(schema->release != NULL);
  for (int i = 0; i < field->n_children; i++) check_schema(schema->children[i], &field->children[i]);
  if (field->dictionary) check_schema(schema->dictionary, field->dictionary);
}

/* Returns the node after the field's subtree. */
static size_t check_nodes(const BowstringType *type, const struct field *field, size_t node) {
  BowstringTypeNodeInfo info;
  memset(&info, 0xAA, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(bowstring_type_node_info(type, node, &info, &report));
  CHECK_STR(info.format, field->format);
  CHECK_STR(info.name, field->name);
  CHECK_INT(info.flags, field->flags);
  CHECK_PTR(info.metadata, NULL);
  CHECK_INT(info.metadata_bytes, 0);
  CHECK_INT(info.n_children, field->n_children);
  CHECK_INT(info.first_child, field->n_children > 0 ? node + 1 : SIZE_MAX);
  size_t next = node + 1;
  for (int i = 0; i < field->n_children; i++) next = check_nodes(type, &field->children[i], next);
  CHECK_INT(info.dictionary, field->dictionary ? next : SIZE_MAX);
  if (field->dictionary) next = check_nodes(type, field->dictionary, next);
  CHECK_INT(info.subtree_end, next);
  return next;
}

static BowstringType *from_parts(const struct field *field) {
  BowstringType *children[4] = {NULL}, *dictionary = NULL, *made = NULL;
  CHECK(field->n_children <= 4);
  for (int i = 0; i < field->n_children; i++) children[i] = from_parts(&field->children[i]);
  if (field->dictionary) dictionary = from_parts(field->dictionary);
  CHECK_OK(bowstring_type_new(field->format, field->name, field->flags, (const BowstringType *const *)children,
                              (size_t)field->n_children, dictionary, NULL, 0, &made, &report));
  for (int i = 0; i < field->n_children; i++) bowstring_type_release(children[i]);
  bowstring_type_release(dictionary);
  return made;
}

static int count_fields(const struct field *field) {
  int n = 1 + (field->dictionary ? count_fields(field->dictionary) : 0);
  for (int i = 0; i < field->n_children; i++) n += count_fields(&field->children[i]);
  return n;
}

static void expected_layout(const struct field *field, size_t *node, struct slot *slots, size_t *nodes, size_t *n) {
  struct slot own[4];
  size_t at = (*node)++;
  int n_own = layout_of(field->format, own);
  for (int i = 0; i < n_own; i++) {
    nodes[*n] = at;
    slots[(*n)++] = own[i];
  }
  for (int i = 0; i < field->n_children; i++) expected_layout(&field->children[i], node, slots, nodes, n);
  if (field->dictionary) expected_layout(field->dictionary, node, slots, nodes, n);
}

static void check_layout(const BowstringType *type, const struct field *field) {
  struct slot slots[MAX_BUFFERS];
  size_t nodes[MAX_BUFFERS], node = 0, n = 0, needed = 77;
  expected_layout(field, &node, slots, nodes, &n);
  CHECK_OK(bowstring_type_layout(type, NULL, 0, &needed, &report));
  CHECK_INT(needed, n);
  for (size_t capacity = 0; capacity <= n + 1; capacity++) {
    BowstringLayoutEntry *entries = malloc(capacity * sizeof *entries + 1);
    CHECK(entries != NULL);
    CHECK_OK(bowstring_type_layout(type, entries, capacity, capacity % 2 ? &needed : NULL, &report));
    CHECK_INT(needed, n);
    for (size_t i = 0; i < capacity && i < n; i++) {
      CHECK_INT(entries[i].node, nodes[i]);
      CHECK_INT(entries[i].role, slots[i].role);
      CHECK_MEM(&entries[i].element, &slots[i].element, sizeof slots[i].element);
    }
    free(entries);
  }
}

static void test_samples(void) {
  for (int i = 0; i < n_samples; i++) {
    const struct field *field = &samples[i].field;
    check_about("%s", samples[i].text);
    BowstringType *type = sample_type(&samples[i]), *parsed = parse(samples[i].text), *made = from_parts(field);
    check_text_of(type, samples[i].text);
    CHECK(bowstring_type_equals(type, parsed, 0) && bowstring_type_equals(parsed, type, 0));
    CHECK(bowstring_type_equals(type, made, 0));
    CHECK_INT(check_nodes(parsed, field, 0), count_fields(field));
    CHECK_INT(check_nodes(type, field, 0), samples[i].n_nodes);
    CHECK_INT(check_nodes(made, field, 0), samples[i].n_nodes);
    check_layout(type, field);
    for (int k = 0; k < n_samples; k++) {
      if (strcmp(samples[k].text, samples[i].text) == 0) continue;
      BowstringType *other = sample_type(&samples[k]);
      CHECK(!bowstring_type_equals(
          type, other, BOWSTRING_TYPE_IGNORE_NAMES | BOWSTRING_TYPE_IGNORE_METADATA | BOWSTRING_TYPE_IGNORE_NULLABLE));
      bowstring_type_release(other);
    }

    /* Any number of exports, each of which outlives the type and can be changed by its holder. */
    struct ArrowSchema first, second;
    BowstringType *again = NULL;
    memset(&first, 0xAA, sizeof first);
    memset(&second, 0xAA, sizeof second);
    CHECK_OK(bowstring_type_export(parsed, &first, &report));
    CHECK_OK(bowstring_type_export(parsed, &second, &report));
    bowstring_type_release(parsed);
    check_schema(&first, field);
    bowstring_schema_release(&first);
    check_schema(&second, field);
    CHECK_OK(bowstring_type_copy_from(&second, &again, &report));
    CHECK(second.release != NULL);
    CHECK(bowstring_type_equals(type, again, 0));
    bowstring_type_release(again);
    CHECK_OK(bowstring_type_import(&second, &again, &report));
    CHECK(second.release == NULL);
    check_text_of(again, samples[i].text);
    bowstring_type_release(again);
    bowstring_type_release(type);
    bowstring_type_release(made);
    owners_all_gone();
  }
}

/* ---- text ---- */

static void test_text_forms(void) {
  static const struct {
    const char *text, *printed; /* NULL: as it was */
  } forms[] = {
      {" int32 ", "int32"},
      {"string", "utf8"},
      {"large_string", "large_utf8"},
      {"string_view", "utf8_view"},
      {"struct< a:int32 ,b : utf8 >", "struct<a: int32, b: utf8>"},
      {"int32 nullable", "int32"},
      {"int32 not null", NULL},
      {"a: int32", NULL},
      {"\"\": int32", "int32"},
      {"list<element: int32 not null>", NULL},
      {"list<item: int32>", "list<int32>"},
      {"struct<\"a b\": int32>", NULL},
      {"struct<\"int32\": int32>", "struct<int32: int32>"},
      {"struct<\"q\\\"b\\\\n\\n\\t\": int32>", NULL},
      {"struct<\"\\xff\\xfe\": int32>", NULL},
      {"struct<\"\": int32>", NULL},
      {"struct<int32>", "struct<\"\": int32>"},
      {"struct<\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8f\xb9\": int32>", NULL},
      {"struct<a: int32, a: int32>", NULL},
      {"dictionary<int8, utf8, ordered>", NULL},
      {"dictionary<uint64, values: struct<a: int8>>", NULL},
      {"dictionary<int16, dictionary<int8, utf8>>", NULL},
      {"map<int8, utf8, keys_sorted>", NULL},
      {"map<int8, utf8>", NULL},
      {"map<k: int8, v: utf8 not null>", NULL},
      {"dense_union<a: int32, b: utf8>", NULL},
      {"dense_union(0, 1)<a: int32, b: utf8>", "dense_union<a: int32, b: utf8>"},
      {"sparse_union(127, 0)<a: int32, b: utf8>", NULL},
      {"run_end_encoded<int32, int64>", NULL},
      {"decimal128(5, -2)", NULL},
      {"timestamp(us, \"a \\\"zone\\\"\")", NULL},
      {"fixed_size_list<fixed_size_list<float32 not null, 3>, 4>", NULL},
  };
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    check_about("%s", forms[i].text);
    BowstringType *type = parse(forms[i].text), *again = NULL;
    check_text_of(type, forms[i].printed ? forms[i].printed : forms[i].text);
    char *text = text_of(type);
    again = parse(text);
    CHECK(bowstring_type_equals(type, again, 0));
    free(text);
    struct ArrowSchema schema;
    CHECK_OK(bowstring_type_export(type, &schema, &report));
    bowstring_type_release(again);
    CHECK_OK(bowstring_type_import(&schema, &again, &report));
    CHECK(bowstring_type_equals(type, again, 0));
    bowstring_type_release(again);
    bowstring_type_release(type);
  }
}

static void test_bad_text(void) {
  static const char *const bad[] = {
      "",
      " ",
      "in",
      "int33",
      "int32 int32",
      "int32,",
      "struct",
      "struct<",
      "struct<a>",
      "struct<a:>",
      "struct<a: int32",
      "struct<a: int32,>",
      "struct<a: int32,, b: int32>",
      "list<>",
      "list<int32, int32>",
      "fixed_size_list<int32>",
      "fixed_size_list<int32, -1>",
      "fixed_size_list<int32, 2147483648>",
      "fixed_size_binary",
      "fixed_size_binary()",
      "fixed_size_binary(x)",
      "decimal128",
      "decimal128(10)",
      "decimal128(39, 0)",
      "decimal32(0, 0)",
      "timestamp",
      "timestamp(h)",
      "timestamp(us, UTC)",
      "timestamp(us, \"UTC)",
      "time32(us)",
      "time64(s)",
      "interval(years)",
      "dictionary<utf8, utf8>",
      "dictionary<int8>",
      "dictionary<int8, utf8, sorted>",
      "map<int8>",
      "map<int8, utf8, sorted>",
      "sparse_union(0)<>",
      "sparse_union(0, 0)<a: int8, b: int8>",
      "sparse_union(128)<a: int8>",
      "run_end_encoded<int32>",
      "run_end_encoded<uint32, int8>",
      "int32 not",
      "int32 not nul",
      "\"a: int32",
      "\"a\" int32",
      "\"\\q\": int32",
      "\"\\x00\": int32",
      "\"\\xg0\": int32",
      "a: \xff",
      "list<list<list<list<list<int32>>>>",
      "int32>",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    BowstringType *type = (BowstringType *)8;
    check_about("%s", bad[i]);
    BowstringStatus status = bowstring_type_parse(bad[i], &type, &report);
    CHECK(status == BOWSTRING_INVALID_ARGUMENT || status == BOWSTRING_INVALID_DATA);
    CHECK_INT(report.status, status);
    CHECK_PTR(type, NULL);
    CHECK_HAS(report.message, "expected");
    CHECK_HAS(report.message, "found");
    CHECK_INT(status == BOWSTRING_INVALID_DATA, report.rule != 0);
    if (report.rule == 0) CHECK_HAS(report.message, "at byte ");
  }
  BowstringType *type = NULL;
  CHECK_FAILS(bowstring_type_parse("struct<a: int32, b: itn32>", &type, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_HAS(report.message, "at byte 20");
  CHECK_HAS(report.message, "itn32");
}

static int is_utf8(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at) {
    int more = *at < 0x80 ? 0 : *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : -1;
    if (more < 0) return 0;
    for (at++; more > 0; more--, at++)
      if ((*at & 0xc0) != 0x80) return 0;
  }
  return 1;
}

/* Every capacity gives a prefix that ends between characters; memory behind it is not touched. */
static void check_capacities(const BowstringType *type, const BowstringArray *array) {
  size_t needed = 0;
#define TO_TEXT(out, capacity, needed)                                    \
  (array ? bowstring_array_to_text(array, out, capacity, needed, &report) \
         : bowstring_type_to_text(type, out, capacity, needed, &report))
  CHECK_OK(TO_TEXT(NULL, 0, &needed));
  char *whole = malloc(needed);
  CHECK(whole != NULL);
  CHECK_OK(TO_TEXT(whole, needed, NULL));
  CHECK(is_utf8(whole));
  for (size_t capacity = 0; capacity <= needed + 3; capacity++) {
    char *part = malloc(capacity + 1);
    size_t told = 0;
    CHECK(part != NULL);
    memset(part, 0xAA, capacity + 1);
    CHECK_OK(TO_TEXT(part, capacity, &told));
    CHECK_INT(told, needed);
    CHECK_INT((unsigned char)part[capacity], 0xAA);
    if (capacity > 0) {
      size_t length = strlen(part);
      CHECK(length < capacity && strncmp(part, whole, length) == 0 && is_utf8(part));
      /* Nothing but a character that does not fit is left out. */
      CHECK(length + 4 >= capacity || length + 1 == needed);
      if (capacity >= needed) CHECK_STR(part, whole);
    }
    free(part);
  }
  CHECK_FAILS(TO_TEXT(NULL, 5, &needed), BOWSTRING_INVALID_ARGUMENT);
  free(whole);
}

static void test_capacities(void) {
  static const char unicode[] =
      "struct<\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8f\xb9\": list<\"\xf0\x9f\x8f\xb9\": utf8 not null>>";
  BowstringType *type = parse(unicode);
  check_about("capacities");
  check_capacities(type, NULL);
  bowstring_type_release(type);
  for (int i = 0; i < n_samples; i++) {
    check_about("capacities of %s", samples[i].text);
    type = sample_type(&samples[i]);
    BowstringArray *array = sample_import(&samples[i]);
    check_capacities(type, NULL);
    check_capacities(NULL, array);
    bowstring_array_release(array);
    bowstring_type_release(type);
    owners_all_gone();
  }
}

/* ---- handles ---- */

static void test_handles(void) {
  BowstringLiveCounts before = live_counts();
  for (int i = 0; i < n_samples; i++) {
    check_about("handles of %s", samples[i].text);
    const struct field *field = &samples[i].field;
    BowstringType *type = sample_type(&samples[i]);
    const BowstringType *child = NULL, *grandchild = NULL;
    owners_all_gone();
    for (int k = 0; k < field->n_children; k++) {
      CHECK_OK(bowstring_type_child(type, (size_t)k, &child, &report));
      CHECK_INT(check_nodes(child, &field->children[k], 0), count_fields(&field->children[k]));
    }
    child = (const BowstringType *)8;
    CHECK_FAILS(bowstring_type_child(type, (size_t)field->n_children, &child, &report), BOWSTRING_INVALID_ARGUMENT);
    CHECK_PTR(child, NULL);
    child = (const BowstringType *)8;
    CHECK_FAILS(bowstring_type_child(type, SIZE_MAX, &child, &report), BOWSTRING_INVALID_ARGUMENT);
    CHECK_PTR(child, NULL);
    child = (const BowstringType *)8;
    if (!field->dictionary) {
      CHECK_FAILS(bowstring_type_dictionary(type, &child, &report), BOWSTRING_INVALID_ARGUMENT);
      CHECK_PTR(child, NULL);
    }
    const struct field *below = field->n_children ? &field->children[field->n_children - 1] : field->dictionary;
    if (!below) {
      bowstring_type_release(type);
      continue;
    }
    if (field->dictionary) {
      CHECK_OK(bowstring_type_dictionary(type, &child, &report));
    } else {
      CHECK_OK(bowstring_type_child(type, (size_t)field->n_children - 1, &child, &report));
    }
    /* A node that was retained outlives the type that it came from, and is a type itself. */
    BowstringType *kept = bowstring_type_retain(child);
    CHECK_PTR(kept, child);
    bowstring_type_release(type);
    CHECK_INT(live_counts().types, before.types + 1);
    CHECK_INT(check_nodes(kept, below, 0), count_fields(below));
    check_layout(kept, below);
    struct ArrowSchema schema;
    CHECK_OK(bowstring_type_export(kept, &schema, &report));
    if (below->n_children) {
      CHECK_OK(bowstring_type_child(kept, 0, &grandchild, &report));
      BowstringType *deeper = bowstring_type_retain(grandchild);
      bowstring_type_release(kept);
      kept = deeper;
      CHECK_INT(check_nodes(kept, &below->children[0], 0), count_fields(&below->children[0]));
    }
    bowstring_type_release(kept);
    check_schema(&schema, below);
    bowstring_schema_release(&schema);
    live_as_before(&before);
  }
  CHECK_PTR(bowstring_type_retain(NULL), NULL);
  bowstring_type_release(NULL);
}

/* ---- equality ---- */

static void test_equality(void) {
  const uint32_t names = BOWSTRING_TYPE_IGNORE_NAMES, metadata = BOWSTRING_TYPE_IGNORE_METADATA;
  const uint32_t nullable = BOWSTRING_TYPE_IGNORE_NULLABLE;
  static const char pairs[] = "\1\0\0\0\1\0\0\0k\1\0\0\0v";
  BowstringType *plain = parse("struct<a: list<int32>>"), *named = parse("struct<b: list<x: int32>>");
  BowstringType *kept = parse("struct<a: list<int32 not null>>"), *marked = NULL;
  const BowstringType *child = NULL;
  check_about("equality");
  CHECK_OK(bowstring_type_child(plain, 0, &child, &report));
  CHECK_OK(bowstring_type_new("+s", "", 2, &child, 1, NULL, pairs, sizeof pairs - 1, &marked, &report));
  for (uint32_t flags = 0; flags < 8; flags++) {
    CHECK(bowstring_type_equals(plain, plain, flags));
    CHECK_INT(bowstring_type_equals(plain, named, flags), !!(flags & names));
    CHECK_INT(bowstring_type_equals(plain, kept, flags), !!(flags & nullable));
    CHECK_INT(bowstring_type_equals(plain, marked, flags), !!(flags & metadata));
    CHECK_INT(bowstring_type_equals(named, kept, flags), (flags & names) && (flags & nullable));
    CHECK_INT(bowstring_type_equals(marked, named, flags), (flags & names) && (flags & metadata));
    CHECK(!bowstring_type_equals(plain, NULL, flags));
    CHECK(!bowstring_type_equals(NULL, plain, flags));
    CHECK(!bowstring_type_equals(NULL, NULL, flags));
  }
  bowstring_type_release(plain);
  bowstring_type_release(named);
  bowstring_type_release(kept);
  bowstring_type_release(marked);
}

/* ---- types from parts ---- */

static void test_bad_parts(void) {
  BowstringType *leaf = parse("x: int32"), *text = parse("utf8"), *made = NULL;
  const BowstringType *two[2] = {leaf, leaf};
  check_about("parts");
#define NEW_FAILS(status, format, name, children, n, dictionary, metadata, bytes)                              \
  do {                                                                                                         \
    made = (BowstringType *)8;                                                                                 \
    CHECK_FAILS(bowstring_type_new(format, name, 2, children, n, dictionary, metadata, bytes, &made, &report), \
                status);                                                                                       \
    CHECK_PTR(made, NULL);                                                                                     \
  } while (0)
  NEW_FAILS(BOWSTRING_INVALID_ARGUMENT, NULL, "", NULL, 0, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_ARGUMENT, "+s", "", NULL, 1, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_ARGUMENT, "i", "", NULL, 0, NULL, "", -1);
  NEW_FAILS(BOWSTRING_INVALID_ARGUMENT, "i", "", NULL, 0, NULL, NULL, 4);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "?", "", NULL, 0, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "+l", "", two, 2, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "i", "", two, 1, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "f", "", NULL, 0, text, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "+m", "", two, 1, NULL, NULL, 0);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "i", "", NULL, 0, NULL, "\1\0\0\0", 4);
  NEW_FAILS(BOWSTRING_INVALID_DATA, "i", "", NULL, 0, NULL, "\1\0", 2);
  const BowstringType *hole[2] = {leaf, NULL};
  NEW_FAILS(BOWSTRING_INVALID_ARGUMENT, "+s", "", hole, 2, NULL, NULL, 0);

  /* Children keep their names; a name of one's own may be left out. */
  CHECK_OK(bowstring_type_new("+s", NULL, 0, two, 2, NULL, NULL, 0, &made, &report));
  check_text_of(made, "struct<x: int32, x: int32> not null");
  bowstring_type_release(made);
  CHECK_OK(bowstring_type_new("c", "codes", 2, NULL, 0, text, NULL, 0, &made, &report));
  check_text_of(made, "codes: dictionary<int8, utf8>");
  bowstring_type_release(made);
  bowstring_type_release(leaf);
  bowstring_type_release(text);
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  test_samples();
  test_text_forms();
  test_bad_text();
  test_capacities();
  test_handles();
  test_equality();
  test_bad_parts();
  live_as_before(&before);
  return check_end(60000);
}
