/* Structs that start with struct_size, in the hands of callers that know less or more of them: for every size that a
 * caller may state, in memory of exactly that size. The structs are those of the installed header; one that is not
 * handled here is a failure. */
#include "alone.h"
#include "build.h"
#include "check.h"
#include "released_sizes.h"

#include <growth/sized_structs.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 65536, FILL = 0xAA, GUARD = 32 };

struct extent {
  size_t start, end;
};

#define EXTENT(type, member) {offsetof(type, member), offsetof(type, member) + sizeof(((type *)NULL)->member)},
#define EXTENTS(type)                                                            \
  static const struct extent type##_fields[] = {FIELDS_##type(EXTENT) {0, 0}}; \
  static const struct extent type##_leaves[] = {LEAVES_##type(EXTENT) {0, 0}};
SIZED_STRUCTS(EXTENTS)

/* What the calls work on. */
static BowstringType *type;
static BowstringArray *array;
static BowstringBuffer *buffer;

/* ---- structs that are written ---- */

typedef BowstringStatus writer(void *out);

static BowstringStatus write_type_node(void *out) { return bowstring_type_node_info(type, 0, out, &report); }
static BowstringStatus write_node(void *out) { return bowstring_array_node_info(array, 0, out, &report); }
static BowstringStatus write_buffer(void *out) { return bowstring_array_buffer_info(array, 1, out, &report); }
static BowstringStatus write_memory(void *out) { return bowstring_buffer_info(buffer, out, &report); }

static BowstringStatus write_placement(void *out) {
  BowstringNode nodes[MAX_NODES];
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  size_t n_nodes, n_buffers;
  CHECK_OK(bowstring_array_count(array, &n_nodes, &n_buffers, &report));
  BowstringStatus status = bowstring_array_to_buffers(array, nodes, n_nodes, buffers, n_buffers, out, &report);
  for (size_t i = 0; status == BOWSTRING_OK && i < n_buffers; i++)
    if (buffers[i].release_owner) buffers[i].release_owner(buffers[i].owner);
  return status;
}

static BowstringStatus write_counts(void *out) {
  bowstring_live_counts(out);
  return BOWSTRING_OK;
}

struct sized {
  const char *name;
  size_t first, now;
  const struct extent *fields, *leaves;
  writer *write;
  int says_nothing; /* it cannot fail, and leaves what is too short alone */
  void (*read)(const struct sized *sized);
};

static void is_filled(const unsigned char *bytes, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) CHECK_INT(bytes[i], FILL);
}

/* One size that a caller states, with `extra` bytes behind the struct that are not its own. */
static void test_written(const struct sized *sized, const unsigned char *expected, size_t told, size_t extra) {
  int is_refused = told < sized->first || told > LARGEST;
  size_t room = told > LARGEST ? sized->now : told < sizeof told ? sizeof told : told;
  unsigned char *bytes = malloc(room + extra);
  check_about("%s, written with struct_size %zu", sized->name, told);
  CHECK(bytes != NULL);
  memset(bytes, FILL, room + extra);
  memcpy(bytes, &told, sizeof told);
  BowstringStatus status = sized->write(bytes);
  CHECK_MEM(bytes, &told, sizeof told);
  if (is_refused) {
    if (!sized->says_nothing) CHECK_INT(status, BOWSTRING_INVALID_ARGUMENT);
    if (!sized->says_nothing) CHECK_HAS(report.message, sized->name);
    is_filled(bytes, sizeof told, room + extra);
  } else {
    CHECK_OK(status);
    size_t known = told < sized->now ? told : sized->now;
    for (const struct extent *leaf = sized->leaves + 1; leaf->end; leaf++)
      if (leaf->end <= known) CHECK_MEM(bytes + leaf->start, expected + leaf->start, leaf->end - leaf->start);
    for (size_t i = sized->now; i < told; i++) CHECK_INT(bytes[i], 0);
    is_filled(bytes, told, told + extra);
  }
  free(bytes);
}

