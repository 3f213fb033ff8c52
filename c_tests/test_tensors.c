/* Letting DLPack tensors go: the deleter runs once, whatever the version, and nothing behind it is read. */
#define _GNU_SOURCE
#include "alone.h"
#include "build.h"
#include "check.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What every major version has. A later one may have anything behind it, or nothing. */
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
};

struct DLManagedTensor {
  char tensor[48];
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
};

static atomic_int deleted;
static pthread_t deleter_thread;

static void delete_versioned(struct DLManagedTensorVersioned *self) {
  CHECK_PTR(self->manager_ctx, &deleted);
  deleter_thread = pthread_self();
  atomic_fetch_add(&deleted, 1);
  free(self);
}

static void delete_legacy(struct DLManagedTensor *self) {
  CHECK_PTR(self->manager_ctx, &deleted);
  deleter_thread = pthread_self();
  atomic_fetch_add(&deleted, 1);
  free(self);
}

static struct DLManagedTensorVersioned *versioned(uint32_t major) {
  struct DLManagedTensorVersioned *tensor = malloc(sizeof *tensor);
  CHECK(tensor != NULL);
  *tensor = (struct DLManagedTensorVersioned){major, 9, &deleted, delete_versioned, UINT64_MAX};
  return tensor;
}

static struct DLManagedTensor *legacy(void) {
  struct DLManagedTensor *tensor = malloc(sizeof *tensor);
  CHECK(tensor != NULL);
  memset(tensor, 0xAA, sizeof *tensor);
  tensor->manager_ctx = &deleted;
  tensor->deleter = delete_legacy;
  return tensor;
}

static void test_any_major(void) {
  const uint32_t majors[] = {0, 1, 2, UINT32_MAX};
  for (size_t i = 0; i < 4; i++) {
    check_about("major %u", majors[i]);
    deleted = 0;
    bowstring_tensor_release(versioned(majors[i]));
    CHECK_INT(deleted, 1);
  }
  check_about("legacy");
  deleted = 0;
  bowstring_legacy_tensor_release(legacy());
  CHECK_INT(deleted, 1);
}

/* Nothing runs and nothing is freed: the structs are not even on the heap. */
static void test_without_deleter(void) {
  struct DLManagedTensorVersioned tensor = {2, 0, NULL, NULL, 7}, before = tensor;
  struct DLManagedTensor old, old_before;
  check_about("no deleter");
  memset(&old, 0xAA, sizeof old);
  old.deleter = NULL;
  old_before = old;
  deleted = 0;
  bowstring_tensor_release(NULL);
  bowstring_legacy_tensor_release(NULL);
  bowstring_tensor_release(&tensor);
  bowstring_legacy_tensor_release(&old);
  CHECK_MEM(&tensor, &before, sizeof tensor);
  CHECK_MEM(&old, &old_before, sizeof old);
  CHECK_INT(deleted, 0);
}

static void unmapped_later(struct DLManagedTensorVersioned *self) {
  (void)self;
  deleted++;
}

/* The deleter is the last thing on a page before one that must not be touched. */
static void test_nothing_behind_is_read(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), head = offsetof(struct DLManagedTensorVersioned, flags);
  char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check_about("the end of a page");
  CHECK(memory != MAP_FAILED);
  CHECK_INT(mprotect(memory + page, page, PROT_NONE), 0);
  struct DLManagedTensorVersioned whole = {3, 0, NULL, unmapped_later, 0};
  char *tensor = memory + page - head;
  memcpy(tensor, &whole, head);
  deleted = 0;
  bowstring_tensor_release((struct DLManagedTensorVersioned *)(void *)tensor);
  CHECK_INT(deleted, 1);
  CHECK_INT(munmap(memory, 2 * page), 0);
}

static void *let_go(void *tensor) { return bowstring_tensor_release(tensor), NULL; }
static void *let_legacy_go(void *tensor) { return bowstring_legacy_tensor_release(tensor), NULL; }

static void test_other_thread(void) {
  pthread_t thread;
  check_about("another thread");
  deleted = 0;
  CHECK_INT(pthread_create(&thread, NULL, let_go, versioned(1)), 0);
  CHECK_INT(pthread_join(thread, NULL), 0);
  CHECK(deleted == 1 && pthread_equal(thread, deleter_thread));
  CHECK_INT(pthread_create(&thread, NULL, let_legacy_go, legacy()), 0);
  CHECK_INT(pthread_join(thread, NULL), 0);
  CHECK(deleted == 2 && pthread_equal(thread, deleter_thread));
}

static atomic_int inside, entered;
static int enter(void) {
  (void)inside++;
  return entered++;
}
static void leave(int token) {
  CHECK_INT(token, entered - 1);
  (void)inside--;
}

static void delete_inside(struct DLManagedTensorVersioned *self) {
  CHECK_INT(inside, 1);
  delete_versioned(self);
}

static void test_scope(const void *unused) {
  BowstringCallbackScope scope = {.struct_size = sizeof scope, .enter = enter, .leave = leave};
  struct DLManagedTensorVersioned *kept = versioned(1), *tensor = versioned(1);
  struct DLManagedTensor *old = legacy();
  (void)unused;
  check_about("the callback scope");
  CHECK_OK(bowstring_callback_scope_set(&scope, &report));
  tensor->deleter = delete_inside;
  bowstring_tensor_release(tensor);
  bowstring_legacy_tensor_release(legacy());
  CHECK(deleted == 2 && entered == 2 && inside == 0);
  bowstring_callback_scope_close();
  bowstring_tensor_release(kept);
  bowstring_legacy_tensor_release(old);
  CHECK(deleted == 2 && entered == 2);
  CHECK_INT(live_counts().leaked_callbacks, 2);
  free(kept);
  free(old);
  exit(0); /* What was skipped stays counted. */
}

int main(void) {
  test_any_major();
  test_without_deleter();
  test_nothing_behind_is_read();
  test_other_thread();
  deleted = 0;
  alone(test_scope, NULL);
  CHECK_INT(alone_count(), 1);
  return check_end(25);
}
