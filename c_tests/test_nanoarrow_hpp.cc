// nanoarrow's C++ types and ours hand each other every type that nanoarrow builds: unique owners move both ways, views
// show the values, and what was moved is released once.
#include <nanoarrow/nanoarrow.hpp>
#include <nanoarrow/nanoarrow_device.hpp>

#include <bowstring.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

long checks = 0, released = 0;
std::string about;

#define CHECK(condition) check(!!(condition), __FILE__, __LINE__, #condition)

void check(bool holds, const char* file, int line, const char* text) {
  checks++;
  if (holds) return;
  std::fprintf(stderr, "%s:%d: %s: expected %s\n", file, line, about.c_str(), text);
  std::exit(1);
}

void ok(ArrowErrorCode code, const ArrowError& error = {}) {
  if (code == NANOARROW_OK) return;
  std::fprintf(stderr, "%s: %s\n", about.c_str(), error.message);
  CHECK(code == NANOARROW_OK);
}

std::size_t alive() {
  BowstringLiveCounts live{};
  live.struct_size = sizeof(live);
  bowstring_live_counts(&live);
  return live.types + live.arrays + live.buffers + live.blocks;
}

// ---- what nanoarrow builds ----

using append = std::function<void(ArrowArray*, int row)>;

// A row, or a null where the type has nulls of its own.
append values(std::function<ArrowErrorCode(ArrowArray*, int)> value) {
  return [value](ArrowArray* array, int row) {
    ok(row % 4 == 1 ? ArrowArrayAppendNull(array, 1) : value(array, row));
  };
}

ArrowErrorCode number(ArrowArray* array, int row) { return ArrowArrayAppendInt(array, row); }

ArrowErrorCode text(ArrowArray* array, int row) {
  const std::string value = row % 3 == 0 ? "" : "row " + std::to_string(row) + std::string(row % 5 * 4, '.');
  return ArrowArrayAppendString(array, {value.data(), static_cast<std::int64_t>(value.size())});
}

ArrowErrorCode interval(ArrowArray* array, int row, ArrowType type) {
  ArrowInterval value;
  ArrowIntervalInit(&value, type);
  value.months = row;
  value.days = type == NANOARROW_TYPE_INTERVAL_MONTHS ? 0 : row + 1;
  value.ms = row + 2;
  value.ns = row + 3;
  return ArrowArrayAppendInterval(array, &value);
}

ArrowErrorCode decimal(ArrowArray* array, int row, int bits) {
  ArrowDecimal value;
  ArrowDecimalInit(&value, bits, 9, 2);
  ArrowDecimalSetInt(&value, row * 100 - 150);
  return ArrowArrayAppendDecimal(array, &value);
}

// `row % 3` items below, then the list itself.
append lists(std::function<ArrowErrorCode(ArrowArray*, int)> item) {
  return values([item](ArrowArray* array, int row) {
    for (int i = 0; i < row % 3; i++) NANOARROW_RETURN_NOT_OK(item(array->children[0], row + i));
    return ArrowArrayFinishElement(array);
  });
}

struct sample {
  const char* type;
  append row;
};

