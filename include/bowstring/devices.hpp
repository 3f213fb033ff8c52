/* Devices in C++: copies between them, what waits for what, and backends that a program brings. A part of
 * bowstring.hpp. */
#ifndef BOWSTRING_DEVICES_HPP
#define BOWSTRING_DEVICES_HPP

#include <bowstring/arrays.hpp>

namespace bowstring {

/// What a call does about unfinished device work.
struct sync : BowstringSync {
  /// Refuse to meet any.
  sync() noexcept : BowstringSync{} {}
  sync(const BowstringSync& raw) noexcept : BowstringSync(raw) {}

  /// Work on a queue of the caller's; NULL is the driver's default queue.
  static sync on_queue(void* queue) noexcept { return BowstringSync{BOWSTRING_SYNC_QUEUE, 0, queue}; }
  /// Block until it is done.
  static sync host() noexcept { return BowstringSync{BOWSTRING_SYNC_HOST, 0, nullptr}; }
  /// Work on a queue of the library's.
  static sync library() noexcept { return BowstringSync{BOWSTRING_SYNC_LIBRARY, 0, nullptr}; }
};

/// How to copy: the C struct, with its size, what to do about unfinished work, any of BOWSTRING_TRANSFER_*, and all else
/// as by default.
struct transfer_options : BowstringTransferOptions {
  transfer_options(const BowstringSync& how = {}, std::uint64_t wanted = 0) noexcept : BowstringTransferOptions{} {
    struct_size = sizeof(BowstringTransferOptions);
    sync = how;
    flags = wanted;
  }
};

/// A device's functions: the C struct with its size.
struct device_backend : BowstringDeviceBackend {
  device_backend() noexcept : BowstringDeviceBackend{} { struct_size = sizeof(BowstringDeviceBackend); }
};

namespace detail {

/// Tells a callable how far copying has come. `tell(batches, rows, bytes)` returns nothing, or whether to go on; what it
/// throws cancels.
template <class Tell>
class teller {
 public:
  explicit teller(Tell& tell) noexcept : tell_(std::addressof(tell)) {}

  static int call(void* self, std::int64_t batches, std::int64_t rows, std::int64_t bytes) noexcept {
    auto& own = *static_cast<teller*>(self);
#if BOWSTRING_HPP_EXCEPTIONS
    try {
      return own.run(batches, rows, bytes);
    } catch (...) {
      own.thrown_ = std::current_exception();
      return 1;
    }
#else
    return own.run(batches, rows, bytes);
#endif
  }

  const std::exception_ptr& thrown() const noexcept { return thrown_; }

 private:
  int run(std::int64_t batches, std::int64_t rows, std::int64_t bytes) {
    if constexpr (std::is_void_v<decltype((*tell_)(batches, rows, bytes))>) {
      (*tell_)(batches, rows, bytes);
      return 0;
    } else {
      return (*tell_)(batches, rows, bytes) ? 0 : 1;
    }
  }

