// Every case to every consumer of libcudf, one line each, beside what bowstring's validator says of it.
#include "cases.h"
#include "ownership.h"
#include "predict.h"
#include "rounds.h"

#include <cstdio>
#include <cstring>

namespace {

// What the validator cannot know, or says on purpose though this libcudf does otherwise.
struct Known {
  const char *test, *why;
  long seen = 0;
};

Known known[] = {
    {"a bitmap without nulls, null_count -1", "whether there are nulls is not known without reading the bitmap"},
};

// Fewer than these mean that something no longer runs.
constexpr long fewest_as_predicted = 7900, fewest_copies = 60;

struct Count {
  long as_predicted = 0, breaks_a_rule = 0, out_of_sight = 0, known = 0, unexplained = 0, copies = 0;
};

Known* known_for(const Case& test) {
  for (Known& entry : known)
    if (std::strstr(test.name.c_str(), entry.test) != nullptr) return &entry;
  return nullptr;
}

const char* say(Verdict verdict, const Case& test, Count& count) {
  switch (verdict) {
    case Verdict::as_predicted: return count.as_predicted++, "ok";
    case Verdict::breaks_a_rule: return count.breaks_a_rule++, "no Arrow array";
    case Verdict::out_of_sight: return count.out_of_sight++, "out of sight";
    case Verdict::unexplained: break;
  }
  if (Known* entry = known_for(test)) return entry->seen++, count.known++, "known";
  return count.unexplained++, "UNEXPLAINED";
}

void judge(const Case& test, Consumer consumer, const Seen& seen, Count& count) {
  const Predicted predicted = predict(test, consumer);
  if (takes_host(consumer) && (seen.outcome == Outcome::accepted || seen.outcome == Outcome::wrong)) count.copies++;
  const char* verdict = say(compare(test, consumer, seen, predicted), test, count);
  std::printf("%-14s %-26s %-52s %s\n", verdict, name_of(consumer), test.name.c_str(), seen.line().c_str());
  for (const auto& finding : predicted.findings) std::printf("%15s%s\n", "", finding.c_str());
  if (!predicted.broken.empty()) std::printf("%15s%s\n", "", predicted.broken.c_str());
  if (!predicted.contradiction.empty()) std::printf("%15s%s\n", "", predicted.contradiction.c_str());
}

// How often each has to happen at least, and its words in the last lines.
struct Floor {
  Event event;
  const char* words;
  long least;
};

constexpr Floor floors[] = {
    {Event::viewed, "shown as views", 4000},
    {Event::owned, "owned", 11500},
    {Event::exported, "exported again and imported", 12000},
    {Event::copied, "copied from the host", 180},
    {Event::window, "of these windows", 6800},
    {Event::misread, "misread as predicted", 1000},
    {Event::refused, "refused as predicted", 4800},
    {Event::needs_gpu, "that need the GPU as predicted", 2800},
    {Event::order, "orders to let go", 16500},
    {Event::released, "times let go", 83000},
    {Event::leaked, "schemas that libcudf keeps", 15500},
};
// The first of them are about memory and rows, the others about ownership.
constexpr std::size_t n_about_rows = 8;

// Whether all is well.
bool judge(const Rounds& rounds) {
  for (const auto& complaint : rounds.wrong) std::printf("%-14s bowstring's array: %s\n", "UNEXPLAINED", complaint.c_str());
  bool enough = true;
  std::string rows = "ours:", owners = "ownership:";
  for (const Floor& floor : floors) {
    const bool about_rows = &floor < floors + n_about_rows;
    std::string& line = about_rows ? rows : owners;
    line += (line.back() == ':' ? " " : ", ") + std::to_string(rounds[floor.event]) + " " + floor.words;
    if (rounds[floor.event] >= floor.least) continue;
    enough = false;
    std::printf("%-14s expected at least %ld %s, found %ld\n", "UNEXPLAINED", floor.least, floor.words, rounds[floor.event]);
  }
  std::printf("%s\n%s; %zu wrong\n", rows.c_str(), owners.c_str(), rounds.wrong.size());
  return enough && rounds.wrong.empty();
}

}  // namespace

int main() {
  Count count;
  for (const auto& cases : {every_type(), tables(), odd_arrays()})
    for (const Case& test : cases) {
      const auto seen = run(test);
      for (std::size_t i = 0; i < std::size(all_consumers); i++)
        judge(test, all_consumers[i], i < seen.size() ? seen[i] : Seen{Outcome::crashed, "not run"}, count);
    }
  for (const Owned& owned : ownership()) {
    const bool is_known = owned.found == owned.known;
    ++(is_known ? count.as_predicted : count.unexplained);
    const char* verdict = is_known ? "ok" : "UNEXPLAINED";
    std::printf("%-14s %-26s %-52s %s\n", verdict, "arrow_column", owned.name.c_str(), owned.found.c_str());
  }
  for (const Known& entry : known) {
    if (entry.seen != 0) continue;
    count.unexplained++;
    std::printf("%-14s nothing differs any more in: %s\n", "UNEXPLAINED", entry.test);
  }
  Rounds ours = every_order();
  for (const auto& cases : {every_type(), tables(), odd_arrays()}) ours.add(rounds(cases));
  const bool ours_are_well = judge(ours);
  std::printf("%ld that are no Arrow arrays, %ld that end in a call of CUDA before the fault, %ld known differences\n",
              count.breaks_a_rule, count.out_of_sight, count.known);
  std::printf("%ld as predicted, %ld unexplained\n", count.as_predicted, count.unexplained);
  if (count.as_predicted < fewest_as_predicted || count.copies < fewest_copies) {
    std::printf("expected at least %ld as predicted and %ld copies from the host that could be looked at, found %ld\n",
                fewest_as_predicted, fewest_copies, count.copies);
    return 1;
  }
  return count.unexplained == 0 && ours_are_well ? 0 : 1;
}
