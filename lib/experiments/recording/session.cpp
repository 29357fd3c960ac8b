// SPDX-License-Identifier: Apache-2.0
#include "recording/session.hpp"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "attribute/state.hpp"
#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/host.hpp"
#include "base/idle.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "experiment/lease.hpp"
#include "experiment/start.hpp"
#include "experiment/state.hpp"
#include "recording/command.hpp"
#include "recording/environment.hpp"
#include "recording/hang.hpp"
#include "recording/kernel_log.hpp"
#include "recording/metrics.hpp"
#include "recording/relay.hpp"
#include "recording/use.hpp"
#include "recording/wakers.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace zs::recording {
namespace {

using Clock = std::chrono::steady_clock;
using registry::Fields;
using registry::value;

/// Determines the command's environment in a separate thread, and records it.
class Surroundings {
 public:
  Surroundings(const std::vector<std::string>& command, const registry::Run& run)
      : thread_([this, command, run] {
          try {
            fields_ = environment(command, run.folder());
            if (!fields_.empty()) run.update(fields_);
          } catch (const std::exception&) {  // the record cannot be written: its end reports that
          }
        }) {}
  ~Surroundings() {
    if (thread_.joinable()) thread_.join();
  }
  const Fields& fields() {
    if (thread_.joinable()) thread_.join();
    return fields_;
  }

 private:
  Fields fields_;
  std::thread thread_;
};

/// Why it failed: the first error of the log and its rank, else how it ended.
std::string error_of(const Result& result, int status) {
  return attribute::reason([&](const char* name) {
    const auto found = result.facts.find(name);
    if (name == std::string_view("exit_code")) return to_text(std::int64_t{status});
    return found == result.facts.end() ? std::string() : found->second;
  });
}

metric::Writer::Facts facts_of(const Fields& fields) {
  metric::Writer::Facts facts;
  for (const auto& [key, text] : fields) {
    if (!text.empty()) facts[std::string(attribute::primary(key))] = text;
  }
  return facts;
}

class Session {
 public:
  explicit Session(const Recording& recording) : recording_(recording), run_(register_run()) {}

  int run() {
    const experiment::Lease lease(run_.folder(), false);
    if (planned_) begin_planned();
    const auto begin = Clock::now();
    const std::string log = run_.folder() + "/run.log";
    Relay relay(log, recording_.warn);
    std::optional<Command> command;
    try {
      auto variables = recording_.timeout > 0 ? variables_to_ask(run_.folder()) : variables_to_probe();
      for (const char* const name : {"ZS_RUN", "ZS_RESUMED"}) variables.emplace_back(name, "");
      variables.emplace_back("ZS_RECORD", run_.folder());
      command.emplace(recording_.command, variables, signals_.before());
    } catch (const Error& error) {
      run_.finish(registry::status::failed, {{"exit_code", "126"}, {"error", error.what()}});
      recording_.tell(error.what());
      return kCannotStart;
    }
    relay.add(command->streams());
    recording_.tell("run " + run_.folder());
    UseWatch use;
    Metrics metrics(earlier_, log, run_.folder() + "/metrics.h5", value(facts_, "run_name"), facts_of(facts_),
                    recording_.reading, use, lease, recording_.warn);
    Surroundings surroundings(recording_.command, run_);
    watch(*command, relay, metrics);
    if (relay.drain())
      recording_.warn(
          "the command has ended, and a process that it started lives on: what that prints is not recorded");
    Command::End end = command->wait();
    if (hung() && end.status == 0) end.status = 128 + SIGTERM;  // a shell that waits for its ranks may say 0
    const Result result = metrics.end();
    if (hang_.empty()) std::filesystem::remove_all(run_.folder() + "/stacks");
    return finish(result, end, std::chrono::duration<double>(Clock::now() - begin).count(), relay, use, surroundings,
                  metrics, lease);
  }

  static constexpr int kCannotStart = 126;

 private:
  registry::Run register_run() {
    facts_ = {{"command", shell_quoted(without_secrets(recording_.command))},
              {"tool", std::string(experiment::kRecorder)},
              {"zs_version", cli::version()}};
    if (const std::optional<registry::Run> planned = experiment::planned_run()) {
      planned_ = true;
      add_facts(*planned, planned_configuration(planned->folder()));
      return *planned;
    }
    const auto run = registry::Run::create(recording_.registry, recording_.config, facts_);
    add_facts(run, recording_.config);
    return run;
  }

  static config::Config planned_configuration(const std::string& folder) {
    const std::string path = folder + "/config.yaml";
    return std::filesystem::exists(path) ? config::Config::read(path) : config::Config();
  }

