// Streams between Arrow C++ and bowstring: its readers of streams on devices and in CPU memory, every type, and its errors.
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <bowstring.hpp>

#include "arrow_samples.h"

#include <cerrno>

namespace {

using batches = arrow::RecordBatchVector;

// A reader that fails behind its batches.
class failing : public arrow::RecordBatchReader {
 public:
  failing(batches given, arrow::Status error) : given_(std::move(given)), error_(std::move(error)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return given_[0]->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    asked++;
    if (next_ == given_.size()) return error_;
    *out = given_[next_++];
    return arrow::Status::OK();
  }
  int asked = 0;

 private:
  batches given_;
  std::size_t next_ = 0;
  arrow::Status error_;
};

std::shared_ptr<arrow::RecordBatchReader> reader_of(const batches& given) {
  return value(arrow::RecordBatchReader::Make(given));
}

bowstring::stream take(const std::shared_ptr<arrow::RecordBatchReader>& reader, bool on_device) {
  if (on_device) {
    bowstring::unique_device_stream raw;
    ok(arrow::ExportDeviceRecordBatchReader(reader, raw.put()));
    return bowstring::stream::import(std::move(raw));
  }
  bowstring::unique_host_stream raw;
  ok(arrow::ExportRecordBatchReader(reader, raw.put()));
  return bowstring::stream::import(std::move(raw));
}

std::shared_ptr<arrow::RecordBatchReader> give(bowstring::stream stream, bool on_device) {
  if (on_device) {
    auto raw = std::move(stream).to_device_stream();
    return value(arrow::ImportDeviceRecordBatchReader(raw.get()));
  }
  auto raw = std::move(stream).to_host_stream();
  return value(arrow::ImportRecordBatchReader(raw.get()));
}

void same(arrow::RecordBatchReader& found, const batches& expected) {
  for (const auto& wanted : expected) {
    const auto batch = value(found.Next());
    CHECK(batch != nullptr);
    ok(batch->ValidateFull());
    CHECK(batch->Equals(*wanted, true));
  }
  for (int i = 0; i < 2; i++) CHECK(value(found.Next()) == nullptr);
}

batches every_type() {
  arrow::FieldVector fields;
  const auto columns = every_array();
  for (const auto& column : columns) fields.push_back(arrow::field(column->type()->ToString(), column->type()));
  const auto schema = arrow::schema(fields, arrow::key_value_metadata({"key"}, {"value"}));
  const auto whole = arrow::RecordBatch::Make(schema, 5, columns);
  return {whole, whole->Slice(1, 3), whole->Slice(0, 0), whole->Slice(3), whole};
}

long there_and_back(const batches& given) {
  long trips = 0;
  for (const bool in : {false, true}) {
    for (const bool out : {false, true}) {
      about = "in as " + std::to_string(in) + ", out as " + std::to_string(out);
      same(*give(take(reader_of(given), in), out), given);
      same(*give(take(give(take(reader_of(given), in), out), in), out), given);
      same(*give(take(reader_of(given), in).validated(), out), given);
      // Nobody looks at the batches.
      give(take(reader_of(given), in), out);
      trips += 3;
    }
  }
  return trips;
}

void columns_are_selected(const batches& given) {
  about = "columns";
  batches narrow;
  for (const auto& batch : given) narrow.push_back(value(batch->SelectColumns({7, 0, 40})));
  same(*give(take(reader_of(given), true).select({7, 0, 40}), true), narrow);
}

void all_batches_as_one(const batches& given) {
  about = "all batches as one";
  auto one = take(reader_of(given), true).collect();
  auto raw = one.export_device();
  auto schema = one.type().export_schema();
  one = {};
  const auto found = value(arrow::ImportDeviceRecordBatch(raw.get(), schema.get()));
  ok(found->ValidateFull());
  const auto table = value(arrow::Table::FromRecordBatches(given));
  for (int i = 0; i < table->num_columns(); i++) {
    about = "all batches of " + table->field(i)->ToString();
    // Dictionaries that differ are put one behind the other, so that values are what can be compared.
    CHECK(arrow::ChunkedArray(found->column(i)).Equals(*table->column(i)));
  }
}

void errors(const batches& given) {
  struct expected {
    arrow::Status status;
    BowstringStatus ours;
    int number;
  };
  const expected all[] = {
      {arrow::Status::IOError("on the disk"), BOWSTRING_CALLBACK_ERROR, EIO},
      {arrow::Status::Invalid("on the disk"), BOWSTRING_CALLBACK_ERROR, EINVAL},
      {arrow::Status::NotImplemented("on the disk"), BOWSTRING_UNSUPPORTED, ENOSYS},
      {arrow::Status::OutOfMemory("on the disk"), BOWSTRING_OUT_OF_MEMORY, ENOMEM},
  };
  for (const auto& one : all) {
    for (const bool on_device : {false, true}) {
      about = one.status.ToString();
      const auto reader = std::make_shared<failing>(given, one.status);
      auto stream = take(reader, on_device);
      for (std::size_t i = 0; i < given.size(); i++) CHECK(bool(stream.next()));
      for (int i = 0; i < 2; i++) {
        const auto refused = stream.try_next();
        CHECK(refused.status() == one.ours && refused.record().native_code == one.number);
        CHECK(refused.record().batch == static_cast<std::int64_t>(given.size()));
        CHECK(std::string(refused.record().message).find("on the disk") != std::string::npos);
      }
      CHECK(reader->asked == static_cast<int>(given.size()) + 1);
      // And on to Arrow C++ again.
      const auto again = give(take(std::make_shared<failing>(given, one.status), on_device), !on_device);
      for (std::size_t i = 0; i < given.size(); i++) CHECK(again->Next().ok());
      const auto status = again->Next().status();
      CHECK(status.code() == one.status.code());
      CHECK(status.message().find("on the disk") != std::string::npos);
    }
  }
}

}  // namespace

int main() {
  const auto* pool = arrow::default_memory_pool();
  const auto before = pool->bytes_allocated();
  {
    const auto given = every_type();
    CHECK(there_and_back(given) == 12);
    columns_are_selected(given);
    all_batches_as_one(given);
    errors(given);
  }
  about = "the end";
  CHECK(pool->bytes_allocated() == before);
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks + live.streams == 0);
  CHECK(checks >= 300);
  std::printf("%ld checks\n", checks);
  return 0;
}
