// SPDX-License-Identifier: Apache-2.0
#include "comparison/session.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/sheet.hpp"
#include "base/words.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "compare/records.hpp"
#include "comparison/command.hpp"
#include "comparison/follow.hpp"
#include "comparison/golden.hpp"
#include "comparison/output.hpp"
#include "comparison/resume.hpp"
#include "comparison/two_runs.hpp"
#include "input/named.hpp"
#include "parse/custom.hpp"
#include "probe/checks.hpp"
#include "registry/run.hpp"
#include "rollout/answer.hpp"
#include "rollout/recording.hpp"
#include "rolloutfile/form.hpp"

namespace zs::comparison {
namespace {

/// The columns that --columns names. Throws UsageError at one that is never compared.
std::vector<std::string> columns(const cli::Args& args) {
  std::vector<std::string> names;
  std::istringstream words(args.text("columns"));
  for (std::string word; std::getline(words, word, ',');) names.push_back(word);
  const std::vector<std::string>& known = compare::decided();
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end())
      throw UsageError("--columns: '" + name + "' is none of the columns that training decides" +
                       did_you_mean(name, known));
  }
  return names;
}

/// The step at which two begin to differ, from their answer; 0 if unknown.
std::int64_t step_of(const Answer& answer) {
  for (const auto& [key, value] : answer.lines) {
    if (key == "step") return parse_int(value).value_or(0);
  }
  return 0;
}

/// Compares the first operand with each of the others. If there are several, returns the first that differs, with a
/// word about each.
Answer compare_with_first(const std::vector<input::Named>& operands, const compare::Tolerance& allowed,
                          const std::vector<std::string>& columns, const state::Names& names,
                          const std::string& floor) {
  const input::Named& a = operands.front();
  const auto is_recording = [](const input::Named& one) { return one.kind == input::Kind::probe; };
  const auto lone = std::ranges::find_if(operands, is_recording);
  if (lone != operands.end() && !std::ranges::all_of(operands, is_recording))
    throw UsageError(lone->name + " is a record of zs_probe, and another operand is not: name two");
  if (!floor.empty() && !is_recording(a)) throw UsageError("--floor is for probes, and " + a.name + " is none");
  std::optional<Answer> worst;
  std::string against, words;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const input::Named& b = operands[i];
    Answer answer = is_run(a)         ? compare_runs(read_recorded(a), read_recorded(b), allowed, columns)
                    : is_recording(a) ? compare_recordings(a.path, b.path, allowed, 0, floor)
                                      : compare_states(a.path, b.path, allowed, names);
    words += (words.empty() ? "" : "; ") + b.name + " " + std::string(compare::name(answer.verdict));
    const bool worse = !worst || answer.verdict > worst->verdict;
    if (worse || (answer.verdict == worst->verdict && step_of(answer) < step_of(*worst)))
      worst = std::move(answer), against = b.name;
  }
  if (operands.size() > 2) {
    worst->lines.emplace_back("compared", a.name + " with " + against);
    worst->lines.emplace_back("each_with_first", words);
  }
  return *worst;
}

/// Log-probabilities of one dump with both sides, or of two with one each.
Answer compare_rollouts(const std::vector<input::Named>& operands, const std::string& floor) {
  if (operands.size() > 2) throw UsageError("log-probabilities are compared in one dump of both sides, or in two");
  rollout::Answer found = rollout::compare(operands[0].path, operands.size() > 1 ? operands[1].path : "", floor);
  return {.verdict = found.verdict, .lines = std::move(found.lines)};
}

/// Throws Error at a dump of text, from which no log-probability can be read.
void require_numbers(const std::vector<input::Named>& operands) {
  for (const input::Named& one : operands) {
    if (one.kind != input::Kind::text && one.kind != input::Kind::unknown) continue;
    if (const std::string what = rolloutfile::text_alone(one.path); !what.empty()) throw Error(one.path, 0, what);
  }
}

/// Throws UsageError at a given option that is none of these.
void require_only(const cli::Args& args, std::initializer_list<std::string_view> taken, const std::string& subject) {
  for (const cli::Option& option : args.command().options) {
    if (!args.has(option.name) || std::ranges::find(taken, option.name) != taken.end()) continue;
    if (option.name == "repeat")
      throw UsageError("--repeat trains; what was recorded several times is compared by its names: zs-verify A B C");
    throw UsageError("--" + option.name + " says nothing about " + subject);
  }
}

void print_lines(const cli::Args& args, const Lines& lines, const std::string& before = "") {
  metric::Run run{"verify", {{"command", args.line()}, {"revision", cli::version()}}, {}};
  output(args, run, lines, before);
}

