/* Types, buffers and arrays: counted handles and all that can be done with them. A part of bowstring.hpp. */
#ifndef BOWSTRING_ARRAYS_HPP
#define BOWSTRING_ARRAYS_HPP

#include <bowstring/owners.hpp>

namespace bowstring {

// ---- types --------------------------------------------------------------------------------------------------------

/// A parsed schema, or one node of it. An empty one has no nodes and equals nothing.
class type : public handle<type, BowstringType, bowstring_type_retain, bowstring_type_release> {
 public:
  using node_range = info_range<type, BowstringType, BowstringTypeNodeInfo, bowstring_type_node_info>;

  /// The type that a text says, such as "struct<a: int32 not null, s: list<utf8>>".
  static result<type> try_parse(const char* text) {
    return detail::capture<type>(
        [&](type& out, BowstringError* e) { return bowstring_type_parse(text, out.put(), e); });
  }

  /// The type with that format string, name and flags, and these children, dictionary and encoded metadata.
  static result<type> try_make(const char* format, const char* name = "", std::int64_t flags = ARROW_FLAG_NULLABLE,
                               const std::vector<type>& children = {}, const type& dictionary = {},
                               std::string_view metadata = {}) {
    return detail::allocating([&]() -> result<type> {
      std::vector<const BowstringType*> raw;
      raw.reserve(children.size());
      for (const auto& child : children) raw.push_back(child.get());
      return detail::capture<type>([&](type& out, BowstringError* e) {
        return bowstring_type_new(format, name, flags, raw.data(), raw.size(), dictionary.get(), metadata.data(),
                                  static_cast<std::int64_t>(metadata.size()), out.put(), e);
      });
    });
  }

  /// The type of a schema, which is taken on success.
  static result<type> try_import(unique_schema& schema) {
    return detail::capture<type>(
        [&](type& out, BowstringError* e) { return bowstring_type_import(schema.get(), out.put(), e); });
  }

  /// The type of a schema that stays its owner's.
  static result<type> try_import_copy(const ArrowSchema* schema) {
    return detail::capture<type>(
        [&](type& out, BowstringError* e) { return bowstring_type_copy_from(schema, out.put(), e); });
  }

  /// The schema.
  result<unique_schema> try_export_schema() const {
    return detail::capture<unique_schema>(
        [&](unique_schema& out, BowstringError* e) { return bowstring_type_export(get(), out.put(), e); });
  }

  /// The text form.
  result<std::string> try_to_string() const {
    return detail::text([&](char* out, std::size_t capacity, std::size_t* needed, BowstringError* e) {
      return bowstring_type_to_text(get(), out, capacity, needed, e);
    });
  }

  /// Child `i`.
  result<type> try_child(std::size_t i) const {
    const BowstringType* raw = nullptr;
    BowstringError record;
    if (bowstring_type_child(get(), i, &raw, &record) != BOWSTRING_OK) return record;
    return borrow(raw);
  }

  /// The type of the dictionary's values.
  result<type> try_dictionary() const {
    const BowstringType* raw = nullptr;
    BowstringError record;
    if (bowstring_type_dictionary(get(), &raw, &record) != BOWSTRING_OK) return record;
    return borrow(raw);
  }

  /// The buffers that an array of this type has.
  result<std::vector<BowstringLayoutEntry>> try_layout() const {
    using entries = std::vector<BowstringLayoutEntry>;
    return detail::allocating([&]() -> result<entries> {
      std::size_t needed = 0;
      BowstringError record;
      if (bowstring_type_layout(get(), nullptr, 0, &needed, &record) != BOWSTRING_OK) return record;
      entries out(needed);
      if (bowstring_type_layout(get(), out.data(), needed, &needed, &record) != BOWSTRING_OK) return record;
      return out;
    });
  }

  /// The nodes, depth first.
  node_range nodes() const noexcept {
    BowstringTypeNodeInfo root{};
    root.struct_size = sizeof(root);
    const bool is_there = bowstring_type_node_info(get(), 0, &root, nullptr) == BOWSTRING_OK;
    return node_range(*this, is_there ? root.subtree_end : 0);
  }

