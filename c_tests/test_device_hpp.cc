// Devices from C++: copies there and back, progress as a callable, events, and who owns what after a failure.
#include <bowstring/devices.hpp>

#include "hpp_samples.h"

#include <cstdlib>
#include <cstring>

namespace {

constexpr ArrowDeviceType TYPE = 100, PLAIN_TYPE = 101;
constexpr BowstringDevice CPU{ARROW_DEVICE_CPU, -1}, THERE{TYPE, 0}, PLAIN{PLAIN_TYPE, 0};

// What is alive, and what was called.
int pieces = 0, events = 0, waits = 0, failing = 0;

std::int32_t allocate(void*, std::int64_t, std::int64_t size, void*, void** data) {
  if (failing != 0) return failing;
  *data = std::aligned_alloc(64, static_cast<std::size_t>(size));
  ++pieces;
  return 0;
}
std::int32_t release(void*, std::int64_t, void* data, std::int64_t, void*) {
  std::free(data);
  --pieces;
  return 0;
}
std::int32_t copy(void*, std::int64_t, void* to, const void* from, std::int64_t n, void*) {
  std::memcpy(to, from, static_cast<std::size_t>(n));
  return 0;
}
std::int32_t drain(void*, std::int64_t, void*) { return 0; }
std::int32_t record(void*, std::int64_t, void*, void** event) {
  *event = new char;
  ++events;
  return 0;
}
std::int32_t queue_waits(void*, std::int64_t, void*, void*) {
  ++waits;
  return 0;
}
std::int32_t host_waits(void*, std::int64_t, void*) {
  ++waits;
  return 0;
}
std::int32_t is_done(void*, std::int64_t, void*, std::int32_t* done) {
  *done = 1;
  return 0;
}
void destroy_event(void*, std::int64_t, void* event) {
  delete static_cast<char*>(event);
  --events;
}

void devices_are_registered() {
  bowstring::device_backend backend;
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::register_device(TYPE, backend); });
  throws(BOWSTRING_UNSUPPORTED, [] { bowstring::probe_devices(TYPE); });
  backend.allocate = allocate;
  backend.free = release;
  backend.copy_from_host = backend.copy_to_host = copy;
  bowstring::register_device(PLAIN_TYPE, backend);
  backend.drain = drain;
  backend.record = record;
  backend.queue_waits = queue_waits;
  backend.host_waits = host_waits;
  backend.is_done = is_done;
  backend.destroy_event = destroy_event;
  bowstring::register_device(TYPE, backend);
  const auto again = bowstring::try_register_device(TYPE, backend);
  CHECK(!again && again.status() == BOWSTRING_INVALID_ARGUMENT);
  CHECK_INT(bowstring::probe_devices(TYPE), 1);
}

bowstring::array sample() {
  const column made;
  auto builder = made.builder();
  return bowstring::array::import(builder.finish(), builder.type());
}

void a_column_there_and_back() {
  auto values = sample();
  bool shared = true;
  auto there = bowstring::to_device(values, THERE, {}, &shared);
  CHECK(!shared && there.device().type == TYPE && there.sync_event() != nullptr);
  values = {};
  const auto refused = bowstring::try_to_device(there, CPU);
  CHECK(!refused && refused.status() == BOWSTRING_SYNC_REQUIRED);
  const auto back = bowstring::to_device(there, CPU, bowstring::sync::library());
  CHECK(back.length() == 2 && std::memcmp(back.buffers()[7].data, "abbccc", 6) == 0);
  const auto same = bowstring::to_device(there, THERE, {bowstring::sync::host(), BOWSTRING_TRANSFER_MAY_SHARE}, &shared);
  CHECK(shared);
  CHECK_PTR(same.buffers()[4].data, there.buffers()[4].data);
  const auto memory = bowstring::to_device(back.buffer(7), PLAIN);
  CHECK(memory.size() == 6 && memory.device().type == PLAIN_TYPE);
}

void progress_is_told() {
  const auto values = sample();
  int calls = 0;
  std::int64_t most = 0;
  const auto there = bowstring::to_device_telling(values, PLAIN, [&](std::int64_t, std::int64_t rows, std::int64_t bytes) {
    ++calls;
    most = bytes;
    CHECK_INT(rows, 2);
  });
  CHECK(calls > 4 && most == 12 + 12 + 16 + 6);
  const auto stop = [](std::int64_t, std::int64_t, std::int64_t bytes) { return bytes < 12; };
  const auto cancelled = bowstring::try_to_device_telling(values, PLAIN, stop);
  CHECK(!cancelled && cancelled.status() == BOWSTRING_CANCELLED);
  const auto thrown = bowstring::try_to_device_telling(values, PLAIN, [](std::int64_t, std::int64_t, std::int64_t) {
    throw std::runtime_error("enough");
  });
  CHECK(!thrown && thrown.status() == BOWSTRING_CALLBACK_ERROR);
  CHECK_HAS(thrown.record().message, "enough");
}

void events_and_letting_go() {
  auto there = bowstring::to_device(sample(), THERE, bowstring::sync::library());
  auto again = bowstring::record(there, bowstring::sync::on_queue(nullptr));
  CHECK(again.sync_event() != there.sync_event());
  waits = 0;
  bowstring::wait(again, bowstring::sync::host());
  CHECK_INT(waits, 1);
  const auto joined = bowstring::join_events(again, {again.sync_event(), there.sync_event()}, bowstring::sync::library());
  CHECK_INT(waits, 1 + 3);
  const auto refused = bowstring::try_release_after(again, bowstring::sync::host());
  CHECK(!refused && refused.status() == BOWSTRING_INVALID_ARGUMENT && again);
  CHECK(bowstring::try_release_after(again, bowstring::sync::library()) && !again);
  auto raw = there.export_device();
  bowstring::release_after(std::move(raw), bowstring::sync::library());
  bowstring::release_after(std::move(there), bowstring::sync::library());
  throws(BOWSTRING_UNSUPPORTED, [] { bowstring::record(sample(), bowstring::sync::library()); });
}

void failures_leave_things_where_they_are() {
  const auto values = sample();
  failing = 42;
  const auto failed = bowstring::try_to_device(values, THERE);
  CHECK(!failed && failed.status() == BOWSTRING_DEVICE_ERROR && failed.record().native_code == 42);
  failing = 0;
  auto [memory, data] = bowstring::buffer::allocate(100, THERE);
  CHECK(data != nullptr && memory.size() == 100);
}

}  // namespace

int main() {
  devices_are_registered();
  a_column_there_and_back();
  progress_is_told();
  events_and_letting_go();
  failures_leave_things_where_they_are();
  CHECK_INT(bowstring::collect(THERE, true), 0);
  CHECK(pieces == 0 && events == 0);
  BowstringLiveCounts counts{};
  counts.struct_size = sizeof counts;
  bowstring_live_counts(&counts);
  CHECK(counts.arrays == 0 && counts.buffers == 0 && counts.types == 0 && counts.pending == 0);
  return check_end(30);
}