static void test_output(const struct sized *sized) {
  /* What the current size gives, in two runs over different memory: only members that are written are equal. */
  unsigned char *expected = calloc(1, sized->now), *again = malloc(sized->now);
  CHECK(expected != NULL && again != NULL);
  memset(again, FILL, sized->now);
  memcpy(expected, &sized->now, sizeof sized->now);
  memcpy(again, &sized->now, sizeof sized->now);
  CHECK_OK(sized->write(expected));
  CHECK_OK(sized->write(again));
  for (const struct extent *leaf = sized->leaves; leaf->end; leaf++)
    CHECK_MEM(again + leaf->start, expected + leaf->start, leaf->end - leaf->start);

  for (const struct extent *field = sized->fields; field->end; field++) {
    test_written(sized, expected, field->start, GUARD);
    test_written(sized, expected, field->end, GUARD);
  }
  for (size_t told = 0; told <= sized->now + 80; told++) test_written(sized, expected, told, 0);
  static const size_t large[] = {4096, LARGEST - 1, LARGEST, LARGEST + 1, SIZE_MAX / 2, SIZE_MAX};
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) test_written(sized, expected, large[i], 0);
  test_written(sized, expected, sized->now + 1, GUARD);
  test_written(sized, expected, sized->now + 17, GUARD);
  free(again);
  free(expected);
}

/* ---- structs that are read ---- */

typedef BowstringStatus reader(void *in);

/* Memory of exactly the size that is stated: the members that fit, and one byte set where `set` is within it. */
static unsigned char *stated(const void *members, size_t now, size_t told, size_t set) {
  size_t room = told > LARGEST ? now : told < sizeof told ? sizeof told : told;
  unsigned char *bytes = calloc(1, room);
  CHECK(bytes != NULL);
  memcpy(bytes, members, room < now ? room : now);
  memcpy(bytes, &told, sizeof told);
  if (set) bytes[set] = 1;
  return bytes;
}

/* Refused, and left as it was. */
static void test_refused(const struct sized *sized, reader *read, const void *members, size_t told, size_t set,
                         BowstringStatus status) {
  unsigned char *bytes = stated(members, sized->now, told, set), *before = stated(members, sized->now, told, set);
  size_t room = told > LARGEST ? sized->now : told < sizeof told ? sizeof told : told;
  check_about("%s, read with struct_size %zu, byte %zu set", sized->name, told, set);
  CHECK_FAILS(read(bytes), status);
  CHECK_HAS(report.message, sized->name);
  CHECK_MEM(bytes, before, room);
  free(before);
  free(bytes);
}

static void test_refusals(const struct sized *sized, reader *read, const void *members) {
  for (size_t told = 0; told < sized->first; told++)
    test_refused(sized, read, members, told, 0, BOWSTRING_INVALID_ARGUMENT);
  test_refused(sized, read, members, LARGEST + 1, 0, BOWSTRING_INVALID_ARGUMENT);
  test_refused(sized, read, members, SIZE_MAX, 0, BOWSTRING_INVALID_ARGUMENT);
  for (size_t told = sized->now + 1; told <= sized->now + 40; told++)
    for (size_t set = sized->now; set < told; set++)
      test_refused(sized, read, members, told, set, BOWSTRING_UNSUPPORTED);
  test_refused(sized, read, members, LARGEST, sized->now, BOWSTRING_UNSUPPORTED);
  test_refused(sized, read, members, LARGEST, LARGEST / 2, BOWSTRING_UNSUPPORTED);
  test_refused(sized, read, members, LARGEST, LARGEST - 1, BOWSTRING_UNSUPPORTED);
}

static BowstringStatus build_with(void *placement) {
  struct ArrowDeviceArray raw;
  const BowstringNode node = {0, 0, 0, 2};
  BowstringOwnedBuffer buffers[2] = {{0}};
  BowstringStatus status =
      bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, placement, &raw, &report);
  CHECK((raw.array.release == NULL) == (status != BOWSTRING_OK));
  bowstring_device_array_release(&raw);
  return status;
}

