#include "rounds.h"

#include "ours.h"
#include "predict.h"
#include "process.h"
#include "views.h"
#include "without_gpu.h"

#include <cudf/interop.hpp>
#include <cudf/table/table.hpp>
#include <cudf/table/table_view.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>

namespace {

// One way to give an array to libcudf.
struct Round {
  Node given;
  Consumer consumer;
  std::int32_t made_on;
  bool sliced;
};

bool has_fixed_size_list(const Node& node) {
  return node.format.starts_with("+w:") || std::any_of(node.children.begin(), node.children.end(), has_fixed_size_list) ||
         std::any_of(node.dictionary.begin(), node.dictionary.end(), has_fixed_size_list);
}

bool owns(Consumer consumer) { return consumer == Consumer::owning_column || consumer == Consumer::owning_table; }

// Where a null count is not what the bitmap shows; on a device it may be unknown. Empty where all are right.
std::string other_nulls(const Node& shown, bool may_be_unknown, const std::string& path = "$") {
  const auto counted = window(shown, shown.offset, shown.length).null_count;
  if (shown.null_count != counted && !(may_be_unknown && shown.null_count == -1))
    return path + " has " + std::to_string(counted) + " nulls, shown are " + std::to_string(shown.null_count);
  for (std::size_t i = 0; i < shown.children.size(); i++)
    if (auto where = other_nulls(shown.children[i], may_be_unknown, path + "." + std::to_string(i)); !where.empty())
      return where;
  return shown.dictionary.empty() ? "" : other_nulls(shown.dictionary[0], may_be_unknown, path + ".dict");
}

// What libcudf made: views, what keeps them, and how to export it again.
struct Taken {
  std::vector<cudf::column_view> columns;
  std::int64_t rows = 0;
  std::shared_ptr<void> keeps;
  std::function<Structs()> again;
};

std::vector<cudf::column_view> columns_of(const cudf::table_view& table) { return {table.begin(), table.end()}; }

template <class Owning>
Taken own(Structs& sent, std::vector<cudf::column_view> (*columns)(const Owning&), std::int64_t (*rows)(const Owning&)) {
  auto memory = host_memory();
  auto object = std::make_shared<Owning>(std::move(sent.schema), std::move(sent.array), cudf::get_default_stream(), memory);
  const auto again = [object = std::weak_ptr<Owning>(object)] {
    Structs out;
    object.lock()->to_arrow(&out.array, ARROW_DEVICE_CUDA);
    object.lock()->to_arrow_schema(&out.schema);
    return out;
  };
  return {columns(*object), rows(*object), object, again};
}

Taken take(Structs& sent, Consumer consumer) {
  using cudf::interop::arrow_column, cudf::interop::arrow_table;
  auto memory = host_memory();
  const auto stream = cudf::get_default_stream();
  switch (consumer) {
    case Consumer::device_column: {
      auto view = std::make_shared<cudf::unique_column_view_t>(
          cudf::from_arrow_device_column(&sent.schema, &sent.array, stream, memory));
      return {{**view}, (*view)->size(), view, {}};
    }
    case Consumer::device_table: {
      auto view = std::make_shared<cudf::unique_table_view_t>(cudf::from_arrow_device(&sent.schema, &sent.array, stream, memory));
      return {columns_of(**view), (*view)->num_rows(), view, {}};
    }
    case Consumer::owning_column:
      return own<arrow_column>(
          sent, [](const arrow_column& object) { return std::vector{object.view()}; },
          [](const arrow_column& object) -> std::int64_t { return object.view().size(); });
    case Consumer::owning_table:
      return own<arrow_table>(
          sent, [](const arrow_table& object) { return columns_of(object.view()); },
          [](const arrow_table& object) -> std::int64_t { return object.view().num_rows(); });
    default: throw std::logic_error("this one copies");
  }
}

BowstringLiveCounts live() {
  BowstringLiveCounts counts{};
  counts.struct_size = sizeof counts;
  bowstring_live_counts(&counts);
  return counts;
}

std::string left_over(const BowstringLiveCounts& a, const BowstringLiveCounts& b) {
  const auto text = [](const BowstringLiveCounts& n) {
    return std::to_string(n.types) + " types, " + std::to_string(n.arrays) + " arrays, " + std::to_string(n.buffers) +
           " buffers, " + std::to_string(n.blocks) + " blocks";
  };
  return text(a) == text(b) ? "" : text(a) + " instead of " + text(b);
}

// One of several that keep the same memory.
struct Holder {
  std::string name;
  std::function<std::string()> complaint;
  std::function<void()> let_go;
};

std::string other_rows(const Node& seen, const Node& meant) {
  if (seen.length != meant.length) return std::to_string(seen.length) + " rows, Arrow says " + std::to_string(meant.length);
  for (std::int64_t row = 0; row < meant.length; row++)
    if (meaning(seen, row) != meaning(meant, row))
      return "row " + std::to_string(row) + " is " + meaning(seen, row) + ", Arrow says " + meaning(meant, row);
  return "";
}

void release(Structs& structs) {
  bowstring_schema_release(&structs.schema);
  bowstring_device_array_release(&structs.array);
}

// Legal by the specification, all of it where the CPU may read it.
std::string illegal(const Structs& structs) {
  BowstringType* type = nullptr;
  BowstringError error{};
  must(bowstring_type_copy_from(&structs.schema, &type, &error), error, "what libcudf exports");
  BowstringValidateOptions options{};
  options.struct_size = sizeof options;
  options.profile = BOWSTRING_PROFILE_SPEC;
  options.level = structs.array.device_type == ARROW_DEVICE_CPU ? BOWSTRING_LEVEL_FULL : BOWSTRING_LEVEL_STRUCTURE;
  const auto status = bowstring_device_array_validate(&structs.array, type, &options, &error);
  bowstring_type_release(type);
  return status == BOWSTRING_OK ? "" : std::string("libcudf exports ") + error.path + ": " + error.message;
}

class Play {
 public:
  Play(const Round& round, Rounds& out)
      : round_(round), out_(out), whole_(made_of(round.given, round.made_on, owners_)), array_(window()),
        meant_(round.sliced ? ::window(round.given, round.given.offset + 1, round.given.length - 2) : round.given) {
    whole_.let_go();
    sent_ = exported(array_.get());
    sent_.array.device_type = takes_host(round.consumer) ? ARROW_DEVICE_CPU : ARROW_DEVICE_CUDA;
    sent_.array.device_id = takes_host(round.consumer) ? -1 : 0;
    schema_ = sent_.schema;
    shown_ = node_of(sent_.schema, sent_.array.array);
  }

