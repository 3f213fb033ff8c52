#include <stdlib.h>

#include <nanoarrow/nanoarrow.h>

#include "../measure.h"
#include "validators.h"

/* A view borrows, so the structs are kept beside it. */
struct opened {
  struct ArrowArray array;
  struct ArrowSchema schema;
  struct ArrowArrayView view;
};

static void *open_array(struct ArrowArray *array, struct ArrowSchema *schema) {
  struct opened *opened = malloc(sizeof *opened);
  EXPECT(opened != NULL);
  ArrowArrayMove(array, &opened->array);
  ArrowSchemaMove(schema, &opened->schema);
  EXPECT(ArrowArrayViewInitFromSchema(&opened->view, &opened->schema, NULL) == NANOARROW_OK);
  EXPECT(ArrowArrayViewSetArray(&opened->view, &opened->array, NULL) == NANOARROW_OK);
  return opened;
}

static int validate(void *pointer) {
  struct opened *opened = pointer;
  return ArrowArrayViewValidate(&opened->view, NANOARROW_VALIDATION_LEVEL_FULL, NULL) == NANOARROW_OK;
}

static void close_array(void *pointer) {
  struct opened *opened = pointer;
  ArrowArrayViewReset(&opened->view);
  ArrowArrayRelease(&opened->array);
  ArrowSchemaRelease(&opened->schema);
  free(opened);
}

const struct validator with_nanoarrow = {"nanoarrow", open_array, validate, close_array};
