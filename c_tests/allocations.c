#define _GNU_SOURCE
#include "allocations.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static atomic_long made, live, countdown;
static atomic_int failed;

static int is_refused(void) {
  atomic_fetch_add(&made, 1);
  if (atomic_load(&countdown) == 0 || atomic_fetch_sub(&countdown, 1) != 1) return 0;
  atomic_store(&failed, 1);
  return 1;
}

static void *counted(void *block) {
  if (block) atomic_fetch_add(&live, 1);
  return block;
}

static void *watched_malloc(size_t size) { return is_refused() ? NULL : counted(malloc(size)); }

static void *watched_calloc(size_t n, size_t size) { return is_refused() ? NULL : counted(calloc(n, size)); }

static void *watched_realloc(void *block, size_t size) {
  if (is_refused()) return NULL;
  return block ? realloc(block, size) : counted(realloc(block, size));
}

static void *watched_aligned_alloc(size_t alignment, size_t size) {
  return is_refused() ? NULL : counted(aligned_alloc(alignment, size));
}

static int watched_posix_memalign(void **out, size_t alignment, size_t size) {
  if (is_refused()) return ENOMEM;
  int result = posix_memalign(out, alignment, size);
  if (result == 0) counted(*out);
  return result;
}

static void watched_free(void *block) {
  if (block) atomic_fetch_sub(&live, 1);
  free(block);
}

static const struct {
  const char *name;
  void (*function)(void);
} watched[] = {
    {"malloc", (void (*)(void))watched_malloc},
    {"calloc", (void (*)(void))watched_calloc},
    {"realloc", (void (*)(void))watched_realloc},
    {"aligned_alloc", (void (*)(void))watched_aligned_alloc},
    {"memalign", (void (*)(void))watched_aligned_alloc},
    {"posix_memalign", (void (*)(void))watched_posix_memalign},
    {"free", (void (*)(void))watched_free},
};

struct tables {
  const ElfW(Sym) * symbols;
  const char *names;
  const ElfW(Rela) * relocations[2];
  size_t sizes[2];
};

static struct tables tables_of(const ElfW(Dyn) * entry) {
  struct tables found = {0};
  for (; entry->d_tag != DT_NULL; entry++) {
    switch (entry->d_tag) {
      case DT_SYMTAB: found.symbols = (const void *)entry->d_un.d_ptr; break;
      case DT_STRTAB: found.names = (const void *)entry->d_un.d_ptr; break;
      case DT_RELA: found.relocations[0] = (const void *)entry->d_un.d_ptr; break;
      case DT_RELASZ: found.sizes[0] = entry->d_un.d_val; break;
      case DT_JMPREL: found.relocations[1] = (const void *)entry->d_un.d_ptr; break;
      case DT_PLTRELSZ: found.sizes[1] = entry->d_un.d_val; break;
      default: break;
    }
  }
  return found;
}

/* The table that calls go through may be read-only by now. */
static void write_slot(uintptr_t slot, void (*function)(void)) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = slot & ~(page - 1);
  CHECK_INT(mprotect((void *)start, page, PROT_READ | PROT_WRITE), 0);
  memcpy((void *)slot, &function, sizeof function);
}

static int redirect(const struct tables *tables, ElfW(Addr) base) {
  int slots = 0;
  for (int table = 0; table < 2; table++) {
    const ElfW(Rela) *entry = tables->relocations[table];
    for (size_t n = tables->sizes[table] / sizeof *entry; entry && n > 0; n--, entry++) {
      const char *name = tables->names + tables->symbols[entry->r_info >> 32].st_name;
      for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        if (strcmp(name, watched[i].name) != 0) continue;
        write_slot((uintptr_t)(base + entry->r_offset), watched[i].function);
        slots++;
      }
    }
  }
  return slots;
}

static int visit(struct dl_phdr_info *object, size_t size, void *address) {
  (void)size;
  const ElfW(Dyn) *dynamic = NULL;
  int holds = 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    uintptr_t start = (uintptr_t)(object->dlpi_addr + part->p_vaddr), at = (uintptr_t)address;
    if (part->p_type == PT_LOAD) holds |= at >= start && at < start + part->p_memsz;
    if (part->p_type == PT_DYNAMIC) dynamic = (const void *)start;
  }
  if (!holds || !dynamic) return 0;
  struct tables tables = tables_of(dynamic);
  return redirect(&tables, object->dlpi_addr);
}

void allocations_watch(void) {
  void *address = dlsym(RTLD_DEFAULT, "bowstring_version");
  CHECK(address != NULL);
  CHECK(dl_iterate_phdr(visit, address) >= 2);
  /* A library that allocates past these functions would make every count a lie. */
  struct ArrowSchema *schema = bowstring_schema_new();
  CHECK_INT(allocations_made(), 1);
  CHECK_INT(allocations_live(), 1);
  bowstring_schema_free(schema);
  CHECK_INT(allocations_live(), 0);
}

long allocations_made(void) { return atomic_load(&made); }
long allocations_live(void) { return atomic_load(&live); }

void allocations_fail_at(long n) {
  atomic_store(&failed, 0);
  atomic_store(&countdown, n);
}

int allocations_have_failed(void) { return atomic_load(&failed); }
