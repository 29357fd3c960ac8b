// SPDX-License-Identifier: Apache-2.0
#include "experiment/state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "attribute/state.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "metric/file.hpp"
#include "metric/hdf5.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"
#include "stat/series.hpp"
#include "stat/status.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using registry::value;

constexpr double kQuiet = 900;  // s: a run on a host that cannot be asked is taken for dead then
constexpr std::size_t kLargestMetrics = std::size_t{1} << 30;  // bytes
const std::string kTryAgain = std::to_string(static_cast<int>(Status::try_again));

std::string age_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 120) return to_text(whole) + " s";
  if (whole < 7200) return to_text(whole / 60) + " min";
  return whole < 172800 ? to_text(whole / 3600) + " h" : to_text(whole / 86400) + " days";
}

std::string steps_text(const Progress& progress) {
  if (!progress.known) return "";
  return to_text(progress.done) + (progress.expected ? "/" + to_text(*progress.expected) : "");
}

std::string reached(const Progress& progress) {
  if (!progress.fault.empty()) return progress.fault;
  if (!progress.known) return "no metrics";
  return steps_text(progress) + " steps in the metrics";
}

bool whole(const Progress& progress) {
  return progress.fault.empty() && progress.expected && progress.done == *progress.expected && progress.finished;
}

/// Why the run is no longer trained, or nothing if it is, or may be.
std::optional<std::string> end_of(const Facts& facts, std::string& sign_of_life) {
  const std::string host = value(facts.record, "host");
  if (facts.process == Process::alive) {
    sign_of_life = "its process on this host is alive";
    return {};
  }
  if (!facts.job_id.empty() && facts.silence.empty()) {
    if (facts.job && facts.job->live()) {
      sign_of_life = "squeue: job " + facts.job_id + " " + facts.job->state;
      const std::string& reason = facts.job->reason;
      const bool held =
          lower(reason).find("held") != std::string::npos;  // "JobHeldUser", "launch failed requeued held"
      if (!reason.empty())
        sign_of_life += " (" + reason + (held ? "; scontrol release " + facts.job_id : std::string()) + ")";
      return {};
    }
    return "job " + facts.job_id + " " + (facts.job ? facts.job->state : "is not in the queue");
  }
  const std::string unasked = facts.job_id.empty() ? "" : " (" + facts.silence + ")";
  if (facts.process == Process::gone) return "its process on this host is gone" + unasked;
  if (facts.process == Process::unknown) return "no process and no job is known of it" + unasked;
  const std::string quiet = "on host " + host + ", last sign of life " + age_text(facts.quiet) + " ago" + unasked;
  if (facts.quiet > kQuiet) return quiet;
  sign_of_life = quiet;
  return {};
}

/// The id as squeue has it, or "". One that is none would make squeue refuse all others with it.
std::string job_id(const registry::Fields& record) {
  const std::string array = value(record, "slurm_array_job_id"), task = value(record, "slurm_array_task_id");
  const std::string id = !array.empty() && !task.empty() ? array + "_" + task : value(record, "slurm_job_id");
  const std::size_t digits = id.find_first_not_of("0123456789");
  const bool job = digits > 0 && digits <= 10 && id.size() <= 20;
  const bool element = job && id[digits] == '_' && id.find_first_not_of("0123456789", digits + 1) == std::string::npos;
  return (digits == std::string::npos && id.size() <= 10) || element ? id : "";
}

/// Whether the record says how the run ended, so that its job and process say nothing more.
bool ended(const registry::Fields& record) {
  const std::string status = value(record, "status"), code = value(record, "exit_code");
  return (!code.empty() && code != kTryAgain) || status == registry::status::complete ||
         status == registry::status::failed || status == registry::status::diverged ||
         status == registry::status::cancelled;
}

double quiet_for(const std::string& folder) {
  fs::file_time_type last{};
  std::error_code failure;
  for (const char* const file : {"", "/metrics.h5", "/run.log", "/record"}) {
    const auto time = fs::last_write_time(folder + file, failure);
    if (!failure) last = std::max(last, time);
  }
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - last).count();
}

registry::Column column_of(const std::string& name, const std::vector<std::string>& cells) {
  registry::Column column{name, {""}, {}};
  std::map<std::string, std::uint32_t> codes = {{"", 0}};
  for (const std::string& cell : cells) {
    const auto [place, made] = codes.emplace(cell, static_cast<std::uint32_t>(column.values.size()));
    if (made) column.values.push_back(cell);
    column.codes.push_back(place->second);
  }
  return column;
}

}  // namespace

metric::Run metrics_of(const std::string& folder) {
  const std::string path = folder + "/metrics.h5";
  return metric::parse(read_regular(path, kLargestMetrics).bytes, path).runs.at(0);
}

