/* Arrays of every type from literal bytes, made without the library: what it is handed and compared with. */
#ifndef BUILD_H
#define BUILD_H

#include <stdatomic.h>
#include <stddef.h>

#include <bowstring.h>

/* ---- samples: one or more arrays of every type ---- */

struct field {
  const char *format, *name;
  int64_t flags;
  int n_children;
  const struct field *children, *dictionary;
  const void *metadata;
};

struct bytes {
  const void *data; /* NULL: a buffer that is NULL */
  int64_t size;
};

struct sample {
  const char *text; /* the type's text form */
  struct field field;
  int n_nodes;
  const BowstringNode *nodes; /* depth first: a node, its children, its dictionary */
  int n_buffers;
  const struct bytes *buffers;
};

extern const struct sample samples[];
extern const int n_samples;

enum { MAX_NODES = 16, MAX_BUFFERS = 24 }; /* no sample has more */

/* The first sample of a type; ends the program when there is none. */
const struct sample *sample_named(const char *text);

/* ---- owners: each has to be let go once ---- */

struct owner {
  atomic_int runs;
  atomic_long turn; /* when it was let go, counted over all owners from 1 */
  void *memory;     /* freed then */
  struct owner *next;
};

struct owner *owner_new(void *memory);
/* A release_owner. */
void owner_release(void *owner);
/* A destroy_event, with the owner as its context. */
void owner_destroy_event(void *owner, void *event);
/* Checks that every owner made so far was let go once, and forgets them. */
void owners_all_gone(void);
/* Lets go of those that nobody did. */
void owners_let_go(void);
/* Owners that were not let go yet. */
int owners_left(void);

/* ---- what is made of a sample ---- */

/* Structs as a foreign producer makes them. Each root has an owner; what is written over their members does not matter
 * for their release. */
void sample_schema(const struct sample *sample, struct ArrowSchema *out);
void sample_host_array(const struct sample *sample, struct ArrowArray *out);
void sample_array(const struct sample *sample, struct ArrowDeviceArray *out);
void field_schema(const struct field *field, struct ArrowSchema *out);

/* The type, imported from the schema. */
BowstringType *sample_type(const struct sample *sample);
/* Buffers exactly as long as the sample says, each with an owner. */
void sample_buffers(const struct sample *sample, BowstringOwnedBuffer *out);
/* Built by the library, in CPU memory. */
void sample_built(const struct sample *sample, const BowstringType *type, struct ArrowDeviceArray *out);
/* Imported from what the library built. */
BowstringArray *sample_import(const struct sample *sample);
/* Imported from what a foreign producer made. */
BowstringArray *sample_foreign(const struct sample *sample);

/* ---- memory that the CPU must not touch ---- */

/* A copy that can be read by device_read only. */
void *device_copy(const void *bytes, size_t size);
/* For bowstring_array_resolve_sizes_with. `ctx`, when given, is an int that counts the calls. */
int device_read(void *ctx, void *dst, const void *src, size_t n);
/* Puts a foreign array's buffers into device memory, all but the sizes of variadic buffers. */
void device_hide(const struct sample *sample, struct ArrowDeviceArray *array);
/* As sample_buffers, in device memory. */
void sample_device_buffers(const struct sample *sample, BowstringOwnedBuffer *out);
/* Frees all device memory. */
void device_free_all(void);

/* ---- counts of what is alive ---- */

BowstringLiveCounts live_counts(void);
/* Checks that the library keeps exactly as much as then. */
void live_as_before(const BowstringLiveCounts *before);

#endif
