#include "nodes.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

Buffer Buffer::of(const void* bytes, std::size_t size) {
  Buffer buffer;
  // Consumers may read whole words, as far as the padding that Arrow recommends.
  const std::size_t padded = (size / 64 + 2) * 64;
  buffer.memory.reset(static_cast<unsigned char*>(std::aligned_alloc(64, padded)), std::free);
  std::memset(buffer.memory.get(), 0, padded);
  if (size != 0) std::memcpy(buffer.memory.get(), bytes, size);
  buffer.start = buffer.memory.get();
  buffer.size = size;
  return buffer;
}

Buffer Buffer::vast() {
  static constexpr std::size_t bytes = std::size_t{1} << 38;
  static void* const zeros = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == MAP_FAILED) std::abort();
  Buffer buffer;
  buffer.start = static_cast<const unsigned char*>(zeros);
  buffer.size = bytes;
  return buffer;
}

Buffer Buffer::shifted(std::size_t by) const {
  std::vector<unsigned char> bytes(by + size);
  std::memcpy(bytes.data() + by, start, size);
  Buffer moved = of(bytes.data(), bytes.size());
  moved.start += by;
  moved.size = size;
  return moved;
}

namespace {

template <class T>
Buffer buffer_of(const std::vector<T>& values) {
  return Buffer::of(values.data(), values.size() * sizeof(T));
}

bool is_valid_row(std::int64_t row) { return row % 4 != 1 && row % 4 != 2; }

Buffer bits(std::int64_t rows, bool (*is_set)(std::int64_t)) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(rows / 8 + 1));
  for (std::int64_t row = 0; row < rows; row++)
    if (is_set(row)) bytes[static_cast<std::size_t>(row / 8)] |= static_cast<unsigned char>(1 << (row % 8));
  return buffer_of(bytes);
}

bool bit(const Buffer& buffer, std::int64_t at) { return (buffer.start[at / 8] >> (at % 8)) & 1; }

template <class T>
Buffer indices(std::int64_t rows, std::int64_t below) {
  std::vector<T> values;
  for (std::int64_t row = 0; row < rows; row++) values.push_back(static_cast<T>((row + 1) % below));
  return buffer_of(values);
}

Buffer indices(const std::string& format, std::int64_t rows, std::int64_t below) {
  switch (width_of(format)) {
    case 1: return indices<std::int8_t>(rows, below);
    case 2: return indices<std::int16_t>(rows, below);
    case 4: return indices<std::int32_t>(rows, below);
    default: return indices<std::int64_t>(rows, below);
  }
}

// Row r holds r + 1 - r % 2 items, which start where those of the row before end.
template <class T>
std::vector<T> list_offsets(std::int64_t rows) {
  std::vector<T> offsets{0};
  for (std::int64_t row = 0; row < rows; row++) offsets.push_back(static_cast<T>(offsets.back() + row + 1 - row % 2));
  return offsets;
}

template <class T>
std::vector<T> list_sizes(std::int64_t rows) {
  std::vector<T> sizes;
  for (std::int64_t row = 0; row < rows; row++) sizes.push_back(static_cast<T>(row + 1 - row % 2));
  return sizes;
}

std::int64_t listed(std::int64_t rows) { return list_offsets<std::int64_t>(rows).back(); }

std::string characters(std::int64_t n) {
  std::string text;
  for (std::int64_t i = 0; i < n; i++) text += static_cast<char>('a' + i % 26);
  return text;
}

// Row 0 is short; the others lie in the variadic buffer.
void fill_views(Node& node, std::int64_t rows) {
  const std::string text = characters(13 * rows);
  std::vector<std::int32_t> views;
  for (std::int64_t row = 0; row < rows; row++) {
    std::int32_t view[4] = {row == 0 ? 5 : 13, 0, 0, 0};
    std::memcpy(&view[1], text.data() + 13 * row, row == 0 ? 5 : 4);
    if (row != 0) view[3] = static_cast<std::int32_t>(13 * row);
    views.insert(views.end(), view, view + 4);
  }
  node.buffers.push_back(buffer_of(views));
  node.buffers.push_back(Buffer::of(text.data(), text.size()));
  node.buffers.push_back(buffer_of(std::vector<std::int64_t>{static_cast<std::int64_t>(text.size())}));
}

