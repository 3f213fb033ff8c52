#include "consumers.h"

#include "views.h"
#include "without_gpu.h"

#include <cudf/column/column.hpp>
#include <cudf/interop.hpp>
#include <cudf/table/table.hpp>
#include <cudf/table/table_view.hpp>

#include <cstdlib>
#include <exception>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

const char* name_of(Consumer consumer) {
  switch (consumer) {
    case Consumer::device_column: return "from_arrow_device_column";
    case Consumer::device_table: return "from_arrow_device";
    case Consumer::host_column: return "from_arrow_host_column";
    case Consumer::host_table: return "from_arrow_host";
    case Consumer::owning_column: return "arrow_column";
    case Consumer::owning_table: return "arrow_table";
  }
  return "?";
}

bool takes_table(Consumer consumer) {
  return consumer == Consumer::device_table || consumer == Consumer::host_table || consumer == Consumer::owning_table;
}

bool takes_host(Consumer consumer) {
  return consumer == Consumer::host_column || consumer == Consumer::host_table;
}

Node given_to(const Case& test, Consumer consumer) {
  return takes_table(consumer) && !test.is_table ? table_of(test.node) : test.node;
}

namespace {

void* const no_event = nullptr;

}  // namespace

void place(const Case& test, Consumer consumer, ArrowDeviceArray& array) {
  const std::int32_t made_for = takes_host(consumer) ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA;
  array.device_type = test.device_type != 0 ? test.device_type : made_for;
  array.device_id = array.device_type == ARROW_DEVICE_CPU ? -1 : test.device_id;
  if (test.with_event) array.sync_event = const_cast<void**>(&no_event);
  if (test.released) array.array.release = nullptr;
}

rmm::mr::callback_memory_resource host_memory() {
  return {[](std::size_t n, cuda::stream_ref, void*) { return std::aligned_alloc(256, (n + 255) / 256 * 256); },
          [](void* start, std::size_t, cuda::stream_ref, void*) { std::free(start); }};
}

std::string Seen::line() const {
  switch (outcome) {
    case Outcome::refused: return "refused \"" + text + "\"";
    case Outcome::needs_gpu: return "needs the GPU (" + text + ")";
    case Outcome::accepted: return "accepted " + text;
    case Outcome::wrong: return "wrong values: " + text;
    case Outcome::crashed: return text;
  }
  return "?";
}

// The message without the paths of the build.
Seen thrown(std::string text) {
  if (text.starts_with(needs_gpu)) return {Outcome::needs_gpu, text.substr(std::string(needs_gpu).size())};
  if (text.find("failed inside CUB") != std::string::npos) return {Outcome::needs_gpu, "CUB"};
  if (text.find("cudaErrorInsufficientDriver") != std::string::npos) return {Outcome::needs_gpu, "rmm"};
  const auto at = text.find("CUDF failure at: ");
  if (at != std::string::npos) text.erase(0, text.find(": ", at + 17) + 2);
  const auto slash = text.rfind('/');
  if (slash != std::string::npos) text.erase(0, slash + 1);
  return {Outcome::refused, text};
}