std::vector<sample> samples() {
  std::vector<sample> all;
  for (const char* type : {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "date32",
                           "date64", "time32(s)", "time32(ms)", "time64(us)", "time64(ns)", "timestamp(s)",
                           "timestamp(ms, \"UTC\")", "timestamp(us)", "timestamp(ns, \"Europe/Zurich\")", "duration(s)",
                           "duration(ms)", "duration(us)", "duration(ns)"})
    all.push_back({type, values(number)});
  for (const char* type : {"float16", "float32", "float64"})
    all.push_back({type, values([](ArrowArray* a, int row) { return ArrowArrayAppendDouble(a, row / 2.0); })});
  for (const char* type : {"utf8", "large_utf8", "utf8_view", "binary", "large_binary", "binary_view"})
    all.push_back({type, values(text)});
  all.push_back({"null", [](ArrowArray* a, int) { ok(ArrowArrayAppendNull(a, 1)); }});
  all.push_back({"fixed_size_binary(3)", values([](ArrowArray* a, int row) {
                   const char bytes[] = {'a', 'b', static_cast<char>('c' + row)};
                   ArrowBufferView view;
                   view.data.data = bytes;
                   view.size_bytes = 3;
                   return ArrowArrayAppendBytes(a, view);
                 })});
  for (const auto& [type, bits] : std::vector<std::pair<const char*, int>>{
           {"decimal32(9, 2)", 32}, {"decimal64(9, 2)", 64}, {"decimal128(9, 2)", 128}, {"decimal256(9, 2)", 256}})
    all.push_back({type, values([bits = bits](ArrowArray* a, int row) { return decimal(a, row, bits); })});
  for (const auto& [type, id] : std::vector<std::pair<const char*, ArrowType>>{
           {"interval(months)", NANOARROW_TYPE_INTERVAL_MONTHS},
           {"interval(day_time)", NANOARROW_TYPE_INTERVAL_DAY_TIME},
           {"interval(month_day_nano)", NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO}})
    all.push_back({type, values([id = id](ArrowArray* a, int row) { return interval(a, row, id); })});
  for (const char* type : {"list<int32>", "large_list<int32>", "list_view<int32>", "large_list_view<int32>"})
    all.push_back({type, lists(number)});
  all.push_back({"list<utf8_view>", lists(text)});
  all.push_back({"fixed_size_list<int16, 2>", values([](ArrowArray* a, int row) {
                   for (int i = 0; i < 2; i++) NANOARROW_RETURN_NOT_OK(number(a->children[0], row + i));
                   return ArrowArrayFinishElement(a);
                 })});
  const auto pair = [](ArrowArray* a, int row) {
    NANOARROW_RETURN_NOT_OK(number(a->children[0], row));
    NANOARROW_RETURN_NOT_OK(text(a->children[1], row));
    return ArrowArrayFinishElement(a);
  };
  all.push_back({"struct<a: int32, b: utf8>", values(pair)});
  all.push_back({"list<struct<a: int64, b: utf8_view>>", lists(pair)});
  all.push_back({"map<utf8, int64>", values([](ArrowArray* a, int row) {
                   for (int i = 0; i < row % 3; i++) {
                     ArrowArray* entries = a->children[0];
                     NANOARROW_RETURN_NOT_OK(text(entries->children[0], row + i));
                     NANOARROW_RETURN_NOT_OK(number(entries->children[1], i));
                     NANOARROW_RETURN_NOT_OK(ArrowArrayFinishElement(entries));
                   }
                   return ArrowArrayFinishElement(a);
                 })});
  all.push_back({"struct<l: list<fixed_size_list<float32, 1>>>", values([](ArrowArray* a, int row) {
                   ArrowArray *list = a->children[0], *fixed = list->children[0];
                   for (int i = 0; i < row % 3; i++) {
                     NANOARROW_RETURN_NOT_OK(ArrowArrayAppendDouble(fixed->children[0], row));
                     NANOARROW_RETURN_NOT_OK(ArrowArrayFinishElement(fixed));
                   }
                   NANOARROW_RETURN_NOT_OK(ArrowArrayFinishElement(list));
                   return ArrowArrayFinishElement(a);
                 })});
  for (const char* type : {"dense_union<i: int32, s: utf8>", "sparse_union<i: int32, s: utf8>"})
    all.push_back({type, [](ArrowArray* a, int row) {
                     ok(row % 2 == 0 ? number(a->children[0], row) : text(a->children[1], row));
                     ok(ArrowArrayFinishUnionElement(a, static_cast<std::int8_t>(row % 2)));
                   }});
  return all;
}

enum { ROWS = 13 };

// One more owner at the root, which counts.
struct counted {
  ArrowArray inner;
};

void count_release(ArrowArray* array) {
  auto* owner = static_cast<counted*>(array->private_data);
  ArrowArrayRelease(&owner->inner);
  delete owner;
  array->release = nullptr;
  released++;
}

nanoarrow::UniqueArray watched(nanoarrow::UniqueArray array) {
  auto* owner = new counted{};
  ArrowArray shown = *array.get();
  array.move(&owner->inner);
  shown.private_data = owner;
  shown.release = count_release;
  return nanoarrow::UniqueArray(&shown);
}

struct built {
  nanoarrow::UniqueSchema schema;
  nanoarrow::UniqueArray array;
};