Status resumed(const cli::Args& args) {
  require_only(
      args,
      {"resume", "resume_with", "resume_command", "at", "steps", "keep", "rtol", "atol", "format", "output", "allow"},
      "a training that is stopped and resumed");
  if (!args.operands().empty()) throw UsageError("--resume trains: it takes no operand");
  if (!args.has("at") || !args.has("steps")) throw UsageError("--resume needs --at N and --steps M");
  ResumeTest test;
  test.command = args.text("resume"), test.with = args.text("resume_with"), test.resumed = args.text("resume_command");
  test.at = args.integer("at", 1), test.total = args.integer("steps", 2);
  test.folder = args.has("keep") ? args.text("keep") : "resume-test";
  if (std::filesystem::exists(test.folder))
    throw Error(test.folder, 0, "is there already: remove it, or name another folder with --keep");
  const Answer answer =
      test_resume(test, tolerance(args), [&](const std::string& text) { cli::tell(args.command(), text); });
  print_lines(args, answer.lines);
  return compare::status(answer.verdict, args.text("allow") == "rounding");
}

Status followed(const cli::Args& args) {
  require_only(args, {"rtol", "atol", "format", "output", "allow", "floor", "follow", "patience"},
               "a training that is followed");
  if (args.operands().empty() || args.operands().size() > 2)
    throw UsageError(
        "--follow takes the recording of a training that runs, alone or behind that of a training that has ended");
  Follow request{args.operands().size() == 2 ? args.operands()[0] : "", args.operands().back(), args.text("floor"),
                 tolerance(args)};
  if (args.has("patience")) request.patience = args.real("patience", 0, 1e9);
  cli::ProgressLine line;
  const probe::Answer answer = follow(request, [&](std::int64_t steps) {
    line.show(to_text(steps) + " steps of " + request.live + (request.reference.empty() ? " hold" : " are equal"));
  });
  line.clear();
  print_lines(args, answer.lines);
  return compare::status(answer.verdict, args.text("allow") == "rounding");
}

/// One recording, by the relations that hold within it.
Status checked(const cli::Args& args, bool rollouts) {
  require_only(args, {"format", "output", "registry"}, "one recording");
  std::string folder = args.operands().front();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();  // as a shell completes it
  const probe::Answer answer =
      rollout::check(folder, rollouts ? std::optional(rollout::compare(folder, "", "")) : std::nullopt);
  print_lines(args, answer.lines);
  return compare::status(answer.verdict);
}

/// Compares one recording, or each in a folder, or files of values, with the goldens of their names.
Status beside_golden(const cli::Args& args) {
  require_only(args, {"golden", "update", "floor", "allow", "rtol", "atol", "format", "output"}, "a golden");
  const std::string goldens = args.text("golden"), operand = args.operand("a recording, or a folder of recordings");
  const bool update = args.has("update"),
             single = !std::filesystem::is_directory(operand) || input::is(operand, input::Kind::probe);
  std::vector<std::string> names = recordings_in(operand);
  const bool values = !std::filesystem::is_directory(operand) || (!single && names.empty());
  if (values && update) throw UsageError("--update is for recordings; a file of values is its own golden: copy it");
  const auto one = [&](const std::string& kept, const std::string& fresh) {
    return update   ? update_golden(kept, fresh, args.text("floor"))
           : values ? compare_golden_values(kept, fresh, tolerance(args))
                    : compare_golden(kept, fresh);
  };
  if (single) {
    const GoldenAnswer answer = one(goldens, operand);
    print_lines(args, answer.lines);
    return update || (answer.rounded && args.text("allow") == "rounding") ? Status::done : answer.status();
  }
  if (values) names = files_in(operand);
  std::set<std::string> tests(names.begin(), names.end());
  for (const std::string& kept : update ? std::vector<std::string>() : values ? files_in(goldens) : tests_in(goldens))
    tests.insert(kept);
  Sheet sheet{{"golden", "verdict", "headline"}, {}};
  Status worst = Status::done;
  std::map<std::string, std::int64_t> counts;
  for (const std::string& name : tests) {
    const bool fresh = std::ranges::find(names, name) != names.end();
    const bool kept = update || std::filesystem::exists(goldens + "/" + name);
    const GoldenAnswer answer = !fresh  ? GoldenAnswer{"no recording", "the golden has none beside it", {}, false}
                                : !kept ? GoldenAnswer{"no golden", "nothing to compare it with", {}, false}
                                        : one(goldens + "/" + name, operand + "/" + name);
    sheet.rows.push_back({name, answer.verdict, answer.headline});
    ++counts[answer.verdict];
    const Status status = update ? Status::done : answer.status();
    if (status == Status::no || worst == Status::done) worst = status;
  }
  if (tests.empty()) throw Error(operand, 0, "has no recording and no file");
  Lines lines = {
      {"verdict", joined(counts, ", ", [](const auto& each) { return to_text(each.second) + " " + each.first; })}};
  for (const auto& row : sheet.rows) {
    if (row[1] != "same" && row[1] != "written") lines.emplace_back(row[0], row[1] + ": " + row[2]);
  }
  print_lines(args, lines, aligned(sheet) + "\n");
  return worst;
}

