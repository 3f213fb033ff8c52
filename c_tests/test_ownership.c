/* Who keeps what alive: owners of buffers, of trees and of events, and what each call takes. */
#include "build.h"
#include "check.h"

#include <stdint.h>
#include <string.h>

static const char nested[] =
    "struct<a: int32 not null, nested: struct<d: dictionary<int8, utf8>, l: list<struct<x: int64, y: bool>>>>";

enum { PER_BUFFER = 1, WHOLE_TREE = 2, EVENT = 4, ALL_MODES = 8 };

static char event_handle;

/* What is handed to the library, and the owners in it. */
struct parts {
  const struct sample *sample;
  BowstringType *type;
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement;
  struct owner *owners[MAX_BUFFERS], *whole, *event;
};

static void make_parts(struct parts *parts, const char *text, int mode) {
  memset(parts, 0, sizeof *parts);
  parts->sample = sample_named(text);
  parts->type = sample_type(parts->sample);
  sample_device_buffers(parts->sample, parts->buffers);
  for (int i = 0; i < parts->sample->n_buffers; i++) {
    parts->owners[i] = parts->buffers[i].owner;
    if (mode & PER_BUFFER) continue;
    owner_release(parts->owners[i]);
    parts->owners[i] = NULL;
    parts->buffers[i].owner = NULL;
    parts->buffers[i].release_owner = NULL;
  }
  parts->placement.struct_size = sizeof parts->placement;
  parts->placement.device = (BowstringDevice){ARROW_DEVICE_CUDA, 3};
  if (mode & WHOLE_TREE) {
    parts->placement.owner = parts->whole = owner_new(NULL);
    parts->placement.release_owner = owner_release;
  }
  if (mode & EVENT) {
    parts->placement.event = &event_handle;
    parts->placement.event_ctx = parts->event = owner_new(NULL);
    parts->placement.destroy_event = owner_destroy_event;
  }
}

static BowstringStatus build_parts(struct parts *parts, struct ArrowDeviceArray *out) {
  return bowstring_device_array_from_buffers(parts->type, parts->sample->nodes, (size_t)parts->sample->n_nodes,
                                             parts->buffers, (size_t)parts->sample->n_buffers, &parts->placement, out,
                                             &report);
}

static BowstringArray *import_parts(struct parts *parts) {
  struct ArrowDeviceArray raw;
  BowstringArray *array = NULL;
  CHECK_OK(build_parts(parts, &raw));
  CHECK_OK(bowstring_array_import_typed(&raw, parts->type, &array, &report));
  return array;
}

static void end_parts(struct parts *parts) {
  bowstring_type_release(parts->type);
  owners_all_gone();
  device_free_all();
}

static int is_gone(const struct owner *owner) { return owner->runs == 1; }

/* Everything given was let go, the event last. The tree's owner goes after the buffers' own, unless some of those were
 * kept by buffers that were taken out: those never needed it. */
static void check_gone(const struct parts *parts, int taken_out) {
  long last = 0;
  for (int i = 0; i < MAX_BUFFERS; i++) {
    if (!parts->owners[i]) continue;
    CHECK_INT(parts->owners[i]->runs, 1);
    if (parts->owners[i]->turn > last) last = parts->owners[i]->turn;
  }
  if (parts->whole) {
    CHECK(is_gone(parts->whole));
    if (!taken_out) CHECK(parts->whole->turn > last);
    if (parts->whole->turn > last) last = parts->whole->turn;
  }
  if (parts->event) CHECK(is_gone(parts->event) && parts->event->turn > last);
}

static void check_order(const struct parts *parts) { check_gone(parts, 0); }

