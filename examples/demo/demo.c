/* The demo's engine: what a program in C does with a column that somebody else made.
 *
 * It takes the column in through bowstring, lets nanoarrow check and read it, and gives a handle back. Nowhere does it
 * copy a buffer, and nowhere does it know who made one. */

#include <stdio.h>

#include <bowstring.h>
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#define ENGINE_API __attribute__((visibility("default")))

/* Takes a column over. On failure both structs are still the caller's. */
ENGINE_API BowstringArray *engine_receive(struct ArrowDeviceArray *array, struct ArrowSchema *schema)
{
    BowstringError error;
    BowstringArray *column = NULL;

    if (bowstring_array_import(array, schema, &column, &error) != BOWSTRING_OK)
        fprintf(stderr, "engine: %s\n", error.message);
    return column;
}

/* Notes the address of each buffer of a node, then those of its children; returns how many there are in all. */
static size_t note_addresses(const struct ArrowArrayView *view, const void **seen, size_t capacity, size_t n)
{
    for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; i++) {
        if (view->layout.buffer_type[i] == NANOARROW_BUFFER_TYPE_NONE)
            continue;
        if (n < capacity)
            seen[n] = view->buffer_views[i].data.data;
        n++;
    }
    for (int64_t i = 0; i < view->n_children; i++)
        n = note_addresses(view->children[i], seen, capacity, n);
    return n;
}

/* Adds up the numbers in a list<struct<int32, utf8, list<float64>>>. A number under a null does not count. */
static double add_up(const struct ArrowArrayView *column)
{
    const struct ArrowArrayView *record = column->children[0], *list = record->children[2];
    double total = 0;

    for (int64_t row = 0; row < column->length; row++) {
        if (ArrowArrayViewIsNull(column, row))
            continue;
        int64_t end = ArrowArrayViewListChildOffset(column, row + 1);
        for (int64_t i = ArrowArrayViewListChildOffset(column, row); i < end; i++) {
            if (ArrowArrayViewIsNull(record, i) || ArrowArrayViewIsNull(list, i))
                continue;
            int64_t last = ArrowArrayViewListChildOffset(list, i + 1);
            for (int64_t k = ArrowArrayViewListChildOffset(list, i); k < last; k++)
                if (!ArrowArrayViewIsNull(list->children[0], k))
                    total += ArrowArrayViewGetDoubleUnsafe(list->children[0], k);
        }
    }
    return total;
}

/* Lets nanoarrow look at the column. Returns how many buffers it saw, 0 when it refused the column. */
ENGINE_API size_t engine_total(const BowstringArray *column, double *total, const void **seen, size_t capacity)
{
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct ArrowDeviceArrayView view;
    struct ArrowError why = {"no reason given"};
    BowstringError error;
    size_t n = 0;

    /* An export is a struct of its own on the same memory, as many as are asked for. */
    if (bowstring_array_export(column, &array, &schema, &error) != BOWSTRING_OK) {
        fprintf(stderr, "engine: %s\n", error.message);
        return 0;
    }
    ArrowDeviceArrayViewInit(&view);
    if (ArrowArrayViewInitFromSchema(&view.array_view, &schema, &why) != NANOARROW_OK ||
        ArrowDeviceArrayViewSetArray(&view, &array, &why) != NANOARROW_OK ||
        ArrowArrayViewValidate(&view.array_view, NANOARROW_VALIDATION_LEVEL_FULL, &why) != NANOARROW_OK) {
        fprintf(stderr, "engine: nanoarrow: %s\n", why.message);
    } else {
        n = note_addresses(&view.array_view, seen, capacity, 0);
        *total = add_up(&view.array_view);
    }
    ArrowDeviceArrayViewReset(&view);
    bowstring_schema_release(&schema);
    bowstring_device_array_release(&array);
    return n;
}
