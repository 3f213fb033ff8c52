// What Arrow C++ does with our arrays when their memory is not the CPU's: which calls touch nothing, which copy by the
// device's own means, and which end the process, each tried on memory that may not be touched.
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>

#include <bowstring.hpp>

#include "arrow_samples.h"
#include "off_cpu.h"

#include <functional>

namespace {

using batch = std::shared_ptr<arrow::RecordBatch>;
using array = std::shared_ptr<arrow::Array>;

enum class counts { KNOWN, UNKNOWN };

void known_counts(const ArrowArray& node, std::vector<std::int64_t>& out) {
  out.push_back(node.null_count);
  for (std::int64_t i = 0; i < node.n_children; i++) known_counts(*node.children[i], out);
  if (node.dictionary != nullptr) known_counts(*node.dictionary, out);
}

// The same values in device memory, built by bowstring: with every node's number of nulls, or with none.
bowstring::array on_device(const arrow::Array& values, counts kind) {
  bowstring::unique_device_array raw;
  bowstring::unique_schema schema;
  ok(arrow::ExportDeviceArray(values, nullptr, raw.put(), schema.put()));
  const auto host = bowstring::array::import(std::move(raw), std::move(schema)).resolve_sizes();
  std::vector<std::int64_t> nulls;
  auto exported = host.export_device();
  known_counts(exported->array, nulls);
  bowstring::array_builder builder(host.type());
  std::size_t first = 0, number = 0;
  for (const auto& node : host.nodes()) {
    builder.node(node.length, kind == counts::KNOWN ? nulls[number++] : -1, node.offset);
    for (std::size_t i = 0; i < node.n_buffers; i++, first++) {
      const auto info = host.buffers()[first];
      const auto size = static_cast<std::size_t>(info.size_bytes);
      // The library builds the sizes of variadic buffers, in CPU memory.
      if (info.data == nullptr || info.role == BOWSTRING_ROLE_VARIADIC_SIZES) builder.no_buffer();
      else builder.buffer(off_cpu::copy(info.data, size), info.size_bytes, nullptr);
    }
  }
  builder.device(ARROW_DEVICE_CUDA, 0);
  return bowstring::array::import(builder.finish(), builder.type());
}

array give(const bowstring::array& handle) {
  auto raw = handle.export_device();
  auto schema = handle.type().export_schema();
  return value(arrow::ImportDeviceArray(raw.get(), schema.get(), off_cpu::mapper));
}

batch give_batch(const bowstring::array& handle) {
  auto raw = handle.export_device();
  auto schema = handle.type().export_schema();
  return value(arrow::ImportDeviceRecordBatch(raw.get(), schema.get(), off_cpu::mapper));
}

template <class Given>
struct call {
  const char* name;
  bool safe_when_known, safe_when_unknown;
  std::function<void(const Given&, const Given& again)> run;
};

constexpr bool SAFE = true, FAULTS = false;

const std::shared_ptr<arrow::MemoryManager>& cpu() {
  static const auto manager = arrow::default_cpu_memory_manager();
  return manager;
}

// On an array with nulls at its root.
const std::vector<call<array>> array_calls{
    {"ImportDeviceArray", SAFE, SAFE, [](auto&, auto&) {}},
    {"data", SAFE, SAFE, [](auto& a, auto&) { arrow::MakeArray(a->data()->Copy()); }},
    {"Slice", SAFE, SAFE, [](auto& a, auto&) { (void)a->Slice(1, 3); }},
    {"Validate", SAFE, SAFE, [](auto& a, auto&) { ok(a->Validate()); }},
    {"ToString", SAFE, SAFE, [](auto& a, auto&) { (void)a->ToString(); }},
    {"CopyTo", SAFE, SAFE, [](auto& a, auto&) { ok(value(a->CopyTo(cpu()))->ValidateFull()); }},
    {"null_count", SAFE, FAULTS, [](auto& a, auto&) { (void)a->null_count(); }},
    {"null_count of the whole as a slice", SAFE, FAULTS, [](auto& a, auto&) { (void)a->Slice(0)->null_count(); }},
    {"ExportDeviceArray", SAFE, FAULTS,
     [](auto& a, auto&) {
       bowstring::unique_device_array out;
       ok(arrow::ExportDeviceArray(*a, nullptr, out.put()));
     }},
    {"ChunkedArray", SAFE, FAULTS, [](auto& a, auto&) { arrow::ChunkedArray chunked(a); }},
    // A slice forgets how many nulls there are.
    {"null_count of a slice", FAULTS, FAULTS, [](auto& a, auto&) { (void)a->Slice(1, 3)->null_count(); }},
    {"ExportDeviceArray of a slice", FAULTS, FAULTS,
     [](auto& a, auto&) {
       bowstring::unique_device_array out;
       ok(arrow::ExportDeviceArray(*a->Slice(1, 3), nullptr, out.put()));
     }},
    {"ChunkedArray of a slice", FAULTS, FAULTS, [](auto& a, auto&) { arrow::ChunkedArray chunked(a->Slice(1, 3)); }},
    // What reads values.
    {"Equals", FAULTS, FAULTS, [](auto& a, auto& b) { (void)a->Equals(b); }},
    {"GetScalar", FAULTS, FAULTS, [](auto& a, auto&) { (void)a->GetScalar(0).ok(); }},
    {"Concatenate", FAULTS, FAULTS, [](auto& a, auto& b) { (void)arrow::Concatenate({a, b}).ok(); }},
};

// On a batch with nulls in its columns, but not in its root.
const std::vector<call<batch>> batch_calls{
    {"ImportDeviceRecordBatch", SAFE, SAFE, [](auto&, auto&) {}},
    {"column", SAFE, SAFE, [](auto& b, auto&) { (void)b->column(0)->length(); }},
    {"Slice", SAFE, SAFE, [](auto& b, auto&) { (void)b->Slice(1, 3)->column(0); }},
    {"SelectColumns", SAFE, SAFE, [](auto& b, auto&) { ok(b->SelectColumns({0}).status()); }},
    {"Validate", SAFE, SAFE, [](auto& b, auto&) { ok(b->Validate()); }},
    {"ToString", SAFE, SAFE, [](auto& b, auto&) { (void)b->ToString(); }},
    {"CopyTo", SAFE, SAFE,
     [](auto& b, auto&) {
       const auto copy = value(b->CopyTo(cpu()));
       ok(arrow::ipc::SerializeRecordBatch(*copy, arrow::ipc::IpcWriteOptions::Defaults()).status());
     }},
    {"ExportDeviceRecordBatch", SAFE, FAULTS,
     [](auto& b, auto&) {
       bowstring::unique_device_array out;
       ok(arrow::ExportDeviceRecordBatch(*b, nullptr, out.put()));
     }},
    {"Table::FromRecordBatches", SAFE, FAULTS,
     [](auto& b, auto&) { (void)value(arrow::Table::FromRecordBatches({b}))->column(0); }},
    {"ExportDeviceRecordBatch of a slice", FAULTS, FAULTS,
     [](auto& b, auto&) {
       bowstring::unique_device_array out;
       ok(arrow::ExportDeviceRecordBatch(*b->Slice(1, 3), nullptr, out.put()));
     }},
    {"Table::FromRecordBatches of a slice", FAULTS, FAULTS,
     [](auto& b, auto&) { (void)value(arrow::Table::FromRecordBatches({b->Slice(1, 3)}))->column(0); }},
    {"Equals", FAULTS, FAULTS, [](auto& b, auto& c) { (void)b->Equals(*c); }},
    {"ValidateFull", FAULTS, FAULTS, [](auto& b, auto&) { (void)b->ValidateFull().ok(); }},
    {"SerializeRecordBatch", FAULTS, FAULTS,
     [](auto& b, auto&) {
       (void)arrow::ipc::SerializeRecordBatch(*b, arrow::ipc::IpcWriteOptions::Defaults()).ok();
     }},
};

const std::shared_ptr<arrow::DataType> members =
    arrow::struct_({arrow::field("a", arrow::int32()), arrow::field("b", arrow::utf8())});
const char* const rows = R"([{"a": 1, "b": "x"}, {"a": 2, "b": null}, {"a": null, "b": "y"}, {"a": 4, "b": "z"}])";

array parsed(const std::shared_ptr<arrow::DataType>& type, const char* json) {
  return value(arrow::json::ArrayFromJSONString(type, json));
}

long faults = 0;

// What is safe runs here, so that a touch ends this program. What faults runs in a child, and has to.
template <class Given, class Give>
void does_as_listed(const std::vector<call<Given>>& calls, const bowstring::array& handle, counts kind, Give give) {
  const std::string on = about;
  for (const auto& call : calls) {
    about = on + (kind == counts::KNOWN ? ", known counts: " : ", unknown counts: ") + call.name;
    auto run = [&] { call.run(give(handle), give(handle)); };
    if (kind == counts::KNOWN ? call.safe_when_known : call.safe_when_unknown) {
      run();
    } else {
      CHECK(off_cpu::faults(run));
      faults++;
    }
  }
  about = on;
}

void calls_do_as_listed() {
  const std::vector<std::pair<std::shared_ptr<arrow::DataType>, const char*>> types{
      {arrow::int32(), "[1, null, 3, 4, 5]"},
      {arrow::utf8(), R"(["a", null, "", "bb", "c"])"},
      {arrow::utf8_view(), R"(["a", null, "", "a text of more than twelve bytes", "b"])"},
      {arrow::list(arrow::int32()), "[[1], null, [2, null], [], [3]]"},
      {members, R"([{"a": 1, "b": "x"}, null, {"a": null, "b": "y"}, {"a": 4, "b": null}, null])"},
      {arrow::dictionary(arrow::int8(), arrow::utf8()), R"(["a", null, "b", "a", "b"])"},
  };
  for (const auto kind : {counts::KNOWN, counts::UNKNOWN}) {
    for (const auto& [type, json] : types) {
      about = type->ToString();
      does_as_listed(array_calls, on_device(*parsed(type, json), kind), kind, give);
    }
    about = "batch";
    does_as_listed(batch_calls, on_device(*parsed(members, rows), kind), kind, give_batch);
  }
}

// With every count known, what does not read values works for every type.
long known_counts_are_safe() {
  long types = 0;
  arrow::FieldVector fields;
  const auto columns = every_array();
  for (const auto& column : columns) {
    about = column->type()->ToString() + " with known counts";
    const auto handle = on_device(*column, counts::KNOWN);
    const auto found = give(handle);
    CHECK(found->null_count() == column->null_count());
    CHECK(found->device_type() == arrow::DeviceAllocationType::kCUDA || column->type_id() == arrow::Type::NA);
    for (const auto& call : array_calls)
      if (call.safe_when_known) call.run(found, found);
    CHECK(value(found->CopyTo(cpu()))->Equals(column));
    fields.push_back(arrow::field(column->type()->ToString(), column->type()));
    types++;
  }
  about = "every type in a batch";
  const auto all = arrow::RecordBatch::Make(arrow::schema(fields), columns[0]->length(), columns);
  const auto whole = give_batch(on_device(*value(all->ToStructArray()), counts::KNOWN));
  for (const auto& call : batch_calls)
    if (call.safe_when_known) call.run(whole, whole);
  CHECK(value(whole->CopyTo(cpu()))->Equals(*all));
  return types;
}

// A bitmap at the root without a count is more than a record batch's import can bear.
void a_batch_with_a_bitmap_needs_its_count() {
  about = "a bitmap at the root of a batch";
  auto bitmap = value(arrow::AllocateBitmap(4));
  *bitmap->mutable_data() = 0xff;
  const auto bare = std::static_pointer_cast<arrow::StructArray>(parsed(members, rows));
  const auto root = value(arrow::StructArray::Make(bare->fields(), members->fields(), std::move(bitmap)));
  const auto known = give_batch(on_device(*root, counts::KNOWN));
  CHECK(known->num_rows() == 4);
  const auto unknown = on_device(*root, counts::UNKNOWN);
  CHECK(unknown.export_device()->array.null_count == -1);
  CHECK(off_cpu::faults([&] { give_batch(unknown); }));
  faults++;
}

// The device's bitmap is not seen, and no value is null to it.
void is_null_says_no() {
  about = "IsNull";
  for (const auto kind : {counts::KNOWN, counts::UNKNOWN}) {
    const auto found = give(on_device(*parsed(arrow::int32(), "[1, null, 3]"), kind));
    CHECK(!found->IsNull(1));
    CHECK(value(found->CopyTo(cpu()))->IsNull(1));
  }
}

// What goes out where counts were not given: without a bitmap there are no nulls, and a window of no nulls has none.
void what_is_emitted() {
  about = "what is emitted";
  CHECK(on_device(*parsed(arrow::int32(), "[1, 2]"), counts::UNKNOWN).export_device()->array.null_count == 0);
  const auto nulls = parsed(arrow::int32(), "[1, null, 3, 4]");
  CHECK(on_device(*nulls, counts::UNKNOWN).export_device()->array.null_count == -1);
  const auto known = on_device(*nulls, counts::KNOWN);
  CHECK(known.export_device()->array.null_count == 1);
  CHECK(known.slice(0, 4).export_device()->array.null_count == 1);
  CHECK(known.slice(1, 2).export_device()->array.null_count == -1);
  CHECK(off_cpu::faults([&] { (void)give(known.slice(1, 2))->null_count(); }));
  faults++;
  const auto batch = on_device(*parsed(members, rows), counts::KNOWN);
  auto window = batch.slice(1, 2).export_device();
  CHECK(window->array.null_count == 0 && window->array.offset == 0);
  CHECK(window->array.children[0]->offset == 1 && window->array.children[0]->null_count == -1);
  CHECK(give_batch(batch.slice(1, 2))->num_rows() == 2);
}

// Counts that a producer left out are written in when an array is put together again.
void counts_are_filled_in() {
  about = "counts filled in";
  const auto values = parsed(members, rows);
  const auto unknown = on_device(*values, counts::UNKNOWN);
  std::vector<std::int64_t> nulls;
  known_counts(on_device(*values, counts::KNOWN).export_device()->array, nulls);
  std::size_t n_nodes = 0, n_buffers = 0;
  BowstringError record;
  CHECK(bowstring_array_count(unknown.get(), &n_nodes, &n_buffers, &record) == BOWSTRING_OK);
  std::vector<BowstringNode> nodes(n_nodes);
  std::vector<BowstringOwnedBuffer> buffers(n_buffers);
  BowstringPlacement placement{};
  placement.struct_size = sizeof(placement);
  CHECK(bowstring_array_to_buffers(unknown.get(), nodes.data(), n_nodes, buffers.data(), n_buffers, &placement,
                                   &record) == BOWSTRING_OK);
  for (std::size_t i = 0; i < n_nodes; i++) nodes[i].null_count = nulls[i];
  bowstring::unique_device_array raw;
  CHECK(bowstring_device_array_from_buffers(unknown.type().get(), nodes.data(), n_nodes, buffers.data(), n_buffers,
                                            &placement, raw.put(), &record) == BOWSTRING_OK);
  const auto known = bowstring::array::import(std::move(raw), unknown.type());
  does_as_listed(batch_calls, known, counts::KNOWN, give_batch);
}

// Where Arrow C++ needs bytes, it asks the memory manager for a copy.
void what_is_copied() {
  about = "copies";
  const auto numbers = on_device(*parsed(arrow::int32(), "[1, null, 3]"), counts::KNOWN);
  const auto texts = on_device(*parsed(arrow::utf8(), R"(["a", null, "b"])"), counts::KNOWN);
  long before = off_cpu::copies;
  const auto found = give(numbers);
  CHECK(off_cpu::copies == before);
  give(texts);
  CHECK(off_cpu::copies == before + 1);
  before = off_cpu::copies;
  (void)found->ToString();
  CHECK(off_cpu::copies > before);
  before = off_cpu::copies;
  (void)value(found->CopyTo(cpu()));
  CHECK(off_cpu::copies == before + 2);
}

// A call of ours that would have to read says so, and the count stays unknown.
void bowstring_says_that_it_cannot() {
  about = "bowstring_array_null_count";
  const auto handle = on_device(*parsed(arrow::int32(), "[1, null, 3, 4]"), counts::UNKNOWN);
  std::int64_t nulls = 0;
  BowstringError record;
  CHECK(bowstring_array_null_count(handle.get(), nullptr, &nulls, &record) != BOWSTRING_OK);
  CHECK(handle.export_device()->array.null_count == -1);
}

}  // namespace

int main() {
  off_cpu::set_up();
  const auto* pool = arrow::default_memory_pool();
  const auto before = pool->bytes_allocated();
  calls_do_as_listed();
  const long types = known_counts_are_safe();
  a_batch_with_a_bitmap_needs_its_count();
  is_null_says_no();
  what_is_emitted();
  counts_are_filled_in();
  what_is_copied();
  bowstring_says_that_it_cannot();
  about = "the end";
  CHECK(pool->bytes_allocated() == before);
  BowstringLiveCounts live{};
  live.struct_size = sizeof(live);
  bowstring_live_counts(&live);
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  CHECK(types >= 50 && faults >= 110 && off_cpu::copies >= 800);
  if (off_cpu::under_valgrind()) std::puts("left to the run without valgrind: calls that end the process");
  std::printf("%ld types, %ld faults as expected, %ld copies by the device, %ld checks\n", types, faults,
              off_cpu::copies, checks);
  return 0;
}
