/* What an array of a sample has to look like through a window, worked out from the literal numbers alone. */
#ifndef MODEL_H
#define MODEL_H

#include "build.h"
#include "layouts.h"

enum origin {
  BUILT,   /* by the library, from buffers with sizes */
  FOREIGN, /* imported from another producer */
  DEVICE   /* the same, in memory that must not be touched */
};

struct model_node {
  const struct field *field;
  BowstringNode raw;      /* the numbers as they were given */
  int64_t offset, length; /* those that the window shows */
  int64_t nulls;          /* in the window */
  int parent, is_dictionary, end, first_buffer, n_buffers;
};

struct model_buffer {
  int node;
  struct slot slot;
  int64_t bits; /* of one element */
  struct bytes bytes;
};

struct model {
  const struct sample *sample;
  int n_nodes, n_buffers;
  struct model_node nodes[MAX_NODES];
  struct model_buffer buffers[MAX_BUFFERS];
};

/* A window of `length` values from `offset` on, counted in the array. */
void model_make(struct model *model, const struct sample *sample, enum origin origin, int64_t offset, int64_t length);

/* Nulls among the values of a node, physical indices. */
int64_t model_nulls(const struct model *model, int node, int64_t offset, int64_t length);

/* Bytes that a buffer needs, or the sizes' own word for data. */
int64_t model_size(const struct model *model, int buffer);

/* Whether a buffer's size is told by another buffer only. */
int model_is_told_elsewhere(const struct model *model, int buffer);

#endif
