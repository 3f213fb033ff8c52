/* A fault on purpose: an exported array that nobody releases. */
#include "build.h"
#include "check.h"

#include <pthread.h>

/* A thread of its own, because what is left on a stack that is in use would pass for a reference. */
static void *forget(void *unused) {
  struct ArrowDeviceArray out;
  BowstringArray *array = sample_import(sample_named("int32"));
  CHECK_OK(bowstring_array_export(array, &out, NULL, &report));
  bowstring_array_release(array);
  return unused;
}

int main(void) {
  pthread_t thread;
  CHECK_INT(pthread_create(&thread, NULL, forget, NULL), 0);
  CHECK_INT(pthread_join(thread, NULL), 0);
  return 0;
}
