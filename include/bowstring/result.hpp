/* What a call in C++ gives back: a value or the C record of why there is none, as a result or as an exception. A part of
 * bowstring.hpp. */
#ifndef BOWSTRING_RESULT_HPP
#define BOWSTRING_RESULT_HPP

#include <bowstring.h>

#include <atomic>
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

/// 1 where the forms that throw are there. They are not with -fno-exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define BOWSTRING_HPP_EXCEPTIONS 1
#else
#define BOWSTRING_HPP_EXCEPTIONS 0
#endif

namespace bowstring {

#if BOWSTRING_HPP_EXCEPTIONS

/// What went wrong in a call, as an exception: the C record, and its text as what().
class error : public std::runtime_error {
 public:
  explicit error(const BowstringError& record, std::exception_ptr cause = nullptr)
      : std::runtime_error(describe(record)), record_(record), cause_(std::move(cause)) {}

  /// The record as the C function wrote it.
  const BowstringError& record() const noexcept { return record_; }
  /// One of BOWSTRING_INVALID_ARGUMENT to BOWSTRING_INTERNAL.
  BowstringStatus status() const noexcept { return record_.status; }
  /// The rule that the data breaks, such as "A3"; "" when it is not about a rule.
  std::string_view rule() const noexcept { return bowstring_rule_name(record_.rule); }
  /// The node of the tree, such as "$.a.item"; "" when it is not about a node.
  std::string_view path() const noexcept { return record_.path; }
  /// What a callback threw, for std::rethrow_exception; NULL when none did.
  const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  static std::string describe(const BowstringError& record) {
    std::string text = bowstring_status_name(record.status);
    if (record.path[0] != '\0') text.append(" at ").append(record.path);
    return text.append(": ").append(record.message);
  }

  BowstringError record_;
  std::exception_ptr cause_;
};

#endif

/// A value, or the record of why there is none.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(const BowstringError& record) : state_(std::in_place_index<1>, record) {}

  explicit operator bool() const noexcept { return has_value(); }
  bool has_value() const noexcept { return state_.index() == 0; }
  /// The status; BOWSTRING_OK with a value.
  BowstringStatus status() const noexcept { return record().status; }
  /// Why there is no value; an empty record with one.
  const BowstringError& record() const noexcept {
    static const BowstringError none{};
    const auto* record = std::get_if<1>(&state_);
    return record != nullptr ? *record : none;
  }

  /// The value, which has to be there.
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

#if BOWSTRING_HPP_EXCEPTIONS
  /// The value; throws bowstring::error when there is none.
  T value() && {
    if (!has_value()) throw error(record());
    return *std::move(*this);
  }
  T& value() & {
    if (!has_value()) throw error(record());
    return **this;
  }
#endif

 private:
  std::variant<T, BowstringError> state_;
};

/// That a call did what it says, or the record of why it did not.
template <>
class [[nodiscard]] result<void> {
 public:
  result() noexcept : record_{} {}
  result(const BowstringError& record) noexcept : record_(record) {}

  explicit operator bool() const noexcept { return has_value(); }
  bool has_value() const noexcept { return record_.status == BOWSTRING_OK; }
  BowstringStatus status() const noexcept { return record_.status; }
  const BowstringError& record() const noexcept { return record_; }
#if BOWSTRING_HPP_EXCEPTIONS
  /// Throws bowstring::error unless the call did what it says.
  void value() const {
    if (!has_value()) throw error(record_);
  }
#endif

 private:
  BowstringError record_;
};

namespace detail {

/// Adds to a record's message, and cuts what is too long between characters.
inline void append(BowstringError& record, std::string_view text) noexcept {
  std::size_t end = 0;
  while (record.message[end] != '\0') end++;
  const std::size_t room = sizeof(record.message) - 1 - end;
  std::size_t n = text.size();
  if (n > room) {
    n = room;
    while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) n--;
  }
  text.copy(record.message + end, n);
  record.message[end + n] = '\0';
}

/// A record for what only C++ can tell.
inline BowstringError failure(BowstringStatus status, std::string_view message) noexcept {
  BowstringError record{};
  record.status = status;
  record.row = record.batch = -1;
  append(record, message);
  return record;
}

inline BowstringError no_memory() noexcept {
  return failure(BOWSTRING_OUT_OF_MEMORY, "expected memory for an object of C++, found none");
}

/// Runs what makes strings and vectors: that there is no memory for them is a failure like any other.
template <class Call>
auto allocating(Call&& call) -> decltype(call()) {
#if BOWSTRING_HPP_EXCEPTIONS
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {
    return no_memory();
  }
#else
  return call();
#endif
}

/// A result of a call that writes a value.
template <class T, class Call>
result<T> capture(Call&& call) {
  T value{};
  BowstringError record;
  if (call(value, &record) != BOWSTRING_OK) return record;
  return value;
}

