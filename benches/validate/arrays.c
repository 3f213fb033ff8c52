#include "arrays.h"

#include <stdlib.h>
#include <string.h>

#include "../measure.h"

enum { ROWS = 10 * 1000 * 1000, MANY_ROWS = 50 * 1000 * 1000, WORDS = 1000, TEXTS = 4, SHORT_TEXT = 12 };

static uint64_t state;

/* The high half of a 64-bit linear congruential generator: the same numbers in every run. */
static uint32_t any(void) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (uint32_t)(state >> 32);
}

static uint32_t below(uint32_t limit) { return (uint32_t)((uint64_t)any() * limit >> 32); }

/* Zeroed memory, aligned and padded as the format asks. */
static void *memory(int64_t size) {
  size_t padded = ((size_t)size + 127) / 64 * 64;
  void *p = aligned_alloc(64, padded);
  EXPECT(p != NULL);
  memset(p, 0, padded);
  return p;
}

/* Zeroes that are never read, and so never take up memory. */
static void *unread(int64_t size) {
  void *p = calloc((size_t)size + 64, 1);
  EXPECT(p != NULL);
  return p;
}

static struct node *node(const char *format, const char *name, int64_t length, int n_buffers) {
  struct node *n = calloc(1, sizeof *n);
  EXPECT(n != NULL);
  n->format = format;
  n->name = name;
  n->length = length;
  n->n_buffers = n_buffers;
  return n;
}

static struct node *int32_node(const char *name, int64_t length) {
  struct node *n = node("i", name, length, 2);
  n->buffers[1] = unread(length * 4);
  return n;
}

static void fault(struct array_case *c, void *place, const void *bytes, int64_t size) {
  EXPECT(size <= (int64_t)sizeof c->fault);
  c->place = place;
  c->fault_size = size;
  memcpy(c->fault, bytes, (size_t)size);
}

static int put(unsigned char *out, uint32_t letter) {
  if (letter < 0x80) {
    out[0] = (unsigned char)letter;
    return 1;
  }
  int more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
  static const unsigned char first[4] = {0, 0xC0, 0xE0, 0xF0};
  out[0] = (unsigned char)(first[more] | letter >> 6 * more);
  for (int i = 1; i <= more; i++) out[i] = (unsigned char)(0x80 | (letter >> 6 * (more - i) & 0x3F));
  return more + 1;
}

/* Letters until there are enough bytes: ASCII, or two in ten of it beside Cyrillic, CJK and emoji. */
static int text(unsigned char *out, int enough, int ascii) {
  int n = 0;
  while (n < enough) {
    uint32_t kind = ascii ? 0 : below(10);
    n += put(out + n, kind < 2   ? 0x20 + below(95)
                      : kind < 5 ? 0x400 + below(0x100)
                      : kind < 9 ? 0x4E00 + below(0x5000)
                                 : 0x1F300 + below(0x300));
  }
  return n;
}

static void utf8(struct array_case *c, int ascii) {
  int32_t *offsets = memory((ROWS + 1) * 4LL);
  unsigned char *data = memory(ROWS * 24LL);
  for (int64_t i = 0; i < ROWS; i++) {
    int enough = ascii ? 4 + (int)below(17) : 3 + (int)below(16);
    offsets[i + 1] = offsets[i] + text(data + offsets[i], enough, ascii);
  }
  c->root = node("u", "", ROWS, 3);
  c->root->buffers[1] = offsets;
  c->root->buffers[2] = data;
  c->bytes = (ROWS + 1) * 4LL + offsets[ROWS];
  fault(c, data + offsets[ROWS - 5], "\xFF", 1);
}

static void list(struct array_case *c) {
  int32_t *offsets = memory((ROWS + 1) * 4LL);
  for (int64_t i = 0; i < ROWS; i++) offsets[i + 1] = offsets[i] + (int32_t)below(9);
  c->root = node("+l", "", ROWS, 2);
  c->root->buffers[1] = offsets;
  c->root->n_children = 1;
  c->root->children[0] = int32_node("item", offsets[ROWS]);
  c->bytes = (ROWS + 1) * 4LL;
  int32_t zero = 0;
  fault(c, &offsets[ROWS - 5], &zero, 4);
}

