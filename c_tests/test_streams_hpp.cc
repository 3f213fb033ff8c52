// Streams from C++: made of arrays, of functions that may throw, and of structs; as ranges; who owns what after a failure.
#include <bowstring/streams.hpp>

#include "hpp_samples.h"

#include <cerrno>
#include <stdexcept>

namespace {

using numbers = std::vector<std::int32_t>;

bowstring::array array_of(numbers values, const char* type = "int32") {
  const auto n = static_cast<std::int64_t>(values.size());
  bowstring::array_builder builder(type);
  if (std::string(type) != "int32") builder.node(n).no_buffer();
  builder.node(n).no_buffer().buffer(std::make_shared<numbers>(std::move(values)));
  return bowstring::array::import(builder.finish(), builder.type());
}

std::int32_t first_of(const bowstring::array& array) {
  const auto info = array.buffers()[1];
  return static_cast<const std::int32_t*>(info.data)[info.first];
}

BowstringError refused_record() {
  BowstringError record{};
  record.status = BOWSTRING_UNSUPPORTED;
  std::string_view("not today").copy(record.message, sizeof(record.message) - 1);
  return record;
}

void arrays_as_a_range() {
  auto stream = bowstring::stream::of({array_of({1, 2}), array_of({3}), array_of({})});
  CHECK(stream.type().to_string() == "int32" && stream.device().type == ARROW_DEVICE_CPU);
  std::int64_t rows = 0, n = 0;
  for (const auto& array : stream) {
    rows += array.length();
    n++;
  }
  CHECK(rows == 3 && n == 3);
  CHECK(!stream.next() && stream.begin() == stream.end());
  CHECK(bowstring::stream::try_of({}).status() == BOWSTRING_INVALID_ARGUMENT);
  CHECK(bowstring::stream::of({}, bowstring::type::parse("int32")).collect().length() == 0);
  const auto mixed = bowstring::stream::try_of({array_of({1}), array_of({1}, "struct<a: int32>")});
  CHECK(!mixed && mixed.record().batch == 1);
  CHECK(std::string_view(bowstring_rule_name(mixed.record().rule)) == "ST5");
}

void what_a_function_gives() {
  const auto kind = bowstring::type::parse("int32");
  const auto owner = std::make_shared<int>(0);
  auto counted = [owner]() -> bowstring::array {
    if (*owner == 3) return {};
    return array_of({(*owner)++});
  };
  auto stream = bowstring::stream::generate(kind, counted);
  CHECK(owner.use_count() == 3);
  auto moved = std::move(stream);
  CHECK(!stream && moved);
  CHECK(first_of(std::move(moved).collect()) == 0);
  CHECK(*owner == 3 && owner.use_count() == 2);
}

void what_a_function_throws() {
  const auto kind = bowstring::type::parse("int32");
  int asked = 0;
  auto stream = bowstring::stream::generate(kind, [&]() -> bowstring::array {
    if (asked++ == 1) throw std::runtime_error("no more to give");
    return array_of({7});
  });
  CHECK(first_of(stream.next()) == 7);
  for (int i = 0; i < 2; i++) {
    const auto refused = stream.try_next();
    CHECK(refused.status() == BOWSTRING_CALLBACK_ERROR && refused.record().native_code == EIO);
    CHECK(refused.record().batch == 1);
    CHECK_HAS(refused.record().message, "no more to give");
  }
  CHECK_INT(asked, 2);
  throws(BOWSTRING_CALLBACK_ERROR, [&] { stream.next(); });
  auto empty = bowstring::stream::generate(kind, []() -> bowstring::array { throw std::bad_alloc(); });
  CHECK(empty.try_next().status() == BOWSTRING_OUT_OF_MEMORY);
  auto strange = bowstring::stream::generate(kind, []() -> bowstring::array { throw 3; });
  CHECK(strange.try_next().status() == BOWSTRING_CALLBACK_ERROR);
  // A result says its status by itself.
  auto failed = bowstring::stream::generate(kind, [&] { return bowstring::result<bowstring::array>(refused_record()); });
  const auto refused = failed.try_next();
  CHECK(refused.status() == BOWSTRING_UNSUPPORTED);
  CHECK_HAS(refused.record().message, "not today");
}

void what_is_refused_stays() {
  auto stream = bowstring::stream::of({array_of({1}), array_of({2})});
  auto* const raw = stream.get();
  CHECK(stream.try_select({0}).status() == BOWSTRING_INVALID_ARGUMENT && stream.get() == raw);
  bowstring::validate_options options;
  options.level = 9;
  CHECK(stream.try_validated(options).status() == BOWSTRING_INVALID_ARGUMENT && stream.get() == raw);
  const BowstringSync unknown{9, 0, nullptr};
  CHECK(stream.try_export_host(&unknown).status() == BOWSTRING_INVALID_ARGUMENT && stream.get() == raw);
  CHECK(stream.try_collect(&unknown).status() == BOWSTRING_INVALID_ARGUMENT && stream.get() == raw);
  CHECK(first_of(stream.next()) == 1);
  stream.cancel();
  CHECK(stream.try_next().status() == BOWSTRING_CANCELLED);
  bowstring::stream none;
  CHECK(!none && none.try_next().status() == BOWSTRING_INVALID_ARGUMENT);
  none.cancel();
  bowstring::unique_device_stream released;
  CHECK(bowstring::stream::try_import(released).status() == BOWSTRING_RELEASED);
}

void structs_and_layers() {
  const char* const kind = "struct<a: int32>";
  auto stream = bowstring::stream::of({array_of({1, 2}, kind), array_of({3}, kind)});
  auto raw = std::move(stream).validated().select({0}).to_device_stream();
  CHECK(!stream && raw && raw->device_type == ARROW_DEVICE_CPU);
  auto again = bowstring::stream::import(std::move(raw));
  auto array = again.next_device_array();
  CHECK(array && array->array.length == 2);
  auto host = std::move(again).to_host_stream();
  const auto rest = bowstring::stream::import(std::move(host)).collect();
  CHECK(rest.length() == 1);
}

void copies_that_are_ahead() {
  for (const std::uint32_t depth : {0u, 1u, 4u}) {
    bowstring::transfer_options options;
    options.depth = depth;
    int given = 0;
    auto stream = bowstring::stream::generate(bowstring::type::parse("int32"), [&]() -> bowstring::array {
      if (given == 40) throw std::runtime_error("the tap is dry");
      return array_of({given++});
    });
    BowstringStream* const raw = stream.get();
    CHECK(stream.try_to_device({ARROW_DEVICE_HEXAGON, 0}, options).status() == BOWSTRING_UNSUPPORTED);
    CHECK(stream.get() == raw && given == 0);
    auto ahead = std::move(stream).to_device({ARROW_DEVICE_CPU, -1}, options);
    CHECK(!stream && ahead);
    for (int i = 0; i < 40; i++) CHECK(first_of(ahead.next()) == i);
    const auto failed = ahead.try_next();
    CHECK(!failed && failed.record().batch == 40);
    CHECK(std::string_view(failed.record().message).find("the tap is dry") != std::string_view::npos);
  }
}

}  // namespace

int main() {
  arrays_as_a_range();
  what_a_function_gives();
  what_a_function_throws();
  what_is_refused_stays();
  structs_and_layers();
  copies_that_are_ahead();
  const auto live = bowstring::live_counts();
  CHECK(live.streams == 0 && live.arrays == 0 && live.buffers == 0 && live.types == 0 && live.blocks == 0);
  return check_end(170);
}
