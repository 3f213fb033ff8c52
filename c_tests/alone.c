#define _GNU_SOURCE
#include "alone.h"

#include "build.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long cases;

void alone(void (*run)(const void *), const void *what) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    BowstringLiveCounts nothing = {0};
    run(what);
    owners_all_gone();
    device_free_all();
    live_as_before(&nothing);
    exit(0);
  }
  int status = 0;
  CHECK_INT(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fprintf(stderr, "case %ld of this program ended with signal %d\n", cases, WTERMSIG(status));
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0);
  cases++;
}

long alone_count(void) { return cases; }

void check_refusal(BowstringStatus status, const char *rule, const char *path) {
  CHECK_INT(report.status, status);
  CHECK_RULE(rule);
  if (path) CHECK_STR(report.path, path);
  CHECK(strlen(report.message) > 10);
  CHECK_HAS(report.message, "expected");
  CHECK_HAS(report.message, "found");
  CHECK_INT(report.batch, -1);
}
