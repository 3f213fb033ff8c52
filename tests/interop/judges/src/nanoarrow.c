// nanoarrow's verdict.

#include <string.h>

#include "nanoarrow/nanoarrow.h"

// 0 when nanoarrow takes the array for valid, else 1 and a message.
int nanoarrow_verdict(struct ArrowSchema *schema, struct ArrowArray *array, char *text, size_t size) {
  struct ArrowError error;
  struct ArrowArrayView view;
  ArrowErrorInit(&error);
  int status = ArrowArrayViewInitFromSchema(&view, schema, &error);
  if (status == NANOARROW_OK) {
    status = ArrowArrayViewSetArray(&view, array, &error);
    if (status == NANOARROW_OK) {
      status = ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &error);
    }
    ArrowArrayViewReset(&view);
  }
  if (status == NANOARROW_OK) return 0;
  strncpy(text, ArrowErrorMessage(&error), size - 1);
  text[size - 1] = '\0';
  return 1;
}
