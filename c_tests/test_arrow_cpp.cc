// Arrow C++ hands every type to bowstring and takes it back: device arrays and record batches, whole, sliced and nested;
// children outlive their parents; its memory pool ends where it began.
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <bowstring.hpp>

#include "arrow_samples.h"

#include <cstring>

namespace {

// bowstring's array of an Arrow array, which it alone keeps alive.
bowstring::array take(const std::shared_ptr<arrow::Array>& array) {
  bowstring::unique_device_array raw;
  bowstring::unique_schema schema;
  ok(arrow::ExportDeviceArray(*array, nullptr, raw.put(), schema.put()));
  return bowstring::array::import(std::move(raw), std::move(schema));
}

long named = 0, at_zero = 0;

void names_are_there(const ArrowSchema& schema) {
  CHECK(schema.name != nullptr);
  named++;
  for (std::int64_t i = 0; i < schema.n_children; i++) names_are_there(*schema.children[i]);
  if (schema.dictionary != nullptr) names_are_there(*schema.dictionary);
}

// Arrow C++ refuses names that are NULL, and an offset or nulls at the root of a batch.
void is_strict(const ArrowDeviceArray& raw, const ArrowSchema& schema) {
  names_are_there(schema);
  if (std::strcmp(schema.format, "+s") != 0 || raw.array.null_count != 0) return;
  CHECK(raw.array.offset == 0);
  at_zero++;
}

std::shared_ptr<arrow::Array> give(const bowstring::array& array) {
  auto raw = array.export_device();
  auto schema = array.type().export_schema();
  is_strict(*raw.get(), *schema.get());
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
    for (const auto& window : {handle, handle.slice(0, handle.length())}) {
      auto out = window.export_device();
      auto out_schema = window.type().export_schema();
      is_strict(*out.get(), *out_schema.get());
      const auto back = value(arrow::ImportDeviceRecordBatch(out.get(), out_schema.get()));
      ok(back->ValidateFull());
      CHECK(back->Equals(*shown));
      batches++;
    }
    if (shown->num_rows() < 3) continue;
    auto out = handle.slice(1, 2).export_device();
    auto out_schema = handle.type().export_schema();
    is_strict(*out.get(), *out_schema.get());
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
  CHECK(named >= 900 && at_zero >= 10);
  std::printf("%ld addresses, %ld batches, %ld checks\n", addresses, batches, checks);
  return 0;
}
