// Work in a process that may die of it.
#pragma once

#include <functional>
#include <string>

// What the work returned, or how the process ended: "signal 11".
std::string in_a_child(const std::function<std::string()>& work);