static BowstringStatus wrap_with(void *placement) {
  BowstringOwnedBuffer memory = {"x", 1, NULL, NULL};
  BowstringBuffer *wrapped = NULL;
  BowstringStatus status = bowstring_buffer_wrap(&memory, placement, &wrapped, &report);
  CHECK((wrapped == NULL) == (status != BOWSTRING_OK));
  bowstring_buffer_release(wrapped);
  return status;
}

static void read_placement(const struct sized *sized) {
  reader *const readers[] = {build_with, wrap_with};
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  for (int i = 0; i < 2; i++) {
    BowstringPlacement members = {.device = {ARROW_DEVICE_CPU, -1}, .release_owner = owner_release};
    members.owner = owner_new(NULL);
    test_refusals(sized, readers[i], &members);
    CHECK_INT(owners_left(), 1);
    owner_release(members.owner);
    for (size_t told = sized->first; told <= LARGEST; told += told < sized->now + 40 ? 1 : 9973) {
      check_about("%s, read with struct_size %zu", sized->name, told);
      members.owner = owner_new(NULL);
      unsigned char *bytes = stated(&members, sized->now, told, 0);
      CHECK_OK(readers[i](bytes));
      owners_all_gone();
      BowstringPlacement after = {0};
      memcpy(&after, bytes, told < sizeof after ? told : sizeof after);
      CHECK_INT(after.struct_size, told);
      CHECK(after.owner == NULL && after.release_owner == NULL && after.event == NULL && after.destroy_event == NULL);
      free(bytes);
      /* Nothing but its size: the defaults, as NULL is. */
      const BowstringPlacement nothing = {0};
      bytes = stated(&nothing, sized->now, told, 0);
      CHECK_OK(readers[i](bytes));
      free(bytes);
    }
    CHECK_OK(readers[i](NULL));
  }
  bowstring_type_release(type);
}

static int enter(void) { return 3; }
static void leave(int token) { CHECK_INT(token, 3); }
static const BowstringCallbackScope scope_members = {.enter = enter, .leave = leave};
static BowstringStatus set_scope(void *scope) { return bowstring_callback_scope_set(scope, &report); }

/* A scope is set once in a process, so each that is taken has one to itself. */
static void take_scope(const void *told) {
  unsigned char *bytes = stated(&scope_members, sizeof scope_members, *(const size_t *)told, 0);
  CHECK_OK(set_scope(bytes));
  free(bytes);
  CHECK_OK(wrap_with(NULL));
}

static void read_scope(const struct sized *sized) {
  test_refusals(sized, set_scope, &scope_members);
  for (size_t told = sized->first; told <= sized->now + 9; told++) alone(take_scope, &told);
  const size_t large = LARGEST;
  alone(take_scope, &large);
}

/* Every member leads somewhere; nothing is called before there is a capsule. */
static BowstringPythonApi python_members(void) {
  BowstringPythonApi members;
  void *const somewhere = &type;
  for (size_t at = 0; at < sizeof members; at += sizeof somewhere) memcpy((char *)&members + at, &somewhere, sizeof somewhere);
  return members;
}

static BowstringStatus init_python(void *api) { return bowstring_python_init(api, &report); }

/* It is given once in a process; the same again is fine. */
static void take_python(const void *told) {
  const BowstringPythonApi members = python_members();
  for (int i = 0; i < 2; i++) {
    unsigned char *bytes = stated(&members, sizeof members, *(const size_t *)told, 0);
    CHECK_OK(init_python(bytes));
    free(bytes);
  }
}

static void read_python(const struct sized *sized) {
  const BowstringPythonApi members = python_members();
  test_refusals(sized, init_python, &members);
  for (size_t told = sized->first; told <= sized->now + 9; told++) alone(take_python, &told);
  const size_t large = LARGEST;
  alone(take_python, &large);
}

