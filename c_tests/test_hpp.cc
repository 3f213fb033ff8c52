// bowstring.hpp: owners move, handles count, builders keep what fails, and nothing thrown crosses into C.
#include <bowstring.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>

// check.h is C11.
#define _Thread_local thread_local
extern "C" {
#include "check.h"
}

namespace {

using strings = std::vector<std::string>;

// Four shared pointers own the memory of one nested column.
struct column {
  std::shared_ptr<std::vector<std::int32_t>> list_offsets =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 2, 3});
  std::shared_ptr<std::vector<std::int32_t>> numbers =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{1, 2, 3});
  std::shared_ptr<std::vector<std::int32_t>> text_offsets =
      std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 1, 3, 6});
  std::shared_ptr<std::string> text = std::make_shared<std::string>("abbccc");

  bowstring::array_builder builder() const {
    bowstring::array_builder builder("list<struct<n: int32, s: utf8>>");
    builder.node(2).no_buffer().buffer(list_offsets);
    builder.node(3).no_buffer();
    builder.node(3).no_buffer().buffer(numbers);
    builder.node(3).no_buffer().buffer(text_offsets).buffer(text);
    return builder;
  }

  std::array<long, 4> uses() const {
    return {list_offsets.use_count(), numbers.use_count(), text_offsets.use_count(), text.use_count()};
  }
};

constexpr std::array<long, 4> none{1, 1, 1, 1}, all{2, 2, 2, 2};

void a_buffer_keeps_its_own_owner() {
  const column memory;
  bowstring::array array;
  {
    auto builder = memory.builder();
    array = bowstring::array::import(builder.finish(), builder.type());
  }
  CHECK(memory.uses() == all);
  auto kept = array.buffer(4);
  CHECK(kept.data() == memory.numbers->data() && kept.size() == 12);
  array = {};
  CHECK((memory.uses() == std::array<long, 4>{1, 2, 1, 1}));
  auto part = kept.slice(4, 4);
  kept = {};
  CHECK((memory.uses() == std::array<long, 4>{1, 2, 1, 1}));
  CHECK(part.data() == memory.numbers->data() + 1);
  part = {};
  CHECK(memory.uses() == none);
}

void a_failure_takes_nothing() {
  const column memory;
  {
    auto builder = memory.builder();
    builder.node(1);  // one node too many
    auto made = builder.try_finish();
    CHECK(!made && made.status() == BOWSTRING_INVALID_ARGUMENT);
    CHECK(memory.uses() == all);
    bool thrown = false;
    try {
      builder.finish();
    } catch (const bowstring::error& e) {
      thrown = std::strstr(e.what(), "expected 4 nodes") != nullptr && e.status() == BOWSTRING_INVALID_ARGUMENT;
    }
    CHECK(thrown);
  }
  CHECK(memory.uses() == none);

  auto builder = memory.builder();
  auto raw = builder.finish();
  const auto other = bowstring::type::parse("utf8");
  auto imported = bowstring::array::try_import(raw, other);
  CHECK(!imported && imported.status() == BOWSTRING_INVALID_DATA);
  CHECK(raw->array.release != nullptr);
  raw.reset();
  CHECK(memory.uses() == none);

  bool refused = false;
  try {
    bowstring::array_builder("int32").no_buffer();
  } catch (const bowstring::error& e) {
    refused = e.status() == BOWSTRING_INVALID_ARGUMENT;
  }
  CHECK(refused);
}

void owners_move_and_handles_count() {
  const column memory;
  auto builder = memory.builder();
  auto first = builder.finish();
  auto second = std::move(first);
  CHECK(first->array.release == nullptr && second->array.release != nullptr);
  first = std::move(second);
  auto array = bowstring::array::import(std::move(first), builder.type());
  auto copy = array;
  array = {};
  CHECK(memory.uses() == all);
  CHECK(copy.length() == 2 && copy.null_count() == 0);

  auto exported = copy.export_device();
  auto schema = copy.type().export_schema();
  auto again = bowstring::array::import(std::move(exported), std::move(schema));
  auto host = again.export_host();
  CHECK(host->n_buffers == 2 && host->buffers[1] == memory.list_offsets->data());
  copy = {};
  again = {};
  CHECK(memory.uses() == all);
  host.reset();
  CHECK(memory.uses() == none);
}

void ranges_show_nodes_and_buffers() {
  const column memory;
  auto builder = memory.builder();
  const auto array = bowstring::array::import(builder.finish(), builder.type());
  strings names;
  for (const auto& node : array.nodes()) names.emplace_back(node.name);
  CHECK((names == strings{"", "item", "n", "s"}));
  const auto buffers = array.buffers();
  CHECK(buffers.size() == 8);
  CHECK(std::count_if(buffers.begin(), buffers.end(), [](const auto& b) { return b.data != nullptr; }) == 4);
  CHECK(array.child(0).child(1).type().to_string() == "s: utf8");
  CHECK(array.slice(1, 1).length() == 1);
  CHECK(array.to_string().find("list<struct<n: int32, s: utf8>>  length 2") == 0);
  bool thrown = false;
  try {
    array.child(1);
  } catch (const bowstring::error& e) {
    thrown = e.status() == BOWSTRING_INVALID_ARGUMENT;
  }
  CHECK(thrown);
}

void exceptions_stay_on_their_side() {
  const column memory;
  auto builder = memory.builder();
  auto host = bowstring::array::import(builder.finish(), builder.type()).export_host();
  // Through a struct whose release is not the library's, so that it asks for what it has to read.
  ArrowArray foreign = *host.get();
  foreign.release = [](ArrowArray* array) { array->release = nullptr; };
  auto array = bowstring::array::import(bowstring::unique_host_array::take(&foreign), builder.type().export_schema());
  int calls = 0;
  auto sized = array.resolve_sizes_with([&](void* dst, const void* src, std::size_t n) {
    calls++;
    std::memcpy(dst, src, n);
  });
  CHECK(calls > 0 && sized.buffers()[7].size_bytes == 6);
  bool thrown = false;
  try {
    array.resolve_sizes_with([](void*, const void*, std::size_t) { throw std::out_of_range("no such memory"); });
  } catch (const std::out_of_range& e) {
    thrown = std::strcmp(e.what(), "no such memory") == 0;
  }
  CHECK(thrown);
}

void types_compare_and_print() {
  const auto type = bowstring::type::parse("struct<a: int32 not null, b: list<utf8>>");
  auto schema = type.export_schema();
  CHECK(std::strcmp(schema->format, "+s") == 0);
  CHECK(bowstring::type::import(std::move(schema)) == type);
  CHECK(type.child(1) != type.child(0));
  CHECK(type.to_string() == "struct<a: int32 not null, b: list<utf8>>");
  auto bad = bowstring::type::try_parse("list<");
  CHECK(!bad && bad.status() == BOWSTRING_INVALID_ARGUMENT && bad.record().message[0] != '\0');
}

}  // namespace

int main() {
  a_buffer_keeps_its_own_owner();
  a_failure_takes_nothing();
  owners_move_and_handles_count();
  ranges_show_nodes_and_buffers();
  exceptions_stay_on_their_side();
  types_compare_and_print();
  BowstringLiveCounts live{};
  live.struct_size = sizeof(live);
  bowstring_live_counts(&live);
  CHECK(live.types + live.arrays + live.buffers + live.blocks == 0);
  return check_end(30);
}
