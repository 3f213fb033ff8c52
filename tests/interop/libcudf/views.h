// What a reader of libcudf's column views sees.
#pragma once

#include "nodes.h"

#include <cudf/column/column_view.hpp>

#include <string>
#include <vector>

// Type, size, offset, nulls and addresses, with the children.
std::string description(const cudf::column_view& view, const Exported& given);

// Where what libcudf's rules make of the views is not what Arrow says; empty where it is the same.
// Without `read`, only how many rows there are and where they begin.
std::string difference(const Node& node, const std::vector<cudf::column_view>& columns, std::int64_t rows, bool as_table,
                       bool read);

// Where a view's memory, length, offset or null count is not what the structs said; empty where all is.
std::string other_memory(const cudf::column_view& view, const Node& sent, const std::string& path = "");