  /// A planned run begins, perhaps once more: what an earlier attempt printed is kept under another name.
  void begin_planned() {
    const std::string log = run_.folder() + "/run.log";
    for (int attempt = 1; std::filesystem::exists(log); ++attempt) {
      const std::string kept = run_.folder() + "/run_attempt" + std::to_string(attempt) + ".log";
      if (!std::filesystem::exists(kept)) std::filesystem::rename(log, kept);
      earlier_.push_back(kept);
    }
    const std::string from = environment_variable("ZS_RESUMED");  // experiment::become() sets it
    if (from.empty()) earlier_.clear();  // it begins again: the record is of this attempt alone
    run_.begin(0,
               {{"tool", std::string(experiment::kRecorder)}, {"zs_version", cli::version()}, {"resumed_from", from}});
  }

  /// Facts about the run for the beginning of the records.
  void add_facts(const registry::Run& run, const config::Config& config) {
    for (const auto& [key, text] : registry::settings(config)) registry::set(facts_, key, text);
    for (const auto& [key, text] : registry::environment()) registry::set(facts_, key, text);
    registry::set(facts_, "run_id", run.id());
    const std::string name = value(registry::read_record(run.folder()), "run_name");
    registry::set(facts_, "run_name", name.empty() ? run.id() : name);
  }

  void watch(const Command& command, Relay& relay, Metrics& metrics) {
    const Seconds seconds;
    std::int64_t elapsed = 0, look = 1;
    bool ended = false, stopped = false, begun = false;
    while (!ended) {
      std::vector<pollfd> files = {
          {command.ended(), POLLIN, 0}, {signals_.file(), POLLIN, 0}, {seconds.file(), POLLIN, 0}};
      for (const Relay::Wait& wait : relay.waits()) files.push_back({wait.file, wait.events, 0});
      if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) throw Error("poll: " + errno_text());
      ended = files[0].revents != 0;
      while (const auto signal = signals_.next()) {
        // The terminal has sent its signals to the command, too.
        if (signal->ssi_signo == SIGWINCH)
          command.resize();
        else if (signal->ssi_code != SI_KERNEL)
          pass(static_cast<int>(signal->ssi_signo), command);
      }
      relay.work();
      if (!seconds.passed()) continue;
      if (recording_.timeout > 0) look_for_hang(command, relay);
      // The files of trackers are few and open for long, and so are ranks: they are looked for ever more rarely, and
      // when the training has begun.
      ++elapsed;
      const bool begins = !begun && metrics.any();
      begun = begun || begins;
      if (elapsed == look || begins) {
        const std::vector<pid_t> processes = family(command.process());
        add_members(processes, members_);
        for (const std::string& path : open_tracker_files(processes)) metrics.add_tracked(path);
        if (elapsed == look) look += std::min<std::int64_t>(look, 30);
      }
      try {
        if (!stopped) metrics.flush();
      } catch (const Error& error) {  // another trains this run now, or somebody has removed it
        const bool gone = !std::filesystem::exists(run_.folder());
        recording_.warn(error.what() + std::string(gone ? ": the command continues, without a record" : ""));
        if (!gone) command.send(SIGTERM);
        stopped = true;
      }
    }
  }

