// libcudf's ways to take an Arrow array, each run in a process of its own.
#pragma once

#include "nodes.h"

#include <rmm/mr/callback_memory_resource.hpp>

#include <string>

enum class Consumer { device_column, device_table, host_column, host_table, owning_column, owning_table };

inline constexpr Consumer all_consumers[] = {Consumer::device_column, Consumer::device_table,  Consumer::host_column,
                                             Consumer::host_table,    Consumer::owning_column, Consumer::owning_table};

const char* name_of(Consumer consumer);
bool takes_table(Consumer consumer);
bool takes_host(Consumer consumer);

struct Case {
  std::string name;
  Node node;
  // The node is a table as it stands; columns are wrapped for the consumers that want tables.
  bool is_table = false;
  // 0: what the consumer is made for.
  std::int32_t device_type = 0;
  std::int64_t device_id = 0;
  bool with_event = false, released = false;
  // Rows may be read and compared: not where lengths or addresses are wild.
  bool readable = true;
  // The validator may read the buffers all the same.
  bool deep = false;
};

// What the consumer of a case is given.
Node given_to(const Case& test, Consumer consumer);
void place(const Case& test, Consumer consumer, ArrowDeviceArray& array);

// No device memory without a driver: the host's has to do.
rmm::mr::callback_memory_resource host_memory();

enum class Outcome {
  refused,    // an exception of libcudf's own
  needs_gpu,  // past the checks: the CUDA runtime was called
  accepted,   // a view whose rows read as Arrow means them
  wrong,      // a view whose rows read otherwise, or which a kernel could not load
  crashed     // a signal
};

struct Seen {
  Outcome outcome;
  std::string text;
  std::string line() const;
};

// What an exception that came out of libcudf says.
Seen thrown(std::string text);

// What each consumer makes of the case, in the order of all_consumers.
std::vector<Seen> run(const Case& test);
