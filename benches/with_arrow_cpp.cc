/* The workload that nanoarrow's C library has nothing like, with Arrow C++. */
#include <arrow/api.h>
#include <arrow/c/dlpack.h>
#include <arrow/c/dlpack_abi.h>

#include <memory>

extern "C" {
#include "data.h"
#include "measure.h"
}

namespace {

using Column = std::shared_ptr<arrow::Array>;

DLManagedTensorVersioned* Export(const Column& column) {
  auto made = arrow::dlpack::ExportArrayVersioned(column, /*copy=*/false);
  EXPECT(made.ok());
  return *made;
}

void RunTensor(void* state, long times) {
  while (times-- > 0) {
    DLManagedTensorVersioned* tensor = Export(*static_cast<Column*>(state));
    touch(tensor);
    tensor->deleter(tensor);
  }
}

void MeasureW8() {
  const bytes values = new_columns(1)->values;
  auto buffer = std::make_shared<arrow::Buffer>(static_cast<const uint8_t*>(values.data), values.size);
  Column column = std::make_shared<arrow::Int64Array>(ROWS, buffer);
  DLManagedTensorVersioned* tensor = Export(column);
  EXPECT(tensor->dl_tensor.data == values.data && tensor->dl_tensor.shape[0] == ROWS);
  tensor->deleter(tensor);
  measure(job{RunTensor, &column}, "W8 column, tensor");
}

}  // namespace

int main(int argc, char** argv) {
  measure_setup(argc, argv);
  if (measure_wants("W8")) MeasureW8();
  return 0;
}
