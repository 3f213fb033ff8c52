// A machine without a GPU: how far libcudf gets.
#pragma once

#include <cudf/column/column.hpp>

#include <functional>
#include <vector>

// Called when libcudf has copied columns from the host and is about to wait for the copies.
extern std::function<void(const std::vector<const cudf::column*>&)> on_copied;

// Before another import: the columns of the last are gone.
void forget_columns();

// What the call of CUDA that ends an import throws: the words that its message begins with.
inline constexpr char needs_gpu[] = "needs the GPU: ";
