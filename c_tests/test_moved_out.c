/* Parts of an exported tree moved out, relocated and released in every order, and structs that a consumer changed. */
#include "build.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a model of who needs what ---- */

/* A tree with one owner a buffer and one for the whole. `holder` is the part that a node goes with: the nearest node
 * above it, itself included, that was moved out, or the root. */
struct tree {
  const struct sample *sample;
  BowstringType *type;
  struct ArrowDeviceArray root;
  struct ArrowArray *place[MAX_NODES]; /* where each node's struct lies now */
  struct ArrowArray moved[MAX_NODES];
  int parent[MAX_NODES], holder[MAX_NODES], released[MAX_NODES];
  struct owner *owners[MAX_BUFFERS], *whole, *event;
  int buffer_node[MAX_BUFFERS];
  BowstringBuffer *kept[MAX_BUFFERS];
};

static char event_handle;

static void find_places(struct tree *tree, struct ArrowArray *array, const struct field *field, int parent, int *next,
                        int *buffer) {
  int node = (*next)++;
  tree->place[node] = array;
  tree->parent[node] = parent;
  tree->holder[node] = 0;
  tree->released[node] = 0;
  for (int64_t i = 0; i < array->n_buffers; i++) tree->buffer_node[(*buffer)++] = node;
  for (int i = 0; i < field->n_children; i++)
    find_places(tree, array->children[i], &field->children[i], node, next, buffer);
  if (field->dictionary) find_places(tree, array->dictionary, field->dictionary, node, next, buffer);
}

static void make_tree(struct tree *tree, const struct sample *sample) {
  BowstringOwnedBuffer buffers[MAX_BUFFERS];
  BowstringPlacement placement = {.struct_size = sizeof placement};
  memset(tree, 0, sizeof *tree);
  tree->sample = sample;
  tree->type = sample_type(sample);
  sample_buffers(sample, buffers);
  for (int i = 0; i < sample->n_buffers; i++) tree->owners[i] = buffers[i].owner;
  placement.device = (BowstringDevice){ARROW_DEVICE_CUDA, 0};
  placement.owner = tree->whole = owner_new(NULL);
  placement.release_owner = owner_release;
  placement.event = &event_handle;
  placement.event_ctx = tree->event = owner_new(NULL);
  placement.destroy_event = owner_destroy_event;
  CHECK_OK(bowstring_device_array_from_buffers(tree->type, sample->nodes, (size_t)sample->n_nodes, buffers,
                                               (size_t)sample->n_buffers, &placement, &tree->root, &report));
  int nodes = 0, n_buffers = 0;
  find_places(tree, &tree->root.array, &sample->field, -1, &nodes, &n_buffers);
  CHECK_INT(nodes, sample->n_nodes);
}

/* Moves a node's struct out of its parent, as a consumer does it. */
static void move_out(struct tree *tree, int node) {
  struct ArrowArray *place = tree->place[node];
  tree->moved[node] = *place;
  place->release = NULL;
  tree->place[node] = &tree->moved[node];
}

static void find_holders(struct tree *tree) {
  for (int node = 0; node < tree->sample->n_nodes; node++) {
    int at = node;
    while (at != 0 && tree->place[at] != &tree->moved[at]) at = tree->parent[at];
    tree->holder[node] = at;
  }
}

static void check_tree(const struct tree *tree) {
  int needs_whole = 0, needs_event = 0;
  for (int node = 0; node < tree->sample->n_nodes; node++) needs_whole |= !tree->released[tree->holder[node]];
  for (int i = 0; i < tree->sample->n_buffers; i++) {
    int needed = !tree->released[tree->holder[tree->buffer_node[i]]] || tree->kept[i];
    needs_event |= needed;
    CHECK_INT(tree->owners[i]->runs, !needed);
  }
  CHECK_INT(tree->whole->runs, !needs_whole);
  CHECK_INT(tree->event->runs, !(needs_event || needs_whole));
}

/* Releases a part, from another address than the one it was made at. */
static void release_part(struct tree *tree, int node) {
  struct ArrowArray *elsewhere = malloc(sizeof *elsewhere);
  CHECK(elsewhere != NULL);
  *elsewhere = *tree->place[node];
  memset(tree->place[node], 0xFF, sizeof *elsewhere);
  elsewhere->release(elsewhere);
  CHECK(elsewhere->release == NULL);
  memset(elsewhere, 0xFF, sizeof *elsewhere);
  free(elsewhere);
  tree->released[node] = 1;
}