  // `order` sorts those that there are to let go.
  std::string run(const std::function<void(std::vector<std::size_t>&)>& order) {
    if (auto where = ::other_memory(shown_, round_.given); !where.empty()) return end("exported: " + where);
    const bool on_device = round_.made_on != ARROW_DEVICE_CPU;
    if (auto where = other_nulls(shown_, on_device); !where.empty()) return end("exported: " + where);
    const bool has_window = shown_.format == "+s" && shown_.offset != 0;
    if (has_window && round_.given.buffers[0].start == nullptr) return end("exported with a window on the root");
    const Predicted predicted = predict(sent_.schema, sent_.array, round_.consumer);
    if (!predicted.contradiction.empty()) return end(predicted.contradiction);
    const bool refuses = predicted.says("refuse"), waits = predicted.says("copy") || predicted.says("wait");
    misread_ = predicted.says("read wrong values");
    if (predicted.says("crash")) return end("");
    if (takes_host(round_.consumer)) return copy(refuses);
    Taken taken;
    try {
      taken = take(sent_, round_.consumer);
    } catch (const std::exception& error) {
      const bool gpu = thrown(error.what()).outcome == Outcome::needs_gpu;
      if (gpu ? refuses || !waits : !refuses) return end(std::string("libcudf: ") + error.what());
      out_.add(gpu ? Event::needs_gpu : Event::refused);
      return failed();
    }
    if (refuses || waits) return end("accepted");
    if (auto complaint = look(taken); !complaint.empty()) return end(complaint);
    return let_all_go(taken, order);
  }

 private:
  Handle window() const {
    if (round_.sliced) return slice(whole_.get(), 1, round_.given.length - 2);
    return Handle(bowstring_array_retain(whole_.get()));
  }