void schema_of(const char* type, nanoarrow::UniqueSchema& out) {
  auto exported = bowstring::type::parse(type).export_schema();
  out.reset(exported.get());
  CHECK(exported->release == nullptr && out->release != nullptr);
}

built built_by_nanoarrow(const sample& sample) {
  built made;
  ArrowError error;
  schema_of(sample.type, made.schema);
  ok(ArrowArrayInitFromSchema(made.array.get(), made.schema.get(), &error), error);
  ok(ArrowArrayStartAppending(made.array.get()));
  for (int row = 0; row < ROWS; row++) sample.row(made.array.get(), row);
  ok(ArrowArrayFinishBuildingDefault(made.array.get(), &error), error);
  made.array = watched(std::move(made.array));
  return made;
}

// A dictionary and run ends, whose parts nanoarrow builds one by one.
built built_by_parts(const char* type, const append& codes, const append& words, bool is_dictionary) {
  built made;
  ArrowError error;
  schema_of(type, made.schema);
  ok(ArrowArrayInitFromSchema(made.array.get(), made.schema.get(), &error), error);
  ArrowArray* first = is_dictionary ? made.array.get() : made.array->children[0];
  ArrowArray* second = is_dictionary ? made.array->dictionary : made.array->children[1];
  ok(ArrowArrayStartAppending(first));
  if (!is_dictionary) ok(ArrowArrayStartAppending(second));
  const int parts = is_dictionary ? ROWS : 4;
  for (int row = 0; row < parts; row++) codes(first, row);
  for (int row = 0; row < 4; row++) words(second, row);
  if (!is_dictionary) made.array->length = ROWS;
  ok(ArrowArrayFinishBuildingDefault(made.array.get(), &error), error);
  made.array = watched(std::move(made.array));
  return made;
}

// ---- what both sides see ----

bool same_value(const ArrowArrayView* a, std::int64_t i, const ArrowArrayView* b, std::int64_t k) {
  if (ArrowArrayViewIsNull(a, i) || ArrowArrayViewIsNull(b, k))
    return ArrowArrayViewIsNull(a, i) == ArrowArrayViewIsNull(b, k);
  if (a->dictionary != nullptr)
    return same_value(a->dictionary, ArrowArrayViewGetIntUnsafe(a, i), b->dictionary, ArrowArrayViewGetIntUnsafe(b, k));
  switch (a->storage_type) {
    case NANOARROW_TYPE_NA:
      return true;
    case NANOARROW_TYPE_STRING: case NANOARROW_TYPE_LARGE_STRING: case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY: case NANOARROW_TYPE_LARGE_BINARY: case NANOARROW_TYPE_BINARY_VIEW:
    case NANOARROW_TYPE_FIXED_SIZE_BINARY: {
      const auto x = ArrowArrayViewGetBytesUnsafe(a, i), y = ArrowArrayViewGetBytesUnsafe(b, k);
      return x.size_bytes == y.size_bytes &&
             (x.size_bytes == 0 || memcmp(x.data.data, y.data.data, static_cast<std::size_t>(x.size_bytes)) == 0);
    }
    case NANOARROW_TYPE_HALF_FLOAT: case NANOARROW_TYPE_FLOAT: case NANOARROW_TYPE_DOUBLE:
      return ArrowArrayViewGetDoubleUnsafe(a, i) == ArrowArrayViewGetDoubleUnsafe(b, k);
    case NANOARROW_TYPE_STRUCT:
      for (std::int64_t child = 0; child < a->n_children; child++)
        if (!same_value(a->children[child], i + a->offset, b->children[child], k + b->offset)) return false;
      return true;
    case NANOARROW_TYPE_LIST: case NANOARROW_TYPE_LARGE_LIST: case NANOARROW_TYPE_MAP:
    case NANOARROW_TYPE_FIXED_SIZE_LIST: case NANOARROW_TYPE_LIST_VIEW: case NANOARROW_TYPE_LARGE_LIST_VIEW: {
      const auto bounds = [](const ArrowArrayView* view, std::int64_t row) {
        const auto at = row + view->offset, size = view->layout.child_size_elements;
        const auto* sizes = &view->buffer_views[2].data;
        if (view->storage_type == NANOARROW_TYPE_FIXED_SIZE_LIST) return std::pair(at * size, (at + 1) * size);
        const auto start = ArrowArrayViewListChildOffset(view, at);
        if (view->storage_type == NANOARROW_TYPE_LIST_VIEW) return std::pair(start, start + sizes->as_int32[at]);
        if (view->storage_type == NANOARROW_TYPE_LARGE_LIST_VIEW) return std::pair(start, start + sizes->as_int64[at]);
        return std::pair(start, ArrowArrayViewListChildOffset(view, at + 1));
      };
      const auto [from, to] = bounds(a, i);
      const auto [start, end] = bounds(b, k);
      if (to - from != end - start) return false;
      for (std::int64_t at = 0; at < to - from; at++)
        if (!same_value(a->children[0], from + at, b->children[0], start + at)) return false;
      return true;
    }
    case NANOARROW_TYPE_DENSE_UNION: case NANOARROW_TYPE_SPARSE_UNION: {
      const auto child = ArrowArrayViewUnionChildIndex(a, i);
      return child == ArrowArrayViewUnionChildIndex(b, k) &&
             same_value(a->children[child], ArrowArrayViewUnionChildOffset(a, i), b->children[child],
                        ArrowArrayViewUnionChildOffset(b, k));
    }
    case NANOARROW_TYPE_DECIMAL32: case NANOARROW_TYPE_DECIMAL64: case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256: case NANOARROW_TYPE_INTERVAL_MONTHS: case NANOARROW_TYPE_INTERVAL_DAY_TIME:
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO: {
      const auto width = static_cast<std::size_t>(a->layout.element_size_bits[1] / 8);
      const auto at = [&](const ArrowArrayView* view, std::int64_t row) {
        return view->buffer_views[1].data.as_uint8 + static_cast<std::size_t>(row + view->offset) * width;
      };
      return memcmp(at(a, i), at(b, k), width) == 0;
    }
    default:
      return ArrowArrayViewGetIntUnsafe(a, i) == ArrowArrayViewGetIntUnsafe(b, k);
  }
}