static BowstringStatus validate_schema(void *options) {
  struct ArrowSchema schema;
  CHECK_OK(bowstring_type_export(type, &schema, &report));
  BowstringStatus status = bowstring_schema_validate(&schema, options, &report);
  bowstring_schema_release(&schema);
  return status;
}

static BowstringStatus validate_array(void *options) { return bowstring_array_validate(array, options, &report); }

static BowstringStatus validate_device(void *options) {
  struct ArrowDeviceArray raw;
  CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
  BowstringStatus status = bowstring_device_array_validate(&raw, type, options, &report);
  bowstring_device_array_release(&raw);
  return status;
}

static BowstringStatus validate_host(void *options) {
  struct ArrowArray raw;
  CHECK_OK(bowstring_array_export_host(array, NULL, &raw, NULL, &report));
  BowstringStatus status = bowstring_host_array_validate(&raw, type, options, &report);
  bowstring_host_array_release(&raw);
  return status;
}

static BowstringStatus validate_stream(void *options) {
  BowstringStream *stream = NULL, *validated = NULL;
  const BowstringArray *arrays[] = {array};
  CHECK_OK(bowstring_stream_from_arrays(NULL, arrays, 1, &stream, &report));
  BowstringStatus status = bowstring_stream_validated(&stream, options, &validated, &report);
  CHECK((stream == NULL) == (status == BOWSTRING_OK) && (validated == NULL) == (status != BOWSTRING_OK));
  bowstring_stream_release(stream);
  bowstring_stream_release(validated);
  return status;
}

static void read_options(const struct sized *sized) {
  reader *const readers[] = {validate_schema, validate_array, validate_device, validate_host, validate_stream};
  const BowstringValidateOptions members = {0};
  array = sample_import(sample_named("utf8"));
  type = bowstring_type_retain(bowstring_array_type(array));
  for (int i = 0; i < 5; i++) {
    test_refusals(sized, readers[i], &members);
    for (size_t told = sized->first; told <= LARGEST; told += told < sized->now + 40 ? 1 : 9973) {
      check_about("%s, read with struct_size %zu", sized->name, told);
      unsigned char *bytes = stated(&members, sized->now, told, 0);
      CHECK_OK(readers[i](bytes));
      free(bytes);
    }
    CHECK_OK(readers[i](NULL));
  }
  bowstring_array_release(array);
  bowstring_type_release(type);
}

static BowstringStatus make_tensor(void *options) {
  struct DLManagedTensorVersioned *tensor = NULL;
  BowstringStatus status = bowstring_array_to_tensor(array, options, &tensor, &report);
  bowstring_tensor_release(tensor);
  return status;
}

static BowstringStatus make_buffer_tensor(void *options) {
  static const int64_t shape[] = {1};
  const BowstringDataType bytes = {1, 8, 1};
  struct DLManagedTensorVersioned *tensor = NULL;
  BowstringStatus status = bowstring_buffer_to_tensor(buffer, bytes, 1, shape, options, &tensor, &report);
  bowstring_tensor_release(tensor);
  return status;
}

static void read_tensor_options(const struct sized *sized) {
  reader *const readers[] = {make_tensor, make_buffer_tensor};
  const BowstringTensorOptions members = {.flags = BOWSTRING_TENSOR_VALUES_ONLY};
  array = sample_import(sample_named("int32"));
  CHECK_OK(bowstring_array_buffer(array, 1, &buffer, &report));
  for (int i = 0; i < 2; i++) {
    test_refusals(sized, readers[i], &members);
    for (size_t told = sized->first; told <= LARGEST; told += told < sized->now + 40 ? 1 : 9973) {
      check_about("%s, read with struct_size %zu", sized->name, told);
      unsigned char *bytes = stated(&members, sized->now, told, 0);
      CHECK_OK(readers[i](bytes));
      free(bytes);
    }
  }
  bowstring_buffer_release(buffer);
  bowstring_array_release(array);
}