static void end_tree(struct tree *tree) {
  bowstring_type_release(tree->type);
  owners_all_gone();
}

/* ---- a small tree, in every order ---- */

static const struct field small_fields[] = {
    {"c", "d", 2, 0, NULL, &(const struct field){"u", "", 2, 0, NULL, NULL, NULL}, NULL},
    {"+s", "s", 2, 1, &(const struct field){"c", "x", 2, 0, NULL, NULL, NULL}, NULL, NULL},
};
static const struct sample small = {
    "struct<d: dictionary<int8, utf8>, s: struct<x: int8>>",
    {"+s", "", 2, 2, small_fields, NULL, NULL},
    5,
    (const BowstringNode[]){{2, 0, 0, 1}, {2, 0, 0, 2}, {1, 0, 0, 3}, {2, 0, 0, 1}, {2, 0, 0, 2}},
    9,
    (const struct bytes[]){{NULL, 0},
                           {"\3", 1},
                           {"\0\0", 2},
                           {NULL, 0},
                           {"\0\0\0\0\1\0\0\0", 8},
                           {"a", 1},
                           {"\3", 1},
                           {"\3", 1},
                           {"\1\2", 2}},
};

static long orders_run;

static void release_in_order(const struct sample *sample, unsigned moved, const int *order, int n) {
  struct tree tree;
  make_tree(&tree, sample);
  for (int node = 1; node < sample->n_nodes; node++)
    if (moved & 1u << node) move_out(&tree, node);
  find_holders(&tree);
  check_tree(&tree);
  for (int i = 0; i < n; i++) {
    release_part(&tree, order[i]);
    check_tree(&tree);
  }
  end_tree(&tree);
  orders_run++;
}

static void permute(const struct sample *sample, unsigned moved, int *order, int fixed, int n) {
  if (fixed == n) {
    release_in_order(sample, moved, order, n);
    return;
  }
  for (int i = fixed; i < n; i++) {
    int first = order[fixed];
    order[fixed] = order[i];
    order[i] = first;
    permute(sample, moved, order, fixed + 1, n);
    order[i] = order[fixed];
    order[fixed] = first;
  }
}

static void test_every_order(void) {
  for (unsigned moved = 0; moved < 1u << small.n_nodes; moved += 2) {
    int order[MAX_NODES] = {0}, n = 1;
    check_about("moved out %x", moved);
    for (int node = 1; node < small.n_nodes; node++)
      if (moved & 1u << node) order[n++] = node;
    permute(&small, moved, order, 0, n);
  }
  /* Subsets of four nodes and the root: the sum over k of C(4, k) * (k + 1)!. */
  CHECK_INT(orders_run, 1 + 4 * 2 + 6 * 6 + 4 * 24 + 120);
}

/* ---- big trees, at random, with buffers taken out as well ---- */

static unsigned random_below(unsigned n) {
  static unsigned long long state = 20240607;
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % n;
}

/* Buffers by way of an import of our own export, from a copy that goes on as the tree. */
static void keep_buffers(struct tree *tree) {
  BowstringArray *array = NULL;
  CHECK_OK(bowstring_array_import_typed(&tree->root, tree->type, &array, &report));
  for (int i = 0; i < tree->sample->n_buffers; i++)
    if (random_below(3) == 0) CHECK_OK(bowstring_array_buffer(array, (size_t)i, &tree->kept[i], &report));
  /* Borrowing from the handle and releasing it would end the tree: the handle stands for the root from here on. */
  bowstring_array_release(array);
  for (int node = 0; node < tree->sample->n_nodes; node++) tree->released[node] = 1;
}

static void release_kept(struct tree *tree) {
  for (int i = 0; i < tree->sample->n_buffers; i++) {
    if (!tree->kept[i]) continue;
    bowstring_buffer_release(tree->kept[i]);
    tree->kept[i] = NULL;
    check_tree(tree);
  }
}

