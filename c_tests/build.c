#define _GNU_SOURCE
#include "build.h"
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- owners ---- */

static atomic_long turns;
static struct owner *owners;
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

static void *new_memory(size_t size) {
  void *memory = malloc(size ? size : 1);
  CHECK(memory != NULL);
  return memory;
}

static void *new_zeroes(size_t n, size_t size) { return memset(new_memory(n * size), 0, n * size); }

struct owner *owner_new(void *memory) {
  struct owner *owner = new_zeroes(1, sizeof *owner);
  owner->memory = memory;
  pthread_mutex_lock(&owners_lock);
  owner->next = owners;
  owners = owner;
  pthread_mutex_unlock(&owners_lock);
  return owner;
}

void owner_release(void *owner) {
  struct owner *gone = owner;
  gone->turn = atomic_fetch_add(&turns, 1) + 1;
  if (atomic_fetch_add(&gone->runs, 1) == 0) free(gone->memory);
}

void owner_destroy_event(void *owner, void *event) {
  (void)event;
  owner_release(owner);
}

int owners_left(void) {
  int left = 0;
  for (struct owner *owner = owners; owner; owner = owner->next) left += owner->runs == 0;
  return left;
}

void owners_let_go(void) {
  for (struct owner *owner = owners; owner; owner = owner->next)
    if (owner->runs == 0) owner_release(owner);
}

void owners_all_gone(void) {
  while (owners) {
    struct owner *owner = owners;
    CHECK_INT(owner->runs, 1);
    owners = owner->next;
    free(owner);
  }
}

/* ---- foreign structs ---- */

struct foreign_schema {
  struct owner *owner;
  int n_children;
  struct ArrowSchema *children, *dictionary, **pointers;
};

static void release_schema(struct ArrowSchema *schema) {
  struct foreign_schema *own = schema->private_data;
  for (int i = 0; i < own->n_children; i++)
    if (own->children[i].release) own->children[i].release(&own->children[i]);
  if (own->dictionary && own->dictionary->release) own->dictionary->release(own->dictionary);
  free(own->children);
  free(own->dictionary);
  free(own->pointers);
  if (own->owner) owner_release(own->owner);
  free(own);
  schema->release = NULL;
}

static void fill_schema(const struct field *field, struct ArrowSchema *out) {
  struct foreign_schema *own = new_zeroes(1, sizeof *own);
  *out = (struct ArrowSchema){.format = field->format,
                              .name = field->name,
                              .metadata = field->metadata,
                              .flags = field->flags,
                              .n_children = field->n_children,
                              .release = release_schema,
                              .private_data = own};
  if (field->n_children > 0) {
    own->n_children = field->n_children;
    own->children = new_zeroes((size_t)field->n_children, sizeof *own->children);
    own->pointers = new_zeroes((size_t)field->n_children, sizeof *own->pointers);
    for (int i = 0; i < field->n_children; i++) {
      own->pointers[i] = &own->children[i];
      fill_schema(&field->children[i], &own->children[i]);
    }
    out->children = own->pointers;
  }
  if (field->dictionary) {
    out->dictionary = own->dictionary = new_zeroes(1, sizeof *own->dictionary);
    fill_schema(field->dictionary, own->dictionary);
  }
}

void field_schema(const struct field *field, struct ArrowSchema *out) {
  fill_schema(field, out);
  ((struct foreign_schema *)out->private_data)->owner = owner_new(NULL);
}

void sample_schema(const struct sample *sample, struct ArrowSchema *out) { field_schema(&sample->field, out); }

struct foreign_array {
  struct owner *owner;
  int n_children, n_buffers;
  void **copies;
  const void **addresses;
  struct ArrowArray *children, *dictionary, **pointers;
};