nanoarrow::UniqueArrayView view_of(const ArrowArray* array, const ArrowSchema* schema) {
  nanoarrow::UniqueArrayView view;
  ArrowError error;
  ok(ArrowArrayViewInitFromSchema(view.get(), schema, &error), error);
  ok(ArrowArrayViewSetArray(view.get(), array, &error), error);
  ok(ArrowArrayViewValidate(view.get(), NANOARROW_VALIDATION_LEVEL_FULL, &error), error);
  return view;
}

// Row by row, from `first` on in what nanoarrow built.
void same_rows(const ArrowArrayView* found, const ArrowArrayView* expected, std::int64_t first) {
  // nanoarrow reads no values of run-end encoded arrays, so their parts are compared.
  if (expected->storage_type == NANOARROW_TYPE_RUN_END_ENCODED) {
    CHECK(found->offset == first || found->length == 0);
    for (int child = 0; child < 2; child++) same_rows(found->children[child], expected->children[child], 0);
    return;
  }
  for (std::int64_t row = 0; row < found->length; row++) CHECK(same_value(found, row, expected, first + row));
}

bowstring::array taken(nanoarrow::UniqueArray& array, nanoarrow::UniqueSchema& schema) {
  // Moved by address: both unique owners are empty afterwards, and destroy nothing.
  auto handle = bowstring::array::import(bowstring::unique_host_array::take(array.get()),
                                         bowstring::unique_schema::take(schema.get()));
  CHECK(array->release == nullptr && schema->release == nullptr);
  return handle;
}

long windows = 0;

