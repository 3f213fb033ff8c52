/* As test_abi_nanoarrow.c, in the other order. */
#include <bowstring.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include "abi_layout.h"
#include "check.h"

ABI_ARROW_LAYOUT;
ABI_DEVICE_NUMBERS;

int main(void) {
  struct ArrowDeviceArray array = {.array = {.release = NULL}};
  CHECK(bowstring_device_array_is_released(&array));
  return check_end(1);
}