/// Text from a capacity call: asked for its size first.
template <class Call>
result<std::string> text(Call&& call) {
  return allocating([&]() -> result<std::string> {
    std::size_t needed = 0;
    BowstringError record;
    if (call(nullptr, std::size_t{0}, &needed, &record) != BOWSTRING_OK) return record;
    std::string out(needed, '\0');
    if (call(out.data(), out.size(), &needed, &record) != BOWSTRING_OK) return record;
    out.resize(needed - 1);
    return out;
  });
}

#if BOWSTRING_HPP_EXCEPTIONS
using handler = void (*)(const std::exception_ptr&) noexcept;
/// Who hears of exceptions that nobody can be given.
inline std::atomic<handler> unreported{nullptr};
#endif

/// Runs a callback that has nobody to report to.
template <class Call>
void contained(Call&& call) noexcept {
#if BOWSTRING_HPP_EXCEPTIONS
  try {
    call();
  } catch (...) {
    if (const handler tell = unreported.load()) tell(std::current_exception());
  }
#else
  call();
#endif
}

#if BOWSTRING_HPP_EXCEPTIONS
/// Adds the text of what a callback threw to a record.
inline void describe(const std::exception_ptr& thrown, BowstringError& record) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    append(record, "; it threw: ");
    append(record, e.what());
  } catch (...) {
    append(record, "; it threw what is not a std::exception");
  }
}
#endif

/// A reader as C calls it.
template <class Read>
class reader {
 public:
  explicit reader(Read& read) noexcept : read_(std::addressof(read)) {}

  static int call(void* self, void* dst, const void* src, std::size_t n) noexcept {
    auto& own = *static_cast<reader*>(self);
#if BOWSTRING_HPP_EXCEPTIONS
    try {
      return own.run(dst, src, n);
    } catch (...) {
      own.thrown_ = std::current_exception();
      return -1;
    }
#else
    return own.run(dst, src, n);
#endif
  }

  /// What was thrown, after its text was added to the record.
  std::exception_ptr report(BowstringError& record) const {
#if BOWSTRING_HPP_EXCEPTIONS
    if (thrown_) describe(thrown_, record);
#else
    static_cast<void>(record);
#endif
    return thrown_;
  }

 private:
  int run(void* dst, const void* src, std::size_t n) {
    if constexpr (std::is_void_v<decltype((*read_)(dst, src, n))>) {
      (*read_)(dst, src, n);
      return 0;
    } else {
      return (*read_)(dst, src, n);
    }
  }

  Read* read_;
  std::exception_ptr thrown_;
};

/// A shared pointer as C passes owners; nothing for a NULL one. False when there is no memory for it.
inline bool box(std::shared_ptr<const void> owner, void** context, void (**release)(void*)) noexcept {
  using shared = std::shared_ptr<const void>;
  *context = nullptr;
  *release = nullptr;
  if (!owner) return true;
  *context = new (std::nothrow) shared(std::move(owner));
  if (*context == nullptr) return false;
  *release = [](void* boxed) { delete static_cast<shared*>(boxed); };
  return true;
}

}  // namespace detail

#if BOWSTRING_HPP_EXCEPTIONS
/// Sets who is told of exceptions that leave a callback with nobody to report to: what lets an owner or an event go. They
/// go no further in any case; NULL, as at first, drops them.
inline void set_unreported_handler(void (*handler)(const std::exception_ptr&) noexcept) noexcept {
  detail::unreported.store(handler);
}
#endif

/// An owner that runs `call` once, when it is let go; nothing that it throws goes further.
template <class Call>
std::shared_ptr<const void> on_release(Call call) {
  class guard {
   public:
    explicit guard(Call&& armed) : call_(std::move(armed)) {}
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { detail::contained(call_); }

   private:
    Call call_;
  };
  return std::make_shared<guard>(std::move(call));
}

// ---- the library --------------------------------------------------------------------------------------------------

/// The version of the library that is loaded.
inline std::string_view version() noexcept { return bowstring_version(); }

/// How much of what the library made is alive.
inline BowstringLiveCounts live_counts() noexcept {
  BowstringLiveCounts counts{};
  counts.struct_size = sizeof(counts);
  bowstring_live_counts(&counts);
  return counts;
}

/// Sets what is called around every foreign callback, see bowstring_callback_scope_set. The functions must not throw.
inline result<void> try_set_callback_scope(int (*enter)() noexcept, void (*leave)(int) noexcept,
                                           int (*alive)() noexcept = nullptr) noexcept {
  BowstringCallbackScope scope{};
  scope.struct_size = sizeof(scope);
  scope.alive = alive;
  scope.enter = enter;
  scope.leave = leave;
  BowstringError record;
  if (bowstring_callback_scope_set(&scope, &record) != BOWSTRING_OK) return record;
  return {};
}

#if BOWSTRING_HPP_EXCEPTIONS
inline void set_callback_scope(int (*enter)() noexcept, void (*leave)(int) noexcept,
                               int (*alive)() noexcept = nullptr) {
  try_set_callback_scope(enter, leave, alive).value();
}
#endif

}  // namespace bowstring

#endif  // BOWSTRING_RESULT_HPP
