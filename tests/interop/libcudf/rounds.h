// Arrays that bowstring made, given to libcudf and taken back: the same memory and rows, and owners that are let go once,
// after the last who needs them.
#pragma once

#include "cases.h"

#include <array>
#include <string>
#include <vector>

// What happened so far; each kind has to.
enum class Event {
  viewed,       // from_arrow_device shows our memory
  owned,        // arrow_column or arrow_table shows it
  exported,     // what those export again shows it, to us
  copied,       // from_arrow_host has the rows
  window,       // any of these, of a window on the array
  misread,      // accepted, and the profile says that rows are wrong
  refused,      // by libcudf, as the profile says
  needs_gpu,    // goes no further without one, as the profile says
  order,        // an order in which all was let go
  released,     // one of those that share memory was let go, and nothing of it was gone too soon
  leaked,       // a schema that libcudf took and did not release
};
inline constexpr std::size_t n_events = 11;

struct Rounds {
  std::array<long, n_events> count{};
  // "case: what is wrong".
  std::vector<std::string> wrong;

  long operator[](Event event) const { return count[static_cast<std::size_t>(event)]; }
  void add(Event event) { count[static_cast<std::size_t>(event)]++; }
  void add(const Rounds& other);
};

// Those that Arrow's rules allow, each in a process of its own.
Rounds rounds(const std::vector<Case>& cases);

// A few arrays, let go in each order that there is.
Rounds every_order();
