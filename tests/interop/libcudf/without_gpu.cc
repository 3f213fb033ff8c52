// Four functions of libcudf, which the executable replaces. Making a column without nulls and copying to it then need no
// driver; what was made is shown before the wait at the end. All else is libcudf's own, and every kernel ends the call.
#include "without_gpu.h"

#include <cudf/column/column_factories.hpp>
#include <cudf/utilities/error.hpp>
#include <cudf/utilities/traits.hpp>

#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

#define REPLACES __attribute__((visibility("default")))
#define THROW_CUDA_ERROR "_ZN4cudf6detail16throw_cuda_errorE9cudaErrorPKcj"
#define SET_NULL_MASK "_ZN4cudf6column13set_null_maskEON3rmm10_RMM_26_1013device_bufferEi"

std::function<void(const std::vector<const cudf::column*>&)> on_copied;

namespace {

// Each fixed-width column of the host gets its bitmap, or none, when it is complete.
std::vector<const cudf::column*> complete;

}  // namespace

void forget_columns() { complete.clear(); }

// They have their names from here because the headers have one of them inline, and one is a member.
REPLACES void set_null_mask(cudf::column* column, rmm::device_buffer&& mask, cudf::size_type nulls) __asm__(SET_NULL_MASK);
REPLACES void throw_cuda_error(cudaError_t error, const char* file, unsigned line) __asm__(THROW_CUDA_ERROR);

void set_null_mask(cudf::column* column, rmm::device_buffer&& mask, cudf::size_type nulls) {
  complete.push_back(column);
  reinterpret_cast<decltype(&set_null_mask)>(dlsym(RTLD_NEXT, SET_NULL_MASK))(column, std::move(mask), nulls);
}

void throw_cuda_error(cudaError_t error, const char* file, unsigned line) {
  const std::string name = file;
  const std::string place = name.substr(name.rfind('/') + 1) + ":" + std::to_string(line);
  if (error != cudaErrorInsufficientDriver) throw std::runtime_error("CUDA error " + std::to_string(error));
  if (place.starts_with("cuda.hpp:") && on_copied) on_copied(complete);
  throw std::runtime_error(needs_gpu + place);
}

namespace cudf {

REPLACES std::unique_ptr<column> make_fixed_width_column(data_type type, size_type size, mask_state, cuda::stream_ref stream,
                                                         rmm::device_async_resource_ref memory) {
  CUDF_EXPECTS(size >= 0, "Column size cannot be negative.");
  rmm::device_buffer values(static_cast<std::size_t>(size) * size_of(type), stream, memory);
  return std::make_unique<column>(type, size, std::move(values), rmm::device_buffer{0, stream, memory}, 0);
}

namespace detail {

REPLACES cudaError_t memcpy_async(void* to, const void* from, std::size_t n, cuda::stream_ref) {
  if (n == 0) return cudaSuccess;
  // What CUDA does with NULL.
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  std::memcpy(to, from, n);
  return cudaSuccess;
}

}  // namespace detail
}  // namespace cudf
