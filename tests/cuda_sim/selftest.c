/* Runs the self-test: `selftest [FOLDER]`, where FOLDER holds the variants of the library. */
#include "selftest.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

CUcontext contexts[2];
const char *variants;
static long checks;
static const char *current = "";

void check_failed(const char *file, int line, const char *format, ...) {
  const char *name = strrchr(file, '/');
  fprintf(stderr, "%s:%d: [%s] ", name ? name + 1 : file, line, current);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\n");
  for (int64_t i = 0; i < cuda_sim_faults(); i++) fprintf(stderr, "  fault: %s\n", cuda_sim_fault_text(i));
  fflush(NULL);
  _exit(1);
}

void check_result(CUresult found, int expected, const char *file, int line, const char *text) {
  __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
  if ((int)found != expected) check_failed(file, line, "%s: expected %d, found %d", text, expected, (int)found);
}

void check_number(int64_t found, int64_t expected, const char *file, int line, const char *text) {
  __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
  if (found != expected)
    check_failed(file, line, "%s: expected %lld, found %lld", text, (long long)expected, (long long)found);
}

void check_faults(int64_t n, const char *part, const char *file, int line) {
  __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
  int64_t found = cuda_sim_faults();
  if (found != n) check_failed(file, line, "expected %lld faults, found %lld", (long long)n, (long long)found);
  if (n && !strstr(cuda_sim_fault_text(n - 1), part))
    check_failed(file, line, "expected a fault with \"%s\", found \"%s\"", part, cuda_sim_fault_text(n - 1));
  cuda_sim_forget_faults();
}

CUdeviceptr device_memory(size_t size) {
  CUdeviceptr address = 0;
  OK(cuMemAlloc_v2(&address, size));
  return address;
}

unsigned char *pinned_memory(size_t size) {
  void *address = NULL;
  OK(cuMemHostAlloc(&address, size, 0));
  return address;
}

CUstream stream_of(unsigned flags) {
  CUstream stream = NULL;
  OK(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent event_of(unsigned flags) {
  CUevent event = NULL;
  OK(cuEventCreate(&event, flags));
  return event;
}

bool all_host(const unsigned char *bytes, size_t size, int byte) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != byte) return false;
  return true;
}

bool all_bytes(CUdeviceptr address, size_t size, int byte) {
  unsigned char *bytes = malloc(size);
  IS(cuda_sim_peek(address, bytes, size), 0);
  bool all = all_host(bytes, size, byte);
  free(bytes);
  return all;
}

cuda_sim_entry entry_of(const char *function) {
  cuda_sim_entry entry, found;
  memset(&found, 0, sizeof found);
  for (int64_t i = 0; cuda_sim_log_entry(i, &entry) == 0; i++)
    if (strcmp(entry.function, function) == 0) found = entry;
  return found;
}

int in_child(void (*run)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    /* A sanitizer would turn the signal into a report. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(99);
    run(argument);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) check_failed(__FILE__, __LINE__, "no child");
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

void *in_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  void *result = NULL;
  IS(pthread_create(&thread, NULL, run, argument), 0);
  IS(pthread_join(thread, &result), 0);
  return result;
}

/* Every test finds the driver as it is at the start of a program, and leaves nothing behind. */
static void run(const Test *test) {
  current = test->name;
  IS(cuda_sim_reset(0, NULL, 0), 0);
  cuda_sim_configure("delay_us", 500);
  cuda_sim_configure("hang_ms", 20000);
  OK(cuInit(0));
  for (int device = 0; device < 2; device++) OK(cuDevicePrimaryCtxRetain(&contexts[device], device));
  OK(cuCtxPushCurrent_v2(contexts[0]));

  test->run();

  IS(cuda_sim_wait_idle(10000), 0);
  FAULTS(0, "");
  cuda_sim_fail_nothing();
  CUcontext popped = NULL;
  OK(cuCtxPopCurrent_v2(&popped));
  CHECK(popped == contexts[0]);
  for (int device = 0; device < 2; device++) OK(cuDevicePrimaryCtxRelease_v2(device));
  FAULTS(0, "");
  char text[2000];
  if (cuda_sim_reset(0, text, sizeof text)) check_failed(__FILE__, __LINE__, "left behind:\n%s", text);
  printf("ok %s\n", test->name);
  fflush(stdout);
}

/* Tests let streams use the same bytes without an order between them, which the simulated driver has to see; the bytes move in
   one function. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:move_bytes\n"; }

int main(int argc, char **argv) {
  const Test *const tables[] = {memory_tests, copy_tests, stream_tests, fault_tests, capture_tests, control_tests};
  variants = argc > 1 ? argv[1] : NULL;
  if (cuda_sim_is_simulated(NULL) != CUDA_SIM_MARK) return 1;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    for (const Test *test = tables[i]; test->name; test++) run(test);
  if (checks < 4500) {
    fprintf(stderr, "expected at least 4500 checks, found %ld\n", checks);
    return 1;
  }
  printf("%ld checks\n", checks);
  return 0;
}
