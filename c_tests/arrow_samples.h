// Checks, and arrays of every type that Arrow C++ has, for the tests that hand them to bowstring and back.
#ifndef ARROW_SAMPLES_H
#define ARROW_SAMPLES_H

#include <arrow/api.h>
#include <arrow/json/from_string.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

inline long checks = 0;

// What is being looked at, printed with a failure.
inline std::string about;

#define CHECK(condition) check(!!(condition), __FILE__, __LINE__, #condition)

inline void check(bool holds, const char* file, int line, const char* text) {
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

inline void ok(const arrow::Status& status) {
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
inline std::vector<sample> samples() {
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

inline arrays every_array() {
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

#endif
