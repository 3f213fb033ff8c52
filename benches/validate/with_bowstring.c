#include <bowstring.h>

#include "../measure.h"
#include "validators.h"

static BowstringError error;

static void *open_array(struct ArrowArray *array, struct ArrowSchema *schema) {
  BowstringArray *out = NULL;
  EXPECT(bowstring_array_import_host(array, schema, &out, &error) == BOWSTRING_OK);
  return out;
}

static int validate(void *opened) {
  BowstringStatus status = bowstring_array_validate(opened, NULL, &error);
  EXPECT(status == BOWSTRING_OK || status == BOWSTRING_INVALID_DATA);
  return status == BOWSTRING_OK;
}

static void close_array(void *opened) { bowstring_array_release(opened); }

const struct validator with_bowstring = {"bowstring", open_array, validate, close_array};