  Tell* tell_;
  std::exception_ptr thrown_;
};

/// The C function for each thing that can be copied.
inline BowstringStatus copy(const array& what, BowstringDevice device, const BowstringTransferOptions* options,
                            array& out, bool* shared, BowstringError* e) {
  return bowstring_array_to_device(what.get(), device, options, out.put(), shared, e);
}
inline BowstringStatus copy(const buffer& what, BowstringDevice device, const BowstringTransferOptions* options,
                            buffer& out, bool* shared, BowstringError* e) {
  return bowstring_buffer_to_device(what.get(), device, options, out.put(), shared, e);
}

/// A call that gives nothing but its status.
template <class Call>
result<void> done(Call&& call) {
  BowstringError record;
  if (call(&record) != BOWSTRING_OK) return record;
  return {};
}

}  // namespace detail

/// The values of an array, or the bytes of a buffer, on another device. `*shared` says whether it is the same memory.
template <class What>
result<What> try_to_device(const What& what, BowstringDevice device, const transfer_options& options = {},
                           bool* shared = nullptr) {
  return detail::capture<What>(
      [&](What& out, BowstringError* e) { return detail::copy(what, device, &options, out, shared, e); });
}

/// As above; `tell(batches, rows, bytes)` is told how far it has come, and says whether to go on if it says anything. It
/// does not go together with an allocator of the caller's, as there is one ctx for both.
template <class What, class Tell>
result<What> try_to_device_telling(const What& what, BowstringDevice device, Tell&& tell,
                                   const transfer_options& options = {}) {
  detail::teller<std::remove_reference_t<Tell>> context(tell);
  transfer_options own = options;
  if (own.allocate != nullptr || own.deallocate != nullptr) {
    return detail::failure(BOWSTRING_INVALID_ARGUMENT, "expected no allocator beside a callable to tell");
  }
  own.ctx = &context;
  own.progress = detail::teller<std::remove_reference_t<Tell>>::call;
  auto made = try_to_device(what, device, own);
#if BOWSTRING_HPP_EXCEPTIONS
  if (context.thrown()) {
    auto record = detail::failure(BOWSTRING_CALLBACK_ERROR, "expected progress to return, found that it threw");
    detail::describe(context.thrown(), record);
    return record;
  }
#endif
  return made;
}

/// Lets a queue or this thread wait for an array.
inline result<void> try_wait(const array& values, const BowstringSync& how) {
  return detail::done([&](BowstringError* e) { return bowstring_array_wait(values.get(), &how, e); });
}

/// The same array under a new event, done when the queue has come this far.
inline result<array> try_record(const array& values, const BowstringSync& how) {
  return detail::capture<array>(
      [&](array& out, BowstringError* e) { return bowstring_array_record(values.get(), &how, out.put(), e); });
}

/// The same array under one new event, done when its old one, these and the queue's work up to here are.
inline result<array> try_join_events(const array& values, const std::vector<void*>& events, const BowstringSync& how) {
  return detail::capture<array>([&](array& out, BowstringError* e) {
    return bowstring_array_join_events(values.get(), events.data(), events.size(), &how, out.put(), e);
  });
}

/// Lets an array go once the queue has come this far; on failure it stays where it is.
inline result<void> try_release_after(array& values, const BowstringSync& how) {
  auto* raw = values.get();
  auto made = detail::done([&](BowstringError* e) { return bowstring_array_release_after(&raw, &how, e); });
  if (made) static_cast<void>(values.release());
  return made;
}
inline result<void> try_release_after(unique_device_array& values, const BowstringSync& how) {
  return detail::done(
      [&](BowstringError* e) { return bowstring_device_array_release_after(values.get(), &how, e); });
}

/// Brings a device type; the functions and their ctx stay until the process ends.
inline result<void> try_register_device(ArrowDeviceType type, const BowstringDeviceBackend& backend) {
  return detail::done([&](BowstringError* e) { return bowstring_device_register(type, &backend, e); });
}

/// How many devices of a type there are.
inline result<std::int64_t> try_probe_devices(ArrowDeviceType type) {
  return detail::capture<std::int64_t>(
      [&](std::int64_t& out, BowstringError* e) { return bowstring_device_probe(type, &out, e); });
}

/// Lets go what finished work on a device needed, and waits for the rest if asked to; how much is still under way.
inline result<std::size_t> try_collect(BowstringDevice device, bool block = false) {
  return detail::capture<std::size_t>(
      [&](std::size_t& out, BowstringError* e) { return bowstring_device_collect(device, block, &out, e); });
}

#if BOWSTRING_HPP_EXCEPTIONS
template <class What>
What to_device(const What& what, BowstringDevice device, const transfer_options& options = {}, bool* shared = nullptr) {
  return try_to_device(what, device, options, shared).value();
}
template <class What, class Tell>
What to_device_telling(const What& what, BowstringDevice device, Tell&& tell, const transfer_options& options = {}) {
  return try_to_device_telling(what, device, tell, options).value();
}
inline void wait(const array& values, const BowstringSync& how) { try_wait(values, how).value(); }
inline array record(const array& values, const BowstringSync& how) { return try_record(values, how).value(); }
inline array join_events(const array& values, const std::vector<void*>& events, const BowstringSync& how) {
  return try_join_events(values, events, how).value();
}
inline void release_after(array values, const BowstringSync& how) { try_release_after(values, how).value(); }
inline void release_after(unique_device_array values, const BowstringSync& how) {
  try_release_after(values, how).value();
}
inline void register_device(ArrowDeviceType type, const BowstringDeviceBackend& backend) {
  try_register_device(type, backend).value();
}
inline std::int64_t probe_devices(ArrowDeviceType type) { return try_probe_devices(type).value(); }
inline std::size_t collect(BowstringDevice device, bool block = false) { return try_collect(device, block).value(); }
#endif

}  // namespace bowstring

#endif  // BOWSTRING_DEVICES_HPP
