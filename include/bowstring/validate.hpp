/* The validator and repairs in C++: checks as results or exceptions, findings to any callable. A part of bowstring.hpp. */
#ifndef BOWSTRING_VALIDATE_HPP
#define BOWSTRING_VALIDATE_HPP

#include <bowstring/arrays.hpp>

namespace bowstring {

/// How to validate: the C struct, with its size set and everything else as by default.
struct validate_options : BowstringValidateOptions {
  validate_options() noexcept : BowstringValidateOptions{} { struct_size = sizeof(BowstringValidateOptions); }
};

namespace detail {

/// What hears of findings, as C calls it. `hear(severity, record)` returns nothing, or whether to go on; what it throws ends
/// the check.
template <class Hear>
class listener {
 public:
  explicit listener(Hear& hear) noexcept : hear_(std::addressof(hear)) {}

  static int call(void* self, std::int32_t severity, const BowstringError* finding) noexcept {
    auto& own = *static_cast<listener*>(self);
#if BOWSTRING_HPP_EXCEPTIONS
    try {
      return own.run(severity, *finding);
    } catch (...) {
      own.thrown_ = std::current_exception();
      return 1;
    }
#else
    return own.run(severity, *finding);
#endif
  }

  const std::exception_ptr& thrown() const noexcept { return thrown_; }

 private:
  int run(std::int32_t severity, const BowstringError& finding) {
    if constexpr (std::is_void_v<decltype((*hear_)(severity, finding))>) {
      (*hear_)(severity, finding);
      return 0;
    } else {
      return (*hear_)(severity, finding) ? 0 : 1;
    }
  }

  Hear* hear_;
  std::exception_ptr thrown_;
};

/// Runs a check without a listener.
template <class Check>
result<void> checked(Check&& check) {
  BowstringError record;
  if (check(&record) != BOWSTRING_OK) return record;
  return {};
}

/// Runs a check with one; what it threw becomes a CALLBACK_ERROR with its text.
template <class Hear, class Check>
result<void> checked(const validate_options& options, Hear& hear, std::exception_ptr& thrown, Check&& check) {
  listener<std::remove_reference_t<Hear>> context(hear);
  validate_options own = options;
  own.ctx = &context;
  own.on_finding = listener<std::remove_reference_t<Hear>>::call;
  auto made = checked([&](BowstringError* e) { return check(&own, e); });
#if BOWSTRING_HPP_EXCEPTIONS
  if ((thrown = context.thrown())) {
    auto record = failure(BOWSTRING_CALLBACK_ERROR, "expected on_finding to return, found that it threw");
    describe(thrown, record);
    return record;
  }
#else
  static_cast<void>(thrown);
#endif
  return made;
}

/// The C function for each thing that can be checked.
inline BowstringStatus check(const array& what, const BowstringValidateOptions* options, BowstringError* e) {
  return bowstring_array_validate(what.get(), options, e);
}
inline BowstringStatus check(const ArrowSchema* what, const BowstringValidateOptions* options, BowstringError* e) {
  return bowstring_schema_validate(what, options, e);
}
inline BowstringStatus check(const DLManagedTensorVersioned* what, const BowstringValidateOptions* options,
                             BowstringError* e) {
  return bowstring_tensor_validate(what, options, e);
}
inline BowstringStatus check(const DLManagedTensor* what, const BowstringValidateOptions* options, BowstringError* e) {
  return bowstring_legacy_tensor_validate(what, options, e);
}
inline BowstringStatus check(const ArrowDeviceArrayStream* what, const BowstringValidateOptions* options,
                             BowstringError* e) {
  return bowstring_device_stream_validate(what, options, e);
}
inline BowstringStatus check(const ArrowArrayStream* what, const BowstringValidateOptions* options, BowstringError* e) {
  return bowstring_host_stream_validate(what, options, e);
}

/// A raw array and its type.
template <class Raw>
struct typed {
  const Raw* raw;
  const BowstringType* type;
};
inline BowstringStatus check(const typed<ArrowDeviceArray>& what, const BowstringValidateOptions* options,
                             BowstringError* e) {
  return bowstring_device_array_validate(what.raw, what.type, options, e);
}
inline BowstringStatus check(const typed<ArrowArray>& what, const BowstringValidateOptions* options,
                             BowstringError* e) {
  return bowstring_host_array_validate(what.raw, what.type, options, e);
}

}  // namespace detail

/// A raw array that is not imported, with its type, for try_validate and validate. Both are borrowed.
inline detail::typed<ArrowDeviceArray> of_type(const ArrowDeviceArray* raw, const type& known) noexcept {
  return {raw, known.get()};
}
inline detail::typed<ArrowArray> of_type(const ArrowArray* raw, const type& known) noexcept {
  return {raw, known.get()};
}

/// Checks an array, a raw schema, stream or tensor, or a raw array of a type; the first error is the result.
template <class What>
result<void> try_validate(const What& what, const validate_options& options = {}) {
  return detail::checked([&](BowstringError* e) { return detail::check(what, &options, e); });
}

/// The same, and tells `hear(severity, record)` of every finding. It returns nothing, or whether to go on; what it throws
/// becomes a CALLBACK_ERROR with its text.
template <class What, class Hear>
result<void> try_validate(const What& what, const validate_options& options, Hear&& hear) {
  std::exception_ptr thrown;
  return detail::checked(options, hear, thrown, [&](const BowstringValidateOptions* own, BowstringError* e) {
    return detail::check(what, own, e);
  });
}

/// The same array as a named consumer takes it; `flags` are BOWSTRING_CONFORM_*.
inline result<array> try_conform(const array& what, std::int32_t profile, std::uint32_t flags = 0,
                                 const BowstringSync* sync = nullptr) {
  return detail::capture<array>([&](array& out, BowstringError* e) {
    return bowstring_array_conform(what.get(), profile, sync, flags, out.put(), e);
  });
}

#if BOWSTRING_HPP_EXCEPTIONS
template <class What>
void validate(const What& what, const validate_options& options = {}) {
  try_validate(what, options).value();
}

/// What `hear` throws is the error's cause().
template <class What, class Hear>
void validate(const What& what, const validate_options& options, Hear&& hear) {
  std::exception_ptr thrown;
  const auto done = detail::checked(options, hear, thrown, [&](const BowstringValidateOptions* own, BowstringError* e) {
    return detail::check(what, own, e);
  });
  if (!done) throw error(done.record(), std::move(thrown));
}

inline array conform(const array& what, std::int32_t profile, std::uint32_t flags = 0,
                     const BowstringSync* sync = nullptr) {
  return try_conform(what, profile, flags, sync).value();
}
#endif

}  // namespace bowstring

#endif  // BOWSTRING_VALIDATE_HPP