static void test_modes(void) {
  for (int i = 0; i < n_samples; i++) {
    for (int mode = 0; mode < ALL_MODES; mode++) {
      struct parts parts;
      struct ArrowDeviceArray raw, moved;
      check_about("%s, mode %d", samples[i].text, mode);
      make_parts(&parts, samples[i].text, mode);
      memset(&raw, 0xAA, sizeof raw);
      CHECK_OK(build_parts(&parts, &raw));

      for (int k = 0; k < parts.sample->n_buffers; k++) {
        CHECK_PTR(parts.buffers[k].owner, NULL);
        CHECK(parts.buffers[k].release_owner == NULL);
      }
      CHECK_PTR(parts.placement.owner, NULL);
      CHECK(parts.placement.release_owner == NULL);
      CHECK_PTR(parts.placement.event, NULL);
      CHECK_PTR(parts.placement.event_ctx, NULL);
      CHECK(parts.placement.destroy_event == NULL);

      CHECK_INT(raw.device_type, ARROW_DEVICE_CUDA);
      CHECK_INT(raw.device_id, 3);
      CHECK(raw.reserved[0] == 0 && raw.reserved[1] == 0 && raw.reserved[2] == 0);
      if (mode & EVENT) {
        uintptr_t cell = (uintptr_t)raw.sync_event, start = (uintptr_t)&raw;
        CHECK(cell != 0 && (cell < start || cell >= start + sizeof raw));
        CHECK_PTR(*(void **)raw.sync_event, &event_handle);
      } else {
        CHECK_PTR(raw.sync_event, NULL);
      }

      moved = raw;
      memset(&raw, 0xFF, sizeof raw);
      if (mode & EVENT) CHECK_PTR(*(void **)moved.sync_event, &event_handle);
      if (parts.whole) CHECK(!is_gone(parts.whole));
      if (parts.event) CHECK(!is_gone(parts.event));
      moved.array.release(&moved.array);
      CHECK(moved.array.release == NULL);
      check_order(&parts);
      end_parts(&parts);
    }
  }
}

/* Which owners a single buffer keeps, after everything else is gone. */
static void check_kept(const struct parts *parts, int buffer) {
  int has_own = parts->owners[buffer] != NULL;
  for (int i = 0; i < parts->sample->n_buffers; i++)
    if (parts->owners[i]) CHECK_INT(is_gone(parts->owners[i]), i != buffer);
  if (parts->whole) CHECK_INT(is_gone(parts->whole), has_own);
  if (parts->event) CHECK(!is_gone(parts->event));
}

static void test_single_buffers(void) {
  const struct sample *sample = sample_named(nested);
  for (int mode = 1; mode < ALL_MODES; mode++) {
    for (int buffer = 0; buffer < sample->n_buffers; buffer++) {
      /* Entries that have nothing to keep are looked at in the last round only. */
      for (int own = 0; own < 2; own++) {
        struct parts parts;
        BowstringBuffer *kept = NULL;
        check_about("mode %d, buffer %d", mode, buffer);
        make_parts(&parts, nested, mode);
        if (!own && parts.owners[buffer]) {
          owner_release(parts.owners[buffer]);
          parts.owners[buffer] = NULL;
          parts.buffers[buffer].release_owner = NULL;
        }
        const void *data = parts.buffers[buffer].data;
        BowstringArray *array = import_parts(&parts);
        CHECK_OK(bowstring_array_buffer(array, (size_t)buffer, &kept, &report));
        bowstring_array_release(array);
        check_kept(&parts, buffer);

        BowstringBufferMemory memory = {.struct_size = sizeof memory};
        CHECK_OK(bowstring_buffer_info(kept, &memory, &report));
        CHECK_PTR(memory.data, data);
        CHECK_INT(memory.size_bytes, sample->buffers[buffer].size);
        CHECK_INT(memory.device.type, ARROW_DEVICE_CUDA);
        if (mode & EVENT) CHECK_PTR(*(void **)memory.sync_event, &event_handle);

        BowstringBuffer *again = bowstring_buffer_retain(kept);
        CHECK_PTR(again, kept);
        bowstring_buffer_release(kept);
        check_kept(&parts, buffer);
        bowstring_buffer_release(again);
        check_gone(&parts, 1);
        end_parts(&parts);
      }
    }
  }
}

