// What bowstring's validator says that a consumer of libcudf would do.
#pragma once

#include "consumers.h"

#include <string>
#include <vector>

struct Predicted {
  // The rule of Arrow's that the array breaks: what libcudf makes of such arrays is not predicted.
  std::string broken;
  // All that the profile found, in its words.
  std::vector<std::string> findings;
  // Where two ways to ask have different answers; empty as it should be.
  std::string contradiction;

  bool says(const char* verb) const;
};

Predicted predict(const Case& test, Consumer consumer);

// The profile alone, of an array that says itself that it is where the consumer wants it.
Predicted predict(const ArrowSchema& schema, const ArrowDeviceArray& array, Consumer consumer);

enum class Verdict { as_predicted, breaks_a_rule, out_of_sight, unexplained };

// Out of sight is what comes after the first call of CUDA in a consumer that copies.
Verdict compare(const Case& test, Consumer consumer, const Seen& seen, const Predicted& predicted);