namespace {

// A reader of ours that stumbles over a view must not pass for a refusal of libcudf's.
Seen look(const Exported& given, const Node& node, const Case& test, const std::vector<cudf::column_view>& columns,
          std::int64_t rows, bool as_table) {
  std::string text = as_table ? "table of " + std::to_string(rows) + ":" : "";
  try {
    for (const auto& column : columns) text += (text.empty() ? "" : " ") + description(column, given);
    const std::string complaint = difference(node, columns, rows, as_table, test.readable);
    return complaint.empty() ? Seen{Outcome::accepted, text} : Seen{Outcome::wrong, complaint + "; " + text};
  } catch (const std::exception& error) {
    return {Outcome::wrong, std::string("cannot be read: ") + error.what() + "; " + text};
  }
}

Seen look(const Exported& given, const Node& node, const Case& test, cudf::column_view column) {
  return look(given, node, test, {column}, column.size(), false);
}

Seen look(const Exported& given, const Node& node, const Case& test, cudf::table_view table) {
  return look(given, node, test, {table.begin(), table.end()}, table.num_rows(), true);
}

Seen consume(const Case& test, Consumer consumer) {
  const Node node = given_to(test, consumer);
  Exported given(node);
  place(test, consumer, given.array);
  auto memory = host_memory();
  const auto stream = cudf::get_default_stream();
  ArrowSchema* schema = &given.schema;
  ArrowDeviceArray* array = &given.array;
  Seen made{Outcome::needs_gpu, ""};
  forget_columns();
  on_copied = nullptr;
  if (takes_host(consumer))
    on_copied = [&](const std::vector<const cudf::column*>& columns) {
      const bool as_table = takes_table(consumer);
      const std::vector<Node> expected = as_table ? node.children : std::vector<Node>{node};
      for (const Node& column : expected)
        if (width_of(column.format) == 0 || !column.dictionary.empty()) return;
      if (columns.size() != expected.size() || columns.empty()) return;
      std::vector<cudf::column_view> views;
      for (const cudf::column* column : columns) views.push_back(column->view());
      made = look(given, node, test, views, views[0].size(), as_table);
    };
  try {
    switch (consumer) {
      case Consumer::device_column:
        return look(given, node, test, *cudf::from_arrow_device_column(schema, array, stream, memory));
      case Consumer::device_table: return look(given, node, test, *cudf::from_arrow_device(schema, array, stream, memory));
      case Consumer::host_column:
        return look(given, node, test, cudf::from_arrow_host_column(schema, array, stream, memory)->view());
      case Consumer::host_table: return look(given, node, test, cudf::from_arrow_host(schema, array, stream, memory)->view());
      case Consumer::owning_column:
        return look(given, node, test,
                    cudf::interop::arrow_column(std::move(*schema), std::move(*array), stream, memory).view());
      case Consumer::owning_table:
        return look(given, node, test,
                    cudf::interop::arrow_table(std::move(*schema), std::move(*array), stream, memory).view());
    }
  } catch (const std::exception& error) {
    const Seen seen = thrown(error.what());
    return seen.outcome == Outcome::needs_gpu && !made.text.empty() ? made : seen;
  }
  return {Outcome::refused, "no such consumer"};
}

// A byte for the outcome, and the text with its NUL.
void tell(int to, const Seen& seen) {
  const std::string all = static_cast<char>('0' + static_cast<int>(seen.outcome)) + seen.text;
  if (write(to, all.c_str(), all.size() + 1) < 0) _exit(1);
}

std::string read_all(int from) {
  std::string all;
  char bytes[4096];
  for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(n));
  return all;
}

// A child runs the consumers from `first` on, until one of them ends it.
std::vector<Seen> run_from(const Case& test, std::size_t first) {
  int ends[2];
  if (pipe(ends) != 0) return {{Outcome::crashed, "no pipe"}};
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    for (std::size_t i = first; i < std::size(all_consumers); i++) tell(ends[1], consume(test, all_consumers[i]));
    _exit(0);
  }
  close(ends[1]);
  const std::string all = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::vector<Seen> seen;
  for (std::size_t at = 0; at < all.size(); at = all.find('\0', at) + 1)
    seen.push_back({static_cast<Outcome>(all[at] - '0'), all.c_str() + at + 1});
  if (WIFSIGNALED(status)) seen.push_back({Outcome::crashed, "signal " + std::to_string(WTERMSIG(status))});
  else if (status != 0) seen.push_back({Outcome::crashed, "exit status " + std::to_string(WEXITSTATUS(status))});
  return seen;
}

}  // namespace

std::vector<Seen> run(const Case& test) {
  std::vector<Seen> seen;
  while (seen.size() < std::size(all_consumers)) {
    const auto more = run_from(test, seen.size());
    if (more.empty()) return seen;
    seen.insert(seen.end(), more.begin(), more.end());
  }
  return seen;
}
