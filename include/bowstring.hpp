/* bowstring for C++17: owners that move, handles that count, ranges over nodes and buffers, and a builder for nested
 * arrays whose owners are shared pointers. Everything is inline and only calls bowstring.h.
 *
 * What can fail comes twice: `try_x` returns a bowstring::result and takes nothing when it fails; `x` returns the value or
 * throws bowstring::error, and lets go what it was given by value. With -fno-exceptions only `try_x` is there. Callbacks
 * are wrapped so that no exception crosses into C. */
#ifndef BOWSTRING_HPP
#define BOWSTRING_HPP

#include <bowstring/arrays.hpp>
#include <bowstring/devices.hpp>
#include <bowstring/streams.hpp>
#include <bowstring/tensors.hpp>
#include <bowstring/validate.hpp>

#include <optional>

namespace bowstring {

namespace detail {

/// What is put together by calls of which none fails at once: the first fault is kept and told at the end. The class that
/// is derived from it has add(data, bytes, owner).
template <class Derived>
class built {
 public:
  /// A buffer that is not there: no validity bitmap, or sizes of variadic buffers that the library builds.
  Derived& no_buffer() { return derived().add(nullptr, 0, nullptr); }

  /// A buffer of `bytes` bytes at `data` (-1: unknown), alive as long as `owner`; a NULL owner means that it always is.
  Derived& buffer(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    return derived().add(data, bytes, std::move(owner));
  }

  /// The memory of a shared vector, array, string or span: anything with data() and size().
  template <class Container, class = decltype(std::declval<Container&>().data())>
  Derived& buffer(std::shared_ptr<Container> owner) {
    if (!owner) return refuse(no_owner());
    const auto* data = owner->data();
    const auto n = static_cast<std::size_t>(owner->size());
    return whole(data, n, std::move(owner));
  }

  /// The memory of a shared C array of `n` elements.
  template <class Element>
  Derived& buffer(std::shared_ptr<Element[]> owner, std::size_t n) {
    if (!owner) return refuse(no_owner());
    const Element* data = owner.get();
    return whole(data, n, std::move(owner));
  }

 protected:
  /// Only the first fault is told; what follows may come of it.
  Derived& refuse(const BowstringError& record) noexcept {
    if (!refused_) refused_ = record;
    return derived();
  }

  /// Runs what may find no memory.
  template <class Call>
  Derived& grown(Call&& call) {
    const auto done = allocating([&]() -> result<void> {
      call();
      return {};
    });
    return done ? derived() : refuse(done.record());
  }

  std::optional<BowstringError> refused_;

 private:
  template <class Element, class Owner>
  Derived& whole(const Element* data, std::size_t n, Owner owner) {
    static_assert(std::is_trivially_copyable_v<Element>, "a buffer holds plain bytes");
    const auto bytes = static_cast<std::int64_t>(n * sizeof(Element));
    return derived().add(data, bytes, std::shared_ptr<const void>(std::move(owner), data));
  }

  static BowstringError no_owner() noexcept {
    return failure(BOWSTRING_INVALID_ARGUMENT, "expected a shared pointer to a buffer's memory, found NULL");
  }

  Derived& derived() noexcept { return static_cast<Derived&>(*this); }
};

}  // namespace detail

/// One column of an array to build: its numbers, its buffers, and the columns below it. Values of a slice start at
/// `offset`; a null count of -1 is counted. What goes wrong is told by the builder that it is added to.
class column : public detail::built<column> {
 public:
  explicit column(std::int64_t length, std::int64_t null_count = 0, std::int64_t offset = 0) noexcept
      : numbers_{length, null_count, offset, 0} {}

  /// The next child.
  column& child(column below) {
    return grown([&] { children_.push_back(std::move(below)); });
  }
  /// The values that this column's indices lead to.
  column& dictionary(column values) {
    return grown([&] { dictionary_ = std::make_shared<const column>(std::move(values)); });
  }

 private:
  friend class detail::built<column>;
  friend class array_builder;

  struct memory {
    const void* data;
    std::int64_t bytes;
    std::shared_ptr<const void> owner;
  };

  column& add(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    return grown([&] { buffers_.push_back(memory{data, bytes, std::move(owner)}); });
  }