static void release_array(struct ArrowArray *array) {
  struct foreign_array *own = array->private_data;
  for (int i = 0; i < own->n_children; i++)
    if (own->children[i].release) own->children[i].release(&own->children[i]);
  if (own->dictionary && own->dictionary->release) own->dictionary->release(own->dictionary);
  for (int i = 0; i < own->n_buffers; i++) free(own->copies[i]);
  free(own->copies);
  free(own->addresses);
  free(own->children);
  free(own->dictionary);
  free(own->pointers);
  if (own->owner) owner_release(own->owner);
  free(own);
  array->release = NULL;
}

static void *copy_of(const struct bytes *bytes) {
  return bytes->data ? memcpy(new_memory((size_t)bytes->size), bytes->data, (size_t)bytes->size) : NULL;
}

/* `node` and `buffer` go on to what follows. */
static void fill_array(const struct sample *sample, const struct field *field, int *node, int *buffer,
                       struct ArrowArray *out) {
  const BowstringNode *facts = &sample->nodes[(*node)++];
  struct foreign_array *own = new_zeroes(1, sizeof *own);
  own->n_buffers = (int)facts->n_buffers;
  own->copies = new_zeroes((size_t)own->n_buffers, sizeof *own->copies);
  own->addresses = new_zeroes((size_t)own->n_buffers, sizeof *own->addresses);
  for (int i = 0; i < own->n_buffers; i++) own->addresses[i] = own->copies[i] = copy_of(&sample->buffers[(*buffer)++]);
  *out = (struct ArrowArray){.length = facts->length,
                             .null_count = facts->null_count,
                             .offset = facts->offset,
                             .n_buffers = facts->n_buffers,
                             .n_children = field->n_children,
                             .buffers = own->addresses,
                             .release = release_array,
                             .private_data = own};
  if (field->n_children > 0) {
    own->n_children = field->n_children;
    own->children = new_zeroes((size_t)field->n_children, sizeof *own->children);
    own->pointers = new_zeroes((size_t)field->n_children, sizeof *own->pointers);
    for (int i = 0; i < field->n_children; i++) {
      own->pointers[i] = &own->children[i];
      fill_array(sample, &field->children[i], node, buffer, &own->children[i]);
    }
    out->children = own->pointers;
  }
  if (field->dictionary) {
    out->dictionary = own->dictionary = new_zeroes(1, sizeof *own->dictionary);
    fill_array(sample, field->dictionary, node, buffer, own->dictionary);
  }
}

void sample_host_array(const struct sample *sample, struct ArrowArray *out) {
  int node = 0, buffer = 0;
  fill_array(sample, &sample->field, &node, &buffer, out);
  ((struct foreign_array *)out->private_data)->owner = owner_new(NULL);
  CHECK_INT(node, sample->n_nodes);
  CHECK_INT(buffer, sample->n_buffers);
}

void sample_array(const struct sample *sample, struct ArrowDeviceArray *out) {
  memset(out, 0, sizeof *out);
  sample_host_array(sample, &out->array);
  out->device_type = ARROW_DEVICE_CPU;
  out->device_id = -1;
}

/* ---- what the library makes of a sample ---- */

BowstringType *sample_type(const struct sample *sample) {
  struct ArrowSchema schema;
  BowstringType *type = NULL;
  sample_schema(sample, &schema);
  CHECK_OK(bowstring_type_import(&schema, &type, &report));
  return type;
}

void sample_buffers(const struct sample *sample, BowstringOwnedBuffer *out) {
  for (int i = 0; i < sample->n_buffers; i++) {
    void *copy = copy_of(&sample->buffers[i]);
    out[i] = (BowstringOwnedBuffer){copy, sample->buffers[i].size, owner_new(copy), owner_release};
  }
}

void sample_built(const struct sample *sample, const BowstringType *type, struct ArrowDeviceArray *out) {
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  sample_buffers(sample, buffers);
  CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                               (size_t)sample->n_buffers, NULL, out, &report));
}

BowstringArray *sample_import(const struct sample *sample) {
  struct ArrowDeviceArray raw;
  BowstringArray *array = NULL;
  BowstringType *type = sample_type(sample);
  sample_built(sample, type, &raw);
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  bowstring_type_release(type);
  return array;
}

