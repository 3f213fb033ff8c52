/* What tensors allocate, what is left when an allocation fails, and deleters that run anywhere and last. */
#define _GNU_SOURCE
#include <arrow/c/dlpack_abi.h>

#include "allocations.h"
#include "build.h"
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct DLManagedTensorVersioned versioned;
typedef struct DLManagedTensor legacy;

enum { ROWS = 4 };

static const struct {
  const char *type;
  int levels, copies; /* a copy is for the copied bits */
  int64_t sizes[3];
} columns[] = {
    {"int64", 1, 0, {0}},
    {"fixed_size_list<int64, 2>", 2, 0, {2}},
    {"fixed_size_list<fixed_size_list<int64, 2>, 3>", 3, 0, {3, 2}},
    {"bool", 1, 1, {0}},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* An array of ROWS rows; the values' owner is the last that was made. */
static BowstringArray *column(int i, struct owner **values_owner) {
  BowstringNode nodes[3];
  BowstringOwnedBuffer buffers[4];
  BowstringType *type = NULL;
  BowstringArray *array = NULL;
  struct ArrowDeviceArray raw;
  int64_t rows = ROWS;
  int levels = columns[i].levels;
  for (int level = 0; level < levels; level++) {
    nodes[level] = (BowstringNode){rows, 0, 0, level == levels - 1 ? 2 : 1};
    buffers[level] = (BowstringOwnedBuffer){NULL, 0, NULL, NULL};
    if (level < levels - 1) rows *= columns[i].sizes[level];
  }
  int64_t *values = calloc((size_t)rows, sizeof *values);
  CHECK(values != NULL);
  for (int64_t row = 0; row < rows; row++) values[row] = row;
  *values_owner = owner_new(values);
  buffers[levels] = (BowstringOwnedBuffer){values, rows * 8, *values_owner, owner_release};
  CHECK_OK(bowstring_type_parse(columns[i].type, &type, &report));
  CHECK_OK(bowstring_device_array_from_buffers(type, nodes, (size_t)levels, buffers, (size_t)levels + 1, NULL, &raw,
                                               &report));
  CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
  bowstring_type_release(type);
  return array;
}

/* ---- tensors of others ---- */

static int deleted;

struct foreign {
  versioned new;
  legacy old;
  int64_t shape[3], strides[3], values[24];
};

static void delete_new(versioned *self) {
  CHECK_PTR(self->manager_ctx, &deleted);
  deleted++;
}

static void delete_old(legacy *self) {
  CHECK_PTR(self->manager_ctx, &deleted);
  deleted++;
}

/* Two rows of three by four, or of four by three that are turned. */
static void make_foreign(struct foreign *foreign, int is_turned) {
  memset(foreign, 0, sizeof *foreign);
  const int64_t shape[] = {2, 3, 4}, straight[] = {12, 4, 1}, turned[] = {12, 1, 3};
  memcpy(foreign->shape, shape, sizeof shape);
  memcpy(foreign->strides, is_turned ? turned : straight, sizeof turned);
  for (int i = 0; i < 24; i++) foreign->values[i] = i;
  const DLTensor tensor = {foreign->values, {kDLCPU, 0}, 3, {kDLInt, 64, 1}, foreign->shape, foreign->strides, 0};
  foreign->new.version.major = 1;
  foreign->new.manager_ctx = foreign->old.manager_ctx = &deleted;
  foreign->new.deleter = delete_new;
  foreign->old.deleter = delete_old;
  foreign->new.dl_tensor = foreign->old.dl_tensor = tensor;
}

/* ---- the calls ---- */

static struct {
  BowstringArray *array;
  BowstringBuffer *buffer;
  BowstringType *type;
  struct foreign foreign;
  versioned *new;
  legacy *old;
} given;

static struct {
  versioned *new;
  legacy *old;
  BowstringArray *array;
} out;

static const BowstringTensorOptions copies = {sizeof copies, BOWSTRING_TENSOR_ALLOW_COPY, {0}};

static BowstringStatus to_tensor(void) { return bowstring_array_to_tensor(given.array, &copies, &out.new, &report); }
static BowstringStatus validity(void) {
  int64_t bit;
  return bowstring_array_validity_to_tensor(given.array, NULL, &out.new, &bit, &report);
}
static BowstringStatus unpacked_validity(void) {
  return bowstring_array_validity_to_tensor(given.array, &copies, &out.new, NULL, &report);
}
static BowstringStatus buffer_to_tensor(void) {
  const BowstringDataType dtype = {kDLInt, 32, 1};
  const int64_t shape[] = {2, 2};
  return bowstring_buffer_to_tensor(given.buffer, dtype, 2, shape, NULL, &out.new, &report);
}
static BowstringStatus from_tensor(void) {
  return bowstring_array_from_tensor(&given.new, given.type, NULL, &out.array, &report);
}
static BowstringStatus from_tensor_by_copy(void) {
  return bowstring_array_from_tensor(&given.new, given.type, &copies, &out.array, &report);
}
static BowstringStatus from_legacy(void) { return bowstring_tensor_from_legacy(&given.old, NULL, &out.new, &report); }
static BowstringStatus to_legacy(void) { return bowstring_tensor_to_legacy(&given.new, NULL, &out.old, &report); }

static void let_go(void) {
  bowstring_tensor_release(out.new);
  bowstring_legacy_tensor_release(out.old);
  bowstring_array_release(out.array);
  memset(&out, 0, sizeof out);
}

/* Each allocation of a call fails in turn, and then none does. What was given stays given until then. */
static void try_each(const char *name, BowstringStatus (*call)(void), long expected, int takes) {
  check_about("%s", name);
  versioned *const new = given.new;
  legacy *const old = given.old;
  struct foreign before;
  memcpy(&before, &given.foreign, sizeof before);
  memset(&out, 0, sizeof out);
  deleted = 0;
  for (long n = 1;; n++) {
    long live = allocations_live(), made = allocations_made();
    BowstringLiveCounts counts = live_counts();
    allocations_fail_at(n);
    BowstringStatus status = call();
    int has_failed = allocations_have_failed();
    allocations_fail_at(0);
    if (!has_failed) {
      CHECK_INT(status, BOWSTRING_OK);
      if (expected) CHECK_INT(allocations_made() - made, expected);
      CHECK_INT(n - 1, allocations_made() - made);
      CHECK(out.new || out.old || out.array);
      break;
    }
    CHECK_INT(status, BOWSTRING_OUT_OF_MEMORY);
    CHECK_INT(report.status, BOWSTRING_OUT_OF_MEMORY);
    CHECK(out.new == NULL && out.old == NULL && out.array == NULL);
    CHECK_PTR(given.new, new);
    CHECK_PTR(given.old, old);
    CHECK_MEM(&given.foreign, &before, sizeof before);
    CHECK_INT(deleted, 0);
    CHECK_INT(allocations_live(), live);
    live_as_before(&counts);
  }
  if (takes) {
    CHECK(given.new == NULL || given.old == NULL);
    let_go();
    CHECK_INT(deleted, 1);
  } else {
    let_go();
    CHECK_INT(deleted, 0);
  }
}

static void test_exports(void) {
  for (int i = 0; i < COLUMNS; i++) {
    struct owner *owner;
    given.array = column(i, &owner);
    try_each(columns[i].type, to_tensor, columns[i].copies ? 0 : 1, 0);
    CHECK_INT(owner->runs, 0);
    bowstring_array_release(given.array);
    CHECK_INT(owner->runs, 1);
    owners_all_gone();
  }
  given.array = sample_import(sample_named("int32"));
  try_each("validity", validity, 1, 0);
  try_each("unpacked validity", unpacked_validity, 0, 0);
  bowstring_array_release(given.array);
  owners_all_gone();
  given.array = NULL;
}

static void test_buffers(void) {
  static int32_t memory[4] = {1, 2, 3, 4};
  BowstringOwnedBuffer owned = {memory, sizeof memory, owner_new(NULL), owner_release};
  CHECK_OK(bowstring_buffer_wrap(&owned, NULL, &given.buffer, &report));
  try_each("a buffer", buffer_to_tensor, 1, 0);
  bowstring_buffer_release(given.buffer);
  owners_all_gone();
}

static BowstringType *shaped(void) {
  struct ArrowSchema schema;
  static const char keys[] = "ARROW:extension:name", values[] = "arrow.fixed_shape_tensor";
  static const char more_keys[] = "ARROW:extension:metadata", more_values[] = "{\"shape\":[3,4]}";
  const char *const texts[] = {keys, values, more_keys, more_values};
  char metadata[256];
  int32_t pairs = 2;
  size_t at = sizeof pairs;
  memcpy(metadata, &pairs, sizeof pairs);
  for (int i = 0; i < 4; i++) {
    int32_t size = (int32_t)strlen(texts[i]);
    memcpy(metadata + at, &size, sizeof size);
    memcpy(metadata + at + sizeof size, texts[i], (size_t)size);
    at += sizeof size + (size_t)size;
  }
  const struct field item = {"l", "item", 2, 0, NULL, NULL, NULL};
  const struct field root = {"+w:12", "", 2, 1, &item, NULL, metadata};
  BowstringType *type = NULL;
  field_schema(&root, &schema);
  CHECK_OK(bowstring_type_import(&schema, &type, &report));
  return type;
}

static void test_imports(void) {
  BowstringType *const type = shaped();
  const struct {
    const char *name;
    int is_turned;
    BowstringType *type;
    BowstringStatus (*call)(void);
  } cases[] = {
      {"nested lists", 0, NULL, from_tensor},
      {"shaped", 0, type, from_tensor},
      {"shaped and turned", 1, type, from_tensor},
      {"copied", 1, NULL, from_tensor_by_copy},
      {"to legacy", 1, NULL, to_legacy},
      {"from legacy", 0, NULL, from_legacy},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    make_foreign(&given.foreign, cases[i].is_turned);
    given.new = &given.foreign.new;
    given.old = &given.foreign.old;
    given.type = cases[i].type;
    try_each(cases[i].name, cases[i].call, cases[i].call == to_legacy || cases[i].call == from_legacy, 1);
    given.type = NULL;
  }
  bowstring_type_release(type);
  owners_all_gone();
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 300 };
static versioned *tensors[ROUNDS][THREADS];
static pthread_barrier_t ready;

static void *delete_mine(void *number) {
  int mine = *(int *)number;
  pthread_barrier_wait(&ready);
  for (int round = 0; round < ROUNDS; round++) {
    versioned *tensor = tensors[round][mine];
    CHECK_INT(*(int64_t *)tensor->dl_tensor.data, 0);
    /* As any consumer would, without the library. */
    tensor->deleter(tensor);
  }
  return NULL;
}

/* The arrays are gone, and the last deleter of each round lets the memory go, on whichever thread. */
static void test_threads(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  struct owner *owners[ROUNDS];
  check_about("threads");
  for (int round = 0; round < ROUNDS; round++) {
    BowstringArray *array = column(round % 3, &owners[round]);
    for (int i = 0; i < THREADS; i++)
      CHECK_OK(bowstring_array_to_tensor(array, NULL, &tensors[round][i], &report));
    bowstring_array_release(array);
    CHECK_INT(owners[round]->runs, 0);
  }
  CHECK_INT(pthread_barrier_init(&ready, NULL, THREADS), 0);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    CHECK_INT(pthread_create(&threads[i], NULL, delete_mine, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
  for (int round = 0; round < ROUNDS; round++) CHECK_INT(owners[round]->runs, 1);
  CHECK_INT(pthread_barrier_destroy(&ready), 0);
  owners_all_gone();
}

/* The struct as DLPack's own header has it. */
static void test_members(void) {
  struct owner *owner;
  BowstringArray *array = column(2, &owner);
  versioned *tensor = NULL;
  check_about("members");
  CHECK_OK(bowstring_array_to_tensor(array, NULL, &tensor, &report));
  const DLTensor *made = &tensor->dl_tensor;
  CHECK(tensor->version.major == 1 && tensor->version.minor == 3);
  CHECK_INT(tensor->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(made->device.device_type == kDLCPU && made->device.device_id == 0);
  CHECK(made->dtype.code == kDLInt && made->dtype.bits == 64 && made->dtype.lanes == 1);
  const int64_t shape[] = {ROWS, 3, 2}, strides[] = {6, 2, 1};
  CHECK_INT(made->ndim, 3);
  CHECK_MEM(made->shape, shape, sizeof shape);
  CHECK_MEM(made->strides, strides, sizeof strides);
  CHECK_PTR(made->data, owner->memory);
  CHECK_INT(made->byte_offset, 0);
  bowstring_array_release(array);
  CHECK_INT(owner->runs, 0);
  bowstring_tensor_release(tensor);
  CHECK_INT(owner->runs, 1);
  owners_all_gone();
}

int main(void) {
  allocations_watch();
  test_members();
  test_exports();
  test_buffers();
  test_imports();
  test_threads();
  return check_end(4000);
}
