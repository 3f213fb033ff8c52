/* Which operations use which bytes, and whether those that must not meet are ordered. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

static bool finished(size_t slot, uint64_t position) { return sim.streams.at[slot]->completed >= position; }

/* Whether the stream's next operation comes after that one. What has finished is before everything that follows. */
bool sim_ordered(const Stream *stream, size_t slot, uint64_t position) {
  return position <= sim_clock_get(&stream->clock, slot) || finished(slot, position);
}

static void drop_finished(Memory *memory) {
  size_t kept = 0;
  for (size_t i = 0; i < memory->n_uses; i++)
    if (!finished(memory->uses[i].slot, memory->uses[i].position)) memory->uses[kept++] = memory->uses[i];
  memory->n_uses = kept;
}

/* Notes that the stream's operation at `position` uses bytes; the stream's clock is that before the operation. */
void sim_use(Call *call, Stream *stream, const Place *place, size_t size, uint64_t position, bool write) {
  Memory *memory = place->memory;
  if (!memory || !size) return;
  drop_finished(memory);
  Use use = {stream->slot, position, place->offset, place->offset + size, write};
  if (memory->born_in && !sim_ordered(stream, memory->born_in->slot, memory->born_at))
    sim_fault("%s: 0x%" PRIx64 " is used on stream %p, which is not ordered behind its allocation on stream %p",
              call->name, memory->base, stream->handle, memory->born_in->handle);
  for (size_t i = 0; sim.settings[SET_CHECK_RACES] && i < memory->n_uses; i++) {
    const Use *other = &memory->uses[i];
    bool meet = other->low < use.high && use.low < other->high && (other->write || write);
    if (!meet || sim_ordered(stream, other->slot, other->position)) continue;
    sim_fault("%s: bytes %zu to %zu of 0x%" PRIx64 " are %s on stream %p, and not ordered behind what stream %p does "
              "with them",
              call->name, use.low, use.high, memory->base, write ? "written" : "read", stream->handle,
              sim.streams.at[other->slot]->handle);
    break;
  }
  if (memory->n_uses == memory->room) {
    memory->room = memory->room ? 2 * memory->room : 4;
    memory->uses = sim_resize(memory->uses, memory->room * sizeof *memory->uses);
  }
  memory->uses[memory->n_uses++] = use;
}

bool sim_all_done(const Memory *memory) {
  if (memory->born_in && !finished(memory->born_in->slot, memory->born_at)) return false;
  for (size_t i = 0; i < memory->n_uses; i++)
    if (!finished(memory->uses[i].slot, memory->uses[i].position)) return false;
  return true;
}

bool sim_all_ordered(const Memory *memory, const Stream *stream) {
  if (memory->born_in && !sim_ordered(stream, memory->born_in->slot, memory->born_at)) return false;
  for (size_t i = 0; i < memory->n_uses; i++)
    if (!sim_ordered(stream, memory->uses[i].slot, memory->uses[i].position)) return false;
  return true;
}
