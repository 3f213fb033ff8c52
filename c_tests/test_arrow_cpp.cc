// Arrow C++ hands every type to bowstring and takes it back: device arrays and record batches, whole, sliced and nested;
// children outlive their parents; its memory pool ends where it began.
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/json/from_string.h>

#include <bowstring.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

long checks = 0;

#define CHECK(condition) check(!!(condition), __FILE__, __LINE__, #condition)

std::string about;

void check(bool holds, const char* file, int line, const char* text) {
  checks++;
  if (holds) return;
  std::fprintf(stderr, "%s:%d: %s: expected %s\n", file, line, about.c_str(), text);
  std::exit(1);
}

template <class T>
T value(arrow::Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s\n", about.c_str(), result.status().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).ValueUnsafe();
}

void ok(const arrow::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", about.c_str(), status.ToString().c_str());
  std::exit(1);
}

using arrays = std::vector<std::shared_ptr<arrow::Array>>;

struct sample {
  std::shared_ptr<arrow::DataType> type;
  const char* json;
};

// Five values of every type that Arrow C++ has, nulls among them where the type has nulls of its own.
std::vector<sample> samples() {
  using namespace arrow;
  const char *numbers = "[1, null, 3, 4, 5]", *texts = R"(["a", null, "", "a text of more than twelve bytes", "b"])";
  const char *decimals = R"(["1.23", null, "-4.56", "0.00", "9.99"])", *lists = "[[1, 2], null, [], [3], [4, 5, 6]]";
  const char* structs = R"([{"a": 1, "b": "x"}, null, {"a": null, "b": "y"}, {"a": 4, "b": null}, {"a": 5, "b": "z"}])";
  const auto members = struct_({field("a", int32()), field("b", utf8())});
  const FieldVector union_fields{field("i", int32()), field("s", utf8())};
  const char* unions = R"([[5, 1], [7, "two"], [5, null], [7, "four"], [5, 5]])";
  return {
      {null(), "[null, null, null, null, null]"},
      {boolean(), "[true, null, false, true, true]"},
      {int8(), numbers}, {uint8(), numbers}, {int16(), numbers}, {uint16(), numbers},
      {int32(), numbers}, {uint32(), numbers}, {int64(), numbers}, {uint64(), numbers},
      {float16(), numbers}, {float32(), numbers}, {float64(), numbers},
      {decimal32(5, 2), decimals}, {decimal64(12, 2), decimals}, {decimal128(30, 2), decimals},
      {decimal256(60, 2), decimals},
      {date32(), numbers}, {date64(), "[86400000, null, 0, 172800000, 86400000]"},
      {time32(TimeUnit::SECOND), numbers}, {time32(TimeUnit::MILLI), numbers},
      {time64(TimeUnit::MICRO), numbers}, {time64(TimeUnit::NANO), numbers},
      {timestamp(TimeUnit::SECOND), numbers}, {timestamp(TimeUnit::NANO, "Europe/Zurich"), numbers},
      {duration(TimeUnit::MILLI), numbers},
      {month_interval(), numbers}, {day_time_interval(), "[[1, 2], null, [3, 4], [5, 6], [7, 8]]"},
      {month_day_nano_interval(), "[[1, 2, 3], null, [4, 5, 6], [7, 8, 9], [1, 1, 1]]"},
      {binary(), texts}, {large_binary(), texts}, {binary_view(), texts},
      {utf8(), texts}, {large_utf8(), texts}, {utf8_view(), texts},
      {fixed_size_binary(3), R"(["abc", null, "def", "ghi", "jkl"])"},
      {list(int32()), lists}, {large_list(int32()), lists},
      {list_view(int32()), lists}, {large_list_view(int32()), lists},
      {fixed_size_list(int32(), 2), "[[1, 2], null, [3, null], [5, 6], [7, 8]]"},
      {members, structs},
      {list(members), R"([[{"a": 1, "b": "x"}], null, [], [{"a": 2, "b": null}, null], [{"a": 3, "b": "y"}]])"},
      {struct_({field("l", list(utf8_view())), field("f", fixed_size_list(utf8(), 2))}),
       R"([{"l": ["a"], "f": ["b", "c"]}, {"l": null, "f": null}, {"l": [], "f": ["d", null]}, null, {"l": ["e", "f"], "f": ["g", "h"]}])"},
      {map(utf8(), int32()), R"([[["k", 1]], null, [], [["l", 2], ["m", null]], [["n", 3]]])"},
      {sparse_union(union_fields, {5, 7}), unions}, {dense_union(union_fields, {5, 7}), unions},
      {dictionary(int8(), utf8()), texts}, {dictionary(uint32(), large_binary()), texts},
      {list(dictionary(int16(), utf8())), R"([["a"], null, [], ["b", "a"], [null]])"},
  };
}

arrays every_array() {
  arrays made;
  for (const auto& [type, json] : samples()) {
    about = type->ToString();
    made.push_back(value(arrow::json::ArrayFromJSONString(type, json)));
  }
  about = "run_end_encoded";
  auto run_ends = value(arrow::json::ArrayFromJSONString(arrow::int32(), "[2, 3, 5]"));
  auto values = value(arrow::json::ArrayFromJSONString(arrow::utf8(), R"(["a", null, "b"])"));
  made.push_back(value(arrow::RunEndEncodedArray::Make(5, run_ends, values)));
  return made;
}

// bowstring's array of an Arrow array, which it alone keeps alive.
bowstring::array take(const std::shared_ptr<arrow::Array>& array) {
  bowstring::unique_device_array raw;
  bowstring::unique_schema schema;
  ok(arrow::ExportDeviceArray(*array, nullptr, raw.put(), schema.put()));
  return bowstring::array::import(std::move(raw), std::move(schema));
}

