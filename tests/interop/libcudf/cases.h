// What the consumers are given: every type in every window, and what is odd.
#pragma once

#include "consumers.h"

#include <vector>

std::vector<Case> every_type();
std::vector<Case> tables();
std::vector<Case> odd_arrays();
