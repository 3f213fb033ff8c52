// The validator and repairs from C++: results, exceptions, findings, and a listener that throws.
#include "hpp_samples.h"

namespace {

// A column of strings whose second row ends before it starts and whose third is no UTF-8.
bowstring::array broken_text() {
  static const std::int32_t offsets[] = {0, 2, 1, 2};
  auto type = bowstring::type::parse("utf8");
  static const void* buffers[] = {nullptr, offsets, "a\xff"};
  bowstring::unique_device_array owned;
  ArrowDeviceArray& raw = *owned.put();
  raw = ArrowDeviceArray{};
  raw.array.length = 3;
  raw.array.n_buffers = 3;
  raw.array.buffers = buffers;
  raw.array.release = [](ArrowArray* array) { array->release = nullptr; };
  raw.device_type = ARROW_DEVICE_CPU;
  raw.device_id = -1;
  return bowstring::array::import(std::move(owned), type);
}

void the_first_error_is_the_result() {
  const column memory;
  auto builder = memory.builder();
  const auto good = bowstring::array::import(builder.finish(), builder.type());
  CHECK(bowstring::try_validate(good).has_value());
  bowstring::validate(good);
  const auto bad = broken_text();
  const auto told = bowstring::try_validate(bad);
  CHECK(!told && told.status() == BOWSTRING_INVALID_DATA && told.record().row == 1);
  CHECK(std::string_view(bowstring_rule_name(told.record().rule)) == "B1");
  throws(BOWSTRING_INVALID_DATA, [&] { bowstring::validate(bad); });
  bowstring::validate_options structure;
  structure.level = BOWSTRING_LEVEL_STRUCTURE;
  bowstring::validate(bad, structure);
}

void every_finding_is_told() {
  const auto bad = broken_text();
  std::vector<std::int64_t> rows;
  auto told = bowstring::try_validate(bad, {}, [&](std::int32_t severity, const BowstringError& finding) {
    CHECK(severity == BOWSTRING_SEVERITY_ERROR);
    rows.push_back(finding.row);
  });
  CHECK(!told && told.status() == BOWSTRING_INVALID_DATA && rows == std::vector<std::int64_t>{1});
  bool heard = false;
  told = bowstring::try_validate(bad, {}, [&](std::int32_t, const BowstringError&) { return !(heard = true); });
  CHECK(heard && told.status() == BOWSTRING_INVALID_DATA);
}

void what_a_listener_throws_becomes_an_error() {
  const auto bad = broken_text();
  const auto angry = [](std::int32_t, const BowstringError&) { throw std::runtime_error("enough"); };
  const auto told = bowstring::try_validate(bad, {}, angry);
  CHECK(told.status() == BOWSTRING_CALLBACK_ERROR);
  CHECK_HAS(told.record().message, "enough");
  bool thrown = false;
  try {
    bowstring::validate(bad, {}, angry);
  } catch (const bowstring::error& e) {
    thrown = e.status() == BOWSTRING_CALLBACK_ERROR && e.cause() != nullptr;
  }
  CHECK(thrown);
}

void raw_structs_are_checked_as_they_are() {
  const column memory;
  auto builder = memory.builder();
  auto raw = builder.finish();
  auto schema = builder.type().export_schema();
  bowstring::validate(static_cast<const ArrowSchema*>(schema.get()));
  bowstring::validate(bowstring::of_type(raw.get(), builder.type()));
  bowstring::validate(bowstring::of_type(&raw.get()->array, builder.type()));
  raw.get()->array.length = -1;
  throws(BOWSTRING_INVALID_DATA, [&] { bowstring::validate(bowstring::of_type(raw.get(), builder.type())); });
  raw.get()->array.length = 2;
  const ArrowDeviceArrayStream device{};
  const ArrowArrayStream host{};
  throws(BOWSTRING_RELEASED, [&] { bowstring::validate(&device); });
  throws(BOWSTRING_RELEASED, [&] { bowstring::validate(&host); });
  throws(BOWSTRING_INVALID_ARGUMENT, [] { bowstring::validate(static_cast<const DLManagedTensorVersioned*>(nullptr)); });
  throws(BOWSTRING_INVALID_ARGUMENT, [] { bowstring::validate(static_cast<const DLManagedTensor*>(nullptr)); });
}

void repairs_give_another_array() {
  const column memory;
  auto builder = memory.builder();
  auto array = bowstring::array::import(builder.finish(), builder.type());
  const auto views = bowstring::conform(array, BOWSTRING_PROFILE_SPEC,
                                        BOWSTRING_CONFORM_ALLOW_COPY | BOWSTRING_CONFORM_TO_VIEWS);
  CHECK(views.type().to_string() == "list_view<struct<n: int32, s: utf8_view>>");
  bowstring::validate(views);
  const auto back = bowstring::conform(views, BOWSTRING_PROFILE_SPEC,
                                       BOWSTRING_CONFORM_ALLOW_COPY | BOWSTRING_CONFORM_TO_OFFSETS);
  CHECK(back.type() == array.type());
  array = {};
  // What was not copied is still the column's own.
  CHECK(memory.uses() != none);
  throws(BOWSTRING_INVALID_ARGUMENT, [&] { bowstring::conform(back, 9); });
}

}  // namespace

int main() {
  the_first_error_is_the_result();
  every_finding_is_told();
  what_a_listener_throws_becomes_an_error();
  raw_structs_are_checked_as_they_are();
  repairs_give_another_array();
  const auto live = bowstring::live_counts();
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  return check_end(20);
}
