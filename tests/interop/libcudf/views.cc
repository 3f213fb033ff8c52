#include "views.h"

#include <cudf/dictionary/dictionary_column_view.hpp>
#include <cudf/lists/lists_column_view.hpp>
#include <cudf/strings/strings_column_view.hpp>
#include <cudf/utilities/traits.hpp>

namespace {

template <class T>
T number(const cudf::column_view& view, std::int64_t at) {
  return static_cast<const T*>(view.head<void>())[at];
}

std::int64_t integer(const cudf::column_view& view, std::int64_t at) {
  switch (cudf::size_of(view.type())) {
    case 1: return number<std::int8_t>(view, at);
    case 2: return number<std::int16_t>(view, at);
    case 4: return number<std::int32_t>(view, at);
    default: return number<std::int64_t>(view, at);
  }
}

// libcudf looks at a bitmap only where the count says that there are nulls.
bool is_null(const cudf::column_view& view, std::int64_t at) {
  if (view.type().id() == cudf::type_id::EMPTY) return true;
  return view.has_nulls() && view.null_mask() != nullptr && ((view.null_mask()[at / 32] >> (at % 32)) & 1) == 0;
}

// One row, counted from the start of the buffers.
std::string value(const cudf::column_view& view, std::int64_t at) {
  if (is_null(view, at)) return "null";
  switch (view.type().id()) {
    case cudf::type_id::BOOL8: return number<std::uint8_t>(view, at) != 0 ? "true" : "false";
    case cudf::type_id::STRING: {
      const auto offsets = view.child(cudf::strings_column_view::offsets_column_index);
      const auto* text = static_cast<const char*>(view.head<void>());
      return '"' + std::string(text + integer(offsets, at), text + integer(offsets, at + 1)) + '"';
    }
    case cudf::type_id::LIST: {
      const auto offsets = view.child(cudf::lists_column_view::offsets_column_index);
      const auto child = view.child(cudf::lists_column_view::child_column_index);
      std::string text = "[";
      for (auto i = integer(offsets, at); i < integer(offsets, at + 1); i++)
        text += (text == "[" ? "" : ", ") + value(child, child.offset() + i);
      return text + "]";
    }
    case cudf::type_id::STRUCT: {
      std::string text = "{";
      for (auto child = view.child_begin(); child != view.child_end(); ++child)
        text += (text == "{" ? "" : ", ") + value(*child, child->offset() + at);
      return text + "}";
    }
    case cudf::type_id::DICTIONARY32: {
      const auto keys = view.child(cudf::dictionary_column_view::keys_column_index);
      const auto at_key = integer(view.child(cudf::dictionary_column_view::indices_column_index), at);
      return value(keys, keys.offset() + at_key);
    }
    default: break;
  }
  std::string text;
  const auto width = static_cast<std::int64_t>(cudf::size_of(view.type()));
  for (std::int64_t i = 0; i < width; i++) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", number<std::uint8_t>(view, at * width + i));
    text += digits;
  }
  return text;
}

// A kernel's load faults at an address that is no multiple of the size that it loads.
std::string misaligned(const cudf::column_view& view) {
  const auto off = [](const void* at, std::size_t by) { return reinterpret_cast<std::uintptr_t>(at) % by != 0; };
  if (view.size() == 0) return "";
  if (off(view.null_mask(), sizeof(cudf::bitmask_type))) return "the bitmap is not at a multiple of 4";
  if (view.type().id() == cudf::type_id::EMPTY) return "";
  if (cudf::is_fixed_width(view.type()) && off(view.head<void>(), cudf::size_of(view.type())))
    return "the values are not at a multiple of " + std::to_string(cudf::size_of(view.type()));
  for (auto child = view.child_begin(); child != view.child_end(); ++child)
    if (auto complaint = misaligned(*child); !complaint.empty()) return complaint;
  return "";
}

std::string unlike(std::int64_t row, const std::string& seen, const std::string& meant) {
  return "row " + std::to_string(row) + " is " + seen + ", Arrow says " + meant;
}

}  // namespace