void fill_union(Node& node, const Type& type, std::int64_t rows, bool dense) {
  std::vector<std::int8_t> ids;
  std::vector<std::int32_t> offsets;
  for (std::int64_t row = 0; row < rows; row++) {
    ids.push_back(static_cast<std::int8_t>(row % 2));
    offsets.push_back(static_cast<std::int32_t>(row));
  }
  node.buffers.push_back(buffer_of(ids));
  if (dense) node.buffers.push_back(buffer_of(offsets));
  for (const Type& child : type.children) node.children.push_back(fill(child, rows, false));
}

void fill_runs(Node& node, const Type& type, std::int64_t rows) {
  Node ends = fill(type.children.at(0), rows, false);
  std::vector<std::int32_t> values;
  for (std::int64_t row = 0; row < rows; row++) values.push_back(static_cast<std::int32_t>(row + 1));
  ends.buffers[1] = buffer_of(values);
  ends.flags = 0;
  node.children = {ends, fill(type.children.at(1), rows, false)};
}

void fill_nested(Node& node, const Type& type, std::int64_t rows) {
  const std::string& format = type.format;
  const auto add_children = [&](std::int64_t child_rows) {
    for (const Type& child : type.children) node.children.push_back(fill(child, child_rows, false));
  };
  if (format == "+l" || format == "+m") {
    node.buffers.push_back(buffer_of(list_offsets<std::int32_t>(rows)));
    add_children(listed(rows));
  } else if (format == "+L") {
    node.buffers.push_back(buffer_of(list_offsets<std::int64_t>(rows)));
    add_children(listed(rows));
  } else if (format == "+vl") {
    node.buffers.push_back(buffer_of(list_offsets<std::int32_t>(rows)));
    node.buffers.push_back(buffer_of(list_sizes<std::int32_t>(rows)));
    add_children(listed(rows));
  } else if (format == "+vL") {
    node.buffers.push_back(buffer_of(list_offsets<std::int64_t>(rows)));
    node.buffers.push_back(buffer_of(list_sizes<std::int64_t>(rows)));
    add_children(listed(rows));
  } else if (format.starts_with("+w:")) {
    add_children(rows * std::stol(format.substr(3)));
  } else {
    add_children(rows);
  }
  if (format == "+m") {
    node.child(0).flags = 0;
    node.child(0).child(0).flags = 0;
  }
}

std::int64_t nulls_in(const Node& node) {
  if (node.format == "n") return node.length;
  if (node.buffers.empty() || node.buffers[0].start == nullptr || node.format.starts_with("+u")) return 0;
  std::int64_t nulls = 0;
  for (std::int64_t row = node.offset; row < node.offset + node.length; row++) nulls += !bit(node.buffers[0], row);
  return nulls;
}

}  // namespace

std::size_t width_of(const std::string& format) {
  if (format.starts_with("d:")) {
    const auto bits = format.find(',', format.find(',') + 1);
    return bits == std::string::npos ? 16 : std::stoul(format.substr(bits + 1)) / 8;
  }
  if (format.starts_with("w:")) return std::stoul(format.substr(2));
  if (format.starts_with("ts") || format.starts_with("tD")) return 8;
  const std::pair<const char*, std::size_t> known[] = {
      {"c", 1}, {"C", 1}, {"s", 2}, {"S", 2}, {"e", 2}, {"i", 4}, {"I", 4}, {"f", 4}, {"l", 8}, {"L", 8}, {"g", 8},
      {"tdD", 4}, {"tts", 4}, {"ttm", 4}, {"tiM", 4}, {"tdm", 8}, {"ttu", 8}, {"ttn", 8}, {"tiD", 8}, {"tin", 16},
  };
  for (const auto& [name, width] : known)
    if (format == name) return width;
  return 0;
}