static int nothing_more(void *ctx, struct ArrowDeviceArray *out) {
  (void)ctx;
  return out->array.release != NULL;
}

static BowstringStatus make_stream(void *callbacks) {
  BowstringStream *stream = NULL;
  BowstringStatus status = bowstring_stream_from_callbacks(type, callbacks, &stream, &report);
  CHECK((stream == NULL) == (status != BOWSTRING_OK));
  bowstring_stream_release(stream);
  return status;
}

static void read_callbacks(const struct sized *sized) {
  BowstringStreamCallbacks members = {.get_next = nothing_more, .release = owner_release};
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  members.ctx = owner_new(NULL);
  test_refusals(sized, make_stream, &members);
  CHECK_INT(owners_left(), 1);
  owner_release(members.ctx);
  for (size_t told = sized->first; told <= LARGEST; told += told < sized->now + 40 ? 1 : 9973) {
    check_about("%s, read with struct_size %zu", sized->name, told);
    members.ctx = owner_new(NULL);
    unsigned char *bytes = stated(&members, sized->now, told, 0);
    CHECK_OK(make_stream(bytes));
    owners_all_gone();
    BowstringStreamCallbacks after;
    memcpy(&after, bytes, sizeof after);
    CHECK_INT(after.struct_size, told);
    CHECK(after.ctx == NULL && after.release == NULL && after.get_next == nothing_more);
    free(bytes);
  }
  bowstring_type_release(type);
}

static BowstringStatus copy_array(void *options) {
  const BowstringDevice cpu = {ARROW_DEVICE_CPU, -1};
  BowstringArray *copy = NULL;
  BowstringStatus status = bowstring_array_to_device(array, cpu, options, &copy, NULL, &report);
  bowstring_array_release(copy);
  return status;
}

static BowstringStatus copy_buffer(void *options) {
  const BowstringDevice cpu = {ARROW_DEVICE_CPU, -1};
  BowstringBuffer *copy = NULL;
  BowstringStatus status = bowstring_buffer_to_device(buffer, cpu, options, &copy, NULL, &report);
  bowstring_buffer_release(copy);
  return status;
}

static void read_transfer_options(const struct sized *sized) {
  reader *const readers[] = {copy_array, copy_buffer};
  const BowstringTransferOptions members = {.flags = BOWSTRING_TRANSFER_MAY_SHARE};
  array = sample_import(sample_named("int32"));
  CHECK_OK(bowstring_array_buffer(array, 1, &buffer, &report));
  for (int i = 0; i < 2; i++) {
    test_refusals(sized, readers[i], &members);
    for (size_t told = sized->first; told <= LARGEST; told += told < sized->now + 40 ? 1 : 9973) {
      check_about("%s, read with struct_size %zu", sized->name, told);
      unsigned char *bytes = stated(&members, sized->now, told, 0);
      CHECK_OK(readers[i](bytes));
      free(bytes);
    }
    CHECK_OK(readers[i](NULL));
  }
  bowstring_buffer_release(buffer);
  bowstring_array_release(array);
}

static int32_t no_memory(void *ctx, int64_t id, int64_t size, void *queue, void **data) {
  (void)ctx, (void)id, (void)size, (void)queue, (void)data;
  return 1;
}
static int32_t no_free(void *ctx, int64_t id, void *data, int64_t size, void *queue) {
  (void)ctx, (void)id, (void)data, (void)size, (void)queue;
  return 1;
}
static int32_t no_copy(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue) {
  (void)ctx, (void)id, (void)to, (void)from, (void)n, (void)queue;
  return 1;
}
static const BowstringDeviceBackend backend_members = {
    .allocate = no_memory, .free = no_free, .copy_from_host = no_copy, .copy_to_host = no_copy};
static BowstringStatus set_backend(void *backend) { return bowstring_device_register(200, backend, &report); }