static void test_random_orders(void) {
  for (int round = 0; round < 3000; round++) {
    const struct sample *sample = &samples[random_below((unsigned)n_samples)];
    struct tree tree;
    check_about("round %d, %s", round, sample->text);
    make_tree(&tree, sample);
    if (random_below(4) == 0) {
      keep_buffers(&tree);
      check_tree(&tree);
      release_kept(&tree);
      end_tree(&tree);
      continue;
    }
    /* Children before or after their parents: both are done. */
    int backwards = (int)random_below(2), n = 0, order[MAX_NODES];
    for (int i = 1; i < sample->n_nodes; i++) {
      int node = backwards ? sample->n_nodes - i : i;
      if (random_below(2)) move_out(&tree, node), order[n++] = node;
    }
    order[n++] = 0;
    find_holders(&tree);
    while (n > 0) {
      int pick = (int)random_below((unsigned)n);
      release_part(&tree, order[pick]);
      order[pick] = order[--n];
      check_tree(&tree);
    }
    end_tree(&tree);
  }
}

/* A part that was moved out is an array like any other. */
static void test_parts_are_imported(void) {
  for (int i = 0; i < n_samples; i++) {
    struct tree tree;
    if (samples[i].field.n_children == 0) continue;
    check_about("%s", samples[i].text);
    make_tree(&tree, &samples[i]);
    const BowstringType *child_type = NULL;
    BowstringArray *child = NULL;
    CHECK_OK(bowstring_type_child(tree.type, 0, &child_type, &report));
    move_out(&tree, 1);
    find_holders(&tree);
    release_part(&tree, 0);
    check_tree(&tree);
    CHECK_OK(bowstring_array_import_host_typed(&tree.moved[1], child_type, &child, &report));
    CHECK(tree.moved[1].release == NULL);
    BowstringNodeInfo info = {.struct_size = sizeof info};
    CHECK_OK(bowstring_array_node_info(child, 0, &info, &report));
    CHECK_INT(info.length, tree.moved[1].length);
    check_tree(&tree);
    bowstring_array_release(child);
    tree.released[1] = 1;
    check_tree(&tree);
    end_tree(&tree);
  }
}

/* ---- structs that a consumer changed ---- */

static int wrapper_calls;
static void (*wrapped)(struct ArrowArray *);
static void (*wrapped_schema)(struct ArrowSchema *);

static void wrapper(struct ArrowArray *array) {
  wrapper_calls++;
  array->release = wrapped;
  wrapped(array);
}

static void schema_wrapper(struct ArrowSchema *schema) {
  wrapper_calls++;
  schema->release = wrapped_schema;
  wrapped_schema(schema);
}

static void foreign_release(struct ArrowArray *array) {
  wrapper_calls++;
  owner_release(array->private_data);
  array->release = NULL;
}

static void test_changed_arrays(void) {
  for (int node = 1; node < small.n_nodes; node++) {
    struct tree tree;
    check_about("node %d", node);
    make_tree(&tree, &small);
    /* A callback put before ours is called. */
    wrapper_calls = 0;
    wrapped = tree.place[node]->release;
    tree.place[node]->release = wrapper;
    tree.root.array.release(&tree.root.array);
    CHECK_INT(wrapper_calls, 1);
    end_tree(&tree);

    /* Another producer's array in the place of ours, which was moved out. */
    make_tree(&tree, &small);
    wrapper_calls = 0;
    move_out(&tree, node);
    find_holders(&tree);
    struct ArrowArray *place = node == 2 ? tree.place[1]->dictionary : NULL;
    if (node == 1) place = tree.root.array.children[0];
    if (node == 3) place = tree.root.array.children[1];
    if (node == 4) place = tree.place[3]->children[0];
    CHECK(place != NULL && place->release == NULL);
    *place = (struct ArrowArray){.release = foreign_release, .private_data = owner_new(NULL)};
    tree.root.array.release(&tree.root.array);
    tree.released[0] = 1;
    CHECK_INT(wrapper_calls, 1);
    check_tree(&tree);
    release_part(&tree, node);
    check_tree(&tree);
    end_tree(&tree);
  }

  /* Siblings in each other's place: each is released once, with its own buffers. */
  for (int moved = 0; moved < 3; moved++) {
    struct tree tree;
    check_about("exchanged, case %d", moved);
    make_tree(&tree, &small);
    struct ArrowArray **children = tree.root.array.children, first = *children[0];
    *children[0] = *children[1];
    *children[1] = first;
    if (moved) {
      /* One of the exchanged is moved out as well. */
      struct ArrowArray out = *children[moved - 1];
      children[moved - 1]->release = NULL;
      tree.root.array.release(&tree.root.array);
      CHECK_INT(tree.whole->runs, 0);
      CHECK_INT(tree.owners[1]->runs, moved == 1);
      CHECK_INT(tree.owners[7]->runs, moved == 2);
      out.release(&out);
    } else {
      tree.root.array.release(&tree.root.array);
    }
    CHECK_INT(tree.event->runs, 1);
    end_tree(&tree);
  }

  /* One child in another's place, and the other moved out. */
  struct tree tree;
  check_about("child in its sibling's place");
  make_tree(&tree, &small);
  move_out(&tree, 3);
  *tree.root.array.children[1] = *tree.root.array.children[0];
  tree.root.array.children[0]->release = NULL;
  tree.root.array.release(&tree.root.array);
  CHECK_INT(tree.owners[2]->runs, 1);
  CHECK_INT(tree.owners[5]->runs, 1);
  CHECK_INT(tree.owners[8]->runs, 0);
  tree.moved[3].release(&tree.moved[3]);
  end_tree(&tree);
}

