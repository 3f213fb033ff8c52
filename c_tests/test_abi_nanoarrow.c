/* nanoarrow's structs, with our header after them: one definition serves both. */
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include <bowstring.h>

#include "abi_layout.h"
#include "check.h"

ABI_ARROW_LAYOUT;
ABI_ASYNC_LAYOUT; /* nanoarrow has none of these: they are ours. */
ABI_DEVICE_NUMBERS;

int main(void) {
  struct ArrowSchema schema;
  CHECK_INT(ArrowSchemaInitFromType(&schema, NANOARROW_TYPE_INT32), NANOARROW_OK);
  CHECK(!bowstring_schema_is_released(&schema));
  bowstring_schema_release(&schema);
  CHECK(schema.release == NULL);
  return check_end(3);
}
