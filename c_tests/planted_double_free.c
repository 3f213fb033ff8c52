/* A fault on purpose: two buffers that each free the same memory. */
#include "check.h"

#include <stdlib.h>

int main(void) {
  static const BowstringNode node = {4, 0, 0, 2};
  void *memory = calloc(4, 4);
  BowstringOwnedBuffer buffers[2] = {{memory, 16, memory, free}, {memory, 16, memory, free}};
  struct ArrowDeviceArray out;
  BowstringType *type = NULL;
  CHECK(memory != NULL);
  CHECK_OK(bowstring_type_parse("int32", &type, &report));
  CHECK_OK(bowstring_device_array_from_buffers(type, &node, 1, buffers, 2, NULL, &out, &report));
  bowstring_type_release(type);
  bowstring_device_array_release(&out);
  return 0;
}
