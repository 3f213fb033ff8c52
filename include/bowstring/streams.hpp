/* Streams of arrays in C++: made of arrays, of a function, or of a struct; asked one by one or as a range. A part of
 * bowstring.hpp. */
#ifndef BOWSTRING_STREAMS_HPP
#define BOWSTRING_STREAMS_HPP

#include <bowstring/devices.hpp>
#include <bowstring/validate.hpp>

#include <cerrno>
#include <iterator>
#include <new>
#include <string>

namespace bowstring {

namespace detail {

/// A function that gives arrays, as the callbacks of a stream. What it throws is kept as text.
template <class Next>
struct producer {
  Next next;
  std::string text;

  static int get_next(void* ctx, BowstringArray** out) {
    auto* self = static_cast<producer*>(ctx);
#if BOWSTRING_HPP_EXCEPTIONS
    try {
      return self->ask(out);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    } catch (const std::exception& thrown) {
      contained([&] { self->text = thrown.what(); });
      return EIO;
    } catch (...) {
      return EIO;
    }
#else
    return self->ask(out);
#endif
  }
  static const char* get_last_error(void* ctx) {
    const auto* self = static_cast<producer*>(ctx);
    return self->text.empty() ? nullptr : self->text.c_str();
  }
  static void release(void* ctx) {
    const std::unique_ptr<producer> gone(static_cast<producer*>(ctx));
  }

 private:
  int ask(BowstringArray** out) {
    text.clear();
    // A result, or an array: an empty one ends the stream.
    return give(next(), out);
  }
  int give(array given, BowstringArray** out) {
    *out = given.release();
    return 0;
  }
  int give(result<array> given, BowstringArray** out) {
    if (given) return give(*std::move(given), out);
    text = given.record().message;
    switch (given.status()) {
      case BOWSTRING_OUT_OF_MEMORY:
        return ENOMEM;
      case BOWSTRING_UNSUPPORTED:
        return ENOSYS;
      case BOWSTRING_CANCELLED:
        return ECANCELED;
      default:
        return EIO;
    }
  }
};

/// A handler that frees itself when its producer lets it go.
struct async_handler {
  ArrowAsyncDeviceStreamHandler raw;  // first, so that both have one address
  void (*inner)(ArrowAsyncDeviceStreamHandler*);