Node fill(const Type& type, std::int64_t rows, bool nulls) {
  Node node;
  node.format = type.format;
  node.metadata = type.metadata;
  node.name = "f";
  node.length = rows;
  const std::string& format = type.format;
  if (format.starts_with("+u")) {
    fill_union(node, type, rows, format[2] == 'd');
  } else if (format == "+r") {
    fill_runs(node, type, rows);
  } else if (format != "n") {
    node.buffers.push_back(nulls ? bits(rows, is_valid_row) : Buffer::none());
    if (!type.dictionary.empty()) {
      node.dictionary.push_back(fill(type.dictionary[0], 3, false));
      node.buffers.push_back(indices(format, rows, 3));
    } else if (format[0] == '+') {
      fill_nested(node, type, rows);
    } else if (format == "b") {
      node.buffers.push_back(bits(rows, [](std::int64_t row) { return row % 3 != 1; }));
    } else if (format == "u" || format == "z") {
      node.buffers.push_back(buffer_of(list_offsets<std::int32_t>(rows)));
      node.buffers.push_back(Buffer::of(characters(listed(rows)).data(), static_cast<std::size_t>(listed(rows))));
    } else if (format == "U" || format == "Z") {
      node.buffers.push_back(buffer_of(list_offsets<std::int64_t>(rows)));
      node.buffers.push_back(Buffer::of(characters(listed(rows)).data(), static_cast<std::size_t>(listed(rows))));
    } else if (format[0] == 'v') {
      fill_views(node, rows);
    } else {
      std::vector<unsigned char> bytes;
      const auto width = static_cast<std::int64_t>(width_of(format));
      for (std::int64_t i = 0; i < rows * width; i++) bytes.push_back(static_cast<unsigned char>(i * 7 % 100 + 1));
      node.buffers.push_back(buffer_of(bytes));
    }
  }
  node.null_count = nulls_in(node);
  return node;
}

Node window(Node node, std::int64_t offset, std::int64_t length) {
  node.offset = offset;
  node.length = length;
  node.null_count = nulls_in(node);
  return node;
}

Node table_of(const Node& column) {
  Node table;
  table.format = "+s";
  table.flags = 0;
  table.length = column.length;
  table.buffers = {Buffer::none()};
  table.children = {column};
  return table;
}

namespace {

std::string range(const Node& child, std::int64_t from, std::int64_t to) {
  std::string text = "[";
  for (std::int64_t i = from; i < to; i++) text += (i == from ? "" : ", ") + meaning(child, i);
  return text + "]";
}

std::int64_t offset_of(const Node& node, std::int64_t at) {
  const bool is_large = node.format == "U" || node.format == "+L";
  return is_large ? node.buffers[1].as<std::int64_t>()[at] : node.buffers[1].as<std::int32_t>()[at];
}

std::string characters_of(const Node& node, std::int64_t from, std::int64_t to) {
  return '"' + std::string(node.buffers[2].as<char>() + from, node.buffers[2].as<char>() + to) + '"';
}

std::string view_of(const Node& node, std::int64_t at) {
  const auto* view = node.buffers[1].as<std::int32_t>() + 4 * at;
  const char* text = view[0] <= 12 ? reinterpret_cast<const char*>(view + 1) : node.buffers[2].as<char>() + view[3];
  return '"' + std::string(text, static_cast<std::size_t>(view[0])) + '"';
}

std::int64_t index_of(const Node& node, std::int64_t at) {
  switch (width_of(node.format)) {
    case 1: return node.buffers[1].as<std::int8_t>()[at];
    case 2: return node.buffers[1].as<std::int16_t>()[at];
    case 4: return node.buffers[1].as<std::int32_t>()[at];
    default: return node.buffers[1].as<std::int64_t>()[at];
  }
}

}  // namespace

