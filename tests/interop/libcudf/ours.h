// Arrays that bowstring made of a node's memory, each buffer with an owner that counts.
#pragma once

#include "nodes.h"

#include <bowstring.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

// A call of bowstring's failed that should not; what() has its words.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void must(BowstringStatus status, const BowstringError& error, const char* call);

// Both structs, as a consumer gets them.
struct Structs {
  ArrowSchema schema{};
  ArrowDeviceArray array{};
};

Structs exported(const BowstringArray* array);

// A handle that is let go with this object, or before.
class Handle {
 public:
  explicit Handle(BowstringArray* array) : array_(array) {}
  Handle(Handle&& other) noexcept : array_(other.array_) { other.array_ = nullptr; }
  Handle& operator=(Handle&&) = delete;
  ~Handle() { let_go(); }
  void let_go() {
    bowstring_array_release(array_);
    array_ = nullptr;
  }
  BowstringArray* get() const { return array_; }

 private:
  BowstringArray* array_;
};

Handle imported(Structs& structs);
Handle slice(const BowstringArray* array, std::int64_t offset, std::int64_t length);

// How often each owner was let go.
class Owners {
 public:
  long* another() { return &counts_.emplace_back(0); }
  bool all_there() const;
  bool each_gone_once() const;
  std::string text() const;

 private:
  std::deque<long> counts_;
};

// The node's own memory on a device of that type, whose CPU memory it is all the same.
Handle made_of(const Node& node, std::int32_t device_type, Owners& owners);

// What C structs show; their memory is borrowed.
Node node_of(const ArrowSchema& schema, const ArrowArray& array);

// Where a buffer of `seen` is not at the address that `meant` has; empty where all are.
std::string other_memory(const Node& seen, const Node& meant, const std::string& path = "");