/* Taking an array apart gives each entry its own owner, and the event lives as long as any of them. */
static void test_taken_apart(void) {
  const struct sample *sample = sample_named(nested);
  for (int mode = 0; mode < ALL_MODES; mode++) {
    struct parts parts;
    BowstringNode nodes[MAX_NODES];
    BowstringOwnedBuffer buffers[MAX_BUFFERS];
    BowstringPlacement placement = {.struct_size = sizeof placement};
    check_about("mode %d", mode);
    make_parts(&parts, nested, mode);
    BowstringArray *array = import_parts(&parts);
    CHECK_OK(bowstring_array_to_buffers(array, nodes, (size_t)sample->n_nodes, buffers, (size_t)sample->n_buffers,
                                        &placement, &report));
    bowstring_array_release(array);
    CHECK(placement.destroy_event == NULL && placement.release_owner == NULL);
    CHECK_PTR(placement.event, mode & EVENT ? &event_handle : NULL);
    int last = -1;
    for (int i = 0; i < sample->n_buffers; i++)
      if (buffers[i].release_owner) last = i;
    CHECK(last >= 0);
    for (int i = 0; i < sample->n_buffers; i++) {
      if (!buffers[i].data) CHECK(buffers[i].release_owner == NULL);
      if (parts.owners[i] && buffers[i].data) CHECK(!is_gone(parts.owners[i]));
      if (!buffers[i].release_owner) continue;
      if (parts.event) CHECK(!is_gone(parts.event));
      buffers[i].release_owner(buffers[i].owner);
      if (parts.owners[i]) CHECK_INT(is_gone(parts.owners[i]), 1);
      if (parts.event) CHECK_INT(is_gone(parts.event), i == last);
    }
    check_gone(&parts, 1);
    end_parts(&parts);
  }
}

/* A call that fails takes nothing: every byte of what was given is as it was. */
static void check_refused(int mode, int damage) {
  struct parts parts;
  struct ArrowDeviceArray raw;
  BowstringNode nodes[MAX_NODES];
  make_parts(&parts, nested, mode);
  const struct sample *sample = parts.sample;
  size_t n_nodes = (size_t)sample->n_nodes, n_buffers = (size_t)sample->n_buffers;
  memcpy(nodes, sample->nodes, n_nodes * sizeof *nodes);
  BowstringStatus expected = BOWSTRING_INVALID_DATA;
  const BowstringType *type = parts.type;
  const BowstringNode *given = nodes;
  switch (damage) {
    case 0: n_nodes--, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 1: n_buffers--, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 2: type = NULL, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 3: given = NULL, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 4: nodes[1].length = -1; break;
    case 5: nodes[8].n_buffers = 3, nodes[5].n_buffers = 1; break;
    case 6: nodes[7].length = 1000; break;
    case 7: parts.buffers[15].size_bytes = 0; break;
    case 8: parts.placement.device.type = 5, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 9:
      parts.placement.record_on.mode = BOWSTRING_SYNC_QUEUE;
      expected = parts.placement.event ? BOWSTRING_INVALID_ARGUMENT : BOWSTRING_DEVICE_UNAVAILABLE;
      break;
    case 10: parts.placement.struct_size = 8, expected = BOWSTRING_INVALID_ARGUMENT; break;
    case 11: parts.buffers[2].data = NULL; break;
    default: nodes[0].null_count = 2; break;
  }
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  memcpy(buffers, parts.buffers, sizeof buffers);
  BowstringPlacement placement = parts.placement;
  memset(&raw, 0xAA, sizeof raw);
  CHECK_FAILS(bowstring_device_array_from_buffers(type, given, n_nodes, parts.buffers, n_buffers, &parts.placement,
                                                  &raw, &report),
              expected);
  CHECK(raw.array.release == NULL);
  CHECK_MEM(parts.buffers, buffers, sizeof buffers);
  CHECK_MEM(&parts.placement, &placement, sizeof placement);

  for (int i = 0; i < sample->n_buffers; i++)
    if (buffers[i].release_owner) buffers[i].release_owner(buffers[i].owner);
  if (placement.release_owner) placement.release_owner(placement.owner);
  if (placement.destroy_event) placement.destroy_event(placement.event_ctx, placement.event);
  check_order(&parts);
  end_parts(&parts);
}

