/* The arrays that every library validates, in memory that no library owns. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include <stdint.h>

/* The interface's own guard keeps this beside any library's copy of the structs. */
#include <bowstring/arrow_c_abi.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_BUFFERS = 8, MOST_CHILDREN = 3, CASES = 8 };

/* One node. Its buffers are freed with the case. */
struct node {
  const char *format;
  const char *name;
  int64_t length;
  int64_t null_count;
  int n_buffers;
  void *buffers[MOST_BUFFERS];
  int n_children;
  struct node *children[MOST_CHILDREN];
  struct node *dictionary;
};

/* One array, and the place of a fault that can be put into it. */
struct array_case {
  const char *name;
  struct node *root;
  int64_t bytes; /* that a validation has to read */
  unsigned char *place;
  int64_t fault_size;
  unsigned char fault[8];
};

/* Case i of CASES. */
struct array_case *array_case_new(int i);
void array_case_free(struct array_case *c);

/* Puts the fault in, or takes it out again. */
void array_case_swap_fault(struct array_case *c);

/* Structs of the caller's own, over the case's memory. */
void array_case_export(const struct array_case *c, struct ArrowArray *array, struct ArrowSchema *schema);

#ifdef __cplusplus
}
#endif

#endif
