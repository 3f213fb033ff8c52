/* Broken and hostile schemas, each in a process of its own: every one is refused with its rule, or accepted on purpose,
 * and whoever owned it still does. */
#include "alone.h"
#include "build.h"
#include "check.h"
#include "malformed_formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The schema is refused by every way in, and stays the caller's; `rule` NULL: it is accepted. */
static void try_schema(struct ArrowSchema *schema, BowstringStatus expected, const char *rule, const char *path) {
  struct ArrowSchema before = *schema;
  struct ArrowDeviceArray array;
  BowstringType *type = (BowstringType *)8;
  BowstringArray *imported = (BowstringArray *)8;
  CHECK_FAILS(bowstring_type_copy_from(schema, &type, &report), expected);
  CHECK_MEM(schema, &before, sizeof before);
  if (expected == BOWSTRING_OK) {
    bowstring_type_release(type);
    CHECK_OK(bowstring_type_import(schema, &type, &report));
    CHECK(schema->release == NULL);
    /* What was accepted goes out again, names and all, and comes back the same. */
    struct ArrowSchema out;
    BowstringType *again = NULL;
    CHECK_OK(bowstring_type_export(type, &out, &report));
    CHECK(out.name != NULL);
    CHECK_OK(bowstring_type_import(&out, &again, &report));
    CHECK(bowstring_type_equals(type, again, 0));
    bowstring_type_release(again);
    bowstring_type_release(type);
    return;
  }
  CHECK_PTR(type, NULL);
  check_refusal(expected, rule, path);
  type = (BowstringType *)8;
  CHECK_FAILS(bowstring_type_import(schema, &type, &report), expected);
  CHECK_PTR(type, NULL);
  check_refusal(expected, rule, path);
  sample_array(sample_named("int32"), &array);
  struct ArrowDeviceArray array_before = array;
  CHECK_FAILS(bowstring_array_import(&array, schema, &imported, &report), expected);
  CHECK_PTR(imported, NULL);
  check_refusal(expected, rule, path);
  CHECK_MEM(schema, &before, sizeof before);
  CHECK_MEM(&array, &array_before, sizeof array);
  CHECK_INT(owners_left(), (schema->release != NULL) + 1);
  bowstring_schema_release(schema);
  bowstring_device_array_release(&array);
}

static void format_case(const void *what) {
  const struct format_case *given = what;
  struct field children[8], root = {given->format, "", 2, given->n_children, children, NULL, NULL};
  for (int i = 0; i < given->n_children; i++) children[i] = (struct field){"i", "x", 2, 0, NULL, NULL, NULL};
  check_about("format %s with %d children", given->format ? given->format : "NULL", given->n_children);
  struct ArrowSchema schema;
  field_schema(&root, &schema);
  try_schema(&schema, given->rule ? BOWSTRING_INVALID_DATA : BOWSTRING_OK, given->rule, "$");

  /* The same one level further down. */
  struct field outer = {"+s", "", 2, 1, &root, NULL, NULL};
  root.name = "inner";
  field_schema(&outer, &schema);
  try_schema(&schema, given->rule ? BOWSTRING_INVALID_DATA : BOWSTRING_OK, given->rule, "$.inner");
}

static const struct field int_field = {"i", "i", 2, 0, NULL, NULL, NULL};
static const struct field key_fields[] = {{"i", "key", 0, 0, NULL, NULL, NULL}, {"i", "value", 2, 0, NULL, NULL, NULL}};
static const struct field nullable_keys[] = {{"i", "key", 2, 0, NULL, NULL, NULL},
                                             {"i", "value", 2, 0, NULL, NULL, NULL}};

enum schema_damage {
  RELEASED_SCHEMA,
  CHILDREN_NULL,
  CHILD_NULL,
  SECOND_CHILD_NULL,
  CHILD_RELEASED,
  N_CHILDREN_NEGATIVE,
  N_CHILDREN_HUGE,
  N_CHILDREN_MANY,
  DICTIONARY_OF_FLOATS,
  DICTIONARY_OF_LIST,
  DICTIONARY_RELEASED,
  DICTIONARY_BROKEN,
  MAP_OF_INTS,
  MAP_OF_ONE,
  MAP_ENTRIES_NULLABLE,
  MAP_KEY_NULLABLE,
  RUN_ENDS_UNSIGNED,
  RUN_ENDS_ENCODED,
  VALUES_ENCODED,
  DEEP_SCHEMA,
  DEEP_DICTIONARIES,
  ITSELF_A_CHILD,
  NAME_NULL,
  CHILD_NAME_NULL,
  NAME_NOT_UTF8,
  NAME_TOO_LONG,
  FORMAT_TOO_LONG,
  UNKNOWN_FLAGS,
  DEEP_ENOUGH,
  PRIVATE_DATA_NULL,
  N_SCHEMA_DAMAGES
};

static void release_nothing(struct ArrowSchema *schema) { schema->release = NULL; }