  /// Whether the types are the same; `flags` are BOWSTRING_TYPE_IGNORE_*.
  bool equals(const type& other, std::uint32_t flags = 0) const noexcept {
    return bowstring_type_equals(get(), other.get(), flags);
  }
  friend bool operator==(const type& a, const type& b) noexcept { return a.equals(b); }
  friend bool operator!=(const type& a, const type& b) noexcept { return !a.equals(b); }

#if BOWSTRING_HPP_EXCEPTIONS
  static type parse(const char* text) { return try_parse(text).value(); }
  static type make(const char* format, const char* name = "", std::int64_t flags = ARROW_FLAG_NULLABLE,
                   const std::vector<type>& children = {}, const type& dictionary = {},
                   std::string_view metadata = {}) {
    return try_make(format, name, flags, children, dictionary, metadata).value();
  }
  static type import(unique_schema schema) { return try_import(schema).value(); }
  static type import_copy(const ArrowSchema* schema) { return try_import_copy(schema).value(); }
  unique_schema export_schema() const { return try_export_schema().value(); }
  std::string to_string() const { return try_to_string().value(); }
  type child(std::size_t i) const { return try_child(i).value(); }
  type dictionary() const { return try_dictionary().value(); }
  std::vector<BowstringLayoutEntry> layout() const { return try_layout().value(); }
#endif
};

// ---- buffers ------------------------------------------------------------------------------------------------------

/// One block of memory with its owner. An empty one has no memory.
class buffer : public handle<buffer, BowstringBuffer, bowstring_buffer_retain, bowstring_buffer_release> {
 public:
  /// `bytes` bytes at `data` (-1: unknown), alive as long as `owner`; what `place` owns is taken on success.
  static result<buffer> try_wrap(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner,
                                 placement& place) {
    BowstringOwnedBuffer memory{data, bytes, nullptr, nullptr};
    if (!place.has_memory() || !detail::box(std::move(owner), &memory.owner, &memory.release_owner)) {
      return detail::no_memory();
    }
    auto made = detail::capture<buffer>([&](buffer& out, BowstringError* e) {
      return bowstring_buffer_wrap(&memory, place.get(), out.put(), e);
    });
    if (memory.release_owner != nullptr) memory.release_owner(memory.owner);
    return made;
  }
  static result<buffer> try_wrap(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    placement cpu;
    return try_wrap(data, bytes, std::move(owner), cpu);
  }

  /// Zeroed memory, and where to write to it until the buffer is handed on.
  static result<std::pair<buffer, void*>> try_allocate(std::int64_t bytes, BowstringDevice device = {},
                                                       const BowstringSync* sync = nullptr) {
    return detail::capture<std::pair<buffer, void*>>([&](std::pair<buffer, void*>& out, BowstringError* e) {
      return bowstring_buffer_allocate(device, bytes, sync, out.first.put(), &out.second, e);
    });
  }

  /// Where the memory is, how large it is, and what to wait on.
  BowstringBufferMemory info() const noexcept {
    BowstringBufferMemory out{};
    out.struct_size = sizeof(out);
    if (bowstring_buffer_info(get(), &out, nullptr) != BOWSTRING_OK) return BowstringBufferMemory{};
    return out;
  }
  const void* data() const noexcept { return info().data; }
  /// Readable bytes, -1 when unknown.
  std::int64_t size() const noexcept { return info().size_bytes; }
  BowstringDevice device() const noexcept { return info().device; }

  /// `length` bytes from `offset` on.
  result<buffer> try_slice(std::int64_t offset, std::int64_t length) const {
    return detail::capture<buffer>([&](buffer& out, BowstringError* e) {
      return bowstring_buffer_slice(get(), offset, length, out.put(), e);
    });
  }

  /// Copies `n` bytes from `offset` on into CPU memory.
  result<void> try_read(std::int64_t offset, void* dst, std::int64_t n, const BowstringSync* sync = nullptr) const {
    BowstringError record;
    if (bowstring_buffer_read(get(), offset, dst, n, sync, &record) != BOWSTRING_OK) return record;
    return {};
  }

#if BOWSTRING_HPP_EXCEPTIONS
  static buffer wrap(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner, placement place = {}) {
    return try_wrap(data, bytes, std::move(owner), place).value();
  }
  static std::pair<buffer, void*> allocate(std::int64_t bytes, BowstringDevice device = {},
                                           const BowstringSync* sync = nullptr) {
    return try_allocate(bytes, device, sync).value();
  }
  buffer slice(std::int64_t offset, std::int64_t length) const { return try_slice(offset, length).value(); }
  void read(std::int64_t offset, void* dst, std::int64_t n, const BowstringSync* sync = nullptr) const {
    try_read(offset, dst, n, sync).value();
  }
#endif
};

// ---- arrays -------------------------------------------------------------------------------------------------------

/// An array: a window on shared memory. An empty one has no nodes, and so no values.
class array : public handle<array, BowstringArray, bowstring_array_retain, bowstring_array_release> {
 public:
  using node_range = info_range<array, BowstringArray, BowstringNodeInfo, bowstring_array_node_info>;
  using buffer_range = info_range<array, BowstringArray, BowstringBufferInfo, bowstring_array_buffer_info>;

