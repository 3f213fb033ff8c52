/* A device for tests of the validator: its memory cannot be touched at its addresses, and copies are late.
 *
 * The memory is mapped twice. At the addresses that arrays have, the CPU may touch it only while the test shows it; a second
 * mapping is this file's own. Slots of it end right before a page without access in both. A copy runs when somebody waits
 * for it: on its own queue in order, and after the events that its queue was told to wait for.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bowstring.h"

enum { QUEUES = 3, WORK = 1 << 16, HEAP = 64 << 20 };

struct event {
    int queue;
    long position;
};

struct work {
    void *to;
    const void *from;
    size_t n;
    struct event *event;
};

static struct queue {
    struct work work[WORK];
    long first, end;
} queues[QUEUES];

static struct {
    long copies, bytes, waits;
    /* Bytes of copies to the CPU that nobody has waited for yet, and the most of them. */
    long outstanding, most;
    /* Live allocations and events. */
    long live;
} counts;

static unsigned char *base, *own, *heap;
static size_t step, room, size, heap_at;
static long fail_at;
static int tells = 0;
static struct BowstringDevice elsewhere = {0, 0};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_ours(const void *at)
{
    const unsigned char *p = at;
    return p >= base && p < base + size;
}

/* The address that may be touched. */
static void *touchable(const void *at)
{
    return is_ours(at) ? own + ((const unsigned char *)at - base) : (void *)(uintptr_t)at;
}

/* Makes the memory: slots, and behind them the heap of `allocate`. The address of the first slot. */
void *device_open(size_t slots, size_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    room = pages * page;
    step = room + page;
    size = slots * step + HEAP;
    int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, (off_t)size) != 0) {
        return NULL;
    }
    base = mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0);
    own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (base == MAP_FAILED || own == MAP_FAILED) {
        return NULL;
    }
    for (size_t slot = 0; slot < slots; slot++) {
        mprotect(own + slot * step + room, page, PROT_NONE);
    }
    heap = base + slots * step;
    return base;
}

long device_distance(void)
{
    return (long)(own - base);
}

/* Lets the CPU touch the first slots at the arrays' addresses, or not. */
int device_show(size_t slots, int shown)
{
    if (!shown) {
        return mprotect(base, slots * step, PROT_NONE);
    }
    for (size_t slot = 0; slot < slots; slot++) {
        if (mprotect(base + slot * step, room, PROT_READ | PROT_WRITE) != 0) {
            return -1;
        }
    }
    return 0;
}

void device_tells(int does, int32_t type, int64_t id)
{
    tells = does;
    elsewhere.type = type;
    elsewhere.id = id;
}

void device_fail_at(long copy)
{
    fail_at = copy;
}

void device_counts(long *into)
{
    memcpy(into, &counts, sizeof counts);
    long live = counts.live;
    memset(&counts, 0, sizeof counts);
    counts.live = live;
}

static void run(int which, long until)
{
    struct queue *queue = &queues[which];
    while (queue->first < until) {
        struct work *work = &queue->work[queue->first++ % WORK];
        if (work->event != NULL) {
            run(work->event->queue, work->event->position);
        } else {
            memcpy(touchable(work->to), touchable(work->from), work->n);
        }
    }
}

static struct work *enqueue(int which)
{
    struct queue *queue = &queues[which];
    if (queue->end - queue->first == WORK) {
        run(which, queue->end);
    }
    struct work *work = &queue->work[queue->end++ % WORK];
    memset(work, 0, sizeof *work);
    return work;
}

/* The library's queue is 1 and the caller's 2; NULL is the default queue. */
static int number(void *queue)
{
    return (int)(uintptr_t)queue % QUEUES;
}

/* Writes bytes later: when somebody waits for the queue or for an event behind it. */
void device_write_later(void *queue, void *to, const void *from, size_t n)
{
    struct work *work = enqueue(number(queue));
    work->to = to;
    work->from = from;
    work->n = n;
}

void *device_event(void *queue)
{
    struct event *event = malloc(sizeof *event);
    event->queue = number(queue);
    event->position = queues[event->queue].end;
    return event;
}

static int32_t allocate(void *ctx, int64_t id, int64_t n, void *queue, void **data)
{
    (void)ctx, (void)id, (void)queue;
    pthread_mutex_lock(&lock);
    size_t at = heap_at;
    heap_at += ((size_t)n + 63) / 64 * 64;
    int fits = heap_at <= HEAP;
    counts.live += fits;
    pthread_mutex_unlock(&lock);
    *data = fits ? heap + at : NULL;
    return fits ? 0 : 2;
}