Status recorded(const cli::Args& args) {
  require_only(args,
               {"rtol", "atol", "format", "output", "allow", "columns", "names", "registry", "patterns",
                "verbose_logging", "floor"},
               "recorded runs");
  parse::customize(args.text("patterns"), [&](const std::string& text) { cli::warn(args.command(), text); });
  const compare::Tolerance allowed = tolerance(args);
  const auto operands = input::named(args.operands(), registry::place(args.text("registry")), "zs-verify");
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) require_two(operands[k], operands[i]);
  }
  if (args.has("names") && (is_run(operands[0]) || operands[0].kind == input::Kind::probe))
    throw UsageError("--names joins names of checkpoints, and " + operands[0].name + " is none");
  require_numbers(operands);
  const auto is_dump = [](const input::Named& one) { return one.kind == input::Kind::rollout; };
  const auto dump = std::ranges::find_if(operands, is_dump);
  if (dump != operands.end() && !std::ranges::all_of(operands, is_dump))
    throw UsageError(dump->name + " holds log-probabilities, and another operand does not: name two such dumps");
  const Answer answer = dump != operands.end()
                            ? compare_rollouts(operands, args.text("floor"))
                            : compare_with_first(operands, allowed, columns(args),
                                                 args.has("names") ? state::Names(args.text("names")) : state::Names(),
                                                 args.text("floor"));
  metric::Run run{"verify", {{"command", args.line()}, {"revision", cli::version()}}, answer.columns};
  output(args, run, answer.lines, columns_text(answer.columns));
  return compare::status(answer.verdict, args.text("allow") == "rounding");
}

}  // namespace

Request::Request(const cli::Args& args) : args_(args) {
  const auto& operands = args.operands();
  const bool other = args.has("resume") || args.has("follow") || args.has("golden");
  if (!other && operands.size() == 1 && is_there(operands[0])) kinds_ = input::kinds_of(operands[0]);
  const bool recorded = is(input::Kind::rollout) || is(input::Kind::probe);
  trains_ = !other && operands.size() < 2 && !recorded;
  // Rejects an operand that is not a configuration before it looks for an engine.
  if (trains_ && operands.size() == 1) input::named(operands[0], "", "zs-verify of one operand");
}

bool Request::is(input::Kind kind) const { return !kinds_.empty() && kinds_.front() == kind; }

Status Request::compare() const {
  if (args_.has("resume")) return resumed(args_);
  if (args_.has("follow")) return followed(args_);
  if (args_.has("golden")) return beside_golden(args_);
  if (!is(input::Kind::probe)) return recorded(args_);
  return checked(args_, std::ranges::find(kinds_, input::Kind::rollout) != kinds_.end());
}

namespace {

namespace fs = std::filesystem;

/// The folder of a run for the files that zs writes into it, else the file or folder itself.
fs::path home(const input::Named& operand) {
  std::error_code failure;
  const fs::path path = fs::canonical(operand.path, failure);
  if (failure) return operand.path;
  const std::string name = path.filename().string();
  return is_run(operand) && (name == "metrics.h5" || name == "run.log") ? path.parent_path() : path;
}

}  // namespace

bool is_run(const input::Named& operand) {
  using enum input::Kind;
  return operand.kind != tensors && operand.kind != checkpoint && operand.kind != checkpoints &&
         operand.kind != probe && operand.kind != rollout;
}

void require_two(const input::Named& a, const input::Named& b) {
  if (is_run(a) != is_run(b))
    throw UsageError(a.name + " is " + std::string(input::name(a.kind)) + " and " + b.name + " is " +
                     std::string(input::name(b.kind)) + ": name two runs, two recordings, or a checkpoint of the run");
  std::error_code ignored;
  if (home(a) == home(b) || fs::equivalent(a.path, b.path, ignored))
    throw UsageError(a.name + " and " + b.name + " are the same " + (is_run(a) ? "run" : "tensors") +
                     ": nothing would be compared");
}

}  // namespace zs::comparison