  static void release(ArrowAsyncDeviceStreamHandler* at) {
    const std::unique_ptr<async_handler> gone(reinterpret_cast<async_handler*>(at));
    gone->inner(at);
  }
};

}  // namespace detail

/// A source of arrays of one type: one owner, moved and never copied, asked by one thread at a time.
class stream {
 public:
  stream() noexcept = default;
  stream(stream&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  stream& operator=(stream&& other) noexcept {
    if (this != &other) bowstring_stream_release(std::exchange(raw_, other.release()));
    return *this;
  }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { bowstring_stream_release(raw_); }

  /// Takes a handle over from whoever owned it.
  static stream take(BowstringStream* raw) noexcept {
    stream owner;
    owner.raw_ = raw;
    return owner;
  }

  /// Takes a struct over, which is released on success; on failure it stays where it is.
  static result<stream> try_import(unique_device_stream& raw) {
    return make([&](BowstringStream** out, BowstringError* e) { return bowstring_stream_import(raw.get(), out, e); });
  }
  static result<stream> try_import(unique_host_stream& raw) {
    return make(
        [&](BowstringStream** out, BowstringError* e) { return bowstring_stream_import_host(raw.get(), out, e); });
  }
  /// A stream of arrays that are there; of the first one's type, or of `known`.
  static result<stream> try_of(const std::vector<array>& arrays, const bowstring::type& known = {}) {
    return detail::allocating([&]() -> result<stream> {
      std::vector<const BowstringArray*> handles;
      handles.reserve(arrays.size());
      for (const auto& one : arrays) handles.push_back(one.get());
      return make([&](BowstringStream** out, BowstringError* e) {
        return bowstring_stream_from_arrays(known.get(), handles.data(), handles.size(), out, e);
      });
    });
  }
  /// A stream of what `next()` gives: arrays, or results of them, an empty array at the end. What it throws becomes an
  /// error of the stream, with its text. It may be asked and destroyed on any thread.
  template <class Next>
  static result<stream> try_generate(const bowstring::type& known, Next next, BowstringDevice device = {}) {
    using producer = detail::producer<Next>;
    auto* boxed = new (std::nothrow) producer{std::move(next), {}};
    if (boxed == nullptr) return detail::no_memory();
    BowstringStreamCallbacks callbacks{};
    callbacks.struct_size = sizeof(callbacks);
    callbacks.device = device;
    callbacks.ctx = boxed;
    callbacks.get_next_array = producer::get_next;
    callbacks.get_last_error = producer::get_last_error;
    callbacks.release = producer::release;
    auto made = make([&](BowstringStream** out, BowstringError* e) {
      return bowstring_stream_from_callbacks(known.get(), &callbacks, out, e);
    });
    if (!made) producer::release(boxed);
    return made;
  }

  /// A stream of what an asynchronous producer hands to a handler, which `give` passes on: the producer's, to release once. At most
  /// `capacity` arrays are on their way. Experimental.
  template <class Give>
  static result<stream> try_from_async(std::size_t capacity, Give&& give) {
    std::unique_ptr<detail::async_handler> handler(new (std::nothrow) detail::async_handler);
    if (handler == nullptr) return detail::no_memory();
    auto made = make([&](BowstringStream** out, BowstringError* e) {
      return bowstring_stream_from_async(capacity, &handler->raw, out, e);
    });
    if (!made) return made;
    handler->inner = std::exchange(handler->raw.release, detail::async_handler::release);
    give(&handler.release()->raw);
    return made;
  }

  explicit operator bool() const noexcept { return raw_ != nullptr; }
  /// The handle, still owned.
  BowstringStream* get() const noexcept { return raw_; }
  /// Gives the handle away.
  BowstringStream* release() noexcept { return std::exchange(raw_, nullptr); }
  /// The type of every array.
  bowstring::type type() const noexcept { return bowstring::type::borrow(bowstring_stream_type(raw_)); }
  BowstringDevice device() const noexcept { return bowstring_stream_device(raw_); }
  /// Ends the stream, from any thread.
  void cancel() noexcept { bowstring_stream_cancel(raw_); }

  /// The next array; an empty handle at the end.
  result<array> try_next() {
    return detail::capture<array>(
        [&](array& out, BowstringError* e) { return bowstring_stream_next(raw_, out.put(), e); });
  }
  /// The next array as a struct; a released one at the end.
  result<unique_device_array> try_next_device_array() {
    return detail::capture<unique_device_array>([&](unique_device_array& out, BowstringError* e) {
      return bowstring_stream_next_device_array(raw_, out.put(), e);
    });
  }

  // Each of these takes the stream when it succeeds; when it fails, the stream stays as it is.

  result<unique_device_stream> try_export() {
    return detail::capture<unique_device_stream>([&](unique_device_stream& out, BowstringError* e) {
      return bowstring_stream_export(&raw_, out.put(), e);
    });
  }
  result<unique_host_stream> try_export_host(const BowstringSync* sync = nullptr) {
    return detail::capture<unique_host_stream>([&](unique_host_stream& out, BowstringError* e) {
      return bowstring_stream_export_host(&raw_, sync, out.put(), e);
    });
  }
  /// The stream with each array validated when it is asked for.
  result<stream> try_validated(const validate_options& options = {}) {
    return make([&](BowstringStream** out, BowstringError* e) {
      return bowstring_stream_validated(&raw_, &options, out, e);
    });
  }
  /// The stream's structs with some of their columns.
  result<stream> try_select(const std::vector<std::size_t>& columns) {
    return make([&](BowstringStream** out, BowstringError* e) {
      return bowstring_stream_select(&raw_, columns.data(), columns.size(), out, e);
    });
  }
  /// The stream with each array copied to a device: when it is asked for, or up to options.depth ahead by a thread of the
  /// library's, on which the producer then runs, and for which letting the stream go waits. The options' functions and ctx
  /// have to live as long as the stream.
  result<stream> try_to_device(BowstringDevice device, const transfer_options& options = {}) {
    return make([&](BowstringStream** out, BowstringError* e) {
      return bowstring_stream_to_device(&raw_, device, &options, out, e);
    });
  }
  /// All arrays as one. The stream has failed when this fails.
  result<array> try_collect(const BowstringSync* sync = nullptr) {
    return detail::capture<array>([&](array& out, BowstringError* e) {
      return bowstring_stream_collect(&raw_, sync, out.put(), e);
    });
  }

  /// Hands the stream to an asynchronous handler, from a thread of its own. Experimental.
  result<void> try_to_async(ArrowAsyncDeviceStreamHandler* handler) {
    BowstringError record;
    if (bowstring_stream_to_async(&raw_, handler, &record) != BOWSTRING_OK) return record;
    return {};
  }

#if BOWSTRING_HPP_EXCEPTIONS
  static stream import(unique_device_stream raw) { return try_import(raw).value(); }
  static stream import(unique_host_stream raw) { return try_import(raw).value(); }
  static stream of(const std::vector<array>& arrays, const bowstring::type& known = {}) {
    return try_of(arrays, known).value();
  }
  template <class Next>
  static stream generate(const bowstring::type& known, Next next, BowstringDevice device = {}) {
    return try_generate(known, std::move(next), device).value();
  }
  template <class Give>
  static stream from_async(std::size_t capacity, Give&& give) {
    return try_from_async(capacity, std::forward<Give>(give)).value();
  }
  array next() { return try_next().value(); }
  unique_device_array next_device_array() { return try_next_device_array().value(); }
  // These are called on a stream that is given away: std::move(s).select({0, 2}).
  unique_device_stream to_device_stream() && { return try_export().value(); }
  unique_host_stream to_host_stream(const BowstringSync* sync = nullptr) && { return try_export_host(sync).value(); }
  stream validated(const validate_options& options = {}) && { return try_validated(options).value(); }
  stream select(const std::vector<std::size_t>& columns) && { return try_select(columns).value(); }
  stream to_device(BowstringDevice device, const transfer_options& options = {}) && {
    return try_to_device(device, options).value();
  }
  void to_async(ArrowAsyncDeviceStreamHandler* handler) && { try_to_async(handler).value(); }
  array collect(const BowstringSync* sync = nullptr) && { return try_collect(sync).value(); }

  /// Goes over the arrays once: for (const auto& batch : s). An increment asks for the next one, and throws what goes wrong.
  class iterator {
   public:
    using value_type = array;
    using difference_type = std::ptrdiff_t;
    using reference = const array&;
    using pointer = const array*;
    using iterator_category = std::input_iterator_tag;

    iterator() noexcept = default;
    explicit iterator(stream* from) : from_(from) { ++*this; }
    const array& operator*() const noexcept { return now_; }
    const array* operator->() const noexcept { return &now_; }
    iterator& operator++() {
      now_ = from_->next();
      if (!now_) from_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.from_ == b.from_; }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return a.from_ != b.from_; }

   private:
    stream* from_ = nullptr;
    array now_;
  };
  iterator begin() { return iterator(this); }
  iterator end() noexcept { return iterator(); }
#endif

 private:
  template <class Call>
  static result<stream> make(Call&& call) {
    BowstringStream* out = nullptr;
    BowstringError record;
    const BowstringStatus status = call(&out, &record);
    if (status != BOWSTRING_OK) return record;
    return take(out);
  }

  BowstringStream* raw_ = nullptr;
};

}  // namespace bowstring

#endif  // BOWSTRING_STREAMS_HPP
