/* The log of calls. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program that never looks must not fill the memory. */
#define MOST_ENTRIES 200000

typedef struct {
  cuda_sim_entry entry;
  bool control;
} Line;

static LIST(Line) lines;
static uint64_t first = 1; /* the number of the first line */
static int64_t unlogged;

static Line *line_of(uint64_t number) {
  return number >= first && number - first < lines.n ? &lines.at[number - first] : NULL;
}

static void fill(cuda_sim_entry *entry, const Call *call) {
  snprintf(entry->function, sizeof entry->function, "%s", call->name);
  snprintf(entry->arguments, sizeof entry->arguments, "%s", call->arguments);
  entry->stream = call->stream;
  entry->on_stream = call->has_stream;
}

uint64_t sim_log_begin(const Call *call) {
  uint64_t sequence = ++sim.sequence;
  if (lines.n == MOST_ENTRIES) {
    unlogged += !(call->needs & CONTROL);
    return 0;
  }
  Line line = {.control = call->needs & CONTROL};
  fill(&line.entry, call);
  line.entry.sequence = sequence;
  line.entry.thread = sim_thread()->id;
  line.entry.result = -1;
  PUSH(lines, line);
  return first + lines.n - 1;
}

void sim_log_end(const Call *call) {
  Line *line = line_of(call->entry);
  if (!line) return;
  fill(&line->entry, call);
  line->entry.result = (int)call->result;
}

void sim_log_operation(uint64_t entry, uint64_t start, uint64_t end) {
  Line *line = line_of(entry);
  if (!line) return;
  if (start) line->entry.start = start;
  if (end) line->entry.end = end;
}

void sim_log_forget(void) {
  first += lines.n;
  free(lines.at);
  memset(&lines, 0, sizeof lines);
  unlogged = 0;
}

EXPORT int64_t cuda_sim_log_count(void) {
  sim_lock();
  int64_t n = (int64_t)lines.n;
  sim_unlock();
  return n;
}

EXPORT int cuda_sim_log_entry(int64_t n, cuda_sim_entry *entry) {
  sim_lock();
  bool known = entry && n >= 0 && (size_t)n < lines.n;
  if (known) *entry = lines.at[n].entry;
  sim_unlock();
  return known ? 0 : -1;
}

EXPORT int64_t cuda_sim_log_text(char *buffer, size_t size) {
  size_t used = 0;
  if (!buffer) size = 0;
  sim_lock();
  for (size_t i = 0; i < lines.n; i++) {
    const cuda_sim_entry *entry = &lines.at[i].entry;
    char text[400], stream[40] = "", operation[64] = "";
    if (entry->on_stream) snprintf(stream, sizeof stream, " stream=%p", entry->stream);
    if (entry->end) {
      snprintf(operation, sizeof operation, " ran %" PRIu64 "..%" PRIu64, entry->start, entry->end);
    } else if (entry->start) {
      snprintf(operation, sizeof operation, " ran %" PRIu64 "..", entry->start);
    }
    int length = snprintf(text, sizeof text, "%" PRIu64 " thread %" PRId64 " %s%s%s%s -> %d%s\n", entry->sequence,
                          entry->thread, entry->function, stream, entry->arguments[0] ? " " : "", entry->arguments,
                          entry->result, operation);
    for (int k = 0; k < length && k + 1 < (int)sizeof text; k++, used++)
      if (used + 1 < size) buffer[used] = text[k];
  }
  sim_unlock();
  if (size) buffer[used < size ? used : size - 1] = 0;
  return (int64_t)used + 1;
}

EXPORT void cuda_sim_log_clear(void) {
  sim_lock();
  sim_log_forget();
  sim_unlock();
}

EXPORT int64_t cuda_sim_calls(const char *function) {
  sim_lock();
  int64_t n = function ? 0 : unlogged;
  for (size_t i = 0; i < lines.n; i++) {
    if (lines.at[i].control) continue;
    n += !function || strcmp(lines.at[i].entry.function, function) == 0;
  }
  sim_unlock();
  return n;
}
