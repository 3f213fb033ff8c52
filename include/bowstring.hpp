/* bowstring for C++17: owners that move, handles that count, ranges over nodes and buffers, and a builder for nested
 * arrays whose owners are shared pointers. Everything is inline and only calls bowstring.h.
 *
 * What crosses a boundary comes twice: `try_import`, `try_export_x`, `try_parse` and `try_finish` return a
 * bowstring::result and take nothing when they fail; the same without `try_` return the value or throw bowstring::error,
 * and release what they were given by value. Everything else throws. Callbacks are wrapped so that no exception crosses
 * into C. */
#ifndef BOWSTRING_HPP
#define BOWSTRING_HPP

#include <bowstring.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace bowstring {

// ---- errors -------------------------------------------------------------------------------------------------------

/// What went wrong in a call, as an exception: the C record, and its text as what().
class error : public std::runtime_error {
 public:
  explicit error(const BowstringError& record) : std::runtime_error(describe(record)), record_(record) {}

  /// The record as the C function wrote it.
  const BowstringError& record() const noexcept { return record_; }
  /// One of BOWSTRING_INVALID_ARGUMENT to BOWSTRING_INTERNAL.
  BowstringStatus status() const noexcept { return record_.status; }
  /// The rule that the data breaks, such as "A3"; "" when it is not about a rule.
  std::string_view rule() const noexcept { return bowstring_rule_name(record_.rule); }
  /// The node of the tree, such as "$.a.item"; "" when it is not about a node.
  std::string_view path() const noexcept { return record_.path; }

 private:
  static std::string describe(const BowstringError& record) {
    std::string text = bowstring_status_name(record.status);
    if (record.path[0] != '\0') text.append(" at ").append(record.path);
    return text.append(": ").append(record.message);
  }

  BowstringError record_;
};

/// A value, or the record of why there is none.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(const BowstringError& record) : state_(std::in_place_index<1>, record) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }
  /// The status; BOWSTRING_OK with a value.
  BowstringStatus status() const noexcept { return has_value() ? BOWSTRING_OK : std::get<1>(state_).status; }
  /// Why there is no value.
  const BowstringError& record() const { return std::get<1>(state_); }
  /// The value; throws bowstring::error when there is none.
  T value() && {
    if (!has_value()) throw error(record());
    return std::get<0>(std::move(state_));
  }
  T& value() & {
    if (!has_value()) throw error(record());
    return std::get<0>(state_);
  }

 private:
  std::variant<T, BowstringError> state_;
};

namespace detail {

/// Makes a result of a call that writes into `value`.
template <class T, class Call>
result<T> capture(T value, Call&& call) {
  BowstringError record;
  if (call(value, &record) != BOWSTRING_OK) return record;
  return value;
}

/// A record for what only C++ can tell.
inline BowstringError failure(BowstringStatus status, const char* message) noexcept {
  BowstringError record{};
  record.status = status;
  record.row = record.batch = -1;
  for (std::size_t i = 0; i + 1 < sizeof(record.message) && message[i] != '\0'; i++) record.message[i] = message[i];
  return record;
}

/// Text from a capacity call: asked for its size first.
template <class Call>
std::string text(Call&& call) {
  std::size_t needed = 0;
  BowstringError record;
  if (call(nullptr, std::size_t{0}, &needed, &record) != BOWSTRING_OK) throw error(record);
  std::string out(needed, '\0');
  if (call(out.data(), out.size(), &needed, &record) != BOWSTRING_OK) throw error(record);
  out.resize(needed - 1);
  return out;
}

}  // namespace detail

// ---- raw structs --------------------------------------------------------------------------------------------------

/// Owns one raw Arrow struct: released when destroyed, moved and never copied.
template <class Raw, void (*Move)(Raw*, Raw*), void (*Release)(Raw*)>
class unique_raw {
 public:
  unique_raw() noexcept = default;
  unique_raw(unique_raw&& other) noexcept { Move(&other.raw_, &raw_); }
  unique_raw& operator=(unique_raw&& other) noexcept {
    if (this != &other) {
      Release(&raw_);
      Move(&other.raw_, &raw_);
    }
    return *this;
  }
  unique_raw(const unique_raw&) = delete;
  unique_raw& operator=(const unique_raw&) = delete;
  ~unique_raw() { Release(&raw_); }

