/* The header alone, in C99, twice. */
#include <bowstring.h>
#include <bowstring.h>
#include <bowstring/arrow_c_abi.h>

#if __STDC_VERSION__ >= 201112L
#error "this is to be compiled as C99"
#endif

#include <stdio.h>

/* Every type can be named, and every function pointer kept, without a further header. */
typedef BowstringStatus (*importer)(struct ArrowDeviceArray *, struct ArrowSchema *, BowstringArray **,
                                    BowstringError *);
static const importer import = bowstring_array_import;
static const BowstringSync wait_for_nothing = {BOWSTRING_SYNC_NONE, 0, NULL};

int main(void) {
  BowstringArray *array = NULL;
  BowstringError error;
  if (import(NULL, NULL, &array, &error) != BOWSTRING_INVALID_ARGUMENT || array != NULL) return 1;
  if (error.status != BOWSTRING_INVALID_ARGUMENT || wait_for_nothing.mode != 0) return 1;
  printf("1 checks\n");
  return 0;
}
