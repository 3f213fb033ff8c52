/* DLPack tensors in C++: arrays and buffers shown as tensors, and tensors taken as arrays. A part of bowstring.hpp. */
#ifndef BOWSTRING_TENSORS_HPP
#define BOWSTRING_TENSORS_HPP

#include <bowstring/arrays.hpp>

namespace bowstring {

/// How to make or take a tensor: the C struct, with its size, any of BOWSTRING_TENSOR_*, and all else as by default.
struct tensor_options : BowstringTensorOptions {
  tensor_options(std::uint64_t wanted = 0) noexcept : BowstringTensorOptions{} {
    struct_size = sizeof(BowstringTensorOptions);
    flags = wanted;
  }
};

/// Which rows are valid: an empty tensor when all are.
struct validity_tensor {
  /// Bytes of bits, or a boolean a row with BOWSTRING_TENSOR_ALLOW_COPY.
  unique_tensor rows;
  /// The bit of the first row.
  std::int64_t bit_offset = 0;
};

namespace detail {

/// A call that takes a tensor when it succeeds, and otherwise leaves it where it is.
template <class Result, class Owner, class Call>
result<Result> taking(Owner& tensor, Call&& call) {
  auto* raw = tensor.get();
  auto made = capture<Result>([&](Result& out, BowstringError* e) { return call(&raw, out.put(), e); });
  if (made) static_cast<void>(tensor.release());
  return made;
}

}  // namespace detail

/// The values of an array, which share its memory.
inline result<unique_tensor> try_to_tensor(const array& values, const tensor_options& options = {}) {
  return detail::capture<unique_tensor>([&](unique_tensor& out, BowstringError* e) {
    return bowstring_array_to_tensor(values.get(), &options, out.put(), e);
  });
}

/// The memory of a buffer as elements of a type, row-major.
inline result<unique_tensor> try_to_tensor(const buffer& memory, BowstringDataType dtype,
                                           const std::vector<std::int64_t>& shape, const tensor_options& options = {}) {
  return detail::capture<unique_tensor>([&](unique_tensor& out, BowstringError* e) {
    return bowstring_buffer_to_tensor(memory.get(), dtype, static_cast<std::int32_t>(shape.size()), shape.data(),
                                      &options, out.put(), e);
  });
}

/// Which rows of an array are valid.
inline result<validity_tensor> try_validity_to_tensor(const array& values, const tensor_options& options = {}) {
  return detail::capture<validity_tensor>([&](validity_tensor& out, BowstringError* e) {
    return bowstring_array_validity_to_tensor(values.get(), &options, out.rows.put(), &out.bit_offset, e);
  });
}

/// The array of a tensor, which is taken on success; of the type that follows from it, or of `wanted`.
inline result<array> try_from_tensor(unique_tensor& tensor, const type& wanted = {},
                                     const tensor_options& options = {}) {
  return detail::taking<array>(tensor, [&](DLManagedTensorVersioned** raw, BowstringArray** out, BowstringError* e) {
    return bowstring_array_from_tensor(raw, wanted.get(), &options, out, e);
  });
}

/// A tensor of before 1.0, which is taken on success, as one with a version.
inline result<unique_tensor> try_from_legacy(unique_legacy_tensor& tensor) {
  using made = unique_tensor;
  return detail::taking<made>(tensor, [](DLManagedTensor** raw, DLManagedTensorVersioned** out, BowstringError* e) {
    return bowstring_tensor_from_legacy(raw, nullptr, out, e);
  });
}

/// A tensor, which is taken on success, as one of before 1.0.
inline result<unique_legacy_tensor> try_to_legacy(unique_tensor& tensor, const tensor_options& options = {}) {
  using made = unique_legacy_tensor;
  return detail::taking<made>(tensor, [&](DLManagedTensorVersioned** raw, DLManagedTensor** out, BowstringError* e) {
    return bowstring_tensor_to_legacy(raw, &options, out, e);
  });
}

#if BOWSTRING_HPP_EXCEPTIONS
inline unique_tensor to_tensor(const array& values, const tensor_options& options = {}) {
  return try_to_tensor(values, options).value();
}
inline unique_tensor to_tensor(const buffer& memory, BowstringDataType dtype, const std::vector<std::int64_t>& shape,
                               const tensor_options& options = {}) {
  return try_to_tensor(memory, dtype, shape, options).value();
}
inline validity_tensor validity_to_tensor(const array& values, const tensor_options& options = {}) {
  return try_validity_to_tensor(values, options).value();
}
inline array from_tensor(unique_tensor tensor, const type& wanted = {}, const tensor_options& options = {}) {
  return try_from_tensor(tensor, wanted, options).value();
}
inline unique_tensor from_legacy(unique_legacy_tensor tensor) { return try_from_legacy(tensor).value(); }
inline unique_legacy_tensor to_legacy(unique_tensor tensor, const tensor_options& options = {}) {
  return try_to_legacy(tensor, options).value();
}
#endif

}  // namespace bowstring

#endif  // BOWSTRING_TENSORS_HPP