Progress progress_of(const metric::Run& run) {
  Progress progress;
  progress.known = true;
  progress.expected = parse_int(run.attribute("expected_steps"));
  progress.finished = !run.attribute("state_digest").empty();
  const std::int64_t before = parse_int(run.attribute("begun_after_step")).value_or(0);
  progress.promised = run.attribute("tool") != kRecorder;
  if (!progress.promised && !progress.expected) progress.expected = parse_int(run.attribute("max_steps"));
  if (const std::string lacks = run.attribute("lacks"); !lacks.empty() && !progress.promised) {
    progress.done = std::max<std::int64_t>(parse_int(run.attribute("steps_done")).value_or(0), before);
    if (lacks != kNothing) progress.lacks = lacks;
    return progress;
  }
  const metric::Column* const steps = run.records.find("step");
  if (!steps || steps->type() != metric::Type::integer) return progress;
  progress.done = before;
  if (!progress.promised) {
    for (const std::int64_t step : steps->integers()) progress.done = std::max(progress.done, step);
    const stat::Judgement judged = stat::judge(run, stat::series(run));
    if (judged.status == RunState::truncated) progress.lacks = judged.reason;
    return progress;
  }
  for (const std::int64_t step : steps->integers()) {
    if (step != progress.done + 1) break;
    ++progress.done;
  }
  if (static_cast<std::int64_t>(steps->size()) != progress.done - before)
    progress.fault = "the metrics have " + std::to_string(steps->size()) + " rows, which are not each step once";
  return progress;
}

Progress progress(const std::string& folder) {
  Progress progress;
  std::error_code failure;
  if (!fs::exists(fs::symlink_status(folder + "/metrics.h5", failure))) return progress;
  try {
    // A recorder counts for itself: its log may be of any length.
    const std::string path = folder + "/metrics.h5";
    metric::Run run{"", metric::facts_of(read_regular(path, kLargestMetrics).bytes), {}};
    if (run.attribute("lacks").empty()) run = metrics_of(folder);
    return progress_of(run);
  } catch (const std::exception& error) {
    progress.fault = error.what();
  }
  return progress;
}

Process process(const registry::Fields& record) {
  const std::string text = value(record, "process");
  if (text.empty()) return Process::unknown;
  if (value(record, "host") != host_name()) return Process::elsewhere;
  const auto pid = parse_int(text.substr(0, text.find(':')));
  return pid && registry::process_text(*pid) == text ? Process::alive : Process::gone;
}

// Evidence from the strongest to the weakest; the first that decides ends it:
//   1. no configuration: another program's run, of which only its record is known     UNKNOWN
//   2. the record says that the loss is not finite, and the exit code does not
//      say more                                                                         DIVERGED
//   3. the script reports that its job was cancelled                                    CANCELLED
//   4. an exit code other than 0 and "try again", or the record says failed            FAILED
//   5. the run stopped with everything saved: will something continue it?              PENDING, CANCELLED or PREEMPTED
//   6. no end was reported, and the process or the job lives                           RUNNING or PENDING
//   7. it ended: only metrics with every step and the final digest prove that it is    COMPLETE; else TRUNCATED where
//   an end was told,
//      (another's training that zs-record watched: its exit code, and no step that its
//      log promised is missing)                                                          else CANCELLED or FAILED
//   8. it was planned and nothing will train it                                        MISSING
// end_of() finds out whether something still trains it: this host's process, else Slurm, else how long it has been
// quiet.
State judge(const Facts& facts) {
  const std::string status = value(facts.record, "status"), code = value(facts.record, "exit_code");
  const bool recorded = value(facts.record, "tool") == kRecorder;
  if (!facts.configured) return {RunState::unknown, "its record: " + (status.empty() ? "no status" : status), false};
  // zs-train ends a training that diverged with status 1.
  if (status == "diverged" && (code.empty() || code == "0" || code == "1")) {
    const std::string error = value(facts.record, "error");
    return {RunState::diverged, "its record: " + (error.empty() ? "the loss is not finite" : error), false};
  }
  if (status == registry::status::cancelled)
    return {RunState::cancelled, reached(facts.progress) + ", its job was cancelled", true};
  if (!code.empty() && code != "0" && code != kTryAgain) {
    const std::string known = "exit code " + code,
                      why = attribute::reason([&](const char*name) { return value(facts.record, name); });
    return {RunState::failed, (why == known ? "" : why + ", ") + known + ", " + reached(facts.progress), true};
  }
  if (status == registry::status::failed) {
    const std::string error = value(facts.record, "error");
    return {RunState::failed, error.empty() ? "its record: failed" : error, true};
  }

  std::string sign_of_life;
  const std::optional<std::string> end = end_of(facts, sign_of_life);
  const bool cancelled = facts.job && facts.job->state == "CANCELLED";
  const bool waits = facts.job && facts.job->live() && facts.job->state == "PENDING";
  // A recorded end is final, whatever the job does next.
  const bool told = status == registry::status::complete || code == "0";
  if (status == registry::status::preempted || code == kTryAgain) {
    if (end)
      return {cancelled ? RunState::cancelled : RunState::preempted, reached(facts.progress) + ", " + *end, true};
    return {RunState::pending, sign_of_life + ", continues after " + reached(facts.progress), false};
  }
  if (!told && !end) {
    if (status == registry::status::planned) return {RunState::pending, sign_of_life, false};
    if (waits) return {RunState::pending, sign_of_life + ", continues after " + reached(facts.progress), false};
    return {RunState::running, sign_of_life, false};
  }
  if (recorded && code == "0" && !facts.progress.lacks.empty())
    return {RunState::truncated, "exit code 0, but it " + facts.progress.lacks, false};
  if (recorded && code == "0") return {RunState::complete, "exit code 0, " + reached(facts.progress), false};
  if ((told || status == registry::status::running) && whole(facts.progress))
    return {RunState::complete, reached(facts.progress), false};
  if (told) return {RunState::truncated, "it ended as complete, with " + reached(facts.progress), true};
  if (status == registry::status::planned) return {RunState::missing, *end, true};
  if (status != registry::status::running) return {RunState::unknown, "its record: " + status, false};
  return {cancelled ? RunState::cancelled : RunState::failed, *end + ", " + reached(facts.progress), true};
}