/* A chain of lists, released without recursion. */
static void deep_schema(int depth, int by_dictionary, BowstringStatus expected) {
  struct ArrowSchema *chain = calloc((size_t)depth, sizeof *chain),
                     **pointers = calloc((size_t)depth, sizeof *pointers);
  CHECK(chain != NULL && pointers != NULL);
  for (int i = 0; i < depth; i++) {
    int is_last = i == depth - 1;
    chain[i] = (struct ArrowSchema){
        .format = by_dictionary || is_last ? "i" : "+l", .name = "x", .flags = 2, .release = release_nothing};
    pointers[i] = is_last ? NULL : &chain[i + 1];
    if (is_last) continue;
    if (by_dictionary) {
      chain[i].dictionary = &chain[i + 1];
    } else {
      chain[i].n_children = 1;
      chain[i].children = &pointers[i];
    }
  }
  struct ArrowSchema root = chain[0];
  BowstringType *type = NULL;
  CHECK_FAILS(bowstring_type_import(&root, &type, &report), expected);
  if (expected == BOWSTRING_OK) {
    CHECK(root.release == NULL);
    bowstring_type_release(type);
  } else {
    CHECK(root.release != NULL);
    CHECK_INT(report.status, BOWSTRING_INVALID_DATA);
    CHECK_HAS(report.message, "64");
    CHECK_HAS(report.path, "$");
  }
  free(chain);
  free(pointers);
}

static void schema_case(const void *what) {
  enum schema_damage damage = *(const enum schema_damage *)what;
  struct field nested = sample_named("struct<a: int32, b: utf8>")->field,
               entries = {"+s", "entries", 0, 2, key_fields, NULL, NULL};
  struct field two[2] = {int_field, int_field}, root = nested, values = int_field;
  BowstringStatus expected = BOWSTRING_INVALID_DATA;
  const char *rule = "S5", *path = "$";
  char *text = NULL;
  struct ArrowSchema schema;
  check_about("schema damage %d", damage);
  switch (damage) {
    case DICTIONARY_OF_FLOATS: root = (struct field){"f", "", 2, 0, NULL, &int_field, NULL}, rule = "S6"; break;
    case DICTIONARY_OF_LIST: root.dictionary = &int_field, rule = "S6"; break;
    case DICTIONARY_RELEASED:
    case DICTIONARY_BROKEN:
      root = (struct field){"i", "", 2, 0, NULL, &values, NULL}, rule = "S6";
      if (damage == DICTIONARY_BROKEN) values.format = "?", rule = "F1", path = "$<dictionary>";
      break;
    case MAP_OF_INTS: root = (struct field){"+m", "", 2, 1, &int_field, NULL, NULL}, rule = "F5", path = "$.i"; break;
    case MAP_OF_ONE:
    case MAP_ENTRIES_NULLABLE:
    case MAP_KEY_NULLABLE:
      root = (struct field){"+m", "", 2, 1, &entries, NULL, NULL}, rule = "F5", path = "$.entries";
      if (damage == MAP_OF_ONE) entries.n_children = 1;
      if (damage == MAP_ENTRIES_NULLABLE) entries.flags = ARROW_FLAG_NULLABLE;
      if (damage == MAP_KEY_NULLABLE) entries.children = nullable_keys, path = "$.entries.key";
      break;
    case RUN_ENDS_UNSIGNED:
    case RUN_ENDS_ENCODED:
    case VALUES_ENCODED:
      root = (struct field){"+r", "", 2, 2, two, NULL, NULL}, rule = "F5", path = "$.i";
      if (damage == RUN_ENDS_UNSIGNED) two[0].format = "I";
      if (damage == RUN_ENDS_ENCODED) two[0].dictionary = &int_field;
      if (damage == VALUES_ENCODED) two[1] = (struct field){"+r", "i", 2, 2, key_fields, NULL, NULL};
      break;
    case NAME_NULL:
    case NAME_NOT_UTF8:
    case UNKNOWN_FLAGS:
      root = int_field, expected = BOWSTRING_OK;
      if (damage == NAME_NULL) root.name = NULL;
      if (damage == NAME_NOT_UTF8) root.name = "\xff\xfe";
      if (damage == UNKNOWN_FLAGS) root.flags = INT64_MIN | 2;
      break;
    case CHILD_NAME_NULL:
      two[0].name = two[1].name = NULL;
      root = (struct field){"+s", NULL, 2, 2, two, NULL, NULL}, expected = BOWSTRING_OK;
      break;
    case NAME_TOO_LONG:
    case FORMAT_TOO_LONG:
      text = malloc(BOWSTRING_MAX_NAME + 2);
      CHECK(text != NULL);
      memset(text, 'x', BOWSTRING_MAX_NAME + 1);
      text[BOWSTRING_MAX_NAME + 1] = '\0';
      root = int_field;
      if (damage == NAME_TOO_LONG) root.name = text, rule = "S2";
      if (damage == FORMAT_TOO_LONG) memcpy(text, "tsu:", 4), root.format = text, rule = "S1";
      break;
    case DEEP_SCHEMA: deep_schema(10000, 0, expected); return;
    case DEEP_DICTIONARIES: deep_schema(10000, 1, expected); return;
    case DEEP_ENOUGH:
      deep_schema(BOWSTRING_MAX_DEPTH, 0, BOWSTRING_OK);
      deep_schema(BOWSTRING_MAX_DEPTH, 1, BOWSTRING_OK);
      deep_schema(BOWSTRING_MAX_DEPTH + 1, 0, expected);
      deep_schema(BOWSTRING_MAX_DEPTH + 1, 1, expected);
      return;
    default: break;
  }
  field_schema(&root, &schema);
  switch (damage) {
    case RELEASED_SCHEMA: bowstring_schema_release(&schema), expected = BOWSTRING_RELEASED, rule = "M2"; break;
    case CHILDREN_NULL: schema.children = NULL; break;
    case CHILD_NULL: schema.children[0] = NULL; break;
    case SECOND_CHILD_NULL: schema.children[1] = NULL; break;
    case CHILD_RELEASED: bowstring_schema_release(schema.children[1]); break;
    case N_CHILDREN_NEGATIVE: schema.n_children = -1; break;
    case N_CHILDREN_HUGE: schema.n_children = INT64_MAX, rule = ""; break;
    case N_CHILDREN_MANY: schema.n_children = (int64_t)BOWSTRING_MAX_NODES + 1, rule = ""; break;
    case DICTIONARY_RELEASED: bowstring_schema_release(schema.dictionary); break;
    case ITSELF_A_CHILD: schema.children[0] = &schema, rule = "", path = NULL; break;
    case PRIVATE_DATA_NULL: {
      struct ArrowSchema plain = {.format = "i", .release = release_nothing};
      bowstring_schema_release(&schema);
      schema = plain, expected = BOWSTRING_OK;
      break;
    }
    default: break;
  }
  try_schema(&schema, expected, rule, path);
  free(text);
}