static void test_failures(void) {
  for (int mode = 0; mode < ALL_MODES; mode++)
    for (int damage = 0; damage < 13; damage++) {
      check_about("mode %d, damage %d", mode, damage);
      check_refused(mode, damage);
    }
}

/* An added owner lives as long as the result, its windows, its exports and its buffers. */
static void test_added_owner(void) {
  for (int kind = 0; kind < 6; kind++) {
    check_about("kind %d", kind);
    struct parts parts;
    make_parts(&parts, nested, PER_BUFFER | WHOLE_TREE | EVENT);
    BowstringArray *base = import_parts(&parts), *array = NULL, *part = NULL;
    struct owner *added = owner_new(NULL);
    CHECK_OK(bowstring_array_with_owner(base, added, owner_release, &array, &report));
    bowstring_array_release(base);
    struct ArrowDeviceArray raw = {.array = {.release = NULL}};
    BowstringBuffer *buffer = NULL;
    switch (kind) {
      case 0: part = bowstring_array_retain(array); break;
      case 1: CHECK_OK(bowstring_array_child(array, 0, &part, &report)); break;
      case 2: CHECK_OK(bowstring_array_slice(array, 1, 1, &part, &report)); break;
      case 3: CHECK_OK(bowstring_array_export(array, &raw, NULL, &report)); break;
      case 4: CHECK_OK(bowstring_array_buffer(array, 2, &buffer, &report)); break;
      default:
        CHECK_OK(bowstring_array_export(array, &raw, NULL, &report));
        CHECK_OK(bowstring_array_import_typed(&raw, parts.type, &part, &report));
        break;
    }
    bowstring_array_release(array);
    CHECK(!is_gone(added) && !is_gone(parts.whole) && !is_gone(parts.event));
    bowstring_array_release(part);
    bowstring_buffer_release(buffer);
    bowstring_device_array_release(&raw);
    CHECK(is_gone(added));
    CHECK(added->turn > parts.whole->turn);
    check_order(&parts);
    end_parts(&parts);
  }
}

/* A borrowed struct is never released; its owner hears when it is not needed any more. */
static void test_borrowed(void) {
  for (int i = 0; i < n_samples; i++) {
    check_about("%s", samples[i].text);
    struct ArrowDeviceArray lent, out;
    BowstringArray *array = NULL, *part = NULL;
    BowstringBuffer *buffer = NULL;
    BowstringType *type = sample_type(&samples[i]);
    sample_array(&samples[i], &lent);
    struct ArrowDeviceArray before = lent;
    struct owner *owner = owner_new(NULL);
    CHECK_OK(bowstring_array_import_borrowed(&lent, type, owner, owner_release, &array, &report));
    CHECK_MEM(&lent, &before, sizeof lent);
    memset(&lent, 0xFF, sizeof lent); /* The root struct was copied. */
    CHECK_OK(bowstring_array_export(array, &out, NULL, &report));
    CHECK_OK(bowstring_array_slice(array, 0, samples[i].nodes[0].length, &part, &report));
    if (samples[i].n_buffers > 0) CHECK_OK(bowstring_array_buffer(array, 0, &buffer, &report));
    bowstring_array_release(array);
    bowstring_array_release(part);
    CHECK(!is_gone(owner));
    bowstring_device_array_release(&out);
    CHECK_INT(is_gone(owner), buffer == NULL);
    bowstring_buffer_release(buffer);
    CHECK(is_gone(owner));
    CHECK(before.array.release != NULL);
    before.array.release(&before.array);
    bowstring_type_release(type);
    owners_all_gone();
  }
  struct ArrowDeviceArray lent;
  BowstringArray *array = NULL;
  BowstringType *type = sample_type(&samples[1]);
  sample_array(&samples[1], &lent);
  CHECK_OK(bowstring_array_import_borrowed(&lent, type, NULL, NULL, &array, &report));
  bowstring_array_release(array);
  CHECK(lent.array.release != NULL);
  lent.array.release(&lent.array);
  bowstring_type_release(type);
  owners_all_gone();
}

