/* A producer whose buffers come from a pool of device memory: each column goes back to the pool when nobody uses it, and
 * the pool itself goes after the last. The "device" here is a range of addresses that the CPU never touches, so that the
 * program runs anywhere; with CUDA the pool would hold what cudaMalloc gave, and the event would be a cudaEvent_t. */
#include <bowstring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct pool {
  uintptr_t next;
  atomic_int pieces;
};

struct piece {
  struct pool *pool;
  uintptr_t address;
  const char *what;
};

static struct piece *pool_take(struct pool *pool, int64_t bytes, const char *what) {
  struct piece *piece = malloc(sizeof(*piece));
  *piece = (struct piece){pool, pool->next, what};
  pool->next += (uintptr_t)((bytes + 255) / 256 * 256);
  atomic_fetch_add(&pool->pieces, 1);
  return piece;
}

/* Any thread may call this, once a piece. */
static void pool_give_back(void *owner) {
  struct piece *piece = owner;
  printf("  %s goes back to the pool, %d pieces left\n", piece->what, atomic_fetch_sub(&piece->pool->pieces, 1) - 1);
  free(piece);
}

static void event_destroy(void *context, void *event) {
  (void)context;
  printf("  event %p destroyed\n", event);
}

static BowstringOwnedBuffer from_pool(struct pool *pool, int64_t bytes, const char *what) {
  struct piece *piece = pool_take(pool, bytes, what);
  return (BowstringOwnedBuffer){(const void *)piece->address, bytes, piece, pool_give_back};
}

int main(void) {
  enum { ROWS = 1000, TEXT_BYTES = 12345 };
  struct pool pool = {0x10000000, 0};
  BowstringError error;
  BowstringType *type;
  if (bowstring_type_parse("struct<id: int64 not null, name: utf8 not null>", &type, &error)) goto failed;

  const BowstringNode nodes[] = {{ROWS, 0, 0, 1}, {ROWS, 0, 0, 2}, {ROWS, 0, 0, 3}};
  BowstringOwnedBuffer buffers[] = {
      {0},                                                                     /* no nulls in the struct */
      {0}, from_pool(&pool, ROWS * 8, "id"),                                   /* id */
      {0}, from_pool(&pool, (ROWS + 1) * 4, "name's offsets"), from_pool(&pool, TEXT_BYTES, "name's text"),
  };
  BowstringPlacement placement = {.struct_size = sizeof(placement), .device = {ARROW_DEVICE_CUDA, 0}};
  placement.event = (void *)0x42; /* recorded behind the kernels that fill the buffers */
  placement.destroy_event = event_destroy;

  struct ArrowDeviceArray array;
  struct ArrowSchema schema;
  if (bowstring_device_array_from_buffers(type, nodes, 3, buffers, 6, &placement, &array, &error)) goto failed;
  if (bowstring_type_export(type, &schema, &error)) goto failed;
  bowstring_type_release(type);

  /* From here on it is any consumer's: plain Arrow structs, released the way every consumer knows. */
  printf("handed over: %d children, event %p, %d pieces in use\n", (int)array.array.n_children,
         *(void **)array.sync_event, atomic_load(&pool.pieces));
  struct ArrowArray id = *array.array.children[0]; /* a consumer moves one child out ... */
  array.array.children[0]->release = NULL;
  array.array.release(&array.array); /* ... and lets the rest go */
  printf("the rest is released, id lives on\n");
  id.release(&id);
  schema.release(&schema);
  return atomic_load(&pool.pieces) == 0 ? 0 : 1;

failed:
  fprintf(stderr, "%s: %s\n", error.path, error.message);
  return 1;
}