/* ---- metadata ---- */

struct metadata_case {
  const char *name, *bytes;
  size_t size;
  int is_legal;
  int64_t kept; /* bytes that are kept of it */
};

#define METADATA(name, bytes, legal, kept) {name, bytes, sizeof(bytes) - 1, legal, kept}

static const struct metadata_case metadata_cases[] = {
    METADATA("no pairs", "\0\0\0\0", 1, 0),
    METADATA("a value that is not text", "\1\0\0\0\1\0\0\0k\3\0\0\0\xff\0\xfe", 1, 16),
    METADATA("empty key and value", "\1\0\0\0\0\0\0\0\0\0\0\0", 1, 12),
    METADATA("a key twice", "\2\0\0\0\1\0\0\0k\1\0\0\0a\1\0\0\0k\1\0\0\0b", 1, 24),
    METADATA("a negative count", "\xff\xff\xff\xff", 0, 0),
    METADATA("a negative key length", "\1\0\0\0\xfc\xff\xff\xff", 0, 0),
    METADATA("a negative value length", "\1\0\0\0\1\0\0\0k\xff\xff\xff\xff", 0, 0),
    METADATA("a key beyond the limit", "\1\0\0\0\xff\xff\xff\x7f", 0, 0),
    METADATA("a value beyond the limit", "\1\0\0\0\0\0\0\0\1\0\0\4", 0, 0),
};

static void metadata_case(const void *what) {
  const struct metadata_case *given = what;
  check_about("metadata: %s", given->name);
  for (int shift = 0; shift < 2; shift++) {
    /* Exactly as long as it is, and at an odd address too. */
    char *bytes = malloc(given->size + (size_t)shift);
    CHECK(bytes != NULL);
    memcpy(bytes + shift, given->bytes, given->size);
    struct field root = int_field;
    root.metadata = bytes + shift;
    struct ArrowSchema schema;
    field_schema(&root, &schema);
    if (!given->is_legal) {
      try_schema(&schema, BOWSTRING_INVALID_DATA, "S3", "$");
    } else {
      BowstringType *type = NULL;
      struct ArrowSchema out;
      BowstringTypeNodeInfo info = {.struct_size = sizeof info};
      CHECK_OK(bowstring_type_import(&schema, &type, &report));
      memset(bytes, 0xFF, given->size);
      CHECK_OK(bowstring_type_node_info(type, 0, &info, &report));
      CHECK_INT(info.metadata_bytes, given->kept);
      CHECK_INT(info.metadata != NULL, given->kept > 0);
      CHECK_MEM(info.metadata, given->bytes, (size_t)given->kept);
      CHECK_OK(bowstring_type_export(type, &out, &report));
      CHECK_INT(out.metadata != NULL, given->kept > 0);
      CHECK_MEM(out.metadata, given->bytes, (size_t)given->kept);
      bowstring_schema_release(&out);
      bowstring_type_release(type);
    }
    free(bytes);
  }
}

int main(void) {
  for (size_t i = 0; i < sizeof format_cases / sizeof format_cases[0]; i++) alone(format_case, &format_cases[i]);
  for (enum schema_damage i = 0; i < N_SCHEMA_DAMAGES; i++) alone(schema_case, &i);
  for (size_t i = 0; i < sizeof metadata_cases / sizeof metadata_cases[0]; i++)
    alone(metadata_case, &metadata_cases[i]);
  printf("%ld schemas, each in its own process\n", alone_count());
  CHECK(alone_count() >= 155);
  return check_end(450);
}
