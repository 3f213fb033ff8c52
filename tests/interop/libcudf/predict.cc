#include "predict.h"

#include <bowstring.h>

#include <algorithm>
#include <cstdint>

namespace {

std::string line(const BowstringError& error) {
  const char* rule = bowstring_rule_name(error.rule);
  return std::string(rule) + (*rule == '\0' ? "" : " ") + error.path + ": " + error.message;
}

int keep(void* findings, std::int32_t, const BowstringError* finding) {
  std::string text = line(*finding);
  // Advice about the interfaces is no statement about libcudf.
  if (text.find("libcudf would") != std::string::npos) static_cast<std::vector<std::string>*>(findings)->push_back(text);
  return 0;
}

BowstringValidateOptions options_for(Consumer consumer, std::vector<std::string>& findings) {
  BowstringValidateOptions options{};
  options.struct_size = sizeof options;
  options.level = BOWSTRING_LEVEL_STRUCTURE;
  options.as_table = takes_table(consumer);
  options.profile = takes_host(consumer) ? BOWSTRING_PROFILE_CUDF_HOST
                    : consumer == Consumer::device_column || consumer == Consumer::device_table
                        ? BOWSTRING_PROFILE_CUDF_DEVICE
                        : BOWSTRING_PROFILE_CUDF_OWNING;
  options.ctx = &findings;
  options.on_finding = keep;
  return options;
}

// What the specification says of the array, whose memory is the CPU's whatever its device is called.
std::string broken_rule(const ArrowDeviceArray& array, const BowstringType* type, bool readable) {
  BowstringValidateOptions options{};
  options.struct_size = sizeof options;
  options.level = readable ? BOWSTRING_LEVEL_FULL : BOWSTRING_LEVEL_STRUCTURE;
  BowstringError error{};
  return bowstring_device_array_validate(&array, type, &options, &error) == BOWSTRING_OK ? "" : line(error);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& text : lines) all += (all.empty() ? "" : " | ") + text;
  return all;
}

void ask(const Exported& given, const ArrowDeviceArray& on_cpu, const BowstringType* type, Consumer consumer, Predicted& out) {
  BowstringError error{};
  auto options = options_for(consumer, out.findings);
  options.assume_device = {given.array.device_type, given.array.device_id};
  const auto status = bowstring_device_array_validate(&on_cpu, type, &options, &error);
  const bool is_error = out.says("refuse") || out.says("crash") || out.says("read wrong values");
  if (status != (is_error ? BOWSTRING_NOT_CONFORMING : BOWSTRING_OK))
    out.contradiction = "status " + std::to_string(status) + " for " + joined(out.findings);
  if (is_error && line(error).find("libcudf would") == std::string::npos) out.contradiction = "the error is " + line(error);

  std::vector<std::string> there;
  options = options_for(consumer, there);
  bowstring_device_array_validate(&given.array, type, &options, &error);
  if (there != out.findings) out.contradiction = "where it is: " + joined(there) + "; assumed: " + joined(out.findings);

  std::vector<std::string> of_type;
  options = options_for(consumer, of_type);
  options.assume_device = {given.array.device_type, given.array.device_id};
  bowstring_schema_validate(&given.schema, &options, &error);
  for (const auto& finding : of_type)
    if (std::find(out.findings.begin(), out.findings.end(), finding) == out.findings.end())
      out.contradiction = "only of the schema: " + finding;
}

}  // namespace

bool Predicted::says(const char* verb) const {
  const std::string words = std::string("libcudf would ") + verb;
  return std::any_of(findings.begin(), findings.end(),
                     [&](const std::string& finding) { return finding.find(words) != std::string::npos; });
}

Predicted predict(const Case& test, Consumer consumer) {
  Predicted out;
  Exported given(given_to(test, consumer));
  place(test, consumer, given.array);
  BowstringType* type = nullptr;
  BowstringError error{};
  if (bowstring_type_copy_from(&given.schema, &type, &error) != BOWSTRING_OK) {
    out.broken = line(error);
    return out;
  }
  ArrowDeviceArray on_cpu = given.array;
  on_cpu.device_type = ARROW_DEVICE_CPU;
  on_cpu.device_id = -1;
  on_cpu.sync_event = nullptr;
  out.broken = broken_rule(on_cpu, type, test.readable || test.deep);
  if (out.broken.empty()) ask(given, on_cpu, type, consumer, out);
  bowstring_type_release(type);
  return out;
}

Predicted predict(const ArrowSchema& schema, const ArrowDeviceArray& array, Consumer consumer) {
  Predicted out;
  BowstringType* type = nullptr;
  BowstringError error{};
  if (bowstring_type_copy_from(&schema, &type, &error) != BOWSTRING_OK) {
    out.broken = line(error);
    return out;
  }
  const auto options = options_for(consumer, out.findings);
  const auto status = bowstring_device_array_validate(&array, type, &options, &error);
  const bool is_error = out.says("refuse") || out.says("crash") || out.says("read wrong values");
  if (status != (is_error ? BOWSTRING_NOT_CONFORMING : BOWSTRING_OK)) out.contradiction = line(error);
  bowstring_type_release(type);
  return out;
}

Verdict compare(const Case& test, Consumer consumer, const Seen& seen, const Predicted& predicted) {
  if (!predicted.broken.empty()) return Verdict::breaks_a_rule;
  if (!predicted.contradiction.empty()) return Verdict::unexplained;
  const bool refuses = predicted.says("refuse"), crashes = predicted.says("crash");
  const bool misreads = predicted.says("read wrong values");
  const bool is_host = takes_host(consumer) || test.device_type == ARROW_DEVICE_CPU;
  bool fits = false;
  switch (seen.outcome) {
    case Outcome::refused: fits = refuses; break;
    // A kernel's fault is no fault here, only an address.
    case Outcome::wrong: fits = seen.text.find("at a multiple of") == std::string::npos ? misreads : crashes; break;
    case Outcome::crashed: fits = crashes; break;
    case Outcome::accepted:
      fits = !refuses && !crashes && !misreads && !predicted.says("copy") && !predicted.says("wait");
      // What was copied from the host shows no call of CUDA.
      if (is_host) fits = !refuses && !crashes && !misreads;
      break;
    case Outcome::needs_gpu:
      if (is_host || test.with_event) return refuses || crashes || misreads ? Verdict::out_of_sight : Verdict::as_predicted;
      fits = !refuses && (predicted.says("copy") || predicted.says("wait"));
      break;
  }
  return fits ? Verdict::as_predicted : Verdict::unexplained;
}