/* ---- schemas ---- */

static struct ArrowSchema *schema_place[MAX_NODES];
static const struct field *schema_field[MAX_NODES];

static void find_schemas(struct ArrowSchema *schema, const struct field *field, int *next) {
  int node = (*next)++;
  schema_place[node] = schema;
  schema_field[node] = field;
  for (int i = 0; i < field->n_children; i++) find_schemas(schema->children[i], &field->children[i], next);
  if (field->dictionary) find_schemas(schema->dictionary, field->dictionary, next);
}

static void check_schema(const struct ArrowSchema *schema, const struct field *field) {
  CHECK_STR(schema->format, field->format);
  CHECK_STR(schema->name, field->name);
  CHECK_INT(schema->flags, field->flags);
  CHECK_INT(schema->n_children, field->n_children);
  CHECK_INT(schema->dictionary != NULL, field->dictionary != NULL);
}

static void test_schemas(void) {
  BowstringLiveCounts before = live_counts();
  for (int round = 0; round < 2000; round++) {
    const struct sample *sample = &samples[random_below((unsigned)n_samples)];
    struct ArrowSchema root, moved[MAX_NODES];
    int nodes = 0, n = 0, order[MAX_NODES];
    check_about("round %d, %s", round, sample->text);
    BowstringType *type = sample_type(sample);
    memset(&root, 0xAA, sizeof root);
    CHECK_OK(bowstring_type_export(type, &root, &report));
    bowstring_type_release(type);
    find_schemas(&root, &sample->field, &nodes);
    for (int node = 1; node < nodes; node++) {
      if (random_below(2)) continue;
      moved[node] = *schema_place[node];
      schema_place[node]->release = NULL;
      schema_place[node] = &moved[node];
      order[n++] = node;
    }
    order[n++] = 0;
    while (n > 0) {
      int pick = (int)random_below((unsigned)n), node = order[pick];
      struct ArrowSchema elsewhere = *schema_place[node];
      memset(schema_place[node], 0xFF, sizeof elsewhere);
      check_schema(&elsewhere, schema_field[node]);
      elsewhere.release(&elsewhere);
      CHECK(elsewhere.release == NULL);
      order[pick] = order[--n];
    }
    live_as_before(&before);
    owners_all_gone();
  }

  for (int node = 1; node < small.n_nodes; node++) {
    struct ArrowSchema root;
    int nodes = 0;
    BowstringType *type = sample_type(&small);
    CHECK_OK(bowstring_type_export(type, &root, &report));
    bowstring_type_release(type);
    find_schemas(&root, &small.field, &nodes);
    wrapper_calls = 0;
    wrapped_schema = schema_place[node]->release;
    schema_place[node]->release = schema_wrapper;
    root.release(&root);
    CHECK_INT(wrapper_calls, 1);
    live_as_before(&before);
    owners_all_gone();
  }

  struct ArrowSchema root;
  BowstringType *type = sample_type(&small);
  CHECK_OK(bowstring_type_export(type, &root, &report));
  bowstring_type_release(type);
  struct ArrowSchema first = *root.children[0];
  *root.children[0] = *root.children[1];
  *root.children[1] = first;
  root.release(&root);
  live_as_before(&before);
  owners_all_gone();
}

int main(void) {
  BowstringLiveCounts before = live_counts();
  test_every_order();
  test_random_orders();
  test_parts_are_imported();
  test_changed_arrays();
  test_schemas();
  live_as_before(&before);
  printf("%ld orders of a small tree\n", orders_run);
  return check_end(160000);
}