static int32_t give_back(void *ctx, int64_t id, void *data, int64_t n, void *queue)
{
    (void)ctx, (void)id, (void)n;
    pthread_mutex_lock(&lock);
    run(number(queue), queues[number(queue)].end);
    int fault = !is_ours(data) || counts.live == 0;
    counts.live -= 1;
    pthread_mutex_unlock(&lock);
    return fault;
}

static int32_t copy(void *to, const void *from, int64_t n, void *queue, int is_read)
{
    pthread_mutex_lock(&lock);
    counts.copies += 1;
    counts.bytes += n;
    if (fail_at > 0 && --fail_at == 0) {
        pthread_mutex_unlock(&lock);
        return 77;
    }
    if (is_read) {
        counts.outstanding += n;
        counts.most = counts.most > counts.outstanding ? counts.most : counts.outstanding;
    }
    device_write_later(queue, to, from, (size_t)n);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int32_t copy_from_host(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue)
{
    (void)ctx, (void)id;
    return is_ours(to) ? copy(to, from, n, queue, 0) : 78;
}

static int32_t copy_to_host(void *ctx, int64_t id, void *to, const void *from, int64_t n, void *queue)
{
    (void)ctx, (void)id;
    return is_ours(from) ? copy(to, from, n, queue, 1) : 79;
}

static int32_t library_queue(void *ctx, int64_t id, void **queue)
{
    (void)ctx, (void)id;
    *queue = (void *)(uintptr_t)1;
    return 0;
}

static int32_t drain(void *ctx, int64_t id, void *queue)
{
    (void)ctx, (void)id;
    pthread_mutex_lock(&lock);
    run(number(queue), queues[number(queue)].end);
    counts.outstanding = 0;
    counts.waits += 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int32_t record(void *ctx, int64_t id, void *queue, void **event)
{
    (void)ctx, (void)id;
    pthread_mutex_lock(&lock);
    *event = device_event(queue);
    counts.live += 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int32_t queue_waits(void *ctx, int64_t id, void *event, void *queue)
{
    (void)ctx, (void)id;
    pthread_mutex_lock(&lock);
    enqueue(number(queue))->event = event;
    counts.waits += 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int32_t host_waits(void *ctx, int64_t id, void *event)
{
    (void)ctx, (void)id;
    struct event *of = event;
    pthread_mutex_lock(&lock);
    run(of->queue, of->position);
    counts.waits += 1;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int32_t is_done(void *ctx, int64_t id, void *event, int32_t *done)
{
    (void)ctx, (void)id;
    struct event *of = event;
    pthread_mutex_lock(&lock);
    *done = queues[of->queue].first >= of->position;
    pthread_mutex_unlock(&lock);
    return 0;
}

static void destroy_event(void *ctx, int64_t id, void *event)
{
    (void)ctx, (void)id;
    pthread_mutex_lock(&lock);
    /* What waits for it has its position still to read. */
    for (int i = 0; i < QUEUES; i++) {
        run(i, queues[i].end);
    }
    counts.live -= 1;
    pthread_mutex_unlock(&lock);
    free(event);
}

static int32_t locate(void *ctx, const void *data, struct BowstringDevice *device)
{
    (void)ctx;
    if (!tells) {
        device->type = 0;
    } else if (!is_ours(data)) {
        device->type = 1;
        device->id = -1;
    } else if (elsewhere.type != 0) {
        *device = elsewhere;
    } else {
        device->type = 150;
        device->id = 0;
    }
    return 0;
}

static const char *error_text(void *ctx, int32_t code)
{
    (void)ctx;
    return code == 77 ? "the copy that was to fail" : code == 79 ? "a copy from memory that is not the device's" : NULL;
}

int device_register(BowstringStatus (*to)(ArrowDeviceType, const struct BowstringDeviceBackend *, struct BowstringError *))
{
    struct BowstringDeviceBackend table = {
        .struct_size = sizeof table,
        .allocate = allocate,
        .free = give_back,
        .copy_from_host = copy_from_host,
        .copy_to_host = copy_to_host,
        .library_queue = library_queue,
        .drain = drain,
        .record = record,
        .queue_waits = queue_waits,
        .host_waits = host_waits,
        .is_done = is_done,
        .destroy_event = destroy_event,
        .locate = locate,
        .error_text = error_text,
    };
    return (int)to(150, &table, NULL);
}
