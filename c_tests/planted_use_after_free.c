/* A fault on purpose: an array whose memory is freed behind its back, and then read by the library. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

int main(void) {
  static const BowstringNode node = {64, -1, 0, 2};
  void *validity = calloc(8, 1), *values = calloc(64, 4);
  BowstringOwnedBuffer buffers[2] = {{validity, 8, NULL, NULL}, {values, 256, values, free}};
  struct ArrowDeviceArray out;
  BowstringType *type = NULL;
  BowstringArray *array = NULL, *part = NULL;
  int64_t nulls = 0;
  CHECK(validity != NULL && values != NULL);
  memset(validity, 0x55, 8); /* Neither all nor none are null, so that a part has to be counted. */
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, NULL, &out, &report));
  CHECK_OK(bowstring_array_import_typed(&out, type, &array, &report));
  free(validity);
  CHECK_OK(bowstring_array_slice(array, 3, 50, &part, &report));
  bowstring_array_null_count(part, NULL, &nulls, &report);
  bowstring_array_release(part);
  bowstring_array_release(array);
  bowstring_type_release(type);
  return 0;
}