void there_and_back(const std::function<built()>& build) {
  const long before = released;
  built reference = build(), given = build();
  const auto expected = view_of(reference.array.get(), reference.schema.get());
  auto handle = taken(given.array, given.schema);
  for (const auto& [first, length] : std::vector<std::pair<int, int>>{{0, ROWS}, {1, 5}, {ROWS, 0}, {7, ROWS - 7}}) {
    const auto window = first == 0 ? handle : handle.slice(first, length);
    // Straight into nanoarrow's owners, and moved from ours.
    nanoarrow::UniqueArray host;
    nanoarrow::UniqueSchema schema;
    BowstringError record;
    CHECK(bowstring_array_export_host(window.get(), nullptr, host.get(), schema.get(), &record) == BOWSTRING_OK);
    CHECK(host->length == length);
    same_rows(view_of(host.get(), schema.get()).get(), expected.get(), first);

    auto exported = window.export_device();
    nanoarrow::device::UniqueDeviceArray device(exported.get());
    CHECK(exported->array.release == nullptr && device->array.release != nullptr);
    nanoarrow::device::UniqueDeviceArrayView view;
    ArrowError error;
    ok(ArrowArrayViewInitFromSchema(&view->array_view, schema.get(), &error), error);
    ok(ArrowDeviceArrayViewSetArray(view.get(), device.get(), &error), error);
    same_rows(&view->array_view, expected.get(), first);

    // And back, after another move among nanoarrow's own.
    nanoarrow::device::UniqueDeviceArray moved(std::move(device));
    CHECK(device->array.release == nullptr);
    auto again = bowstring::array::import(bowstring::unique_device_array::take(moved.get()),
                                          bowstring::unique_schema::take(schema.get()));
    CHECK(moved->array.release == nullptr && again.length() == length);
    windows++;
  }
  CHECK(released == before);
  // A child outlives the handle, and is the last to keep what nanoarrow built.
  if (given.array->n_children > 0) {
    auto child = handle.child(0);
    handle = {};
    CHECK(released == before);
    nanoarrow::UniqueArray host;
    auto exported = child.export_host();
    host.reset(exported.get());
    child = {};
    CHECK(released == before);
  }
  handle = {};
  CHECK(released == before + 1);
  reference.array.reset();
  CHECK(released == before + 2);
}

// ---- nanoarrow's ranges, and streams ----

template <class View, class Value>
void range_shows(const View& view, const std::vector<std::pair<bool, Value>>& expected) {
  std::size_t row = 0;
  for (const auto& found : view) {
    CHECK(row < expected.size() && static_cast<bool>(found) == expected[row].first);
    if (expected[row].first) CHECK(Value(*found) == expected[row].second);
    row++;
  }
  CHECK(row == expected.size());
}

struct words : std::string {
  using std::string::string;
  explicit words(ArrowStringView view) : std::string(view.data, static_cast<std::size_t>(view.size_bytes)) {}
};

void ranges_show_values() {
  about = "ranges";
  const auto numbers = std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{7, 8, 9, 10});
  const auto valid = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{0x0D});
  bowstring::array_builder ints("int32");
  ints.node(4, 1).buffer(valid).buffer(numbers);
  const auto array = bowstring::array::import(ints.finish(), ints.type());
  for (int first = 0; first < 3; first++) {
    const auto host = array.slice(first, 4 - first).export_host();
    std::vector<std::pair<bool, std::int32_t>> expected{{true, 7}, {false, 0}, {true, 9}, {true, 10}};
    expected.erase(expected.begin(), expected.begin() + first);
    range_shows(nanoarrow::ViewArrayAs<std::int32_t>(host.get()), expected);
  }
  const auto offsets = std::make_shared<std::vector<std::int32_t>>(std::vector<std::int32_t>{0, 3, 3, 9});
  bowstring::array_builder texts("utf8");
  texts.node(3).no_buffer().buffer(offsets).buffer(std::make_shared<std::string>("bowstring"));
  auto host = bowstring::array::import(texts.finish(), texts.type()).export_host();
  range_shows(nanoarrow::ViewArrayAsBytes<32>(host.get()),
              std::vector<std::pair<bool, words>>{{true, "bow"}, {true, ""}, {true, "string"}});
  bowstring::array_builder fixed("fixed_size_binary(3)");
  fixed.node(3).no_buffer().buffer(std::make_shared<std::string>("bowstring"));
  host = bowstring::array::import(fixed.finish(), fixed.type()).export_host();
  range_shows(nanoarrow::ViewArrayAsFixedSizeBytes(host.get(), 3),
              std::vector<std::pair<bool, words>>{{true, "bow"}, {true, "str"}, {true, "ing"}});
  CHECK(numbers.use_count() == 2);
}

