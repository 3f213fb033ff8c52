#include "ownership.h"

#include "consumers.h"
#include "process.h"

#include <cudf/interop.hpp>

namespace {

using cudf::interop::arrow_column;

Node sample() { return fill({"+s", {{"l", {}, {}, {}}, {"u", {}, {}, {}}}, {}, {}}, 4, true); }

std::string releases(const Exported& given) {
  return std::to_string(given.array_releases()) + " array releases, " + std::to_string(given.schema_releases()) +
         " schema releases";
}

std::string imported() {
  Exported given(sample());
  given.array.device_type = ARROW_DEVICE_CUDA;
  { arrow_column column(std::move(given.schema), std::move(given.array)); }
  return releases(given);
}

std::string refused() {
  Exported given(fill({"e", {}, {}, {}}, 4, true));
  given.array.device_type = ARROW_DEVICE_CUDA;
  try {
    arrow_column column(std::move(given.schema), std::move(given.array));
    return "accepted";
  } catch (const std::exception&) {
    return releases(given) + ", the caller's " + (given.array.array.release == nullptr ? "is gone" : "is left");
  }
}

std::string exported() {
  Exported given(sample());
  given.array.device_type = ARROW_DEVICE_CUDA;
  ArrowDeviceArray out{};
  {
    arrow_column column(std::move(given.schema), std::move(given.array));
    column.to_arrow(&out, ARROW_DEVICE_CUDA);
  }
  const std::string before = std::to_string(given.array_releases());
  out.array.release(&out.array);
  return before + " array releases, then " + std::to_string(given.array_releases());
}

// The child is taken out of the exported struct, as the C data interface allows, and the parent released.
std::string child_moved_out() {
  Exported given(sample());
  given.array.device_type = ARROW_DEVICE_CUDA;
  arrow_column column(std::move(given.schema), std::move(given.array));
  ArrowDeviceArray out{};
  column.to_arrow(&out, ARROW_DEVICE_CUDA);
  ArrowArray child = *out.array.children[0];
  out.array.children[0]->release = nullptr;
  out.array.release(&out.array);
  child.release(&child);
  return "released";
}

}  // namespace

std::vector<Owned> ownership() {
  return {
      {"imported and dropped", in_a_child(imported), "1 array releases, 0 schema releases"},
      {"refused", in_a_child(refused), "1 array releases, 0 schema releases, the caller's is gone"},
      {"exported again and dropped", in_a_child(exported), "0 array releases, then 1"},
      {"exported again, a child moved out", in_a_child(child_moved_out), "signal 11"},
  };
}