  /// Takes a live struct over from whoever owned it.
  static unique_raw take(Raw* raw) noexcept {
    unique_raw owner;
    Move(raw, &owner.raw_);
    return owner;
  }

  /// The struct, still owned: for functions that look at it or move it out.
  Raw* get() noexcept { return &raw_; }
  const Raw* get() const noexcept { return &raw_; }
  Raw* operator->() noexcept { return &raw_; }
  const Raw* operator->() const noexcept { return &raw_; }
  /// The struct, released first: for functions that write one.
  Raw* put() noexcept {
    Release(&raw_);
    raw_ = Raw{};
    return &raw_;
  }
  /// Hands the struct to whoever owns `to` from now on.
  void move_to(Raw* to) noexcept { Move(&raw_, to); }
  /// Releases the struct now.
  void reset() noexcept { Release(&raw_); }

 private:
  Raw raw_{};
};

using unique_schema = unique_raw<ArrowSchema, bowstring_schema_move, bowstring_schema_release>;
using unique_host_array = unique_raw<ArrowArray, bowstring_host_array_move, bowstring_host_array_release>;
using unique_device_array = unique_raw<ArrowDeviceArray, bowstring_device_array_move, bowstring_device_array_release>;
using unique_host_stream = unique_raw<ArrowArrayStream, bowstring_host_stream_move, bowstring_host_stream_release>;
using unique_device_stream =
    unique_raw<ArrowDeviceArrayStream, bowstring_device_stream_move, bowstring_device_stream_release>;

// ---- handles ------------------------------------------------------------------------------------------------------

