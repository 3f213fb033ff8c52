/* Preloaded into a benchmark program, counts what it takes from the heap. It stands before glibc's functions under
 * their own names, and calls them under the internal names that glibc exports for this purpose. */
#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

/* The programs have one thread. */
static long taken;

long allocations_taken(void) { return taken; }

void *malloc(size_t size) {
  taken++;
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  taken++;
  return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
  taken++;
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  taken++;
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **out, size_t alignment, size_t size) {
  void *memory = memalign(alignment, size);
  if (!memory) return ENOMEM;
  *out = memory;
  return 0;
}