std::shared_ptr<arrow::Array> give(const bowstring::array& array) {
  auto raw = array.export_device();
  auto schema = array.type().export_schema();
  return value(arrow::ImportDeviceArray(raw.get(), schema.get()));
}

void same(const arrow::Array& found, const arrow::Array& expected) {
  ok(found.ValidateFull());
  CHECK(found.type()->Equals(*expected.type()));
  CHECK(found.Equals(expected));
  CHECK(found.null_count() == expected.null_count());
}

// Where the buffers of an array and its children are; empty ones may be anywhere.
void same_addresses(const arrow::ArrayData& found, const arrow::ArrayData& expected, long& compared) {
  CHECK(found.buffers.size() == expected.buffers.size());
  for (std::size_t i = 0; i < expected.buffers.size(); i++) {
    const auto &a = found.buffers[i], &b = expected.buffers[i];
    if (a == nullptr || b == nullptr || b->size() == 0) continue;
    CHECK(a->address() == b->address());
    compared++;
  }
  for (std::size_t i = 0; i < expected.child_data.size(); i++)
    same_addresses(*found.child_data[i], *expected.child_data[i], compared);
  if (expected.dictionary != nullptr) same_addresses(*found.dictionary, *expected.dictionary, compared);
}

long arrays_go_there_and_back() {
  long compared = 0;
  for (const auto& array : every_array()) {
    for (const auto& shown : {array, array->Slice(1, 3), array->Slice(2, 0), array->Slice(4)}) {
      about = array->type()->ToString() + " from " + std::to_string(shown->offset()) + ", " +
              std::to_string(shown->length()) + " values";
      const auto handle = take(shown);
      const auto back = give(handle);
      same(*back, *shown);
      if (shown == array) same_addresses(*back->data(), *array->data(), compared);
      same(*give(take(back)), *shown);
      if (shown->length() < 3) continue;
      // A window of ours is a slice of theirs.
      same(*give(handle.slice(1, 2)), *shown->Slice(1, 2));
    }
  }
  return compared;
}

long batches_go_there_and_back() {
  arrow::FieldVector fields;
  const auto columns = every_array();
  for (const auto& column : columns) fields.push_back(arrow::field(column->type()->ToString(), column->type()));
  const auto batch = arrow::RecordBatch::Make(arrow::schema(fields), 5, columns);
  long batches = 0;
  for (const auto& shown : {batch, batch->Slice(1, 3), batch->Slice(0, 0), batch->Slice(3)}) {
    about = "a batch of " + std::to_string(shown->num_rows()) + " rows";
    bowstring::unique_device_array raw;
    bowstring::unique_schema schema;
    ok(arrow::ExportDeviceRecordBatch(*shown, nullptr, raw.put(), schema.put()));
    const auto handle = bowstring::array::import(std::move(raw), std::move(schema));
    // Arrow C++ refuses an offset or nulls at the root, and names that are NULL: none of it is emitted.
    for (const auto& window : {handle, handle.slice(0, handle.length())}) {
      auto out = window.export_device();
      auto out_schema = window.type().export_schema();
      const auto back = value(arrow::ImportDeviceRecordBatch(out.get(), out_schema.get()));
      ok(back->ValidateFull());
      CHECK(back->Equals(*shown));
      batches++;
    }
    if (shown->num_rows() < 3) continue;
    auto out = handle.slice(1, 2).export_device();
    auto out_schema = handle.type().export_schema();
    CHECK(out->array.offset == 0);
    const auto back = value(arrow::ImportDeviceRecordBatch(out.get(), out_schema.get()));
    ok(back->ValidateFull());
    CHECK(back->Equals(*shown->Slice(1, 2)));
    batches++;
  }
  return batches;
}

void children_outlive_their_parents() {
  about = "children";
  const auto expected = value(arrow::json::ArrayFromJSONString(
      arrow::struct_({arrow::field("a", arrow::list(arrow::utf8())), arrow::field("b", arrow::int64())}),
      R"([{"a": ["x", "y"], "b": 1}, {"a": null, "b": 2}, {"a": ["z"], "b": null}])"));
  const auto parts = static_cast<const arrow::StructArray&>(*expected).fields();
  bowstring::array first;
  bowstring::buffer numbers;
  {
    const auto whole = take(value(arrow::Concatenate({expected})));
    first = whole.child(0);
    numbers = whole.child(1).buffer(1);
  }
  same(*give(first), *parts[0]);
  CHECK(static_cast<const std::int64_t*>(numbers.data())[1] == 2);

  // A child that Arrow C++ took out of our struct lives on when the rest is gone.
  std::shared_ptr<arrow::Array> second;
  {
    const auto whole = give(take(value(arrow::Concatenate({expected}))));
    second = static_cast<const arrow::StructArray&>(*whole).field(1);
  }
  same(*second, *parts[1]);
}

}  // namespace

int main() {
  const auto* pool = arrow::default_memory_pool();
  const auto before = pool->bytes_allocated();
  const long addresses = arrays_go_there_and_back();
  const long batches = batches_go_there_and_back();
  children_outlive_their_parents();
  about = "the end";
  CHECK(pool->bytes_allocated() == before);
  BowstringLiveCounts live{};
  live.struct_size = sizeof(live);
  bowstring_live_counts(&live);
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  // Fewer than these figures would mean that something was not looked at.
  CHECK(addresses >= 100 && batches >= 10);
  std::printf("%ld addresses, %ld batches, %ld checks\n", addresses, batches, checks);
  return 0;
}
