// SPDX-License-Identifier: Apache-2.0
#include "experiment/page.hpp"

#include <sys/stat.h>

#include <chrono>
#include <map>
#include <thread>

#include "base/file.hpp"
#include "base/words.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "input/source.hpp"
#include "registry/runs.hpp"
#include "report/runs_page.hpp"
#include "report/write.hpp"
#include "stat/summary.hpp"

namespace zs::experiment {
namespace {

/// The target of a click on a run: its report, else its log, "" if it has neither.
std::string link_of(const std::string& run, const std::string& folder) {
  for (const char* const name : {"/report.html", "/run.log"}) {
    if (is_there(run + name)) return report::link_from(folder, run + name);
  }
  return "";
}

std::string of_registry(const std::string& registry, registry::Question question, report::RunsPage page, Seen& seen,
                        const FaultSink& faults) {
  registry::Runs runs = registry::read_runs(registry, faults);
  question.telling = question.show.empty();
  const ProgressOf progress = [&seen](const std::string& folder) { return seen.progress(folder); };
  const bool states = asks_for_states(question, runs);
  if (states) find_states(registry, question, runs, progress);
  const registry::Answer answer = registry::ask(runs, question);
  if (!states && question.telling) tell_states(registry, answer.rows, runs, progress);
  const auto folder = [&](std::size_t row) { return registry + "/" + runs.text(row, "run_id"); };
  page.title = "Runs in " + registry;
  page.rows = answer.rows, page.columns = answer.columns;
  page.curve = [&](std::size_t row, std::size_t most) { return seen.curve(folder(row), most); };
  page.link = [&](std::size_t row) { return link_of(folder(row), page.folder); };
  const std::string text = report::to_html(runs, page, {});
  seen.tell(faults);
  return text;
}

std::string of_logs(const std::string& registry, const std::vector<std::string>& operands,
                    const registry::Question& question, report::RunsPage page, const FaultSink& faults) {
  const auto named = input::named(operands, registry, "zs-runs --output");
  const metric::Store store = stat::summarize(input::read(named, {.progress = {}, .fault = faults}), {}).store;
  std::map<std::string, std::string> links;
  for (const input::Source& source : input::sources(named)) {
    if (!source.job.logs.empty()) links[source.name] = source.job.logs.front();
  }
  page.title = "Runs in " + shell_quoted(operands);
  return report::logs_page(store, question, std::move(page), links);
}

/// ns; a file system stamps its files with a clock that ticks each 1 to 10 ms. The stamp does not show a second write
/// in one tick, so a file with a very recent stamp is read again.
constexpr std::int64_t kTick = 20'000'000;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void write_page(const std::string& registry, const std::vector<std::string>& operands,
                const registry::Question& question, const PageFile& file, const std::string& tool,
                const FaultSink& faults) {
  Seen seen;
  while (true) {
    report::RunsPage page{.tool = tool, .folder = report::folder_of(file.path), .every = file.every};
    write_file(file.path, operands.empty() ? of_registry(registry, question, std::move(page), seen, faults)
                                           : of_logs(registry, operands, question, std::move(page), faults));
    if (file.every == 0) return;
    std::this_thread::sleep_for(std::chrono::seconds(file.every));
  }
}

Seen::Entry& Seen::entry(const std::string& folder, bool anew) {
  Entry& entry = runs_[folder];
  struct stat found {};
  const bool exists = ::lstat((folder + "/metrics.h5").c_str(), &found) == 0;
  const std::int64_t bytes = exists ? found.st_size : 0;
  const std::int64_t changed = exists ? found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec : 0;
  if (!anew && entry.settled && entry.bytes == bytes && entry.changed == changed) return entry;
  entry = {.bytes = bytes, .changed = changed, .settled = !exists || now() - changed > kTick, .most = most_};
  if (!exists) return entry;
  ++reads_;
  try {
    const metric::Run run = metrics_of(folder);
    entry.progress = progress_of(run);
    entry.curve = report::curve_of(run, most_);
  } catch (const std::exception& error) {
    entry.progress.fault = error.what();
  }
  return entry;
}

const Progress& Seen::progress(const std::string& folder) { return entry(folder).progress; }

const report::Curve* Seen::curve(const std::string& folder, std::size_t most) {
  most_ = most;
  const auto before = runs_.find(folder);
  const bool thinned = before != runs_.end() && before->second.curve && !report::fits(*before->second.curve, most);
  const Entry& found = entry(folder, thinned);
  return found.curve ? &*found.curve : nullptr;
}

void Seen::tell(const FaultSink& faults) {
  for (auto& [folder, entry] : runs_) {
    if (entry.progress.fault.empty() || entry.progress.known || entry.told) continue;
    entry.told = true;
    faults({folder + "/metrics.h5", 0, entry.progress.fault});
  }
}

}  // namespace zs::experiment
