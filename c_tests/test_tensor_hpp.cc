// Tensors from C++: arrays and buffers there and back, who owns what after a failure, and read-only memory.
#include <arrow/c/dlpack_abi.h>

#include <bowstring/tensors.hpp>

#include "hpp_samples.h"

namespace {

using numbers = std::vector<std::int32_t>;

bowstring::array array_of(const char* type, std::int64_t rows, std::shared_ptr<numbers> values, bool in_lists = false) {
  bowstring::array_builder builder(type);
  if (in_lists) builder.node(rows).no_buffer();
  const auto n = static_cast<std::int64_t>(values->size());
  builder.node(n).no_buffer().buffer(std::move(values));
  return bowstring::array::import(builder.finish(), builder.type());
}

void an_array_there_and_back() {
  auto memory = std::make_shared<numbers>(numbers{1, 2, 3, 4, 5, 6});
  auto lists = array_of("fixed_size_list<int32, 3>", 2, memory, true);
  auto tensor = bowstring::to_tensor(lists);
  lists = {};
  CHECK(memory.use_count() == 2);
  CHECK_PTR(tensor->dl_tensor.data, memory->data());
  CHECK(tensor->dl_tensor.ndim == 2 && tensor->dl_tensor.shape[1] == 3 && tensor->dl_tensor.strides[0] == 3);
  auto again = bowstring::from_tensor(std::move(tensor));
  CHECK(!tensor && again.length() == 2);
  CHECK(again.type().to_string() == "fixed_size_list<int32, 3>");
  CHECK_PTR(again.buffers()[2].data, memory->data());
  CHECK(memory.use_count() == 2);
  again = {};
  CHECK(memory.use_count() == 1);
}

void what_is_refused_stays_its_owners() {
  auto memory = std::make_shared<numbers>(numbers{1, 2, 3});
  auto tensor = bowstring::to_tensor(array_of("int32", 3, memory));
  auto* const raw = tensor.get();
  const auto wanted = bowstring::type::parse("int64");
  const auto refused = bowstring::try_from_tensor(tensor, wanted);
  CHECK(!refused && refused.status() == BOWSTRING_UNSUPPORTED && tensor.get() == raw);
  const auto old = bowstring::try_to_legacy(tensor);
  CHECK(!old && old.status() == BOWSTRING_UNSUPPORTED && tensor.get() == raw);
  CHECK_HAS(old.record().message, "DROP_READ_ONLY");
  CHECK(memory.use_count() == 2);
  // What is given by value is let go.
  throws(BOWSTRING_UNSUPPORTED, [&] { bowstring::from_tensor(std::move(tensor), wanted); });
  CHECK(memory.use_count() == 1);
}

void before_versions_and_back() {
  auto memory = std::make_shared<numbers>(numbers{1, 2, 3});
  auto tensor = bowstring::to_tensor(array_of("int32", 3, memory));
  auto old = bowstring::to_legacy(std::move(tensor), BOWSTRING_TENSOR_DROP_READ_ONLY);
  CHECK_PTR(old->dl_tensor.data, memory->data());
  auto made = bowstring::try_from_legacy(old);
  CHECK(made && !old);
  CHECK_INT((*made)->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  const auto dates = bowstring::from_tensor(*std::move(made), bowstring::type::parse("date32"));
  CHECK(dates.type().to_string() == "date32" && dates.length() == 3);
  bowstring::unique_legacy_tensor none;
  CHECK(bowstring::try_from_legacy(none).status() == BOWSTRING_INVALID_ARGUMENT);
  throws(BOWSTRING_UNSUPPORTED, [&] { static_cast<void>(bowstring::to_tensor(dates)); });
  CHECK(memory.use_count() == 2);
  CHECK(bowstring::to_tensor(dates, BOWSTRING_TENSOR_PHYSICAL)->dl_tensor.dtype.bits == 32);
}

void buffers_and_validity() {
  auto memory = std::make_shared<numbers>(numbers{1, 2, 3, 4});
  auto column = array_of("int32", 4, memory);
  const auto all = bowstring::validity_to_tensor(column);
  CHECK(!all.rows && all.bit_offset == 0);
  {
    const auto tensor = bowstring::to_tensor(column.buffer(1), BowstringDataType{kDLInt, 16, 1}, {4, 2});
    CHECK_PTR(tensor->dl_tensor.data, memory->data());
    CHECK(tensor->dl_tensor.shape[0] == 4 && tensor->dl_tensor.strides[0] == 2);
  }
  const auto larger = bowstring::try_to_tensor(column.buffer(1), BowstringDataType{kDLInt, 64, 1}, {3});
  CHECK(!larger && larger.status() == BOWSTRING_INVALID_ARGUMENT);
  const auto bits = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{0xB0, 0x01});
  bowstring::array_builder builder("int32");
  builder.node(4).buffer(bits).buffer(memory);
  const auto window = bowstring::array::import(builder.finish(), builder.type()).slice(3, 1);
  const auto one = bowstring::validity_to_tensor(window);
  CHECK(one.rows && one.bit_offset == 3);
  CHECK_PTR(one.rows->dl_tensor.data, bits->data());
  const auto unpacked = bowstring::validity_to_tensor(window, BOWSTRING_TENSOR_ALLOW_COPY);
  CHECK(unpacked.bit_offset == 0 && unpacked.rows->flags == DLPACK_FLAG_BITMASK_IS_COPIED);
  CHECK_INT(*static_cast<const std::uint8_t*>(unpacked.rows->dl_tensor.data), 0);
}

}  // namespace

int main() {
  an_array_there_and_back();
  what_is_refused_stays_its_owners();
  before_versions_and_back();
  buffers_and_validity();
  BowstringLiveCounts counts{};
  counts.struct_size = sizeof counts;
  bowstring_live_counts(&counts);
  CHECK(counts.tensors == 0 && counts.arrays == 0 && counts.buffers == 0 && counts.types == 0);
  return check_end(31);
}
