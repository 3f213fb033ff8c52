// Arrow C++'s structs and its copy of DLPack, with our header after them: one definition serves both, and DLPack's
// numbers are those that the library holds its own structs to.
#include <arrow/c/abi.h>
#include <arrow/c/dlpack_abi.h>

#include <bowstring.h>

#include "abi_layout.h"

#include <cstdio>
#include <cstring>

ABI_ARROW_LAYOUT;
ABI_ASYNC_LAYOUT;
ABI_DEVICE_NUMBERS;
ABI_DLPACK_LAYOUT;

static_assert(DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION >= 3, "the DLPack that the numbers are of");
static_assert(DLPACK_FLAG_BITMASK_READ_ONLY == 1 && DLPACK_FLAG_BITMASK_IS_COPIED == 2, "flags");
static_assert(sizeof(BowstringDataType) == sizeof(DLDataType), "an element type is laid out as DLPack's");
static_assert(offsetof(BowstringDataType, code) == offsetof(DLDataType, code), "code");
static_assert(offsetof(BowstringDataType, lanes) == offsetof(DLDataType, lanes), "lanes");

int main() {
  // The library is callable from C++.
  ArrowSchema schema;
  BowstringType *type = nullptr;
  if (bowstring_type_parse("int32", &type, nullptr) != BOWSTRING_OK) return 1;
  if (bowstring_type_export(type, &schema, nullptr) != BOWSTRING_OK) return 1;
  bowstring_type_release(type);
  if (std::strcmp(schema.format, "i") != 0) return 1;
  bowstring_schema_release(&schema);
  std::printf("%d checks\n", ABI_ARROW_FACTS + ABI_DLPACK_FACTS);
  return 0;
}