  std::string rows(const Taken& taken) const {
    return misread_ ? "" : ::difference(meant_, taken.columns, taken.rows, takes_table(round_.consumer), true);
  }

  std::string look(const Taken& taken) {
    if (misread_) return out_.add(Event::misread), "";
    if (takes_table(round_.consumer)) {
      if (taken.columns.size() != shown_.children.size()) return "another number of columns";
      for (std::size_t i = 0; i < taken.columns.size(); i++)
        if (auto where = ::other_memory(taken.columns[i], shown_.children[i], std::to_string(i) + "."); !where.empty())
          return where;
    } else if (auto where = ::other_memory(taken.columns.at(0), shown_); !where.empty()) {
      return where;
    }
    if (auto complaint = rows(taken); !complaint.empty()) return complaint;
    out_.add(owns(round_.consumer) ? Event::owned : Event::viewed);
    if (round_.sliced) out_.add(Event::window);
    return "";
  }

  // The host's consumers copy; what they made is gone when they wait for the copies.
  std::string copy(bool refuses) {
    std::string found = "nothing was copied";
    on_copied = [&](const std::vector<const cudf::column*>& columns) {
      std::vector<cudf::column_view> views;
      for (const cudf::column* column : columns) views.push_back(column->view());
      if (views.empty()) return;
      found = ::difference(meant_, views, views[0].size(), takes_table(round_.consumer), true);
    };
    forget_columns();
    try {
      auto memory = host_memory();
      const auto stream = cudf::get_default_stream();
      if (takes_table(round_.consumer)) cudf::from_arrow_host(&sent_.schema, &sent_.array, stream, memory);
      else cudf::from_arrow_host_column(&sent_.schema, &sent_.array, stream, memory);
    } catch (const std::exception& error) {
      if (!std::string(error.what()).starts_with(needs_gpu)) found = refuses ? "" : error.what();
    }
    on_copied = nullptr;
    if (!found.empty()) return end(found);
    out_.add(refuses ? Event::refused : Event::copied);
    if (!refuses && round_.sliced) out_.add(Event::window);
    return failed();
  }

  // An owning class took the array before it failed, but for one type; a function that only looks left it.
  std::string failed() {
    const bool taken = owns(round_.consumer) && !has_fixed_size_list(round_.given);
    if (taken != (sent_.array.array.release == nullptr)) return end(taken ? "the array is left" : "the array is gone");
    if (!owners_.all_there()) return end("let go with the handle alive: " + owners_.text());
    array_.let_go();
    if (taken) return end("");
    if (!owners_.all_there()) return end("let go with the export alive: " + owners_.text());
    return end("");
  }

  Holder handle(const std::string& name, std::shared_ptr<Handle> array, const Node& meant) const {
    const auto complaint = [array, meant]() -> std::string {
      Structs shown = exported(array->get());
      const Node seen = node_of(shown.schema, shown.array.array);
      std::string where = ::other_memory(seen, meant);
      if (where.empty()) where = other_rows(seen, meant);
      release(shown);
      return where;
    };
    return {name, complaint, [array] { array->let_go(); }};
  }

  // Those that libcudf's export adds: the struct, a handle on another one, a child of that and a buffer of it.
  std::string export_again(const Taken& taken, std::vector<Holder>& holders) {
    auto raw = std::make_shared<Structs>(taken.again());
    const Node& meant = meant_;
    holders.push_back({"libcudf's export",
                       [raw, meant] { return other_rows(node_of(raw->schema, raw->array.array), meant); },
                       [raw] { release(*raw); }});
    Structs more = taken.again();
    if (round_.sliced) {
      // Called what it is, its contents can be checked. libcudf itself would copy for this type of device.
      more.array.device_type = ARROW_DEVICE_CPU;
      more.array.device_id = -1;
    }
    if (auto complaint = illegal(more); !complaint.empty()) return release(more), complaint;
    auto again = std::make_shared<Handle>(imported(more));
    if (more.array.array.release != nullptr || more.schema.release != nullptr) return "the import left what it took";
    holders.push_back(handle("our import of libcudf's export", again, meant_));
    BowstringError error{};
    BowstringArray* child = nullptr;
    if (!meant_.children.empty()) {
      must(bowstring_array_child(again->get(), 0, &child, &error), error, "bowstring_array_child");
      Node of_child = shown_.children[0];
      if (shown_.format == "+s" || shown_.format.starts_with("+w"))
        of_child = ::window(of_child, of_child.offset + shown_.offset, shown_.length);
      holders.push_back(handle("a child of our import", std::make_shared<Handle>(Handle(child)), of_child));
    }
    BowstringBuffer* buffer = nullptr;
    std::size_t n_buffers = 0;
    must(bowstring_array_count(again->get(), nullptr, &n_buffers, &error), error, "bowstring_array_count");
    if (n_buffers != 0) {
      must(bowstring_array_buffer(again->get(), n_buffers - 1, &buffer, &error), error, "bowstring_array_buffer");
      holders.push_back({"a buffer of our import", [] { return ""; }, [buffer] { bowstring_buffer_release(buffer); }});
    }
    out_.add(Event::exported);
    return "";
  }

