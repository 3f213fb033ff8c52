#include "layouts.h"

#include <stdlib.h>
#include <string.h>

enum { SIGNED = 0, UNSIGNED = 1, FLOATING = 2, BOOLEAN = 6 };

static struct slot slot(int32_t role, int code, int bits, int lanes) {
  return (struct slot){role, {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes}};
}

static int with_data(struct slot *slots, int code, int bits, int lanes) {
  slots[1] = slot(BOWSTRING_ROLE_DATA, code, bits, lanes);
  return 2;
}

static int with_offsets(struct slot *slots, int bits, int has_data) {
  slots[1] = slot(BOWSTRING_ROLE_OFFSETS, SIGNED, bits, 1);
  slots[2] = slot(BOWSTRING_ROLE_DATA, UNSIGNED, 8, 1);
  return has_data ? 3 : 2;
}

static int with_sizes(struct slot *slots, int bits) {
  slots[1] = slot(BOWSTRING_ROLE_OFFSETS, SIGNED, bits, 1);
  slots[2] = slot(BOWSTRING_ROLE_SIZES, SIGNED, bits, 1);
  return 3;
}

static int decimal(const char *format, struct slot *slots) {
  const char *width = strchr(strchr(format, ',') + 1, ',');
  int bits = width ? atoi(width + 1) : 128;
  /* What is wider than any number of DLPack's is bytes. */
  return bits > 64 ? with_data(slots, UNSIGNED, 8, bits / 8) : with_data(slots, SIGNED, bits, 1);
}

static int temporal(const char *format, struct slot *slots) {
  switch (format[1]) {
    case 'd': return with_data(slots, SIGNED, format[2] == 'D' ? 32 : 64, 1);
    case 't': return with_data(slots, SIGNED, format[2] == 's' || format[2] == 'm' ? 32 : 64, 1);
    case 'i':
      if (format[2] == 'M') return with_data(slots, SIGNED, 32, 1);
      return format[2] == 'D' ? with_data(slots, SIGNED, 32, 2) : with_data(slots, UNSIGNED, 8, 16);
    default: return with_data(slots, SIGNED, 64, 1);
  }
}

static int nested(const char *format, struct slot *slots) {
  switch (format[1]) {
    case 'l':
    case 'm': return with_offsets(slots, 32, 0);
    case 'L': return with_offsets(slots, 64, 0);
    case 'v': return with_sizes(slots, format[2] == 'l' ? 32 : 64);
    case 'u':
      slots[0] = slot(BOWSTRING_ROLE_TYPE_IDS, SIGNED, 8, 1);
      slots[1] = slot(BOWSTRING_ROLE_OFFSETS, SIGNED, 32, 1);
      return format[2] == 'd' ? 2 : 1;
    case 'r': return 0;
    default: return 1; /* +s and +w */
  }
}

int layout_of(const char *format, struct slot slots[4]) {
  slots[0] = slot(BOWSTRING_ROLE_VALIDITY, BOOLEAN, 1, 1);
  switch (format[0]) {
    case 'n': return 0;
    case 'b': return with_data(slots, BOOLEAN, 1, 1);
    case 'c': return with_data(slots, SIGNED, 8, 1);
    case 'C': return with_data(slots, UNSIGNED, 8, 1);
    case 's': return with_data(slots, SIGNED, 16, 1);
    case 'S': return with_data(slots, UNSIGNED, 16, 1);
    case 'i': return with_data(slots, SIGNED, 32, 1);
    case 'I': return with_data(slots, UNSIGNED, 32, 1);
    case 'l': return with_data(slots, SIGNED, 64, 1);
    case 'L': return with_data(slots, UNSIGNED, 64, 1);
    case 'e': return with_data(slots, FLOATING, 16, 1);
    case 'f': return with_data(slots, FLOATING, 32, 1);
    case 'g': return with_data(slots, FLOATING, 64, 1);
    case 'z':
    case 'u': return with_offsets(slots, 32, 1);
    case 'Z':
    case 'U': return with_offsets(slots, 64, 1);
    case 'd': return decimal(format, slots);
    case 'w': return with_data(slots, UNSIGNED, 8, atoi(format + 2) > 65535 ? 0 : atoi(format + 2));
    case 't': return temporal(format, slots);
    case 'v':
      slots[1] = slot(BOWSTRING_ROLE_VIEWS, UNSIGNED, 8, 16);
      slots[2] = slot(BOWSTRING_ROLE_VARIADIC, UNSIGNED, 8, 1);
      slots[3] = slot(BOWSTRING_ROLE_VARIADIC_SIZES, SIGNED, 64, 1);
      return 4;
    default: return nested(format, slots);
  }
}