// A stream of nanoarrow's that holds exports of ours, drained into handles again.
void streams_carry_exports() {
  about = "a stream";
  const long before = released;
  std::vector<nanoarrow::UniqueArray> batches;
  nanoarrow::UniqueSchema schema;
  const auto all = samples();
  built made = built_by_nanoarrow(all[0]);
  ok(ArrowSchemaDeepCopy(made.schema.get(), schema.get()));
  {
    const auto handle = taken(made.array, made.schema);
    for (int first = 0; first < 4; first++) {
      auto exported = handle.slice(first, ROWS - first).export_host();
      batches.emplace_back(exported.get());
    }
  }
  const auto type = bowstring::type::parse(all[0].type);
  nanoarrow::UniqueArrayStream stream;
  nanoarrow::VectorArrayStream(schema.get(), std::move(batches)).ToArrayStream(stream.get());
  // Through our own owner and back.
  auto raw = bowstring::unique_host_stream::take(stream.get());
  CHECK(stream->release == nullptr && raw->release != nullptr);
  stream.reset(raw.get());
  nanoarrow::ViewArrayStream view(stream.get());
  std::vector<bowstring::array> kept;
  int drawn = 0;
  for (ArrowArray& batch : view) {
    if (drawn++ == 1) continue;
    BowstringError record;
    bowstring::array taken;
    CHECK(bowstring_array_import_host_typed(&batch, type.get(), taken.put(), &record) == BOWSTRING_OK);
    kept.push_back(std::move(taken));
    CHECK(batch.release == nullptr && kept.back().length() == ROWS - (drawn - 1));
  }
  CHECK(view.code() == NANOARROW_OK && view.count() == 4 && kept.size() == 3);
  stream.reset();
  CHECK(released == before);
  kept.clear();
  CHECK(released == before + 1);
}

// What nobody takes is let go by the owner that holds it.
void owners_let_go() {
  about = "owners";
  const long before = released;
  const auto all = samples();
  built made = built_by_nanoarrow(all[0]);
  {
    const auto handle = taken(made.array, made.schema);
    auto exported = handle.export_device();
    nanoarrow::device::UniqueDeviceArray first(exported.get()), second(std::move(first)), third;
    third = std::move(second);
    nanoarrow::UniqueSchema schema;
    auto type = handle.type().export_schema();
    schema.reset(type.get());
  }
  CHECK(released == before + 1);
  // An import that fails leaves both with nanoarrow.
  built other = built_by_nanoarrow(all[0]);
  other.array->n_buffers = 1;
  BowstringArray* out = nullptr;
  BowstringError record;
  CHECK(bowstring_array_import_host(other.array.get(), other.schema.get(), &out, &record) == BOWSTRING_INVALID_DATA);
  CHECK(out == nullptr && other.array->release != nullptr && other.schema->release != nullptr);
  CHECK(released == before + 1);
  other.array.reset();
  CHECK(released == before + 2);
}

}  // namespace

int main() {
  const std::size_t before = alive();
  long types = 0;
  for (const auto& sample : samples()) {
    about = sample.type;
    there_and_back([&] { return built_by_nanoarrow(sample); });
    types++;
  }
  const auto words = values(text);
  const append codes = values([](ArrowArray* a, int row) { return ArrowArrayAppendInt(a, row % 4); });
  for (const char* type : {"dictionary<int8, utf8>", "dictionary<uint32, large_utf8>", "dictionary<int64, utf8_view>"}) {
    about = type;
    there_and_back([&] { return built_by_parts(type, codes, words, true); });
    types++;
  }
  const append ends = [](ArrowArray* a, int row) { ok(ArrowArrayAppendInt(a, row == 3 ? ROWS : 2 * row + 1)); };
  for (const char* type :
       {"run_end_encoded<int16, utf8>", "run_end_encoded<int32, utf8_view>", "run_end_encoded<int64, utf8>"}) {
    about = type;
    there_and_back([&] { return built_by_parts(type, ends, words, false); });
    types++;
  }
  ranges_show_values();
  streams_carry_exports();
  owners_let_go();
  about = "the end";
  CHECK(alive() == before && before == 0);
  CHECK(types >= 57 && windows >= 4 * types && released >= 2 * types);
  std::printf("%ld types, %ld windows, %ld arrays of nanoarrow released once, %ld checks\n", types, windows, released,
              checks);
  return 0;
}