/* One row in four is null. */
static void *validity(int64_t rows, int64_t *null_count) {
  unsigned char *bits = memory(rows / 8);
  for (int64_t i = 0; i < rows / 8; i++) {
    bits[i] = (unsigned char)(any() >> 24 | any() >> 24);
    for (int k = 0; k < 8; k++) *null_count += !(bits[i] >> k & 1);
  }
  return bits;
}

static void nulls(struct array_case *c) {
  c->root = node("l", "", MANY_ROWS, 2);
  unsigned char *bits = c->root->buffers[0] = validity(MANY_ROWS, &c->root->null_count);
  c->root->buffers[1] = unread(MANY_ROWS * 8LL);
  c->bytes = MANY_ROWS / 8;
  unsigned char other = bits[5] ^ 1;
  fault(c, &bits[5], &other, 1);
}

static void dictionary(struct array_case *c, int nullable) {
  int32_t *indices = memory(MANY_ROWS * 4LL);
  for (int64_t i = 0; i < MANY_ROWS; i++) indices[i] = (int32_t)below(WORDS);
  c->root = node("i", "", MANY_ROWS, 2);
  c->root->buffers[1] = indices;
  c->root->dictionary = int32_node("", WORDS);
  c->bytes = MANY_ROWS * 4LL;
  int64_t row = MANY_ROWS - 100;
  if (nullable) {
    unsigned char *bits = c->root->buffers[0] = validity(MANY_ROWS, &c->root->null_count);
    c->bytes += MANY_ROWS / 8;
    while (!(bits[row / 8] >> row % 8 & 1)) row++;
  }
  int32_t beyond = WORDS;
  fault(c, &indices[row], &beyond, 4);
}

static void dense_union(struct array_case *c) {
  static const char *const names[3] = {"a", "b", "c"};
  unsigned char *ids = memory(ROWS);
  int32_t *offsets = memory(ROWS * 4LL);
  int32_t lengths[3] = {0, 0, 0};
  for (int64_t i = 0; i < ROWS; i++) {
    ids[i] = (unsigned char)below(3);
    offsets[i] = lengths[ids[i]]++;
  }
  c->root = node("+ud:0,1,2", "", ROWS, 2);
  c->root->buffers[0] = ids;
  c->root->buffers[1] = offsets;
  c->root->n_children = 3;
  for (int i = 0; i < 3; i++) c->root->children[i] = int32_node(names[i], lengths[i]);
  c->bytes = ROWS * 5LL;
  /* The first offset behind the child. */
  fault(c, &offsets[ROWS - 1], &lengths[ids[ROWS - 1]], 4);
}

static void string_view(struct array_case *c) {
  unsigned char *views = memory(ROWS * 16LL);
  unsigned char *texts[TEXTS], *last = NULL;
  int64_t *sizes = memory(TEXTS * 8);
  for (int i = 0; i < TEXTS; i++) texts[i] = memory(ROWS / TEXTS * 24LL);
  for (int64_t i = 0; i < ROWS; i++) {
    int32_t index = (int32_t)(i / (ROWS / TEXTS));
    unsigned char *view = views + i * 16, *out = texts[index] + sizes[index];
    int32_t offset = (int32_t)sizes[index], n = text(out, 4 + (int)below(17), 1);
    memcpy(view, &n, 4);
    if (n <= SHORT_TEXT) {
      memcpy(view + 4, out, (size_t)n);
      memset(out, 0, (size_t)n);
    } else {
      memcpy(view + 4, out, 4);
      memcpy(view + 8, &index, 4);
      memcpy(view + 12, &offset, 4);
      sizes[index] += n;
      last = out + n - 1;
    }
  }
  c->root = node("vu", "", ROWS, 3 + TEXTS);
  c->root->buffers[1] = views;
  c->bytes = ROWS * 16LL;
  for (int i = 0; i < TEXTS; i++) {
    c->root->buffers[2 + i] = texts[i];
    c->bytes += sizes[i];
  }
  c->root->buffers[2 + TEXTS] = sizes;
  fault(c, last, "\xFF", 1);
}