std::string description(const cudf::column_view& view, const Exported& given) {
  std::string text = "type " + std::to_string(static_cast<int>(view.type().id())) + " size " + std::to_string(view.size()) +
                     " offset " + std::to_string(view.offset()) + " nulls " + std::to_string(view.null_count()) + " data " +
                     given.place(view.head<void>()) + " mask " + given.place(view.null_mask());
  if (view.num_children() == 0) return text;
  text += " (";
  for (auto child = view.child_begin(); child != view.child_end(); ++child)
    text += (child == view.child_begin() ? "" : "; ") + description(*child, given);
  return text + ")";
}

std::string difference(const Node& node, const std::vector<cudf::column_view>& columns, std::int64_t rows, bool as_table,
                       bool read) {
  if (rows != node.length) return std::to_string(rows) + " rows, Arrow says " + std::to_string(node.length);
  for (const auto& column : columns)
    if (auto complaint = misaligned(column); !complaint.empty()) return complaint;
  if (!read) {
    // A copy begins at its start, so only what is above a view's range tells.
    const Node& first = as_table && !node.children.empty() ? node.children[0] : node;
    const bool cut = first.format != "n" && first.offset > INT32_MAX && !columns.empty() && columns[0].offset() != first.offset;
    return cut ? "begins at " + std::to_string(columns[0].offset()) + ", Arrow says " + std::to_string(first.offset) : "";
  }
  for (std::int64_t row = 0; row < rows; row++) {
    std::string seen = as_table ? "{" : "";
    for (const auto& column : columns) seen += (seen.size() > 1 ? ", " : "") + value(column, column.offset() + row);
    if (as_table) seen += "}";
    const std::string meant = meaning(node, row);
    if (seen != meant) return unlike(row, seen, meant);
  }
  return "";
}

namespace {

std::string other_children(const cudf::column_view& view, const Node& sent, const std::string& path) {
  if (view.num_children() != static_cast<cudf::size_type>(sent.children.size())) return path + "another number of children";
  for (cudf::size_type i = 0; i < view.num_children(); i++)
    if (auto where = other_memory(view.child(i), sent.children[static_cast<std::size_t>(i)], path + std::to_string(i) + ".");
        !where.empty())
      return where;
  return "";
}

}  // namespace

std::string other_memory(const cudf::column_view& view, const Node& sent, const std::string& path) {
  const auto unlike = [&](const char* what, std::int64_t seen, std::int64_t meant) {
    return path + what + " is " + std::to_string(seen) + ", was " + std::to_string(meant);
  };
  const auto is_at = [&](const void* seen, std::size_t buffer) { return seen == sent.buffers.at(buffer).start; };
  if (view.size() != sent.length) return unlike("length", view.size(), sent.length);
  if (view.type().id() == cudf::type_id::EMPTY) return "";
  // An empty view of text or lists is made anew.
  if (view.size() == 0) return "";
  if (view.offset() != sent.offset) return unlike("offset", view.offset(), sent.offset);
  if (view.null_count() != sent.null_count) return unlike("null count", view.null_count(), sent.null_count);
  if (!is_at(view.null_mask(), 0)) return path + "the bitmap is at another address";
  const std::string elsewhere = path + "the values are at another address";
  switch (view.type().id()) {
    case cudf::type_id::STRING:
      return is_at(view.head<void>(), 2) && is_at(view.child(0).head<void>(), 1) ? "" : elsewhere;
    case cudf::type_id::LIST:
      if (!is_at(view.child(0).head<void>(), 1)) return elsewhere;
      return other_memory(view.child(1), sent.children.at(0), path + "0.");
    case cudf::type_id::STRUCT: return other_children(view, sent, path);
    case cudf::type_id::DICTIONARY32: {
      const auto indices = view.child(cudf::dictionary_column_view::indices_column_index);
      if (!is_at(indices.head<void>(), 1)) return elsewhere;
      return other_memory(view.child(cudf::dictionary_column_view::keys_column_index), sent.dictionary.at(0), path + "dict.");
    }
    default: return is_at(view.head<void>(), 1) ? "" : elsewhere;
  }
}