/// A counted handle: copying counts, destroying lets go.
template <class Handle, Handle* (*Retain)(const Handle*), void (*Release)(Handle*)>
class handle {
 public:
  handle() noexcept = default;
  handle(const handle& other) noexcept : raw_(Retain(other.raw_)) {}
  handle(handle&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  handle& operator=(handle other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~handle() { Release(raw_); }

  /// The handle, still owned.
  Handle* get() const noexcept { return raw_; }
  /// Where a function writes a handle; what was there is let go first.
  Handle** put() noexcept {
    Release(std::exchange(raw_, nullptr));
    return &raw_;
  }
  /// Gives the handle away.
  Handle* release() noexcept { return std::exchange(raw_, nullptr); }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

 protected:
  explicit handle(Handle* raw) noexcept : raw_(raw) {}

 private:
  Handle* raw_ = nullptr;
};

/// A parsed schema, or one node of it.
class type : public handle<BowstringType, bowstring_type_retain, bowstring_type_release> {
 public:
  type() noexcept = default;

  /// The type that a text says, such as "struct<a: int32 not null, s: list<utf8>>".
  static result<type> try_parse(const char* text) {
    return detail::capture(type(), [&](type& out, BowstringError* e) { return bowstring_type_parse(text, out.put(), e); });
  }
  static type parse(const char* text) { return try_parse(text).value(); }

  /// The type of a schema, which is taken on success.
  static result<type> try_import(unique_schema& schema) {
    return detail::capture(
        type(), [&](type& out, BowstringError* e) { return bowstring_type_import(schema.get(), out.put(), e); });
  }
  static type import(unique_schema schema) { return try_import(schema).value(); }

  /// The type of a schema that stays its owner's.
  static result<type> try_import_copy(const ArrowSchema* schema) {
    return detail::capture(
        type(), [&](type& out, BowstringError* e) { return bowstring_type_copy_from(schema, out.put(), e); });
  }

  /// A further handle on a borrowed type.
  static type borrow(const BowstringType* raw) noexcept { return type(bowstring_type_retain(raw)); }

  /// The schema.
  result<unique_schema> try_export_schema() const {
    return detail::capture(unique_schema(), [&](unique_schema& out, BowstringError* e) {
      return bowstring_type_export(get(), out.put(), e);
    });
  }
  unique_schema export_schema() const { return try_export_schema().value(); }

  /// The text form.
  std::string to_string() const {
    return detail::text([&](char* out, std::size_t capacity, std::size_t* needed, BowstringError* e) {
      return bowstring_type_to_text(get(), out, capacity, needed, e);
    });
  }

  /// Child `i`.
  type child(std::size_t i) const {
    const BowstringType* raw = nullptr;
    BowstringError record;
    if (bowstring_type_child(get(), i, &raw, &record) != BOWSTRING_OK) throw error(record);
    return borrow(raw);
  }

  bool equals(const type& other, std::uint32_t flags = 0) const noexcept {
    return bowstring_type_equals(get(), other.get(), flags);
  }
  friend bool operator==(const type& a, const type& b) noexcept { return a.equals(b); }
  friend bool operator!=(const type& a, const type& b) noexcept { return !a.equals(b); }

 private:
  explicit type(BowstringType* raw) noexcept : handle(raw) {}
};

/// One block of memory with its owner.
class buffer : public handle<BowstringBuffer, bowstring_buffer_retain, bowstring_buffer_release> {
 public:
  buffer() noexcept = default;

  /// Where the memory is, how large it is, and what to wait on.
  BowstringBufferMemory info() const {
    BowstringBufferMemory info{};
    info.struct_size = sizeof(info);
    BowstringError record;
    if (bowstring_buffer_info(get(), &info, &record) != BOWSTRING_OK) throw error(record);
    return info;
  }
  const void* data() const { return info().data; }
  std::int64_t size() const { return info().size_bytes; }

  /// `length` bytes from `offset` on.
  buffer slice(std::int64_t offset, std::int64_t length) const {
    return detail::capture(buffer(), [&](buffer& out, BowstringError* e) {
             return bowstring_buffer_slice(get(), offset, length, out.put(), e);
           }).value();
  }
};

/// A range of infos that are asked for one by one.
template <class Info, class Ask>
class info_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Info;
    using difference_type = std::ptrdiff_t;
    using pointer = const Info*;
    using reference = Info;

    iterator(const info_range* range, std::size_t i) noexcept : range_(range), i_(i) {}
    Info operator*() const { return (*range_)[i_]; }
    iterator& operator++() noexcept {
      ++i_;
      return *this;
    }
    iterator operator++(int) noexcept { return iterator(range_, i_++); }
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.i_ == b.i_; }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return a.i_ != b.i_; }

   private:
    const info_range* range_;
    std::size_t i_;
  };

  info_range(std::size_t size, Ask ask) : size_(size), ask_(std::move(ask)) {}
  std::size_t size() const noexcept { return size_; }
  Info operator[](std::size_t i) const {
    Info info{};
    info.struct_size = sizeof(info);
    BowstringError record;
    if (ask_(i, &info, &record) != BOWSTRING_OK) throw error(record);
    return info;
  }
  iterator begin() const noexcept { return iterator(this, 0); }
  iterator end() const noexcept { return iterator(this, size_); }

 private:
  std::size_t size_;
  Ask ask_;
};

/// An array: a window on shared memory.
class array : public handle<BowstringArray, bowstring_array_retain, bowstring_array_release> {
 public:
  array() noexcept = default;

