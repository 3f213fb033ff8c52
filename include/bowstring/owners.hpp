/* Owners that move: raw Arrow structs, tensors, counted handles, placements, and what an array was taken apart into. A
 * part of bowstring.hpp. */
#ifndef BOWSTRING_OWNERS_HPP
#define BOWSTRING_OWNERS_HPP

#include <bowstring/result.hpp>

#include <iterator>
#include <vector>

namespace bowstring {

// ---- raw structs --------------------------------------------------------------------------------------------------

/// Owns one raw Arrow struct: released when destroyed, moved and never copied.
template <class Raw, void (*Move)(Raw*, Raw*), void (*Release)(Raw*), bool (*IsReleased)(const Raw*)>
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

  /// Whether there is something to release.
  explicit operator bool() const noexcept { return !IsReleased(&raw_); }
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

using unique_schema =
    unique_raw<ArrowSchema, bowstring_schema_move, bowstring_schema_release, bowstring_schema_is_released>;
using unique_host_array =
    unique_raw<ArrowArray, bowstring_host_array_move, bowstring_host_array_release, bowstring_host_array_is_released>;
using unique_device_array = unique_raw<ArrowDeviceArray, bowstring_device_array_move, bowstring_device_array_release,
                                       bowstring_device_array_is_released>;
using unique_host_stream = unique_raw<ArrowArrayStream, bowstring_host_stream_move, bowstring_host_stream_release,
                                      bowstring_host_stream_is_released>;
using unique_device_stream = unique_raw<ArrowDeviceArrayStream, bowstring_device_stream_move,
                                        bowstring_device_stream_release, bowstring_device_stream_is_released>;

// ---- tensors ------------------------------------------------------------------------------------------------------

/// Owns a tensor, which lies where its producer put it: its deleter runs when this is destroyed.
template <class Tensor, void (*Release)(Tensor*)>
class unique_pointer {
 public:
  unique_pointer() noexcept = default;
  /// Takes a tensor over from whoever owned it.
  explicit unique_pointer(Tensor* raw) noexcept : raw_(raw) {}
  unique_pointer(unique_pointer&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  unique_pointer& operator=(unique_pointer&& other) noexcept {
    if (this != &other) reset(std::exchange(other.raw_, nullptr));
    return *this;
  }
  unique_pointer(const unique_pointer&) = delete;
  unique_pointer& operator=(const unique_pointer&) = delete;
  ~unique_pointer() { Release(raw_); }

  explicit operator bool() const noexcept { return raw_ != nullptr; }
  /// The tensor, still owned.
  Tensor* get() const noexcept { return raw_; }
  Tensor* operator->() const noexcept { return raw_; }
  /// Where a function writes a tensor; what was there is let go first.
  Tensor** put() noexcept {
    reset();
    return &raw_;
  }
  /// Gives the tensor away.
  Tensor* release() noexcept { return std::exchange(raw_, nullptr); }
  /// Lets the tensor go, and takes another.
  void reset(Tensor* raw = nullptr) noexcept { Release(std::exchange(raw_, raw)); }

 private:
  Tensor* raw_ = nullptr;
};

using unique_tensor = unique_pointer<DLManagedTensorVersioned, bowstring_tensor_release>;
using unique_legacy_tensor = unique_pointer<DLManagedTensor, bowstring_legacy_tensor_release>;

// ---- handles ------------------------------------------------------------------------------------------------------

/// A counted handle, for the class that is derived from it: copying counts and cannot fail, destroying lets go.
template <class Derived, class Raw, Raw* (*Retain)(const Raw*), void (*Release)(Raw*)>
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

  /// Takes a handle over from whoever owned it.
  static Derived take(Raw* raw) noexcept {
    Derived owner;
    static_cast<handle&>(owner).raw_ = raw;
    return owner;
  }
  /// A further handle on what somebody else owns.
  static Derived borrow(const Raw* raw) noexcept { return take(Retain(raw)); }

