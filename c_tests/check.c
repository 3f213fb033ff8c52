#include "check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local BowstringError report;

static atomic_long count;
static _Thread_local char about[256];

void check_about(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(about, sizeof about, format, arguments);
  va_end(arguments);
}

static void place(const char *file, int line, const char *text) {
  const char *name = strrchr(file, '/');
  fprintf(stderr, "%s:%d: %s%s%s: %s: ", name ? name + 1 : file, line, about[0] ? "[" : "", about, about[0] ? "]" : "",
          text);
}

void check_true(int holds, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (holds) return;
  place(file, line, text);
  fprintf(stderr, "expected it to hold\n");
  exit(1);
}

void check_int(long long found, long long expected, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (found == expected) return;
  place(file, line, text);
  fprintf(stderr, "expected %lld, found %lld\n", expected, found);
  exit(1);
}

void check_pointer(const void *found, const void *expected, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (found == expected) return;
  place(file, line, text);
  fprintf(stderr, "expected %p, found %p\n", expected, found);
  exit(1);
}

void check_text(const char *found, const char *expected, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (found && strcmp(found, expected) == 0) return;
  place(file, line, text);
  fprintf(stderr, "expected \"%s\", found \"%s\"\n", expected, found ? found : "(NULL)");
  exit(1);
}

void check_contains(const char *found, const char *part, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (found && strstr(found, part)) return;
  place(file, line, text);
  fprintf(stderr, "expected text with \"%s\", found \"%s\"\n", part, found ? found : "(NULL)");
  exit(1);
}

void check_bytes(const void *found, const void *expected, size_t n, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  const unsigned char *a = found, *b = expected;
  for (size_t i = 0; i < n; i++) {
    if (a[i] == b[i]) continue;
    place(file, line, text);
    fprintf(stderr, "expected byte %zu of %zu to be 0x%02x, found 0x%02x\n", i, n, b[i], a[i]);
    exit(1);
  }
}

void check_status(int32_t found, int32_t expected, const char *file, int line, const char *text) {
  atomic_fetch_add(&count, 1);
  if (found == expected) return;
  place(file, line, text);
  fprintf(stderr, "expected %s, found %s\n", bowstring_status_name(expected), bowstring_status_name(found));
  if (found != BOWSTRING_OK)
    fprintf(stderr, "  rule %s at %s: %s\n", bowstring_rule_name(report.rule), report.path, report.message);
  exit(1);
}

void check_rule(const char *expected, const char *file, int line) {
  check_text(bowstring_rule_name(report.rule), expected, file, line, "the rule");
}

long check_count(void) { return atomic_load(&count); }

int check_end(long least) {
  long n = check_count();
  if (n < least) {
    fprintf(stderr, "expected at least %ld checks, found %ld\n", least, n);
    return 1;
  }
  printf("%ld checks\n", n);
  return 0;
}