  BowstringNode numbers_;
  std::vector<memory> buffers_;
  std::vector<column> children_;
  std::shared_ptr<const column> dictionary_;
};

/// Builds a device array from raw memory: nodes and buffers in the order of the type, depth first, each buffer kept alive
/// by a shared pointer. What goes wrong on the way is told at the end: by finish or try_finish.
class array_builder : public detail::built<array_builder> {
 public:
  explicit array_builder(bowstring::type type) noexcept : type_(std::move(type)) {}
  explicit array_builder(const char* text) {
    auto parsed = bowstring::type::try_parse(text);
    if (parsed) {
      type_ = *std::move(parsed);
    } else {
      refuse(parsed.record());
    }
  }
  /// Puts an array together again.
  array_builder(bowstring::type type, parts taken) noexcept : type_(std::move(type)), parts_(std::move(taken)) {}

  /// The next node; the buffers that follow are its own.
  array_builder& node(std::int64_t length, std::int64_t null_count = 0, std::int64_t offset = 0) {
    return push(BowstringNode{length, null_count, offset, 0});
  }

  using detail::built<array_builder>::buffer;
  /// A buffer that was taken out of an array.
  array_builder& buffer(bowstring::buffer taken) {
    BowstringOwnedBuffer memory{};
    auto* raw = taken.release();
    BowstringError record;
    if (bowstring_buffer_into_owned(&raw, &memory, &record) != BOWSTRING_OK) return refuse(record);
    return own(memory);
  }

  /// The next node with all that is below it.
  array_builder& add(const column& tree) {
    if (tree.refused_) refuse(*tree.refused_);
    push(tree.numbers_);
    for (const auto& memory : tree.buffers_) add(memory.data, memory.bytes, memory.owner);
    for (const auto& below : tree.children_) add(below);
    if (tree.dictionary_) add(*tree.dictionary_);
    return *this;
  }

  /// Where all the buffers are, their event, and what owns them together; the CPU unless this is called.
  array_builder& place(placement where) noexcept {
    parts_.placement = std::move(where);
    return *this;
  }
  array_builder& device(ArrowDeviceType type, std::int64_t id) noexcept { return place(placement(type, id)); }

  /// The array. On success the builder is empty; on failure it still owns everything.
  result<unique_device_array> try_finish() {
    if (!parts_.placement.has_memory()) refuse(detail::no_memory());
    if (refused_) return *refused_;
    auto made = detail::capture<unique_device_array>([&](unique_device_array& out, BowstringError* e) {
      return bowstring_device_array_from_buffers(type_.get(), parts_.nodes.data(), parts_.nodes.size(),
                                                 parts_.buffers.data(), parts_.buffers.size(),
                                                 parts_.placement.get(), out.put(), e);
    });
    if (made) parts_.clear();
    return made;
  }
#if BOWSTRING_HPP_EXCEPTIONS
  unique_device_array finish() { return try_finish().value(); }
#endif
  /// The type that is built.
  const bowstring::type& type() const noexcept { return type_; }

 private:
  friend class detail::built<array_builder>;

  array_builder& push(const BowstringNode& numbers) {
    return grown([&] { parts_.nodes.push_back(numbers); });
  }

  array_builder& add(const void* data, std::int64_t bytes, std::shared_ptr<const void> owner) {
    BowstringOwnedBuffer memory{data, bytes, nullptr, nullptr};
    if (!detail::box(std::move(owner), &memory.owner, &memory.release_owner)) return refuse(detail::no_memory());
    return own(memory);
  }

  /// Takes memory over, also when that fails.
  array_builder& own(const BowstringOwnedBuffer& memory) {
    const auto before = parts_.buffers.size();
    if (parts_.nodes.empty()) {
      refuse(detail::failure(BOWSTRING_INVALID_ARGUMENT, "expected a node before its buffers"));
    } else {
      grown([&] { parts_.buffers.push_back(memory); });
    }
    if (parts_.buffers.size() > before) {
      parts_.nodes.back().n_buffers++;
    } else if (memory.release_owner != nullptr) {
      memory.release_owner(memory.owner);
    }
    return *this;
  }

  bowstring::type type_;
  parts parts_;
};

}  // namespace bowstring

#endif  // BOWSTRING_HPP
