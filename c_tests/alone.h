/* Cases that run in a process of their own, because a fault in one must not end or hide the others. */
#ifndef ALONE_H
#define ALONE_H

#include <bowstring.h>

/* Runs a case, which has to end by itself and well, and leave nothing behind. */
void alone(void (*run)(const void *), const void *what);

/* How many ran. */
long alone_count(void);

/* Looks at the record of a call that failed: its rule, its path unless that is NULL, and that it says what it wants. */
void check_refusal(BowstringStatus status, const char *rule, const char *path);

#endif
