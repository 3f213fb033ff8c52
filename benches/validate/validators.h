/* The libraries that are compared, behind one interface. */
#ifndef VALIDATORS_H
#define VALIDATORS_H

#include "arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

struct validator {
  const char *name;
  /* Takes the structs over and makes of them what the library validates. */
  void *(*open)(struct ArrowArray *array, struct ArrowSchema *schema);
  /* Validates in full: 1 when the library finds nothing wrong, else 0. */
  int (*validate)(void *opened);
  void (*close)(void *opened);
};

extern const struct validator with_bowstring, with_nanoarrow, with_arrow_cpp, with_arrow_rs;

#ifdef __cplusplus
}
#endif

#endif
