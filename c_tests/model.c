#include "model.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

static int add_node(struct model *model, const struct field *field, int parent, int is_dictionary) {
  int at = model->n_nodes++;
  struct model_node *node = &model->nodes[at];
  struct slot slots[4];
  int n_slots = layout_of(field->format, slots);
  *node = (struct model_node){.field = field,
                              .raw = model->sample->nodes[at],
                              .parent = parent,
                              .is_dictionary = is_dictionary,
                              .first_buffer = model->n_buffers};
  node->n_buffers = (int)node->raw.n_buffers;
  for (int i = 0; i < node->n_buffers; i++) {
    /* A view's variadic buffers repeat the third slot; the last stays the last. */
    int slot = n_slots < 4 || i < 2 ? i : i == node->n_buffers - 1 ? 3 : 2;
    struct model_buffer *buffer = &model->buffers[model->n_buffers];
    buffer->node = at;
    buffer->slot = slots[slot];
    buffer->bits = (int64_t)slots[slot].element.bits * slots[slot].element.lanes;
    buffer->bytes = model->sample->buffers[model->n_buffers++];
  }
  for (int i = 0; i < field->n_children; i++) add_node(model, &field->children[i], at, 0);
  if (field->dictionary) add_node(model, field->dictionary, at, 1);
  model->nodes[at].end = model->n_nodes;
  return at;
}

/* How many of a child's values belong to each of its parent's; 0 where that is not the same for all. */
static int64_t values_a_row(const struct field *parent) {
  if (strcmp(parent->format, "+s") == 0 || strncmp(parent->format, "+us", 3) == 0) return 1;
  return strncmp(parent->format, "+w:", 3) == 0 ? atoi(parent->format + 3) : -1;
}

void model_make(struct model *model, const struct sample *sample, enum origin origin, int64_t offset, int64_t length) {
  memset(model, 0, sizeof *model);
  model->sample = sample;
  add_node(model, &sample->field, -1, 0);
  CHECK(model->n_nodes == sample->n_nodes && model->n_buffers == sample->n_buffers);
  int is_table = strcmp(sample->field.format, "+s") == 0;
  for (int i = 0; i < model->n_nodes; i++) {
    struct model_node *node = &model->nodes[i];
    /* What is built is built strictly: the columns of a table are as long as the table. */
    if (origin == BUILT && is_table && node->parent == 0) node->raw.length = sample->nodes[0].length;
    node->offset = node->raw.offset;
    node->length = node->raw.length;
    if (i == 0) {
      node->offset += offset;
      node->length = length;
    } else if (!node->is_dictionary) {
      const struct model_node *parent = &model->nodes[node->parent];
      int64_t values = values_a_row(parent->field);
      if (values >= 0) {
        node->offset += parent->offset * values;
        node->length = parent->length * values;
      }
    }
    node->nulls = model_nulls(model, i, node->offset, node->length);
  }
}

int64_t model_nulls(const struct model *model, int at, int64_t offset, int64_t length) {
  const struct model_node *node = &model->nodes[at];
  const unsigned char *bits = NULL;
  int64_t nulls = 0;
  if (strcmp(node->field->format, "n") == 0) return length;
  if (node->n_buffers == 0) return 0;
  const struct model_buffer *first = &model->buffers[node->first_buffer];
  if (first->slot.role == BOWSTRING_ROLE_VALIDITY) bits = first->bytes.data;
  for (int64_t i = offset; bits && i < offset + length; i++) nulls += !(bits[i / 8] >> (i % 8) & 1);
  return nulls;
}

static int64_t number(const struct bytes *bytes, int64_t at, int64_t bits) {
  int32_t narrow = 0;
  int64_t wide = 0;
  if (bits == 32) {
    memcpy(&narrow, (const char *)bytes->data + at * 4, 4);
    return narrow;
  }
  memcpy(&wide, (const char *)bytes->data + at * 8, 8);
  return wide;
}

static int is_text(const struct model_node *node) { return strchr("zZuU", node->field->format[0]) != NULL; }

int model_is_told_elsewhere(const struct model *model, int at) {
  const struct model_buffer *buffer = &model->buffers[at];
  if (buffer->slot.role == BOWSTRING_ROLE_VARIADIC) return 1;
  return buffer->slot.role == BOWSTRING_ROLE_DATA && is_text(&model->nodes[buffer->node]);
}

int64_t model_size(const struct model *model, int at) {
  const struct model_buffer *buffer = &model->buffers[at];
  const struct model_node *node = &model->nodes[buffer->node];
  const struct model_buffer *own = &model->buffers[node->first_buffer];
  int64_t rows = node->raw.offset + node->raw.length;
  switch (buffer->slot.role) {
    case BOWSTRING_ROLE_VARIADIC: return number(&own[node->n_buffers - 1].bytes, at - node->first_buffer - 2, 64);
    case BOWSTRING_ROLE_VARIADIC_SIZES: return 8 * (int64_t)(node->n_buffers - 3);
    case BOWSTRING_ROLE_DATA:
      if (is_text(node)) return node->raw.length == 0 ? 0 : number(&own[1].bytes, rows, own[1].bits);
      break;
    case BOWSTRING_ROLE_OFFSETS:
      /* One more than there are values, but for list views and dense unions. */
      if (node->field->format[1] != 'v' && node->field->format[1] != 'u') rows = node->raw.length == 0 ? 0 : rows + 1;
      break;
    case BOWSTRING_ROLE_VALIDITY:
      if (!buffer->bytes.data) return 0;
      break;
    default: break;
  }
  return (rows * buffer->bits + 7) / 8;
}
