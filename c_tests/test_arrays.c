/* Arrays of every type, built and imported, whole and through every window: what is shown, and what goes out. */
#include "build.h"
#include "check.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>

static BowstringArray *make(const struct sample *sample, enum origin origin) {
  if (origin == BUILT) return sample_import(sample);
  if (origin == FOREIGN) return sample_foreign(sample);
  struct ArrowDeviceArray raw;
  struct ArrowSchema schema;
  BowstringArray *array = NULL;
  sample_array(sample, &raw);
  sample_schema(sample, &schema);
  device_hide(sample, &raw);
  CHECK_OK(bowstring_array_import(&raw, &schema, &array, &report));
  return array;
}

/* ---- what is shown ---- */

static void check_node(BowstringArray *array, const struct model *model, int base, int at) {
  const struct model_node *node = &model->nodes[at];
  BowstringNodeInfo info;
  memset(&info, 0xAA, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(bowstring_array_node_info(array, (size_t)(at - base), &info, &report));
  CHECK_INT(info.struct_size, sizeof info);
  CHECK_INT(info.parent, at == base ? SIZE_MAX : (size_t)(node->parent - base));
  CHECK_INT(info.n_children, node->field->n_children);
  CHECK_INT(info.first_child, node->field->n_children ? (size_t)(at + 1 - base) : SIZE_MAX);
  CHECK_INT(info.subtree_end, node->end - base);
  CHECK_INT(info.dictionary != SIZE_MAX, node->field->dictionary != NULL);
  if (node->field->dictionary) CHECK(model->nodes[(size_t)base + info.dictionary].field == node->field->dictionary);
  CHECK_STR(info.format, node->field->format);
  CHECK_STR(info.name, node->field->name);
  CHECK_INT(info.flags, node->field->flags);
  CHECK_INT(info.length, node->length);
  CHECK_INT(info.offset, node->offset);
  CHECK_INT(info.first_buffer, node->first_buffer - model->nodes[base].first_buffer);
  CHECK_INT(info.n_buffers, node->n_buffers);
  if (node->offset == node->raw.offset && node->length == node->raw.length) CHECK_INT(info.null_count, node->nulls);
  CHECK(info.null_count == -1 || info.null_count == node->nulls);
}

/* `resolved`: every size is known, as the buffers tell it. */
static void check_buffer(BowstringArray *array, const struct model *model, enum origin origin, int resolved, int base,
                         int at) {
  const struct model_buffer *buffer = &model->buffers[at];
  const struct model_node *node = &model->nodes[buffer->node];
  int first_buffer = model->nodes[base].first_buffer;
  BowstringBufferInfo info;
  memset(&info, 0xAA, sizeof info);
  info.struct_size = sizeof info;
  CHECK_OK(bowstring_array_buffer_info(array, (size_t)(at - first_buffer), &info, &report));
  CHECK_INT(info.node, buffer->node - base);
  CHECK_INT(info.role, buffer->slot.role);
  CHECK_MEM(&info.element, &buffer->slot.element, sizeof info.element);
  CHECK_INT(info.device.type, origin == DEVICE ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU);
  CHECK_INT(info.device.id, origin == DEVICE ? 0 : -1);

  int64_t size = model_size(model, at), rows = node->raw.offset + node->raw.length;
  int is_validity = buffer->slot.role == BOWSTRING_ROLE_VALIDITY, is_null = buffer->bytes.data == NULL;
  if (origin == BUILT && !is_null) size = buffer->bytes.size;
  /* Without an address there are no bytes, whatever other buffers would have said. */
  if (origin != BUILT && !resolved && !is_null && model_is_told_elsewhere(model, at)) size = -1;
  CHECK_INT(info.size_bytes, size);
  if (is_null && (is_validity || origin != BUILT)) CHECK_PTR(info.data, NULL);
  if (is_null && !is_validity && origin == BUILT) CHECK(info.data != NULL);
  if (!is_null && origin != DEVICE) CHECK_MEM(info.data, buffer->bytes.data, (size_t)buffer->bytes.size);
  if (!is_null && origin == DEVICE && buffer->bytes.size > 0 && buffer->slot.role != BOWSTRING_ROLE_VARIADIC_SIZES) {
    unsigned char copy[512];
    CHECK_INT(device_read(NULL, copy, info.data, (size_t)buffer->bytes.size), 0);
    CHECK_MEM(copy, buffer->bytes.data, (size_t)buffer->bytes.size);
  }

  if (is_validity && is_null) {
    CHECK(info.n_elements == 0 && info.first == 0 && info.count == 0 && info.bit_offset == 0);
    return;
  }
  int is_whole = model_is_told_elsewhere(model, at) || buffer->slot.role == BOWSTRING_ROLE_VARIADIC_SIZES;
  if (is_whole) {
    int64_t elements = size < 0 ? -1 : size * 8 / buffer->bits;
    CHECK_INT(info.n_elements, elements);
    CHECK_INT(info.first, 0);
    CHECK_INT(info.count, elements);
  } else if (model_size(model, at) > 0 && model_size(model, at) == (rows + 1) * buffer->bits / 8 &&
             buffer->bits >= 32 && buffer->slot.role == BOWSTRING_ROLE_OFFSETS) {
    CHECK_INT(info.n_elements, rows + 1);
    CHECK_INT(info.first, node->offset);
    CHECK_INT(info.count, node->length + 1);
  } else {
    CHECK_INT(info.n_elements, rows);
    CHECK_INT(info.first, node->offset);
    CHECK_INT(info.count, node->length);
  }
  CHECK_INT(info.bit_offset, buffer->bits == 1 ? node->offset % 8 : 0);
}

static void check_shown(BowstringArray *array, const struct model *model, enum origin origin, int resolved, int base) {
  const struct model_node *root = &model->nodes[base];
  size_t n_nodes = 0, n_buffers = 0;
  int end_buffer = root->first_buffer;
  for (int i = base; i < root->end; i++) end_buffer += model->nodes[i].n_buffers;
  CHECK_OK(bowstring_array_count(array, &n_nodes, &n_buffers, &report));
  CHECK_INT(n_nodes, root->end - base);
  CHECK_INT(n_buffers, end_buffer - root->first_buffer);
  for (int i = base; i < root->end; i++) check_node(array, model, base, i);
  for (int i = root->first_buffer; i < end_buffer; i++) check_buffer(array, model, origin, resolved, base, i);

  BowstringNodeInfo node = {.struct_size = sizeof node};
  BowstringBufferInfo buffer = {.struct_size = sizeof buffer};
  CHECK_FAILS(bowstring_array_node_info(array, n_nodes, &node, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_FAILS(bowstring_array_node_info(array, SIZE_MAX, &node, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_FAILS(bowstring_array_buffer_info(array, n_buffers, &buffer, &report), BOWSTRING_INVALID_ARGUMENT);
  CHECK_FAILS(bowstring_array_buffer_info(array, SIZE_MAX, &buffer, &report), BOWSTRING_INVALID_ARGUMENT);

  BowstringDevice device = {77, 77};
  void *event = &device;
  CHECK_OK(bowstring_array_device(array, &device, &event, &report));
  CHECK_INT(device.type, origin == DEVICE ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU);
  CHECK_PTR(event, NULL);
}

static void check_nulls(BowstringArray *array, const struct model_node *node, enum origin origin) {
  int64_t nulls = 77;
  BowstringNodeInfo info = {.struct_size = sizeof info};
  CHECK_OK(bowstring_array_node_info(array, 0, &info, &report));
  if (origin == DEVICE && info.null_count < 0) {
    CHECK_FAILS(bowstring_array_null_count(array, NULL, &nulls, &report), BOWSTRING_DEVICE_UNAVAILABLE);
    CHECK_INT(nulls, -1);
    return;
  }
  CHECK_OK(bowstring_array_null_count(array, NULL, &nulls, &report));
  CHECK_INT(nulls, node->nulls);
  /* It is remembered. */
  CHECK_OK(bowstring_array_node_info(array, 0, &info, &report));
  CHECK_INT(info.null_count, node->nulls);
}

/* The array and every array below it. */
static void check_tree(BowstringArray *array, const struct model *model, enum origin origin, int resolved, int base) {
  const struct model_node *root = &model->nodes[base];
  BowstringArray *below = (BowstringArray *)8;
  check_shown(array, model, origin, resolved, base);
  check_nulls(array, root, origin);
  int node = base + 1;
  for (int i = 0; i < root->field->n_children; i++) {
    CHECK_OK(bowstring_array_child(array, (size_t)i, &below, &report));
    check_tree(below, model, origin, resolved, node);
    bowstring_array_release(below);
    node = model->nodes[node].end;
  }
  CHECK_FAILS(bowstring_array_child(array, (size_t)root->field->n_children, &below, &report),
              BOWSTRING_INVALID_ARGUMENT);
  CHECK_PTR(below, NULL);
  if (root->field->dictionary) {
    CHECK_OK(bowstring_array_dictionary(array, &below, &report));
    check_tree(below, model, origin, resolved, node);
    bowstring_array_release(below);
  } else {
    CHECK_FAILS(bowstring_array_dictionary(array, &below, &report), BOWSTRING_INVALID_ARGUMENT);
    CHECK_PTR(below, NULL);
  }
}

/* ---- what goes out ---- */

/* How the window of a struct at the root is written: pushed into the children where its own nulls allow it. */
static int is_pushed(const struct model *model, enum origin origin) {
  const struct model_node *root = &model->nodes[0];
  if (strcmp(root->field->format, "+s") != 0) return 0;
  /* A part of a column on a device is known to have no nulls only when the whole has none, or when it is empty. */
  int may_be_counted = origin != DEVICE || root->raw.null_count == 0 || root->length == 0;
  return root->offset == 0 || (may_be_counted && root->nulls == 0);
}

static void check_exported(const struct ArrowArray *out, const struct model *model, enum origin origin,
                           BowstringArray *array, int at) {
  const struct model_node *node = &model->nodes[at], *root = &model->nodes[0];
  int64_t offset = node->raw.offset, length = node->raw.length;
  int pushed = is_pushed(model, origin);
  if (at == 0) {
    offset = pushed ? 0 : node->offset;
    length = node->length;
  } else if (pushed && node->parent == 0) {
    offset = node->raw.offset + root->offset;
    length = root->length;
  }
  CHECK_INT(out->length, length);
  /* An offset into nothing is refused by some, so that none goes out. */
  CHECK_INT(out->offset, length == 0 ? 0 : offset);
  int64_t nulls = at == 0 ? root->nulls : model_nulls(model, at, offset, length);
  if (origin != DEVICE) CHECK_INT(out->null_count, nulls);
  CHECK(out->null_count == nulls || out->null_count == -1);
  CHECK_INT(out->n_buffers, node->n_buffers);
  CHECK_INT(out->n_children, node->field->n_children);
  CHECK_INT(out->children == NULL, node->field->n_children == 0);
  CHECK_INT(out->dictionary != NULL, node->field->dictionary != NULL);
  CHECK(out->release != NULL && out->private_data != NULL);
  for (int i = 0; i < node->n_buffers; i++) {
    const struct model_buffer *buffer = &model->buffers[node->first_buffer + i];
    BowstringBufferInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_buffer_info(array, (size_t)(node->first_buffer + i), &info, &report));
    int is_validity = buffer->slot.role == BOWSTRING_ROLE_VALIDITY;
    if (is_validity && at == 0 && pushed && root->offset != 0) {
      CHECK_PTR(out->buffers[i], NULL);
    } else if (info.data || is_validity || origin == DEVICE) {
      CHECK_PTR(out->buffers[i], info.data);
    } else {
      CHECK(out->buffers[i] != NULL);
    }
  }
  int next = at + 1;
  for (int i = 0; i < node->field->n_children; i++) {
    check_exported(out->children[i], model, origin, array, next);
    next = model->nodes[next].end;
  }
  if (node->field->dictionary) check_exported(out->dictionary, model, origin, array, next);
}

static void check_exports(BowstringArray *array, const struct model *model, enum origin origin) {
  struct ArrowDeviceArray first, second;
  struct ArrowSchema schema;
  memset(&first, 0xAA, sizeof first);
  memset(&second, 0xAA, sizeof second);
  CHECK_OK(bowstring_array_export(array, &first, NULL, &report));
  CHECK_OK(bowstring_array_export(array, &second, &schema, &report));
  CHECK_STR(schema.format, model->sample->field.format);
  for (int i = 0; i < 2; i++) {
    struct ArrowDeviceArray *out = i ? &second : &first;
    check_exported(&out->array, model, origin, array, 0);
    CHECK_INT(out->device_type, origin == DEVICE ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU);
    CHECK_INT(out->device_id, origin == DEVICE ? 0 : -1);
    CHECK_PTR(out->sync_event, NULL);
    CHECK(out->reserved[0] == 0 && out->reserved[1] == 0 && out->reserved[2] == 0);
    bowstring_device_array_release(out);
  }
  bowstring_schema_release(&schema);
  struct ArrowArray host;
  memset(&host, 0xAA, sizeof host);
  if (origin == DEVICE) {
    CHECK_FAILS(bowstring_array_export_host(array, NULL, &host, NULL, &report), BOWSTRING_DEVICE_UNAVAILABLE);
    CHECK(host.release == NULL);
  } else {
    CHECK_OK(bowstring_array_export_host(array, NULL, &host, NULL, &report));
    check_exported(&host, model, origin, array, 0);
    bowstring_host_array_release(&host);
  }
}

/* Taken apart, the numbers of all nodes but the first are the given ones. */
static void check_parts(BowstringArray *array, const struct model *model, enum origin origin) {
  BowstringNode nodes[MAX_NODES];
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement;
  memset(&placement, 0xAA, sizeof placement);
  placement.struct_size = sizeof placement;
  CHECK_OK(bowstring_array_to_buffers(array, nodes, (size_t)model->n_nodes, buffers, (size_t)model->n_buffers,
                                      &placement, &report));
  CHECK_INT(placement.device.type, origin == DEVICE ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU);
  CHECK(placement.event == NULL && placement.destroy_event == NULL);
  CHECK(placement.owner == NULL && placement.release_owner == NULL && placement.record_on.mode == 0);
  for (int i = 0; i < model->n_nodes; i++) {
    CHECK_INT(nodes[i].length, i == 0 ? model->nodes[0].length : model->nodes[i].raw.length);
    CHECK_INT(nodes[i].offset, i == 0 ? model->nodes[0].offset : model->nodes[i].raw.offset);
    CHECK_INT(nodes[i].n_buffers, model->nodes[i].n_buffers);
    int64_t nulls = i == 0 ? model->nodes[0].nulls : model_nulls(model, i, nodes[i].offset, nodes[i].length);
    CHECK(nodes[i].null_count == nulls || nodes[i].null_count == -1);
  }
  for (int i = 0; i < model->n_buffers; i++) {
    BowstringBufferInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_buffer_info(array, (size_t)i, &info, &report));
    CHECK_PTR(buffers[i].data, info.data);
    CHECK_INT(buffers[i].size_bytes, info.size_bytes);
  }
  /* And together again. */
  struct ArrowDeviceArray out;
  CHECK_OK(bowstring_device_array_from_buffers(bowstring_array_type(array), nodes, (size_t)model->n_nodes, buffers,
                                               (size_t)model->n_buffers, &placement, &out, &report));
  check_exported(&out.array, model, origin, array, 0);
  bowstring_device_array_release(&out);
}

/* ---- sizes ---- */

static void check_resolved(BowstringArray *array, const struct model *model, enum origin origin) {
  BowstringArray *sized = NULL;
  int calls = 0, told = 0;
  if (origin == DEVICE) {
    CHECK_OK(bowstring_array_resolve_sizes_with(array, device_read, &calls, &sized, &report));
    /* Without the driver nothing can be read, and nothing need be where nothing is to be read. */
    BowstringArray *other = NULL;
    BowstringStatus status = bowstring_array_resolve_sizes(array, NULL, &other, &report);
    CHECK_INT(status, calls > 0 ? BOWSTRING_DEVICE_UNAVAILABLE : BOWSTRING_OK);
    bowstring_array_release(other);
  } else {
    CHECK_OK(bowstring_array_resolve_sizes(array, NULL, &sized, &report));
  }
  for (int i = 0; i < model->n_buffers; i++) told += model->buffers[i].bytes.data && model_is_told_elsewhere(model, i);
  if (origin == DEVICE && told > 0) CHECK(calls > 0);
  check_tree(sized, model, origin, 1, 0);
  /* What is known stays known. */
  BowstringArray *again = NULL;
  if (origin != DEVICE) {
    CHECK_OK(bowstring_array_resolve_sizes(sized, NULL, &again, &report));
    check_shown(again, model, origin, 1, 0);
    bowstring_array_release(again);
  }
  bowstring_array_release(sized);
}

/* ---- all of it ---- */

static void test_sample(const struct sample *sample, enum origin origin) {
  struct model model;
  int64_t rows = sample->nodes[0].length;
  BowstringArray *array = make(sample, origin), *part = NULL;
  for (int64_t offset = 0; offset <= rows; offset++) {
    for (int64_t length = 0; length <= rows - offset; length++) {
      check_about("%s, origin %d, %lld from %lld", sample->text, origin, (long long)length, (long long)offset);
      model_make(&model, sample, origin, offset, length);
      CHECK_OK(bowstring_array_slice(array, offset, length, &part, &report));
      check_parts(part, &model, origin);
      check_tree(part, &model, origin, 0, 0);
      check_exports(part, &model, origin);
      check_resolved(part, &model, origin);
      /* A window of a window counts from where that starts. */
      BowstringArray *inner = NULL;
      if (length > 0) {
        CHECK_OK(bowstring_array_slice(part, 1, length - 1, &inner, &report));
        model_make(&model, sample, origin, offset + 1, length - 1);
        check_tree(inner, &model, origin, 0, 0);
        bowstring_array_release(inner);
      }
      inner = (BowstringArray *)8;
      CHECK_FAILS(bowstring_array_slice(part, 0, length + 1, &inner, &report), BOWSTRING_INVALID_ARGUMENT);
      CHECK_PTR(inner, NULL);
      CHECK_FAILS(bowstring_array_slice(part, -1, 0, &inner, &report), BOWSTRING_INVALID_ARGUMENT);
      CHECK_FAILS(bowstring_array_slice(part, 0, -1, &inner, &report), BOWSTRING_INVALID_ARGUMENT);
      CHECK_FAILS(bowstring_array_slice(part, INT64_MAX, INT64_MAX, &inner, &report), BOWSTRING_INVALID_ARGUMENT);
      bowstring_array_release(part);
    }
  }
  model_make(&model, sample, origin, 0, rows);
  check_about("%s, origin %d", sample->text, origin);
  check_tree(array, &model, origin, 0, 0);
  check_exports(array, &model, origin);
  bowstring_array_release(array);
  owners_all_gone();
  device_free_all();
}

/* The sizes of a view's variadic buffers are built where they are not given, in CPU memory whatever the device. */
static void test_built_sizes(void) {
  for (int i = 0; i < n_samples; i++) {
    const struct sample *sample = &samples[i];
    int last = sample->n_buffers - 1;
    if (sample->field.format[0] != 'v') continue;
    for (int on_device = 0; on_device < 2; on_device++) {
      BowstringOwnedBuffer buffers[MAX_BUFFERS];
      BowstringPlacement placement = {.struct_size = sizeof placement};
      struct ArrowDeviceArray raw;
      BowstringArray *array = NULL;
      BowstringType *type = sample_type(sample);
      check_about("%s with %d variadic buffers", sample->text, last - 2);
      on_device ? sample_device_buffers(sample, buffers) : sample_buffers(sample, buffers);
      if (on_device) placement.device = (BowstringDevice){ARROW_DEVICE_CUDA, 0};
      owner_release(buffers[last].owner);
      buffers[last] = (BowstringOwnedBuffer){NULL, -1, NULL, NULL};
      if (last > 2) {
        int64_t size = buffers[2].size_bytes;
        buffers[2].size_bytes = -1;
        CHECK_FAILS(bowstring_device_array_from_buffers(type, sample->nodes, 1, buffers, (size_t)sample->n_buffers,
                                                        &placement, &raw, &report),
                    BOWSTRING_INVALID_ARGUMENT);
        CHECK_RULE("B2");
        buffers[2].size_bytes = size;
      }
      CHECK_OK(bowstring_device_array_from_buffers(type, sample->nodes, 1, buffers, (size_t)sample->n_buffers,
                                                   &placement, &raw, &report));
      CHECK_INT(raw.array.n_buffers, last + 1);
      if (last > 2) CHECK_MEM(raw.array.buffers[last], sample->buffers[last].data, (size_t)sample->buffers[last].size);
      CHECK_OK(bowstring_array_import_typed(&raw, type, &array, &report));
      BowstringBufferInfo info = {.struct_size = sizeof info};
      CHECK_OK(bowstring_array_buffer_info(array, (size_t)last, &info, &report));
      CHECK_INT(info.role, BOWSTRING_ROLE_VARIADIC_SIZES);
      CHECK_INT(info.size_bytes, 8 * (last - 2));
      CHECK_INT(info.n_elements, last - 2);
      for (int k = 2; k < last; k++) {
        CHECK_OK(bowstring_array_buffer_info(array, (size_t)k, &info, &report));
        CHECK_INT(info.role, BOWSTRING_ROLE_VARIADIC);
        CHECK_INT(info.size_bytes, sample->buffers[k].size);
      }
      bowstring_array_release(array);
      bowstring_type_release(type);
      owners_all_gone();
      device_free_all();
    }
  }
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  for (int i = 0; i < n_samples; i++) {
    test_sample(&samples[i], BUILT);
    test_sample(&samples[i], FOREIGN);
    test_sample(&samples[i], DEVICE);
  }
  test_built_sizes();
  live_as_before(&before);
  return check_end(1000000);
}