  /// The array of a struct and its schema, which are both taken on success.
  static result<array> try_import(unique_device_array& raw, unique_schema& schema) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import(raw.get(), schema.get(), out, e);
    });
  }
  static array import(unique_device_array raw, unique_schema schema) { return try_import(raw, schema).value(); }

  /// The array of a struct whose type is known; the struct is taken on success.
  static result<array> try_import(unique_device_array& raw, const type& ty) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_typed(raw.get(), ty.get(), out, e);
    });
  }
  static array import(unique_device_array raw, const type& ty) { return try_import(raw, ty).value(); }

  /// The array of a struct in CPU memory and its schema, which are both taken on success.
  static result<array> try_import(unique_host_array& raw, unique_schema& schema) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_host(raw.get(), schema.get(), out, e);
    });
  }
  static array import(unique_host_array raw, unique_schema schema) { return try_import(raw, schema).value(); }

  /// The array as a struct for whoever comes next, any number of times.
  result<unique_device_array> try_export_device() const {
    return detail::capture(unique_device_array(), [&](unique_device_array& out, BowstringError* e) {
      return bowstring_array_export(get(), out.put(), nullptr, e);
    });
  }
  unique_device_array export_device() const { return try_export_device().value(); }
  /// The array as a struct in CPU memory.
  result<unique_host_array> try_export_host(const BowstringSync* sync = nullptr) const {
    return detail::capture(unique_host_array(), [&](unique_host_array& out, BowstringError* e) {
      return bowstring_array_export_host(get(), sync, out.put(), nullptr, e);
    });
  }
  unique_host_array export_host(const BowstringSync* sync = nullptr) const { return try_export_host(sync).value(); }

  bowstring::type type() const noexcept { return bowstring::type::borrow(bowstring_array_type(get())); }

  /// The nodes, depth first: each a BowstringNodeInfo. The range lives no longer than the array.
  auto nodes() const {
    auto ask = [raw = get()](std::size_t i, BowstringNodeInfo* out, BowstringError* e) {
      return bowstring_array_node_info(raw, i, out, e);
    };
    return info_range<BowstringNodeInfo, decltype(ask)>(count().first, ask);
  }
  /// The buffers, in the order of their nodes: each a BowstringBufferInfo. The range lives no longer than the array.
  auto buffers() const {
    auto ask = [raw = get()](std::size_t i, BowstringBufferInfo* out, BowstringError* e) {
      return bowstring_array_buffer_info(raw, i, out, e);
    };
    return info_range<BowstringBufferInfo, decltype(ask)>(count().second, ask);
  }
  /// Number of values.
  std::int64_t length() const { return nodes()[0].length; }

  array child(std::size_t i) const {
    return make([&](BowstringArray** out, BowstringError* e) { return bowstring_array_child(get(), i, out, e); }).value();
  }
  array dictionary() const {
    return make([&](BowstringArray** out, BowstringError* e) { return bowstring_array_dictionary(get(), out, e); })
        .value();
  }
  array slice(std::int64_t offset, std::int64_t length) const {
    return make([&](BowstringArray** out, BowstringError* e) {
             return bowstring_array_slice(get(), offset, length, out, e);
           }).value();
  }
  array resolve_sizes(const BowstringSync* sync = nullptr) const {
    return make([&](BowstringArray** out, BowstringError* e) {
             return bowstring_array_resolve_sizes(get(), sync, out, e);
           }).value();
  }

  /// The same array with every size known, read by `read(dst, src, n)`. What it throws comes out of this call.
  template <class Read>
  array resolve_sizes_with(Read&& read) const {
    struct context {
      std::remove_reference_t<Read>* read;
      std::exception_ptr thrown;
    } ctx{std::addressof(read), nullptr};
    auto call = [](void* opaque, void* dst, const void* src, std::size_t n) noexcept -> int {
      auto* ctx = static_cast<context*>(opaque);
      try {
        (*ctx->read)(dst, src, n);
        return 0;
      } catch (...) {
        ctx->thrown = std::current_exception();
        return -1;
      }
    };
    auto made = make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_resolve_sizes_with(get(), call, &ctx, out, e);
    });
    if (!made && ctx.thrown) std::rethrow_exception(ctx.thrown);
    return std::move(made).value();
  }

  std::int64_t null_count(const BowstringSync* sync = nullptr) const {
    std::int64_t nulls = -1;
    BowstringError record;
    if (bowstring_array_null_count(get(), sync, &nulls, &record) != BOWSTRING_OK) throw error(record);
    return nulls;
  }

  /// Buffer `i`, which stays alive on its own.
  bowstring::buffer buffer(std::size_t i) const {
    return detail::capture(bowstring::buffer(), [&](bowstring::buffer& out, BowstringError* e) {
             return bowstring_array_buffer(get(), i, out.put(), e);
           }).value();
  }

  /// The tree, and every buffer's role, address and size.
  std::string to_string() const {
    return detail::text([&](char* out, std::size_t capacity, std::size_t* needed, BowstringError* e) {
      return bowstring_array_to_text(get(), out, capacity, needed, e);
    });
  }

 private:
  template <class Call>
  static result<array> make(Call&& call) {
    return detail::capture(array(), [&](array& out, BowstringError* e) { return call(out.put(), e); });
  }

  std::pair<std::size_t, std::size_t> count() const {
    std::pair<std::size_t, std::size_t> n;
    BowstringError record;
    if (bowstring_array_count(get(), &n.first, &n.second, &record) != BOWSTRING_OK) throw error(record);
    return n;
  }
};