  /// The array of a struct and its schema, which are both taken on success.
  static result<array> try_import(unique_device_array& raw, unique_schema& schema) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import(raw.get(), schema.get(), out, e);
    });
  }
  static result<array> try_import(unique_host_array& raw, unique_schema& schema) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_host(raw.get(), schema.get(), out, e);
    });
  }

  /// The array of a struct whose type is known; the struct is taken on success.
  static result<array> try_import(unique_device_array& raw, const bowstring::type& known) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_typed(raw.get(), known.get(), out, e);
    });
  }
  static result<array> try_import(unique_host_array& raw, const bowstring::type& known) {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_host_typed(raw.get(), known.get(), out, e);
    });
  }

  /// The array of a struct that stays somebody else's; `owner` keeps what it points to.
  static result<array> try_import_borrowed(const ArrowDeviceArray* raw, const bowstring::type& known,
                                           std::shared_ptr<const void> owner) {
    return owned(std::move(owner), [&](void* context, void (*let_go)(void*), BowstringArray** out, BowstringError* e) {
      return bowstring_array_import_borrowed(raw, known.get(), context, let_go, out, e);
    });
  }

  /// The array as a struct for whoever comes next, any number of times, and its schema where one is asked for.
  result<unique_device_array> try_export_device(unique_schema* schema = nullptr) const {
    return detail::capture<unique_device_array>([&](unique_device_array& out, BowstringError* e) {
      return bowstring_array_export(get(), out.put(), schema != nullptr ? schema->put() : nullptr, e);
    });
  }
  /// The array as a struct in CPU memory, and its schema where one is asked for.
  result<unique_host_array> try_export_host(const BowstringSync* sync = nullptr, unique_schema* schema = nullptr) const {
    return detail::capture<unique_host_array>([&](unique_host_array& out, BowstringError* e) {
      return bowstring_array_export_host(get(), sync, out.put(), schema != nullptr ? schema->put() : nullptr, e);
    });
  }

  bowstring::type type() const noexcept { return bowstring::type::borrow(bowstring_array_type(get())); }

  /// The nodes, depth first.
  node_range nodes() const noexcept { return node_range(*this, count().first); }
  /// The buffers, in the order of their nodes.
  buffer_range buffers() const noexcept { return buffer_range(*this, count().second); }
  /// Number of values.
  std::int64_t length() const noexcept { return nodes()[0].length; }
  /// Where the buffers are.
  BowstringDevice device() const noexcept {
    BowstringDevice out{};
    bowstring_array_device(get(), &out, nullptr, nullptr);
    return out;
  }
  /// The address of the event to wait on before buffers are read; NULL when there is none.
  void* sync_event() const noexcept {
    void* event = nullptr;
    bowstring_array_device(get(), nullptr, &event, nullptr);
    return event;
  }

  result<array> try_child(std::size_t i) const {
    return make([&](BowstringArray** out, BowstringError* e) { return bowstring_array_child(get(), i, out, e); });
  }
  result<array> try_dictionary() const {
    return make([&](BowstringArray** out, BowstringError* e) { return bowstring_array_dictionary(get(), out, e); });
  }
  /// `length` values from `offset` on.
  result<array> try_slice(std::int64_t offset, std::int64_t length) const {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_slice(get(), offset, length, out, e);
    });
  }
  /// The same array with every size known.
  result<array> try_resolve_sizes(const BowstringSync* sync = nullptr) const {
    return make([&](BowstringArray** out, BowstringError* e) {
      return bowstring_array_resolve_sizes(get(), sync, out, e);
    });
  }
  /// The same array with every size known, read by `read(dst, src, n)`, which returns nothing, or 0 or an error number.
  /// What it throws becomes a CALLBACK_ERROR with its text.
  template <class Read>
  result<array> try_resolve_sizes_with(Read&& read) const {
    std::exception_ptr thrown;
    return resolve_with(read, thrown);
  }

  /// The number of nulls, counted when it is not known.
  result<std::int64_t> try_null_count(const BowstringSync* sync = nullptr) const {
    return detail::capture<std::int64_t>([&](std::int64_t& out, BowstringError* e) {
      return bowstring_array_null_count(get(), sync, &out, e);
    });
  }

  /// The same array with a further owner, which lives as long as all that comes of it.
  result<array> try_with_owner(std::shared_ptr<const void> owner) const {
    return owned(std::move(owner), [&](void* context, void (*let_go)(void*), BowstringArray** out, BowstringError* e) {
      return bowstring_array_with_owner(get(), context, let_go, out, e);
    });
  }

  /// Buffer `i`, which stays alive on its own.
  result<bowstring::buffer> try_buffer(std::size_t i) const {
    return detail::capture<bowstring::buffer>([&](bowstring::buffer& out, BowstringError* e) {
      return bowstring_array_buffer(get(), i, out.put(), e);
    });
  }

  /// The array taken apart, as bowstring::array_builder puts it together again.
  result<parts> try_take_apart() const {
    return detail::allocating([&]() -> result<parts> {
      return detail::capture<parts>([&](parts& out, BowstringError* e) {
        std::size_t n_nodes = 0, n_buffers = 0;
        const auto status = bowstring_array_count(get(), &n_nodes, &n_buffers, e);
        if (status != BOWSTRING_OK) return status;
        out.nodes.resize(n_nodes);
        out.buffers.resize(n_buffers);
        return bowstring_array_to_buffers(get(), out.nodes.data(), n_nodes, out.buffers.data(), n_buffers,
                                          out.placement.get(), e);
      });
    });
  }

  /// The tree, and every buffer's role, address and size.
  result<std::string> try_to_string() const {
    return detail::text([&](char* out, std::size_t capacity, std::size_t* needed, BowstringError* e) {
      return bowstring_array_to_text(get(), out, capacity, needed, e);
    });
  }

