#include "../measure.h"
#include "validators.h"

/* Of the crate in arrow_rs. */
void *arrow_rs_open(struct ArrowArray *array, struct ArrowSchema *schema);
int arrow_rs_validate(const void *opened);
void arrow_rs_close(void *opened);

static void *open_array(struct ArrowArray *array, struct ArrowSchema *schema) {
  void *opened = arrow_rs_open(array, schema);
  EXPECT(opened != 0);
  return opened;
}

static int validate(void *opened) { return arrow_rs_validate(opened); }

const struct validator with_arrow_rs = {"arrow-rs", open_array, validate, arrow_rs_close};