std::string meaning(const Node& node, std::int64_t row) {
  const std::int64_t at = node.offset + row;
  const std::string& format = node.format;
  if (format == "n") return "null";
  if (!node.buffers.empty() && node.buffers[0].start != nullptr && !bit(node.buffers[0], at)) return "null";
  if (!node.dictionary.empty()) return meaning(node.dictionary[0], index_of(node, at));
  if (format == "b") return bit(node.buffers[1], at) ? "true" : "false";
  if (format == "u" || format == "U") return characters_of(node, offset_of(node, at), offset_of(node, at + 1));
  if (format == "vu") return view_of(node, at);
  if (format == "+l" || format == "+L" || format == "+m")
    return range(node.children[0], offset_of(node, at), offset_of(node, at + 1));
  if (format.starts_with("+w:")) {
    const std::int64_t size = std::stol(format.substr(3));
    return range(node.children[0], at * size, (at + 1) * size);
  }
  if (format == "+s") {
    std::string text = "{";
    for (const Node& child : node.children) text += (text == "{" ? "" : ", ") + meaning(child, at);
    return text + "}";
  }
  const std::size_t width = width_of(format);
  if (width == 0) return "a value of a type that libcudf does not have";
  std::string text;
  for (std::size_t i = 0; i < width; i++) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", node.buffers[1].start[static_cast<std::size_t>(at) * width + i]);
    text += digits;
  }
  return text;
}

namespace {

// Releases what has not been moved away, as every producer's callback must.
template <class T>
void release_tree(T* node) {
  for (std::int64_t i = 0; i < node->n_children && node->children != nullptr; i++)
    if (T* child = node->children[i]; child != nullptr && child->release != nullptr) child->release(child);
  if (node->dictionary != nullptr && node->dictionary->release != nullptr) node->dictionary->release(node->dictionary);
  if (node->private_data != nullptr) ++*static_cast<long*>(node->private_data);
  node->release = nullptr;
}

}  // namespace

Exported::Exported(const Node& node) : schema{}, array{}, kept_(node) {
  fill_schema(kept_, &schema);
  fill_array(kept_, "", &array.array);
  // Only the roots count: one release of the tree is one release.
  schema.private_data = schema_releases_.get();
  array.array.private_data = array_releases_.get();
  array.device_type = ARROW_DEVICE_CPU;
  array.device_id = -1;
}

void Exported::fill_schema(const Node& node, ArrowSchema* out) {
  *out = {};
  out->format = node.format.c_str();
  out->name = node.name.c_str();
  out->metadata = node.metadata.empty() ? nullptr : node.metadata.data();
  out->flags = node.flags;
  auto& children = schema_children_.emplace_back();
  for (const Node& child : node.children) {
    children.push_back(&schemas_.emplace_back());
    fill_schema(child, children.back());
  }
  out->n_children = static_cast<std::int64_t>(children.size());
  out->children = children.empty() ? nullptr : children.data();
  if (!node.dictionary.empty()) {
    out->dictionary = &schemas_.emplace_back();
    fill_schema(node.dictionary[0], out->dictionary);
  }
  out->release = release_tree<ArrowSchema>;
}

void Exported::fill_array(const Node& node, const std::string& path, ArrowArray* out) {
  *out = {};
  out->length = node.length;
  out->null_count = node.null_count;
  out->offset = node.offset;
  auto& pointers = pointers_.emplace_back();
  for (std::size_t i = 0; i < node.buffers.size(); i++) {
    const Buffer& buffer = node.buffers[i];
    pointers.push_back(buffer.start);
    if (buffer.start != nullptr) places_.push_back({buffer.start, buffer.size, path + "b" + std::to_string(i)});
  }
  out->n_buffers = node.n_buffers >= 0 ? node.n_buffers : static_cast<std::int64_t>(pointers.size());
  out->buffers = pointers.empty() ? nullptr : pointers.data();
  auto& children = array_children_.emplace_back();
  for (std::size_t i = 0; i < node.children.size(); i++) {
    children.push_back(&arrays_.emplace_back());
    fill_array(node.children[i], path + std::to_string(i) + ".", children.back());
  }
  out->n_children = node.n_children >= 0 ? node.n_children : static_cast<std::int64_t>(children.size());
  out->children = children.empty() ? nullptr : children.data();
  if (!node.dictionary.empty()) {
    out->dictionary = &arrays_.emplace_back();
    fill_array(node.dictionary[0], path + "dict.", out->dictionary);
  }
  out->release = release_tree<ArrowArray>;
}

std::string Exported::place(const void* address) const {
  if (address == nullptr) return "NULL";
  const auto* at = static_cast<const unsigned char*>(address);
  for (const Place& known : places_) {
    if (at < known.start || at > known.start + known.size) continue;
    return known.name + (at == known.start ? "" : "+" + std::to_string(at - known.start));
  }
  return "own";
}