#if BOWSTRING_HPP_EXCEPTIONS
  static array import(unique_device_array raw, unique_schema schema) { return try_import(raw, schema).value(); }
  static array import(unique_host_array raw, unique_schema schema) { return try_import(raw, schema).value(); }
  static array import(unique_device_array raw, const bowstring::type& known) { return try_import(raw, known).value(); }
  static array import(unique_host_array raw, const bowstring::type& known) { return try_import(raw, known).value(); }
  static array import_borrowed(const ArrowDeviceArray* raw, const bowstring::type& known,
                               std::shared_ptr<const void> owner) {
    return try_import_borrowed(raw, known, std::move(owner)).value();
  }
  unique_device_array export_device(unique_schema* schema = nullptr) const { return try_export_device(schema).value(); }
  unique_host_array export_host(const BowstringSync* sync = nullptr, unique_schema* schema = nullptr) const {
    return try_export_host(sync, schema).value();
  }
  array child(std::size_t i) const { return try_child(i).value(); }
  array dictionary() const { return try_dictionary().value(); }
  array slice(std::int64_t offset, std::int64_t length) const { return try_slice(offset, length).value(); }
  array resolve_sizes(const BowstringSync* sync = nullptr) const { return try_resolve_sizes(sync).value(); }
  /// What `read` throws is the error's cause().
  template <class Read>
  array resolve_sizes_with(Read&& read) const {
    std::exception_ptr thrown;
    auto made = resolve_with(read, thrown);
    if (!made) throw error(made.record(), std::move(thrown));
    return *std::move(made);
  }
  std::int64_t null_count(const BowstringSync* sync = nullptr) const { return try_null_count(sync).value(); }
  array with_owner(std::shared_ptr<const void> owner) const { return try_with_owner(std::move(owner)).value(); }
  bowstring::buffer buffer(std::size_t i) const { return try_buffer(i).value(); }
  parts take_apart() const { return try_take_apart().value(); }
  std::string to_string() const { return try_to_string().value(); }
#endif

 private:
  template <class Call>
  static result<array> make(Call&& call) {
    return detail::capture<array>([&](array& out, BowstringError* e) { return call(out.put(), e); });
  }

  /// A call that takes an owner when it succeeds.
  template <class Call>
  static result<array> owned(std::shared_ptr<const void> owner, Call&& call) {
    void* context = nullptr;
    void (*release)(void*) = nullptr;
    if (!detail::box(std::move(owner), &context, &release)) return detail::no_memory();
    auto made = make([&](BowstringArray** out, BowstringError* e) { return call(context, release, out, e); });
    if (!made && release != nullptr) release(context);
    return made;
  }

  template <class Read>
  result<array> resolve_with(Read& read, std::exception_ptr& thrown) const {
    using reader = detail::reader<std::remove_reference_t<Read>>;
    reader context(read);
    array out;
    BowstringError record;
    if (bowstring_array_resolve_sizes_with(get(), reader::call, &context, out.put(), &record) != BOWSTRING_OK) {
      thrown = context.report(record);
      return record;
    }
    return out;
  }

  std::pair<std::size_t, std::size_t> count() const noexcept {
    std::pair<std::size_t, std::size_t> n;
    bowstring_array_count(get(), &n.first, &n.second, nullptr);
    return n;
  }
};

}  // namespace bowstring

#endif  // BOWSTRING_ARRAYS_HPP
