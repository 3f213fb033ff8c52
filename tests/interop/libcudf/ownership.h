// Who releases what when libcudf owns an array.
#pragma once

#include <string>
#include <vector>

struct Owned {
  std::string name, found, known;
};

std::vector<Owned> ownership();