std::vector<Found> find(const std::vector<std::string>& folders, std::vector<registry::Fields> records,
                        const ProgressOf& progress_of_run) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (i == records.size()) records.push_back(registry::read_record(folders[i]));
    const std::string id = job_id(records[i]);
    if (!id.empty() && !ended(records[i])) ids.push_back(id.substr(0, id.find('_')));
  }
  const Queue queue = ids.empty() ? Queue{} : ask_slurm(ids);

  std::vector<Found> found;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (records[i].empty()) {
      found.push_back({{RunState::missing, "its run is gone", false}, "", "", ""});
      continue;
    }
    Facts facts{.record = records[i],
                .configured = fs::exists(folders[i] + "/config.yaml") ||
                              value(records[i], "status") == registry::status::planned ||
                              value(records[i], "tool") == kRecorder,
                .progress = progress_of_run(folders[i]),
                .job_id = job_id(records[i]),
                .silence = queue.silence,
                .process = process(records[i]),
                .quiet = quiet_for(folders[i])};
    const std::string cluster = value(facts.record, "slurm_cluster_name");
    if (facts.silence.empty() && !cluster.empty() && cluster != queue.cluster)
      facts.silence = "of cluster " + cluster + ", not " + queue.cluster;
    const auto job = queue.jobs.find(facts.job_id);
    if (facts.silence.empty() && job != queue.jobs.end()) facts.job = job->second;
    const std::string nodes = value(facts.record, "slurm_job_nodelist");
    found.push_back({judge(facts), steps_text(facts.progress), facts.job_id,
                     nodes.empty() && facts.job ? facts.job->nodes : nodes});
  }
  return found;
}

std::vector<State> add_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                              const ProgressOf& progress_of_run) {
  std::vector<std::string> folders;
  std::vector<registry::Fields> records;
  for (const std::size_t row : rows) {
    records.push_back(runs.fields(row));
    folders.push_back(registry + "/" + value(records.back(), "run_id"));
  }
  std::vector<State> states;
  std::array<std::vector<std::string>, kFoundOut.size()> cells;
  for (auto& column : cells) column.resize(runs.size());
  for (const Found& found : find(folders, std::move(records), progress_of_run)) {
    const std::array<std::string, kFoundOut.size()> row = {std::string(name(found.state.state)), found.steps,
                                                           found.job_id, found.nodes, found.state.basis};
    for (std::size_t c = 0; c < row.size(); ++c) cells[c][rows[states.size()]] = row[c];
    states.push_back(found.state);
  }
  for (std::size_t c = 0; c < cells.size(); ++c) {
    std::erase_if(runs.columns, [&](const registry::Column& column) { return column.name == kFoundOut[c]; });
    runs.columns.push_back(column_of(std::string(kFoundOut[c]), cells[c]));
  }
  return states;
}

void tell_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                 const ProgressOf& progress_of_run) {
  std::vector<std::string> cells(runs.size());
  for (std::size_t row = 0; row < runs.size(); ++row) cells[row] = runs.text(row, "status");
  const std::vector<State> states = add_states(registry, rows, runs, progress_of_run);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (states[i].state != RunState::unknown) cells[rows[i]] = name(states[i].state);
  }
  const auto status =
      std::ranges::find_if(runs.columns, [](const registry::Column& column) { return column.name == "status"; });
  if (status != runs.columns.end()) *status = column_of("status", cells);
}

}  // namespace zs::experiment