  explicit operator bool() const noexcept { return raw_ != nullptr; }
  /// The handle, still owned.
  Raw* get() const noexcept { return raw_; }
  /// Where a function writes a handle; what was there is let go first.
  Raw** put() noexcept {
    Release(std::exchange(raw_, nullptr));
    return &raw_;
  }
  /// Gives the handle away.
  Raw* release() noexcept { return std::exchange(raw_, nullptr); }

 private:
  Raw* raw_ = nullptr;
};

/// Infos that are asked for one by one, as a range of values. It keeps what it shows alive; an iterator does not.
template <class Owner, class Raw, class Info, BowstringStatus (*Ask)(const Raw*, std::size_t, Info*, BowstringError*)>
class info_range {
 public:
  class iterator {
   public:
    using value_type = Info;
    using difference_type = std::ptrdiff_t;
    using reference = Info;
    // What is not a real reference is no more than input before C++20.
    using iterator_category = std::input_iterator_tag;
#if defined(__cpp_lib_concepts)
    using iterator_concept = std::random_access_iterator_tag;
#endif
    /// Holds the info while a member of it is read.
    class pointer {
     public:
      explicit pointer(const Info& info) noexcept : info_(info) {}
      const Info* operator->() const noexcept { return &info_; }

     private:
      Info info_;
    };

    iterator() noexcept = default;
    iterator(const Raw* raw, difference_type i) noexcept : raw_(raw), i_(i) {}

    Info operator*() const noexcept { return ask(raw_, static_cast<std::size_t>(i_)); }
    pointer operator->() const noexcept { return pointer(**this); }
    Info operator[](difference_type n) const noexcept { return *(*this + n); }
    iterator& operator++() noexcept { return *this += 1; }
    iterator& operator--() noexcept { return *this += -1; }
    iterator operator++(int) noexcept { return iterator(raw_, i_++); }
    iterator operator--(int) noexcept { return iterator(raw_, i_--); }
    iterator& operator+=(difference_type n) noexcept {
      i_ += n;
      return *this;
    }
    iterator& operator-=(difference_type n) noexcept { return *this += -n; }
    friend iterator operator+(iterator it, difference_type n) noexcept { return it += n; }
    friend iterator operator+(difference_type n, iterator it) noexcept { return it += n; }
    friend iterator operator-(iterator it, difference_type n) noexcept { return it -= n; }
    friend difference_type operator-(const iterator& a, const iterator& b) noexcept { return a.i_ - b.i_; }
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.i_ == b.i_; }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return a.i_ != b.i_; }
    friend bool operator<(const iterator& a, const iterator& b) noexcept { return a.i_ < b.i_; }
    friend bool operator>(const iterator& a, const iterator& b) noexcept { return a.i_ > b.i_; }
    friend bool operator<=(const iterator& a, const iterator& b) noexcept { return a.i_ <= b.i_; }
    friend bool operator>=(const iterator& a, const iterator& b) noexcept { return a.i_ >= b.i_; }

   private:
    const Raw* raw_ = nullptr;
    difference_type i_ = 0;
  };
  using const_iterator = iterator;
  using value_type = Info;

  info_range(Owner owner, std::size_t size) noexcept : owner_(std::move(owner)), size_(size) {}
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  iterator begin() const noexcept { return iterator(owner_.get(), 0); }
  iterator end() const noexcept { return iterator(owner_.get(), static_cast<std::ptrdiff_t>(size_)); }
  /// Info `i`; all zeroes out of range.
  Info operator[](std::size_t i) const noexcept { return ask(owner_.get(), i); }
  /// Info `i`, or why there is none.
  result<Info> try_at(std::size_t i) const {
    return detail::capture<Info>([&](Info& out, BowstringError* e) {
      out.struct_size = sizeof(out);
      return Ask(owner_.get(), i, &out, e);
    });
  }
#if BOWSTRING_HPP_EXCEPTIONS
  Info at(std::size_t i) const { return try_at(i).value(); }
#endif

 private:
  static Info ask(const Raw* raw, std::size_t i) noexcept {
    Info info{};
    info.struct_size = sizeof(info);
    if (Ask(raw, i, &info, nullptr) != BOWSTRING_OK) return Info{};
    return info;
  }

  Owner owner_;
  std::size_t size_;
};