// ---- building -----------------------------------------------------------------------------------------------------

/// Builds a device array from raw memory: nodes and buffers in the order of the type, depth first, each buffer kept alive
/// by a shared pointer.
class array_builder {
 public:
  explicit array_builder(bowstring::type type) : type_(std::move(type)) {}
  explicit array_builder(const char* text) : type_(bowstring::type::parse(text)) {}
  array_builder(array_builder&&) noexcept = default;
  array_builder(const array_builder&) = delete;
  array_builder& operator=(const array_builder&) = delete;
  ~array_builder() {
    for (auto& memory : buffers_) let_go(memory);
  }

  /// The next node; the buffers that follow are its own.
  array_builder& node(std::int64_t length, std::int64_t null_count = 0, std::int64_t offset = 0) {
    nodes_.push_back(BowstringNode{length, null_count, offset, 0});
    return *this;
  }

  /// A buffer that is not there: no validity bitmap, or sizes of variadic buffers that the library builds.
  array_builder& no_buffer() { return add(nullptr, 0, nullptr); }

  /// A buffer of `bytes` bytes at `data`, alive as long as `owner`; a NULL owner means that it always is.
  array_builder& buffer(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    return add(data, bytes, std::move(owner));
  }

  /// The memory of a shared vector, array or string: anything with data() and size().
  template <class Container>
  array_builder& buffer(std::shared_ptr<Container> owner) {
    const auto* data = owner->data();
    const auto bytes = static_cast<std::int64_t>(owner->size() * sizeof(*data));
    return add(data, bytes, std::shared_ptr<const void>(std::move(owner), data));
  }

  /// Where all the buffers are; the CPU unless this is called.
  array_builder& device(ArrowDeviceType type, std::int64_t id) noexcept {
    device_ = BowstringDevice{type, id};
    return *this;
  }

  /// The array. On success the builder is empty; on failure it still owns everything.
  result<unique_device_array> try_finish() {
    BowstringPlacement placement{};
    placement.struct_size = sizeof(placement);
    placement.device = device_;
    auto made = detail::capture(unique_device_array(), [&](unique_device_array& out, BowstringError* e) {
      return bowstring_device_array_from_buffers(type_.get(), nodes_.data(), nodes_.size(), buffers_.data(),
                                                 buffers_.size(), &placement, out.put(), e);
    });
    if (made) {
      nodes_.clear();
      buffers_.clear();
    }
    return made;
  }
  unique_device_array finish() { return try_finish().value(); }
  /// The type that is built.
  const bowstring::type& type() const noexcept { return type_; }

 private:
  array_builder& add(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    if (nodes_.empty()) throw error(detail::failure(BOWSTRING_INVALID_ARGUMENT, "expected a node before its buffers"));
    // Room first: nothing may throw once the owner is on the heap.
    buffers_.push_back(BowstringOwnedBuffer{data, bytes, nullptr, nullptr});
    if (owner) {
      try {
        buffers_.back().owner = new std::shared_ptr<const void>(std::move(owner));
      } catch (...) {
        buffers_.pop_back();
        throw;
      }
      buffers_.back().release_owner = [](void* shared) { delete static_cast<std::shared_ptr<const void>*>(shared); };
    }
    nodes_.back().n_buffers++;
    return *this;
  }

  static void let_go(BowstringOwnedBuffer& memory) noexcept {
    if (memory.release_owner != nullptr) memory.release_owner(memory.owner);
    memory.release_owner = nullptr;
  }

  bowstring::type type_;
  BowstringDevice device_{};
  std::vector<BowstringNode> nodes_;
  std::vector<BowstringOwnedBuffer> buffers_;
};

}  // namespace bowstring

#endif  // BOWSTRING_HPP