  std::string let_all_go(Taken& taken, const std::function<void(std::vector<std::size_t>&)>& order) {
    std::vector<Holder> holders;
    holders.push_back({owns(round_.consumer) ? "libcudf's object" : "libcudf's view", [&] { return rows(taken); },
                       [&] {
                         taken.columns.clear();
                         taken.keeps.reset();
                       }});
    const std::size_t view = 0;
    // The handle shows the rows as well, whatever libcudf does.
    holders.push_back(handle("our handle", std::make_shared<Handle>(std::move(array_)), shown_));
    if (owns(round_.consumer)) {
      if (auto complaint = export_again(taken, holders); !complaint.empty()) return end(complaint);
    } else {
      holders.push_back({"our export", [&] { return other_rows(node_of(schema_, sent_.array.array), meant_); },
                         [&] { bowstring_device_array_release(&sent_.array); }});
    }
    std::vector<std::size_t> turns(holders.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    order(turns);
    if (!owns(round_.consumer)) {
      // A view owns nothing: the export has to outlive it.
      const auto of_view = std::find(turns.begin(), turns.end(), view), of_export = std::find(turns.begin(), turns.end(), 2u);
      if (of_export < of_view) std::iter_swap(of_view, of_export);
    }
    std::string gone;
    for (std::size_t turn = 0; turn < turns.size(); turn++) {
      for (std::size_t left = turn; left < turns.size(); left++) {
        const Holder& holder = holders[turns[left]];
        if (auto complaint = holder.complaint(); !complaint.empty()) return end(holder.name + gone + ": " + complaint);
      }
      const Holder& holder = holders[turns[turn]];
      holder.let_go();
      gone += (gone.empty() ? " without " : ", ") + holder.name;
      const bool last = turn + 1 == turns.size();
      if (last ? !owners_.each_gone_once() : !owners_.all_there()) return end("owners" + gone + ": " + owners_.text());
      out_.add(Event::released);
    }
    out_.add(Event::order);
    return end("");
  }

  // What is left is let go, and nothing may stay but the schema that libcudf forgets.
  std::string end(const std::string& complaint) {
    if (!complaint.empty()) return complaint;
    array_.let_go();
    bowstring_device_array_release(&sent_.array);
    if (owns(round_.consumer) && sent_.schema.release == nullptr) {
      if (live().blocks == before_.blocks) return "libcudf released the schema, which it does not do as a rule";
      if (live().blocks != before_.blocks + 1) return "left: " + left_over(live(), before_);
      out_.add(Event::leaked);
      sent_.schema = schema_;
    }
    bowstring_schema_release(&sent_.schema);
    if (!owners_.each_gone_once()) return "owners at the end: " + owners_.text();
    if (auto left = left_over(live(), before_); !left.empty()) return "left: " + left;
    return "";
  }

  const Round round_;
  Rounds& out_;
  const BowstringLiveCounts before_ = live();
  Owners owners_;
  Handle whole_, array_;
  const Node meant_;
  Structs sent_;
  ArrowSchema schema_{};
  Node shown_;
  bool misread_ = false;
};

std::string name_of(const Round& round) {
  return std::string(name_of(round.consumer)) + (round.made_on == ARROW_DEVICE_CPU ? ", made on the CPU" : "") +
         (round.sliced ? ", sliced" : "");
}

void play(const std::string& name, const Round& round, const std::function<void(std::vector<std::size_t>&)>& order,
          Rounds& out) {
  std::string complaint;
  try {
    complaint = Play(round, out).run(order);
  } catch (const std::exception& error) {
    complaint = error.what();
  }
  if (!complaint.empty()) out.wrong.push_back(name + ", " + name_of(round) + ": " + complaint);
}

// Columns whose copies can be looked at: those without a bitmap and of fixed width.
bool shows_copies(const Node& node) {
  if (!node.dictionary.empty() || node.length == 0) return false;
  if (node.format != "+s") return width_of(node.format) != 0 && node.flags == 0 && node.buffers[0].start == nullptr;
  return node.flags == 0 && !node.children.empty() && node.buffers[0].start == nullptr &&
         std::all_of(node.children.begin(), node.children.end(), [](const Node& child) {
           return child.format != "+s" && shows_copies(child);
         });
}

std::string text_of(const Rounds& rounds) {
  std::string text;
  for (const long n : rounds.count) text += std::to_string(n) + " ";
  for (const auto& complaint : rounds.wrong) text += "\n" + complaint;
  return text;
}

Rounds of_text(const std::string& name, const std::string& text) {
  Rounds rounds;
  std::istringstream in(text);
  for (long& n : rounds.count) in >> n;
  if (!in) return rounds.count.fill(0), rounds.wrong.push_back(name + ": " + text), rounds;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) rounds.wrong.push_back(line);
  return rounds;
}

Rounds rounds_of(const Case& test) {
  Rounds out;
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(test.name)));
  const auto shuffle = [&](std::vector<std::size_t>& turns) { std::shuffle(turns.begin(), turns.end(), random); };
  for (const Consumer consumer : all_consumers)
    for (const std::int32_t made_on : {ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA})
      for (const bool sliced : {false, true}) {
        const Round round{given_to(test, consumer), consumer, made_on, sliced};
        if (sliced && round.given.length < 3) continue;
        const bool copies = takes_host(consumer);
        if (copies && (made_on != ARROW_DEVICE_CPU || !shows_copies(round.given))) continue;
        if (copies && takes_table(consumer) != (round.given.format == "+s")) continue;
        play(test.name, round, shuffle, out);
      }
  return out;
}

}  // namespace