// ---- placements and parts -----------------------------------------------------------------------------------------

/// Where memory is, what to wait on before it is read, and what keeps all of it alive; the CPU unless told otherwise.
class placement {
 public:
  placement() noexcept { raw_.struct_size = sizeof(raw_); }
  placement(ArrowDeviceType type, std::int64_t id) noexcept : placement() { raw_.device = BowstringDevice{type, id}; }
  placement(placement&& other) noexcept : placement() { swap(other); }
  placement& operator=(placement other) noexcept {
    swap(other);
    return *this;
  }
  placement(const placement&) = delete;
  ~placement() {
    if (raw_.release_owner != nullptr) raw_.release_owner(raw_.owner);
    drop_event();
  }

  /// An event that somebody else destroys.
  placement& event(void* event) noexcept {
    drop_event();
    raw_.event = event;
    return *this;
  }
  /// An event that `destroy(event)` destroys, once, on any thread; what it throws goes no further.
  template <class Destroy>
  placement& event(void* event, Destroy destroy) {
    auto* boxed = event == nullptr ? nullptr : new (std::nothrow) Destroy(std::move(destroy));
    if (event != nullptr && boxed == nullptr) {
      has_memory_ = false;
      return *this;
    }
    drop_event();
    if (boxed == nullptr) return *this;
    raw_.event = event;
    raw_.event_ctx = boxed;
    raw_.destroy_event = [](void* context, void* handle) {
      const std::unique_ptr<Destroy> call(static_cast<Destroy*>(context));
      detail::contained([&] { (*call)(handle); });
    };
    return *this;
  }
  /// Instead of an event: the queue to record one on.
  placement& record_on(const BowstringSync& sync) noexcept {
    raw_.record_on = sync;
    return *this;
  }
  /// What keeps all the memory alive.
  placement& owner(std::shared_ptr<const void> owner) noexcept {
    void* context = nullptr;
    void (*release)(void*) = nullptr;
    if (!detail::box(std::move(owner), &context, &release)) {
      has_memory_ = false;
      return *this;
    }
    std::swap(raw_.owner, context);
    std::swap(raw_.release_owner, release);
    if (release != nullptr) release(context);
    return *this;
  }

  /// For functions that take a placement or write one.
  BowstringPlacement* get() noexcept { return &raw_; }
  const BowstringPlacement* get() const noexcept { return &raw_; }
  /// False when there was no memory for an event or an owner, which is then still the caller's.
  bool has_memory() const noexcept { return has_memory_; }

 private:
  void swap(placement& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(has_memory_, other.has_memory_);
  }
  void drop_event() noexcept {
    if (raw_.destroy_event != nullptr) raw_.destroy_event(raw_.event_ctx, raw_.event);
    raw_.event = raw_.event_ctx = nullptr;
    raw_.destroy_event = nullptr;
  }

  BowstringPlacement raw_{};
  bool has_memory_ = true;
};

/// What an array is put together of: numbers of nodes, memory with its owners, and where that is. Each owner that is still
/// here is let go with it.
struct parts {
  std::vector<BowstringNode> nodes;
  std::vector<BowstringOwnedBuffer> buffers;
  bowstring::placement placement;

  parts() noexcept = default;
  parts(parts&& other) noexcept = default;
  parts& operator=(parts&& other) noexcept {
    if (this != &other) {
      clear();
      nodes = std::move(other.nodes);
      buffers = std::exchange(other.buffers, {});
      placement = std::move(other.placement);
    }
    return *this;
  }
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;
  ~parts() { clear(); }

  /// Lets every owner go.
  void clear() noexcept {
    for (auto& memory : buffers) {
      if (memory.release_owner != nullptr) memory.release_owner(memory.owner);
    }
    buffers.clear();
    nodes.clear();
    placement = {};
  }
};

}  // namespace bowstring

#endif  // BOWSTRING_OWNERS_HPP
