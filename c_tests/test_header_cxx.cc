// The header alone, in C++, twice.
#include <bowstring.h>
#include <bowstring.h>
#include <bowstring/arrow_c_abi.h>

#include <cstdio>

static_assert(__cplusplus >= 201703L, "this is to be compiled as C++17");

int main() {
  BowstringArray *array = nullptr;
  BowstringError error;
  if (bowstring_array_import(nullptr, nullptr, &array, &error) != BOWSTRING_INVALID_ARGUMENT) return 1;
  if (array != nullptr || error.status != BOWSTRING_INVALID_ARGUMENT) return 1;
  std::printf("1 checks\n");
  return 0;
}
