// Asynchronous streams between Arrow C++ and bowstring, both ways, and bowstring's two sides joined.
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <bowstring.hpp>

#include "arrow_samples.h"

#include <chrono>
#include <thread>

namespace {

using batches = arrow::RecordBatchVector;
using batch = std::shared_ptr<arrow::RecordBatch>;

batches given_of(int n) {
  arrow::FieldVector fields;
  const auto columns = every_array();
  for (const auto& column : columns) fields.push_back(arrow::field(column->type()->ToString(), column->type()));
  const auto whole = arrow::RecordBatch::Make(arrow::schema(fields), 5, columns);
  batches given;
  for (int i = 0; i < n; i++) given.push_back(whole->Slice(i % 5));
  return given;
}

std::shared_ptr<arrow::Schema> schema_of() { return given_of(1)[0]->schema(); }

bowstring::stream take(const batches& given) {
  bowstring::unique_device_stream raw;
  const auto reader = value(arrow::RecordBatchReader::Make(given, schema_of()));
  ok(arrow::ExportDeviceRecordBatchReader(reader, raw.put()));
  return bowstring::stream::import(std::move(raw));
}

void same(bowstring::stream stream, const batches& expected) {
  auto raw = std::move(stream).to_device_stream();
  const auto reader = value(arrow::ImportDeviceRecordBatchReader(raw.get()));
  for (const auto& wanted : expected) {
    const auto found = value(reader->Next());
    CHECK(found != nullptr);
    ok(found->ValidateFull());
    CHECK(found->Equals(*wanted));
  }
  CHECK(value(reader->Next()) == nullptr);
}

// Arrow C++ produces: a generator on its own threads, and an error behind the batches if there is one.
bowstring::stream exported(const batches& given, std::size_t capacity, const arrow::Status& error, std::thread* producer) {
  return bowstring::stream::from_async(capacity, [&](ArrowAsyncDeviceStreamHandler* handler) {
    auto next = std::make_shared<std::size_t>(0);
    arrow::AsyncGenerator<batch> generator = [given, error, next]() -> arrow::Future<batch> {
      const auto i = (*next)++;
      if (i >= given.size()) return error.ok() ? arrow::Future<batch>(batch()) : arrow::Future<batch>(error);
      return arrow::DeferNotOk(
          arrow::internal::GetCpuThreadPool()->Submit([one = given[i]]() -> arrow::Result<batch> { return one; }));
    };
    // It waits for requests on the thread that calls it.
    *producer = std::thread([=] {
      arrow::ExportAsyncRecordBatchReader(schema_of(), generator, arrow::DeviceAllocationType::kCPU, handler).Wait();
    });
  });
}

void from_arrow() {
  for (const int n : {0, 1, 7, 60}) {
    for (const std::size_t capacity : {1, 2, 16}) {
      about = "from Arrow C++: " + std::to_string(n) + ", capacity " + std::to_string(capacity);
      std::thread done;
      same(exported(given_of(n), capacity, arrow::Status::OK(), &done), given_of(n));
      done.join();
    }
  }
  about = "an error of Arrow C++";
  std::thread done;
  auto stream = exported(given_of(3), 2, arrow::Status::IOError("on the disk"), &done);
  for (int i = 0; i < 3; i++) CHECK(bool(stream.next()));
  for (int i = 0; i < 2; i++) {
    const auto refused = stream.try_next();
    CHECK(!refused && refused.record().batch == 3);
    CHECK(std::string(refused.record().message).find("on the disk") != std::string::npos);
  }
  done.join();
  about = "Arrow C++ is cancelled";
  for (int taken = 0; taken < 4; taken++) {
    std::thread ended;
    auto early = exported(given_of(9), 2, arrow::Status::OK(), &ended);
    for (int i = 0; i < taken; i++) CHECK(bool(early.next()));
    early = {};
    ended.join();
  }
}

// Arrow C++ consumes.
arrow::Future<arrow::AsyncRecordBatchGenerator> consumer(ArrowAsyncDeviceStreamHandler* handler, std::uint64_t queue) {
  return arrow::CreateAsyncDeviceStreamHandler(handler, arrow::internal::GetCpuThreadPool(), queue);
}

void to_arrow() {
  for (const int n : {0, 1, 7, 60}) {
    for (const std::uint64_t queue : {1, 2, 16}) {
      about = "to Arrow C++: " + std::to_string(n) + ", queue " + std::to_string(queue);
      ArrowAsyncDeviceStreamHandler handler{};
      auto opened = consumer(&handler, queue);
      take(given_of(n)).to_async(&handler);
      const auto generator = value(opened.result());
      CHECK(generator.schema->Equals(*schema_of()) && generator.device_type == arrow::DeviceAllocationType::kCPU);
      for (const auto& wanted : given_of(n)) {
        const auto found = value(generator.generator().result());
        CHECK(found.batch != nullptr && found.batch->Equals(*wanted));
      }
      CHECK(value(generator.generator().result()).batch == nullptr);
    }
  }
}

// bowstring's own sides: a stream through a thread.
void joined() {
  for (const int n : {0, 1, 7, 300}) {
    for (const std::size_t capacity : {1, 2, 16}) {
      about = "joined: " + std::to_string(n) + ", capacity " + std::to_string(capacity);
      auto source = take(given_of(n));
      same(bowstring::stream::from_async(
               capacity, [&](ArrowAsyncDeviceStreamHandler* handler) { std::move(source).to_async(handler); }),
           given_of(n));
    }
  }
  about = "nobody wants it";
  for (int taken = 0; taken < 40; taken++) {
    auto source = take(given_of(20));
    auto stream = bowstring::stream::from_async(
        2, [&](ArrowAsyncDeviceStreamHandler* handler) { std::move(source).to_async(handler); });
    for (int i = 0; i < taken % 5; i++) CHECK(bool(stream.next()));
  }
}

}  // namespace

int main() {
  const auto* pool = arrow::default_memory_pool();
  const auto before = pool->bytes_allocated();
  from_arrow();
  to_arrow();
  joined();
  about = "the end";
  // Threads that still let go are waited for.
  for (int i = 0; i < 2000; i++) {
    const auto live = bowstring::live_counts();
    if (live.types + live.arrays + live.buffers + live.blocks + live.streams == 0 && pool->bytes_allocated() == before) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(pool->bytes_allocated() == before);
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks + live.streams == 0);
  CHECK(checks >= 2000);
  std::printf("%ld checks\n", checks);
  return 0;
}
