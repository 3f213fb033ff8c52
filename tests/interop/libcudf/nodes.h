// Arrow arrays with real values for every type, which a case may bend afterwards, and what their rows mean.
#pragma once

#include <bowstring/arrow_c_abi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

// Memory that all copies of a node share, so that bending a copy is cheap.
struct Buffer {
  std::shared_ptr<unsigned char> memory;
  const unsigned char* start = nullptr;

  static Buffer of(const void* bytes, std::size_t size);
  static Buffer none() { return {}; }
  // More zero bytes than any 2^33 values need; they take no memory.
  static Buffer vast();
  // The same bytes at an address that is `by` above a multiple of 64.
  Buffer shifted(std::size_t by) const;
  // The caller vouches that so many elements are there.
  template <class T>
  const T* as() const { return reinterpret_cast<const T*>(start); }

  std::size_t size = 0;
};

struct Node {
  std::string format, name, metadata;
  std::int64_t flags = ARROW_FLAG_NULLABLE;
  std::int64_t length = 0, null_count = 0, offset = 0;
  std::vector<Buffer> buffers;
  std::vector<Node> children;
  std::vector<Node> dictionary;  // none or one
  // What the struct says where it is not what is there.
  std::int64_t n_buffers = -1, n_children = -1;

  Node& child(std::size_t i) { return children.at(i); }
  Node& values() { return dictionary.at(0); }
};

// A type to fill with values: a format, its children, and the dictionary's type.
struct Type {
  std::string format;
  std::vector<Type> children;
  std::vector<Type> dictionary;
  std::string metadata;
};

// Rows of a type: row 1 of every 3 or 4 is null where `nulls` is set, and there is no bitmap where it is not.
Node fill(const Type& type, std::int64_t rows, bool nulls);

// So many rows from there on; the null count is exact.
Node window(Node node, std::int64_t offset, std::int64_t length);

// The same rows as the only column of a table.
Node table_of(const Node& column);

// The bytes of one value of a fixed-width format; 0 for bits and for what has no fixed width.
std::size_t width_of(const std::string& format);

// What Arrow says that a row of the node's window is.
std::string meaning(const Node& node, std::int64_t row);

// A node's schema and array as C structs. They stay valid as long as this object.
class Exported {
 public:
  explicit Exported(const Node& node);
  Exported(const Exported&) = delete;

  ArrowSchema schema;
  ArrowDeviceArray array;

  // "values.b1+4" where an address lies in a buffer of ours; "own" elsewhere.
  std::string place(const void* address) const;
  long array_releases() const { return *array_releases_; }
  long schema_releases() const { return *schema_releases_; }

 private:
  struct Place { const unsigned char* start; std::size_t size; std::string name; };

  void fill_schema(const Node& node, ArrowSchema* out);
  void fill_array(const Node& node, const std::string& path, ArrowArray* out);

  Node kept_;
  std::deque<ArrowSchema> schemas_;
  std::deque<ArrowArray> arrays_;
  std::deque<std::vector<ArrowSchema*>> schema_children_;
  std::deque<std::vector<ArrowArray*>> array_children_;
  std::deque<std::vector<const void*>> pointers_;
  std::vector<Place> places_;
  std::unique_ptr<long> array_releases_ = std::make_unique<long>(0), schema_releases_ = std::make_unique<long>(0);
};