BowstringArray *sample_foreign(const struct sample *sample) {
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *array = NULL;
  sample_array(sample, &raw);
  sample_schema(sample, &schema);
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));
  return array;
}

/* ---- device memory ---- */

enum { DEVICE_BLOCK = 1 << 16, MAX_DEVICE_BLOCKS = 4096 };

static unsigned char *device_blocks[MAX_DEVICE_BLOCKS];
static int n_device_blocks;

void *device_copy(const void *bytes, size_t size) {
  CHECK(size <= DEVICE_BLOCK && n_device_blocks < MAX_DEVICE_BLOCKS);
  void *block = mmap(NULL, DEVICE_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(block != MAP_FAILED);
  if (size) memcpy(block, bytes, size);
  CHECK_INT(mprotect(block, DEVICE_BLOCK, PROT_NONE), 0);
  device_blocks[n_device_blocks++] = block;
  return block;
}

int device_read(void *ctx, void *dst, const void *src, size_t n) {
  if (ctx) ++*(int *)ctx;
  for (int i = 0; i < n_device_blocks; i++) {
    const unsigned char *block = device_blocks[i], *from = src;
    if (from < block || from + n > block + DEVICE_BLOCK) continue;
    if (mprotect(device_blocks[i], DEVICE_BLOCK, PROT_READ) != 0) return 5;
    memcpy(dst, src, n);
    return mprotect(device_blocks[i], DEVICE_BLOCK, PROT_NONE) == 0 ? 0 : 5;
  }
  /* The sizes of variadic buffers are in CPU memory. */
  memcpy(dst, src, n);
  return 0;
}

static int is_view(const char *format) { return format[0] == 'v'; }

static void hide(const struct field *field, struct ArrowArray *array, const struct sample *sample, int *buffer) {
  for (int64_t i = 0; i < array->n_buffers; i++) {
    const struct bytes *bytes = &sample->buffers[(*buffer)++];
    if (is_view(field->format) && i == array->n_buffers - 1) continue;
    if (array->buffers[i]) array->buffers[i] = device_copy(bytes->data, (size_t)bytes->size);
  }
  for (int i = 0; i < field->n_children; i++) hide(&field->children[i], array->children[i], sample, buffer);
  if (field->dictionary) hide(field->dictionary, array->dictionary, sample, buffer);
}

void device_hide(const struct sample *sample, struct ArrowDeviceArray *array) {
  int buffer = 0;
  hide(&sample->field, &array->array, sample, &buffer);
  array->device_type = ARROW_DEVICE_CUDA;
  array->device_id = 0;
}

void sample_device_buffers(const struct sample *sample, BowstringOwnedBuffer *out) {
  for (int i = 0; i < sample->n_buffers; i++) {
    const struct bytes *bytes = &sample->buffers[i];
    void *copy = bytes->data ? device_copy(bytes->data, (size_t)bytes->size) : NULL;
    out[i] = (BowstringOwnedBuffer){copy, bytes->size, owner_new(NULL), owner_release};
  }
}

void device_free_all(void) {
  while (n_device_blocks > 0) munmap(device_blocks[--n_device_blocks], DEVICE_BLOCK);
}

/* ---- live counts ---- */

BowstringLiveCounts live_counts(void) {
  BowstringLiveCounts counts = {.struct_size = sizeof counts};
  bowstring_live_counts(&counts);
  return counts;
}

void live_as_before(const BowstringLiveCounts *before) {
  BowstringLiveCounts now = live_counts();
  CHECK_INT(now.types, before->types);
  CHECK_INT(now.arrays, before->arrays);
  CHECK_INT(now.buffers, before->buffers);
  CHECK_INT(now.streams, before->streams);
  CHECK_INT(now.tensors, before->tensors);
  CHECK_INT(now.blocks, before->blocks);
  CHECK_INT(now.pending, before->pending);
  CHECK_INT(now.leaked_callbacks, before->leaked_callbacks);
}
