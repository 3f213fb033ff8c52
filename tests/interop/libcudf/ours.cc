#include "ours.h"

#include <algorithm>

void must(BowstringStatus status, const BowstringError& error, const char* call) {
  if (status == BOWSTRING_OK) return;
  throw Failed(std::string(call) + ": " + bowstring_status_name(status) + " " + error.path + ": " + error.message);
}

Structs exported(const BowstringArray* array) {
  Structs out;
  BowstringError error{};
  must(bowstring_array_export(array, &out.array, &out.schema, &error), error, "bowstring_array_export");
  return out;
}

Handle imported(Structs& structs) {
  BowstringArray* array = nullptr;
  BowstringError error{};
  must(bowstring_array_import(&structs.array, &structs.schema, &array, &error), error, "bowstring_array_import");
  return Handle(array);
}

Handle slice(const BowstringArray* array, std::int64_t offset, std::int64_t length) {
  BowstringArray* window = nullptr;
  BowstringError error{};
  must(bowstring_array_slice(array, offset, length, &window, &error), error, "bowstring_array_slice");
  return Handle(window);
}

bool Owners::all_there() const {
  return std::all_of(counts_.begin(), counts_.end(), [](long n) { return n == 0; });
}

bool Owners::each_gone_once() const {
  return std::all_of(counts_.begin(), counts_.end(), [](long n) { return n == 1; });
}

std::string Owners::text() const {
  std::string all;
  for (const long n : counts_) all += (all.empty() ? "" : ", ") + std::to_string(n);
  return "[" + all + "]";
}

namespace {

void let_go(void* owner) { ++*static_cast<long*>(owner); }

void list(const Node& node, Owners& owners, std::vector<BowstringNode>& nodes, std::vector<BowstringOwnedBuffer>& buffers) {
  nodes.push_back({node.length, node.null_count, node.offset, static_cast<std::int64_t>(node.buffers.size())});
  for (const Buffer& buffer : node.buffers) {
    const auto size = static_cast<std::int64_t>(buffer.size);
    if (buffer.start == nullptr) buffers.push_back({nullptr, 0, nullptr, nullptr});
    else buffers.push_back({buffer.start, size, owners.another(), let_go});
  }
  for (const Node& child : node.children) list(child, owners, nodes, buffers);
  for (const Node& values : node.dictionary) list(values, owners, nodes, buffers);
}

}  // namespace

Handle made_of(const Node& node, std::int32_t device_type, Owners& owners) {
  Exported given(node);
  BowstringType* type = nullptr;
  BowstringError error{};
  must(bowstring_type_copy_from(&given.schema, &type, &error), error, "bowstring_type_copy_from");
  std::vector<BowstringNode> nodes;
  std::vector<BowstringOwnedBuffer> buffers;
  list(node, owners, nodes, buffers);
  BowstringPlacement placement{};
  placement.struct_size = sizeof placement;
  placement.device = {device_type, device_type == ARROW_DEVICE_CPU ? -1 : 0};
  placement.owner = owners.another();
  placement.release_owner = let_go;
  ArrowDeviceArray array{};
  const auto made = bowstring_device_array_from_buffers(type, nodes.data(), nodes.size(), buffers.data(), buffers.size(),
                                                        &placement, &array, &error);
  BowstringArray* handle = nullptr;
  BowstringStatus taken = BOWSTRING_OK;
  if (made == BOWSTRING_OK) taken = bowstring_array_import_typed(&array, type, &handle, &error);
  bowstring_type_release(type);
  must(made, error, "bowstring_device_array_from_buffers");
  must(taken, error, "bowstring_array_import_typed");
  return Handle(handle);
}

Node node_of(const ArrowSchema& schema, const ArrowArray& array) {
  Node node;
  node.format = schema.format;
  node.name = schema.name == nullptr ? "" : schema.name;
  node.flags = schema.flags;
  node.length = array.length;
  node.null_count = array.null_count;
  node.offset = array.offset;
  for (std::int64_t i = 0; i < array.n_buffers; i++) {
    Buffer& buffer = node.buffers.emplace_back();
    buffer.start = static_cast<const unsigned char*>(array.buffers[i]);
  }
  for (std::int64_t i = 0; i < array.n_children; i++)
    node.children.push_back(node_of(*schema.children[i], *array.children[i]));
  if (array.dictionary != nullptr) node.dictionary.push_back(node_of(*schema.dictionary, *array.dictionary));
  return node;
}

std::string other_memory(const Node& seen, const Node& meant, const std::string& path) {
  if (seen.buffers.size() != meant.buffers.size() || seen.children.size() != meant.children.size() ||
      seen.dictionary.size() != meant.dictionary.size())
    return path + "another number of buffers, children or dictionaries";
  // A struct's bitmap without nulls may be left out, so that its window can move into its children.
  const auto is_left_out = [&](std::size_t i) {
    return i == 0 && seen.format == "+s" && seen.null_count == 0 && seen.buffers[i].start == nullptr;
  };
  // Nobody reads the buffers of no rows.
  for (std::size_t i = 0; i < meant.buffers.size() && seen.length != 0; i++)
    if (meant.buffers[i].start != nullptr && seen.buffers[i].start != meant.buffers[i].start && !is_left_out(i))
      return path + "b" + std::to_string(i) + " is at another address";
  for (std::size_t i = 0; i < meant.children.size(); i++)
    if (auto where = other_memory(seen.children[i], meant.children[i], path + std::to_string(i) + "."); !where.empty())
      return where;
  return meant.dictionary.empty() ? "" : other_memory(seen.dictionary[0], meant.dictionary[0], path + "dict.");
}
