/* Short words for samples written down as literals. */
#ifndef LITERALS_H
#define LITERALS_H

#include "build.h"

#define NULLABLE ARROW_FLAG_NULLABLE
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

#define LEAF(format, name) {format, name, NULLABLE, 0, NULL, NULL, NULL}
#define KEPT(format, name) {format, name, 0, 0, NULL, NULL, NULL} /* not nullable */
#define PARENT(format, name, ...)                                                                             \
  {format, name, NULLABLE, COUNT(((const struct field[]){__VA_ARGS__})), (const struct field[]){__VA_ARGS__}, \
   NULL,   NULL}
#define KEPT_PARENT(format, name, ...) \
  {format, name, 0, COUNT(((const struct field[]){__VA_ARGS__})), (const struct field[]){__VA_ARGS__}, NULL, NULL}
#define INDEX(format, name, ...) {format, name, NULLABLE, 0, NULL, (const struct field[]){__VA_ARGS__}, NULL}

#define NODES(...) \
  COUNT(((const BowstringNode[]){__VA_ARGS__})), (const BowstringNode[]) { __VA_ARGS__ }
#define BUFFERS(...) \
  COUNT(((const struct bytes[]){__VA_ARGS__})), (const struct bytes[]) { __VA_ARGS__ }
#define NOTHING {NULL, 0}
#define VALUES(type, ...) {(const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__})}
#define BITS(...) VALUES(uint8_t, __VA_ARGS__)
#define I8(...) VALUES(int8_t, __VA_ARGS__)
#define I16(...) VALUES(int16_t, __VA_ARGS__)
#define I32(...) VALUES(int32_t, __VA_ARGS__)
#define I64(...) VALUES(int64_t, __VA_ARGS__)
#define TEXT(text) {text, sizeof(text) - 1}

/* A view of at most 12 bytes, and one of more. */
#define INLINE_VIEW(length, a, b, c) length, a, b, c
#define VIEW(length, prefix, buffer, offset) length, prefix, buffer, offset

#endif
