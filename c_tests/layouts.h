/* Which buffers a format has, written down from the specification and not taken from the library. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <bowstring.h>

struct slot {
  int32_t role;
  BowstringDataType element;
};

/* The slots of a format, a view's variadic buffers as one of them; returns how many. */
int layout_of(const char *format, struct slot slots[4]);

#endif
