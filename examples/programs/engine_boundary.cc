// The boundary of an engine that is a shared library: a C function that takes Arrow structs and gives Arrow structs, and
// C++ on both sides of it. Nothing that is thrown crosses, nothing is copied, and whoever fails has taken nothing.
#include <bowstring.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>

// ---- the engine: knows Arrow structs only -------------------------------------------------------------------------

// Keeps rows [first, first + count) of a table. On success `table` is taken and `out` is the caller's; on failure `table`
// is still the caller's, and `message` says why.
extern "C" int engine_limit(ArrowDeviceArray* table, ArrowSchema* schema, int64_t first, int64_t count,
                            ArrowDeviceArray* out, char* message, size_t message_size) {
  try {
    auto type = bowstring::type::try_import_copy(schema).value();
    auto raw = bowstring::unique_device_array::take(table);
    auto imported = bowstring::array::try_import(raw, type);
    if (!imported) {
      raw.move_to(table);
      throw bowstring::error(imported.record());
    }
    bowstring::array array = std::move(imported).value();
    if (first < 0 || first > array.length()) {
      array.export_device().move_to(table);
      throw std::out_of_range("expected the first row within the table");
    }
    const auto rows = std::min(count, array.length() - first);
    array.slice(first, rows).export_device().move_to(out);
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(message, message_size, "%s", e.what());
    return 1;
  }
}

// ---- a caller: owns columns in shared pointers --------------------------------------------------------------------

int main() {
  auto numbers = std::make_shared<std::vector<std::int64_t>>(10);
  std::iota(numbers->begin(), numbers->end(), 0);
  bowstring::array_builder builder("struct<n: int64>");
  builder.node(10).no_buffer().node(10).no_buffer().buffer(numbers);
  auto table = builder.finish();
  auto schema = builder.type().export_schema();

  char message[200] = "";
  bowstring::unique_device_array out;
  if (engine_limit(table.get(), schema.get(), 99, 3, out.put(), message, sizeof(message)) == 0) return 1;
  std::printf("refused: %s; the table is still ours: %s\n", message, table->array.release ? "yes" : "no");

  if (engine_limit(table.get(), schema.get(), 4, 3, out.put(), message, sizeof(message)) != 0) return 1;
  const auto array = bowstring::array::import(std::move(out), builder.type());
  const auto column = array.child(0);
  const auto info = column.buffers()[1];
  const auto* values = static_cast<const std::int64_t*>(info.data) + info.first;
  std::printf("rows 4 to 6: %lld %lld %lld, at the same address: %s\n", static_cast<long long>(values[0]),
              static_cast<long long>(values[1]), static_cast<long long>(values[2]),
              info.data == numbers->data() ? "yes" : "no");
  return values[0] == 4 && info.data == numbers->data() ? 0 : 1;
}