struct array_case *array_case_new(int i) {
  static const char *const names[CASES] = {"utf8 ASCII",        "utf8 multi-byte", "list offsets",
                                           "int64 null counts", "dictionary",      "dictionary with nulls",
                                           "dense union",       "string view"};
  struct array_case *c = calloc(1, sizeof *c);
  EXPECT(c != NULL && i >= 0 && i < CASES);
  c->name = names[i % CASES];
  state = (uint64_t)i;
  switch (i) {
    case 0: utf8(c, 1); break;
    case 1: utf8(c, 0); break;
    case 2: list(c); break;
    case 3: nulls(c); break;
    case 4: dictionary(c, 0); break;
    case 5: dictionary(c, 1); break;
    case 6: dense_union(c); break;
    default: string_view(c); break;
  }
  return c;
}

static void free_node(struct node *n) {
  if (n == NULL) return;
  for (int i = 0; i < n->n_buffers; i++) free(n->buffers[i]);
  for (int i = 0; i < n->n_children; i++) free_node(n->children[i]);
  free_node(n->dictionary);
  free(n);
}

void array_case_free(struct array_case *c) {
  free_node(c->root);
  free(c);
}

void array_case_swap_fault(struct array_case *c) {
  for (int64_t i = 0; i < c->fault_size && i < (int64_t)sizeof c->fault; i++) {
    unsigned char was = c->place[i];
    c->place[i] = c->fault[i];
    c->fault[i] = was;
  }
}

/* ---- structs over a case ---- */

static void release_array(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  if (array->dictionary && array->dictionary->release) array->dictionary->release(array->dictionary);
  free(array->dictionary);
  free(array->children);
  free((void *)array->buffers);
  array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    free(schema->children[i]);
  }
  if (schema->dictionary && schema->dictionary->release) schema->dictionary->release(schema->dictionary);
  free(schema->dictionary);
  free(schema->children);
  schema->release = NULL;
}

static void *some(size_t n, size_t size) {
  void *p = calloc(n + 1, size);
  EXPECT(p != NULL);
  return p;
}

static void export_node(const struct node *n, struct ArrowArray *array, struct ArrowSchema *schema) {
  memset(array, 0, sizeof *array);
  memset(schema, 0, sizeof *schema);
  array->length = n->length;
  array->null_count = n->null_count;
  array->n_buffers = n->n_buffers;
  array->buffers = some((size_t)n->n_buffers, sizeof *array->buffers);
  for (int i = 0; i < n->n_buffers; i++) array->buffers[i] = n->buffers[i];
  array->n_children = schema->n_children = n->n_children;
  array->children = some((size_t)n->n_children, sizeof *array->children);
  schema->children = some((size_t)n->n_children, sizeof *schema->children);
  for (int i = 0; i < n->n_children; i++) {
    array->children[i] = some(1, sizeof(struct ArrowArray));
    schema->children[i] = some(1, sizeof(struct ArrowSchema));
    export_node(n->children[i], array->children[i], schema->children[i]);
  }
  if (n->dictionary) {
    array->dictionary = some(1, sizeof(struct ArrowArray));
    schema->dictionary = some(1, sizeof(struct ArrowSchema));
    export_node(n->dictionary, array->dictionary, schema->dictionary);
  }
  array->release = release_array;
  schema->format = n->format;
  schema->name = n->name;
  schema->flags = ARROW_FLAG_NULLABLE;
  schema->release = release_schema;
}

void array_case_export(const struct array_case *c, struct ArrowArray *array, struct ArrowSchema *schema) {
  export_node(c->root, array, schema);
}