  /// A warning (SIGUSR1) is for who does something about it, and a training that then ends was preempted.
  void pass(int signal, const Command& command) {
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      warned_ = warned_ || (signal == SIGUSR1 && planned_);
      command.warn(signal);
    } else {
      command.send(signal);
    }
  }

  /// If nothing was printed for the time limit: asks the ranks where they are, reports it, and ends the command, at
  /// first by SIGTERM.
  void look_for_hang(const Command& command, const Relay& relay) {
    if (relay.bytes() != bytes_) bytes_ = relay.bytes(), quiet_.restart(), asked_ = false;
    const double quiet = quiet_.seconds();
    if (!ending_.empty() && Clock::now() > kill_at_) {
      for (const pid_t process : ending_) ::kill(process, SIGKILL);
      ending_.clear();
    }
    if (asked_ || quiet < recording_.timeout) return;
    asked_ = true;
    add_members(family(command.process()), members_);
    hang_ = with_kernel("nothing printed for " + cli::clock_text(quiet) + ": " + why_it_hangs(run_.folder()));
    recording_.tell(hang_ + (recording_.end_hang ? "; it is ended" : "") + " (stacks: " + run_.folder() + "/hang.txt)");
    quiet_.restart();
    try {
      run_.update({{"hang", hang_}});
    } catch (const std::exception&) {  // the record cannot be written: already reported
    }
    if (!recording_.end_hang) return;
    ending_ = family(command.process());
    kill_at_ = Clock::now() + std::chrono::seconds(10);
    // Launchers last: otherwise they would report that ranks failed. A stopped rank gets SIGTERM when it continues.
    for (auto process = ending_.rbegin(); process != ending_.rend(); ++process)
      ::kill(*process, SIGTERM), ::kill(*process, SIGCONT);
  }

  int finish(const Result& result, const Command::End& end, double seconds, const Relay& relay, UseWatch& use,
             Surroundings& surroundings, Metrics& metrics, const experiment::Lease& lease) {
    const bool preempted = warned_ && !hung() && (end.status != 0 || short_of_its_steps(result));
    const bool failed = end.status != 0 && !preempted, diverged = end.status == 0 && !preempted && result.diverged;
    const int status_code = preempted ? static_cast<int>(Status::try_again) : end.status;
    Fields fields = {{"exit_code", to_text(std::int64_t{status_code})}};
    const auto add = [&](const char* key, const std::string& text) {
      if (!text.empty()) registry::set(fields, key, text);
    };
    if (failed)
      add("error", hung() ? hang_ : with_kernel(with(error_of(result, end.status), said_by_dumps(run_.folder()))));
    if (diverged) add("error", "the loss is " + result.final_loss.text + " at the end");
    for (const char* const fact : {"error_rank", "error_line", "expected_steps", "wandb_run", "world_size"}) {
      if (const auto found = result.facts.find(fact); found != result.facts.end()) add(fact, found->second);
    }
    if (result.last_step >= 0) add("steps_done", to_text(result.last_step));
    for (const auto& [key, text] : result.metrics) add(key.c_str(), text);
    add("final_train_loss", result.final_loss.text);
    add("final_train_step", result.final_loss.step);
    add("final_valid_loss", result.final_valid_loss.text);
    add("final_valid_step", result.final_valid_loss.step);
    add("peak_memory", result.peak_memory);
    add("wall_time", to_text(std::round(seconds * 1000) / 1000));
    add("use.processor_seconds", to_text(std::round(end.processor_seconds * 1000) / 1000));
    add("use.largest_process", to_text(end.largest_process));
    if (relay.not_logged() > 0) add("log_bytes_lost", to_text(relay.not_logged()));
    for (const auto& [key, text] : use.facts()) add(key.c_str(), text);
    for (const auto& [key, text] : surroundings.fields()) registry::set(facts_, key, text);
    for (const auto& [key, text] : fields) registry::set(facts_, key, text);
    const std::string status = preempted  ? registry::status::preempted
                               : failed   ? registry::status::failed
                               : diverged ? registry::status::diverged
                                          : registry::status::complete;
    if (!lease.held()) return end.status;  // it is another's by now, or was removed
    std::string lacks;
    try {
      metrics.write(facts_of(facts_), lacks);
    } catch (const std::exception& error) {
      recording_.warn(error.what());
    }
    try {
      run_.finish(status, fields);
    } catch (const std::exception& error) {
      recording_.warn(std::string(error.what()) + ": how the command ended is not recorded");
    }
    if (status != registry::status::complete) lacks.clear();
    std::string text = (preempted       ? std::string("PREEMPTED")
                        : failed        ? "FAILED (" + value(fields, "error") + ")"
                        : diverged      ? "DIVERGED (" + value(fields, "error") + ")"
                        : lacks.empty() ? "COMPLETE"
                                        : "TRUNCATED (exit code 0, but it " + lacks + ")") +
                       " after " + cli::clock_text(seconds);
    if (result.last_step >= 0) text += ", step " + to_text(result.last_step);
    const auto& [loss, step] = result.final_loss;
    if (!loss.empty()) text += ", loss " + loss;
    if (!step.empty() && step != to_text(result.last_step)) text += " at step " + step;
    recording_.tell(text + ": " + run_.folder());
    return status_code;
  }

  bool hung() const { return !hang_.empty() && recording_.end_hang; }
  std::string with_kernel(const std::string& reason) { return with(reason, kernel_.said(members_)); }
  static std::string with(const std::string& reason, const std::string& more) {
    return reason + (more.empty() ? "" : "; " + more);
  }

  /// A training that heeds a warning may end with 0 long before its last step.
  bool short_of_its_steps(const Result& result) const {
    std::string asked = value(facts_, "max_steps");
    if (const auto found = result.facts.find("expected_steps"); found != result.facts.end()) asked = found->second;
    const auto steps = parse_int(asked);
    return steps && result.last_step >= 0 && result.last_step < *steps;
  }

  const Recording& recording_;
  const Signals signals_;
  Fields facts_;
  bool planned_ = false;
  registry::Run run_;
  std::vector<std::string> earlier_;  // logs of earlier attempts, which this one continues
  bool warned_ = false;
  // the kernel's messages about its processes
  KernelLog kernel_;
  Members members_;
  // of hangs
  std::string hang_;
  std::int64_t bytes_ = 0;
  bool asked_ = false;
  Idle quiet_;  // since the command printed something
  Clock::time_point kill_at_{};
  std::vector<pid_t> ending_;
};

}  // namespace

int record(const Recording& recording) {
  if (program_path(recording.command.at(0)).empty()) {
    recording.tell(recording.command[0] + ": there is no such command");
    return 127;
  }
  return Session(recording).run();
}

}  // namespace zs::recording
