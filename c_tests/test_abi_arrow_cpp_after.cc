// As test_abi_arrow_cpp.cc, in the other order.
#include <bowstring.h>

#include <arrow/c/dlpack_abi.h>
#include <arrow/c/abi.h>

#include "abi_layout.h"

#include <cstdio>

ABI_ARROW_LAYOUT;
ABI_ASYNC_LAYOUT;
ABI_DEVICE_NUMBERS;
ABI_DLPACK_LAYOUT;

int main() {
  std::printf("%d checks\n", ABI_ARROW_FACTS + ABI_DLPACK_FACTS);
  return bowstring_array_retain(nullptr) == nullptr ? 0 : 1;
}
