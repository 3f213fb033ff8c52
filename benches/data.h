/* What the workloads are made of, the same bytes for every library; a producer that costs next to nothing; and checks
 * that what a library made is what was asked for. */
#ifndef DATA_H
#define DATA_H

#include <stdint.h>

#include <bowstring/arrow_c_abi.h>

enum { ROWS = 1000, NULLS = 1 };

struct bytes {
  const void *data;
  int64_t size;
};

/* ---- W1 and W2: columns of int64 ---- */

struct column {
  char name[32];
  struct bytes validity, values;
};

struct column *new_columns(int64_t n);

/* ---- W3: list<struct<a: int32, b: utf8, c: list<float64>>> with one list of all rows ---- */

struct nested {
  struct bytes offsets, a, b_offsets, b_text, c_offsets, c_values;
};

struct nested new_nested(void);
/* A schema of it, as a foreign producer has it. */
void nested_schema(struct ArrowSchema *out);

/* ---- W4: a producer ---- */

/* A batch of int64 columns as foreign structs. To hand them over is to copy them: all memory is made once and stays,
 * and a release only says that it ran. */
struct foreign {
  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
};

struct foreign new_foreign(struct column *columns, int64_t n);
/* A stream that hands over so many of them; it lives until it ends, one at a time. */
void foreign_stream(const struct foreign *foreign, int n, struct ArrowDeviceArrayStream *out);
/* One nullable int64 column's schema. */
void column_schema(const struct column *column, struct ArrowSchema *out);
/* Those of the batch. */
void batch_schema(const struct column *columns, int64_t n, struct ArrowSchema *out);

/* ---- checks ---- */

void expect_column(const struct ArrowArray *array, const struct column *column, int64_t null_count);
void expect_column_schema(const struct ArrowSchema *schema, const struct column *column);
void expect_batch(const struct ArrowArray *array, const struct column *columns, int64_t n);
void expect_batch_schema(const struct ArrowSchema *schema, const struct column *columns, int64_t n);
void expect_nested(const struct ArrowArray *array, const struct nested *nested);
void expect_nested_schema(const struct ArrowSchema *schema);

#endif
