#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <memory>

#include "validators.h"

namespace {

using Opened = std::shared_ptr<arrow::Array>;

void* Open(ArrowArray* array, ArrowSchema* schema) {
  return new Opened(arrow::ImportArray(array, schema).ValueOrDie());
}

int Validate(void* opened) { return (*static_cast<Opened*>(opened))->ValidateFull().ok(); }

void Close(void* opened) { delete static_cast<Opened*>(opened); }

}  // namespace

extern "C" const validator with_arrow_cpp = {"Arrow C++", Open, Validate, Close};