/* A buffer of one owner, and its parts. */
static void test_wrapped(void) {
  for (int mode = 0; mode < ALL_MODES; mode++) {
    check_about("mode %d", mode);
    struct parts parts;
    BowstringBuffer *whole = NULL, *part = NULL;
    make_parts(&parts, "int8", mode);
    /* The first entry is not used. */
    if (parts.owners[0]) owner_release(parts.owners[0]);
    BowstringOwnedBuffer memory = parts.buffers[1], back;
    CHECK_OK(bowstring_buffer_wrap(&memory, &parts.placement, &whole, &report));
    CHECK(memory.owner == NULL && memory.release_owner == NULL);
    CHECK(parts.placement.owner == NULL && parts.placement.event == NULL);
    CHECK_OK(bowstring_buffer_slice(whole, 2, 3, &part, &report));
    bowstring_buffer_release(whole);
    if (parts.owners[1]) CHECK(!is_gone(parts.owners[1]));
    if (parts.whole) CHECK(!is_gone(parts.whole));
    BowstringBufferMemory info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_buffer_info(part, &info, &report));
    CHECK_PTR(info.data, (const char *)parts.buffers[1].data + 2);
    CHECK_INT(info.size_bytes, 3);
    CHECK_OK(bowstring_buffer_into_owned(&part, &back, &report));
    CHECK_PTR(part, NULL);
    CHECK_PTR(back.data, info.data);
    CHECK_INT(back.size_bytes, 3);
    if (parts.owners[1]) CHECK(!is_gone(parts.owners[1]));
    CHECK(back.release_owner != NULL);
    back.release_owner(back.owner);
    check_order(&parts);
    end_parts(&parts);
  }
}

static BowstringLiveCounts while_let_go;

static void count_and_let_go(void *owner) {
  while_let_go = live_counts();
  ++*(int *)owner;
}

/* Each thing counts until its owner's function has returned, so that who waits for a count may take away what that uses. */
static void test_counted_while_let_go(void) {
  static const int64_t values[2] = {1, 2};
  const BowstringNode node = {2, 0, 0, 2};
  BowstringType *type = sample_type(sample_named("int64"));
  for (int kind = 0; kind < 5; kind++) {
    check_about("kind %d", kind);
    int runs = 0;
    BowstringOwnedBuffer buffers[2] = {{0}, {values, sizeof values, &runs, count_and_let_go}};
    BowstringLiveCounts before = live_counts();
    struct ArrowDeviceArray raw;
    BowstringArray *array = NULL;
    BowstringBuffer *buffer = NULL;
    BowstringStream *stream = NULL;
    struct DLManagedTensorVersioned *tensor = NULL;
    memset(&while_let_go, 0, sizeof while_let_go);
    CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, NULL, &raw, &report));
    if (kind != 0) CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
    switch (kind) {
      case 0:
        bowstring_device_array_release(&raw);
        CHECK(while_let_go.blocks == before.blocks + 1);
        break;
      case 1:
        bowstring_array_release(array);
        CHECK(while_let_go.arrays == before.arrays + 1);
        break;
      case 2:
        CHECK_OK(bowstring_array_buffer(array, 1, &buffer, &report));
        bowstring_array_release(array);
        bowstring_buffer_release(buffer);
        CHECK(while_let_go.buffers == before.buffers + 1);
        break;
      case 3:
        CHECK_OK(bowstring_array_to_tensor(array, NULL, &tensor, &report));
        bowstring_array_release(array);
        bowstring_tensor_release(tensor);
        CHECK(while_let_go.tensors == before.tensors + 1);
        break;
      default:
        CHECK_OK(bowstring_stream_from_arrays(type, (const BowstringArray *const *)&array, 1, &stream, &report));
        bowstring_array_release(array);
        bowstring_stream_release(stream);
        CHECK(while_let_go.streams == before.streams + 1);
        break;
    }
    CHECK_INT(runs, 1);
    live_as_before(&before);
  }
  bowstring_type_release(type);
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  test_modes();
  test_single_buffers();
  test_taken_apart();
  test_failures();
  test_added_owner();
  test_borrowed();
  test_wrapped();
  test_counted_while_let_go();
  live_as_before(&before);
  return check_end(60000);
}