/* A type is registered once in a process, so each table that is taken has one to itself. */
static void take_backend(const void *told) {
  unsigned char *bytes = stated(&backend_members, sizeof backend_members, *(const size_t *)told, 0);
  int64_t count = 0;
  CHECK_OK(set_backend(bytes));
  free(bytes);
  CHECK_OK(bowstring_device_probe(200, &count, &report));
  CHECK_INT(count, 1);
}

static void read_backend(const struct sized *sized) {
  test_refusals(sized, set_backend, &backend_members);
  for (size_t told = sized->first; told <= sized->now + 9; told++) alone(take_backend, &told);
  const size_t large = LARGEST;
  alone(take_backend, &large);
}

/* ---- all of them ---- */

#define SIZED(type) #type, FIRST_##type, sizeof(type), type##_fields, type##_leaves

static const struct sized sized_structs[] = {
    {SIZED(BowstringTypeNodeInfo), write_type_node, 0, NULL},
    {SIZED(BowstringNodeInfo), write_node, 0, NULL},
    {SIZED(BowstringBufferInfo), write_buffer, 0, NULL},
    {SIZED(BowstringBufferMemory), write_memory, 0, NULL},
    {SIZED(BowstringLiveCounts), write_counts, 1, NULL},
    {SIZED(BowstringPlacement), write_placement, 0, read_placement},
    {SIZED(BowstringCallbackScope), NULL, 0, read_scope},
    {SIZED(BowstringPythonApi), NULL, 0, read_python},
    {SIZED(BowstringValidateOptions), NULL, 0, read_options},
    {SIZED(BowstringTensorOptions), NULL, 0, read_tensor_options},
    {SIZED(BowstringStreamCallbacks), NULL, 0, read_callbacks},
    {SIZED(BowstringTransferOptions), NULL, 0, read_transfer_options},
    {SIZED(BowstringDeviceBackend), NULL, 0, read_backend},
};
enum { N_SIZED = sizeof sized_structs / sizeof *sized_structs };

static void test_every_struct_is_here(void) {
#define NAME(type) {#type, type##_fields, type##_leaves},
  static const struct {
    const char *name;
    const struct extent *fields, *leaves;
  } listed[] = {SIZED_STRUCTS(NAME){NULL, NULL, NULL}};
  int found = 0;
  for (; listed[found].name; found++) {
    int here = 0;
    for (int i = 0; i < N_SIZED; i++) here += strcmp(sized_structs[i].name, listed[found].name) == 0;
    check_about("%s starts with struct_size, so it has to be tested here", listed[found].name);
    CHECK_INT(here, 1);
    CHECK(listed[found].fields->end == sizeof(size_t) && listed[found].leaves->end == sizeof(size_t));
  }
  CHECK_INT(found, N_SIZED);
}

int main(void) {
  test_every_struct_is_here();
  for (int i = 0; i < N_SIZED; i++) {
    if (sized_structs[i].read) sized_structs[i].read(&sized_structs[i]);
  }
  const struct sample *sample = sample_named("utf8");
  array = sample_import(sample);
  type = bowstring_type_retain(bowstring_array_type(array));
  CHECK_OK(bowstring_array_buffer(array, 1, &buffer, &report));
  for (int i = 0; i < N_SIZED; i++) {
    const struct sized *sized = &sized_structs[i];
    check_about("%s", sized->name);
    CHECK(sized->first <= sized->now);
    int is_member_end = 0;
    /* Behind a small last member there is padding. */
    const size_t word = sizeof(size_t);
    for (const struct extent *field = sized->fields; field->end; field++)
      is_member_end |= (field->end + word - 1) / word * word == sized->first;
    CHECK(is_member_end);
    if (sized->write) test_output(sized);
  }
  bowstring_buffer_release(buffer);
  bowstring_array_release(array);
  bowstring_type_release(type);
  owners_all_gone();
  CHECK(alone_count() >= 10);
  return check_end(50000);
}
