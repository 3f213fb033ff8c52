/* Checks that count themselves and end the program at the first that does not hold. */
#ifndef CHECK_H
#define CHECK_H

#include <stddef.h>

#include <bowstring.h>

/* The record that calls under test fill; each thread has its own. */
extern _Thread_local BowstringError report;

/* What is being looked at, printed with a failure: `printf` style. */
void check_about(const char *format, ...);

void check_true(int holds, const char *file, int line, const char *text);
void check_int(long long found, long long expected, const char *file, int line, const char *text);
void check_pointer(const void *found, const void *expected, const char *file, int line, const char *text);
void check_text(const char *found, const char *expected, const char *file, int line, const char *text);
void check_contains(const char *found, const char *part, const char *file, int line, const char *text);
void check_bytes(const void *found, const void *expected, size_t n, const char *file, int line, const char *text);
void check_status(int32_t found, int32_t expected, const char *file, int line, const char *text);
void check_rule(const char *expected, const char *file, int line);

/* Says how many checks held; fewer than `least` is a failure, because then a loop did not run. */
int check_end(long least);

/* The checks counted so far. */
long check_count(void);

#define CHECK(condition) check_true(!!(condition), __FILE__, __LINE__, #condition)
#define CHECK_INT(found, expected) check_int((long long)(found), (long long)(expected), __FILE__, __LINE__, #found)
#define CHECK_PTR(found, expected) check_pointer((found), (expected), __FILE__, __LINE__, #found)
#define CHECK_STR(found, expected) check_text((found), (expected), __FILE__, __LINE__, #found)
#define CHECK_HAS(found, part) check_contains((found), (part), __FILE__, __LINE__, #found)
#define CHECK_MEM(found, expected, n) check_bytes((found), (expected), (n), __FILE__, __LINE__, #found)
#define CHECK_OK(call) check_status((call), BOWSTRING_OK, __FILE__, __LINE__, #call)
#define CHECK_FAILS(call, status) check_status((call), (status), __FILE__, __LINE__, #call)
/* The last failure named that rule, such as "A3"; "" for none. */
#define CHECK_RULE(name) check_rule((name), __FILE__, __LINE__)

#endif