void Rounds::add(const Rounds& other) {
  for (std::size_t i = 0; i < n_events; i++) count[i] += other.count[i];
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
}

Rounds rounds(const std::vector<Case>& cases) {
  Rounds all;
  for (const Case& test : cases) {
    const bool is_plain = test.device_type == 0 && test.device_id == 0 && !test.with_event && !test.released;
    if (!is_plain || !test.readable) continue;
    if (!predict(test, Consumer::device_column).broken.empty()) continue;
    all.add(of_text(test.name, in_a_child([&] { return text_of(rounds_of(test)); })));
  }
  return all;
}

Rounds every_order() {
  const Type i32{"i", {}, {}, {}}, utf8{"u", {}, {}, {}}, pair{"+s", {i32, utf8}, {}, {}}, indexed{"i", {}, {utf8}, {}};
  Rounds all;
  for (const Type& type : {i32, utf8, pair, indexed})
    for (const Consumer consumer :
         {Consumer::device_column, Consumer::device_table, Consumer::owning_column, Consumer::owning_table})
      for (const bool sliced : {false, true}) {
        // Without nulls in the root, so that a window on it can be moved.
        const Node column = fill(type, 5, type.format != "+s");
        const Case test{type.format, column};
        const Round round{given_to(test, consumer), consumer, ARROW_DEVICE_CPU, sliced};
        const std::string name = type.format + " in every order";
        all.add(of_text(name, in_a_child([&] {
          Rounds out;
          std::vector<std::size_t> next;
          bool more = true;
          while (more && out.wrong.empty())
            play(name, round, [&](std::vector<std::size_t>& turns) {
              if (next.empty()) next = turns;
              turns = next;
              more = std::next_permutation(next.begin(), next.end());
            }, out);
          return text_of(out);
        })));
      }
  return all;
}
