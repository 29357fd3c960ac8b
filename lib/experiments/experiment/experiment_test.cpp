// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "experiment/lease.hpp"
#include "experiment/plan.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "metric/file.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"

namespace fs = std::filesystem;
namespace zs::experiment {
using zs::registry::value;

namespace {

/// Metrics of the steps 1..done, of `expected`.
void write_metrics(const std::string& folder, std::vector<std::int64_t> steps, int expected, bool finished,
                   int before = 0) {
  zs::metric::Store store;
  zs::metric::Run& run = store.runs.emplace_back();
  run.name = "run";
  run.attributes["expected_steps"] = std::to_string(expected);
  if (before > 0) run.attributes["begun_after_step"] = std::to_string(before);
  if (finished) run.attributes["state_digest"] = std::string(32, 'a');
  run.records.column("step").integers() = std::move(steps);
  zs::write_file(folder + "/metrics.h5", zs::metric::to_h5(store));
}

/// A run of zs-train with that status, of which nothing else is known.
Facts facts(const std::string& status) {
  Facts facts;
  facts.record = {{"status", status}, {"host", "n1"}};
  facts.configured = true;
  return facts;
}

Progress steps(std::int64_t done, std::int64_t expected, bool finished) {
  Progress progress;
  progress.known = true;
  progress.done = done;
  progress.expected = expected;
  progress.finished = finished;
  return progress;
}

}  // namespace

TEST_CASE("queue: what squeue and sacct print, steps and other lines passed over, the first of a job holds") {
  std::map<std::string, Job> jobs;
  add_jobs("12_3|RUNNING|n[1-2]|None\n13|PENDING||JobHeldUser\nslurm_load_jobs error: Invalid job id specified\n",
           jobs);
  add_jobs("12_3|COMPLETED|n1\n14|CANCELLED by 1000|None assigned\n14.batch|CANCELLED|n1\n||\n15|FAILED\n", jobs);
  REQUIRE(jobs.size() == 3);
  CHECK(jobs["12_3"].state == "RUNNING");
  CHECK(jobs["12_3"].nodes == "n[1-2]");
  CHECK(jobs["12_3"].reason == "");
  CHECK(jobs["13"].live());
  CHECK(jobs["13"].reason == "JobHeldUser");
  CHECK(jobs["14"].state == "CANCELLED");
  CHECK(jobs["14"].nodes == "");
  CHECK_FALSE(jobs["14"].live());
}

TEST_CASE("state: COMPLETE is said by the metrics, not by an exit code or a record") {
  Facts run = facts("complete");
  run.progress = steps(120, 120, true);
  CHECK(judge(run).state == RunState::complete);
  run.progress = steps(80, 120, false);
  CHECK(judge(run).state == RunState::truncated);
  CHECK(judge(run).basis == "it ended as complete, with 80/120 steps in the metrics");
  run.progress = {};
  CHECK(judge(run).state == RunState::truncated);
  run.progress = steps(120, 120, true);
  zs::registry::set(run.record, "exit_code", "42");
  CHECK(judge(run).state == RunState::failed);
  CHECK(judge(run).basis == "exit code 42, 120/120 steps in the metrics");
  // Diverged is what it is, with zs-train's status for it or none; any other status is a failure.
  Facts diverged = facts("diverged");
  zs::registry::set(diverged.record, "error", "the loss is nan at step 37");
  for (const char* const code : {"", "0", "1"}) {
    zs::registry::set(diverged.record, "exit_code", code);
    CHECK(judge(diverged).state == RunState::diverged);
    CHECK(judge(diverged).basis == "its record: the loss is nan at step 37");
  }
  zs::registry::set(diverged.record, "exit_code", "139");
  CHECK(judge(diverged).state == RunState::failed);
  // Killed between its last step and its last word.
  Facts killed = facts("running");
  killed.process = Process::gone;
  killed.progress = steps(120, 120, true);
  CHECK(judge(killed).state == RunState::complete);
  killed.progress.finished = false;
  CHECK(judge(killed).state == RunState::failed);
}

TEST_CASE("state: a run does not run because its record says so") {
  Facts run = facts("running");
  run.progress = steps(3, 9, false);
  run.process = Process::alive;
  CHECK(judge(run).state == RunState::running);
  run.process = Process::gone;
  CHECK(judge(run).state == RunState::failed);
  CHECK(judge(run).basis == "its process on this host is gone, 3/9 steps in the metrics");
  CHECK(judge(run).again);
  // On another host, without Slurm: by the last sign of life.
  run.process = Process::elsewhere;
  run.quiet = 10;
  CHECK(judge(run).state == RunState::running);
  CHECK(judge(run).basis == "on host n1, last sign of life 10 s ago");
  run.quiet = 10000;
  CHECK(judge(run).state == RunState::failed);
  // Slurm knows better than the time since.
  run.job_id = "5";
  run.job = Job{"RUNNING", "n1"};
  CHECK(judge(run).state == RunState::running);
  run.job = Job{"NODE_FAIL", "n1"};
  CHECK(judge(run).basis == "job 5 NODE_FAIL, 3/9 steps in the metrics");
  run.job.reset();
  CHECK(judge(run).basis == "job 5 is not in the queue, 3/9 steps in the metrics");
  // But a cluster that does not answer knows nothing.
  run.silence = "Slurm does not answer";
  run.quiet = 10;
  CHECK(judge(run).state == RunState::running);
}

TEST_CASE("state: planned, requeued and preempted runs wait as long as somebody will go on with them") {
  Facts run = facts("planned");
  CHECK(judge(run).state == RunState::missing);
  run.job_id = "5_3";
  run.job = Job{"PENDING", ""};
  CHECK(judge(run).state == RunState::pending);
  run.job = Job{"CANCELLED", ""};
  CHECK(judge(run).state == RunState::missing);
  CHECK(judge(run).basis == "job 5_3 CANCELLED");
  zs::registry::set(run.record, "status", "preempted");
  run.progress = steps(3, 9, false);
  CHECK(judge(run).state == RunState::cancelled);
  CHECK(judge(run).again);
  run.job = Job{"PREEMPTED", ""};
  CHECK(judge(run).state == RunState::preempted);
  CHECK(judge(run).again);
  run.job = Job{"PENDING", ""};
  CHECK(judge(run).state == RunState::pending);
  CHECK_FALSE(judge(run).again);
  // Killed and requeued by somebody else.
  zs::registry::set(run.record, "status", "running");
  CHECK(judge(run).state == RunState::pending);
  CHECK(judge(run).basis == "squeue: job 5_3 PENDING, continues after 3/9 steps in the metrics");
  run.job->reason = "launch failed requeued held";
  CHECK(judge(run).basis.starts_with("squeue: job 5_3 PENDING (launch failed requeued held; scontrol release 5_3), "));
  run.job->reason = "Priority";
  CHECK(judge(run).basis.starts_with("squeue: job 5_3 PENDING (Priority), "));
}

TEST_CASE("state: what its user has cancelled is CANCELLED, whether it saved or not, and when Slurm has forgotten it") {
  Facts run = facts("running");
  run.job_id = "5";
  run.job = Job{"CANCELLED", ""};
  run.progress = steps(3, 9, false);
  CHECK(judge(run).state == RunState::cancelled);
  CHECK(judge(run).basis == "job 5 CANCELLED, 3/9 steps in the metrics");
  for (const char* const other : {"FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}) {
    run.job = Job{other, ""};
    CHECK(judge(run).state == RunState::failed);
  }
  run.job = std::nullopt;
  zs::registry::set(run.record, "status", "cancelled");
  zs::registry::set(run.record, "exit_code", "143");
  CHECK(judge(run).state == RunState::cancelled);
  CHECK(judge(run).again);
}

TEST_CASE("state: what another program recorded is told as it is") {
  Facts run = facts("archived");
  run.configured = false;
  CHECK(judge(run).state == RunState::unknown);
  CHECK(judge(run).basis == "its record: archived");
  CHECK_FALSE(judge(run).again);
}

TEST_CASE("state: metrics with a gap or a duplicate are no complete ones") {
  const zs::TemporaryFolder place;
  CHECK_FALSE(progress(place.path()).known);
  write_metrics(place.path(), {1, 2, 3}, 3, true);
  CHECK(progress(place.path()).done == 3);
  CHECK(progress(place.path()).fault == "");
  write_metrics(place.path(), {1, 2, 2, 3}, 3, true);
  CHECK(progress(place.path()).done == 2);
  CHECK(progress(place.path()).fault == "the metrics have 4 rows, which are not each step once");
  write_metrics(place.path(), {1, 3}, 3, true);
  CHECK(progress(place.path()).done == 1);
  // A run that began with the checkpoint of another.
  write_metrics(place.path(), {5, 6, 7}, 7, true, 4);
  CHECK(progress(place.path()).done == 7);
  CHECK(progress(place.path()).fault == "");
  zs::write_file(place.path() + "/metrics.h5", "no metrics");
  CHECK_FALSE(progress(place.path()).known);
  CHECK(progress(place.path()).fault != "");
}

TEST_CASE("plan: runs are there with their configuration, or none is") {
  const zs::TemporaryFolder place;
  const std::string to = "--output_dir\",\"" + place.path() + "/runs";
  const auto planned =
      plan(read_cells("[\"one\",\"" + to + "\",\"--seed\",\"7\"]\n[\"two\",\"" + to + "\",\"--run_name\",\"mine\"]\n"),
           {{"experiment", "e"}, {"script", "s.sbatch"}});
  REQUIRE(planned.size() == 2);
  CHECK(fs::exists(planned[0].run() + "/config.yaml"));
  const auto runs = zs::registry::read_runs(place.path() + "/runs", [](const zs::Fault& fault) { FAIL(fault.what); });
  CHECK(runs.text(0, "status") == "planned");
  CHECK(runs.text(0, "run_name") == "one");
  CHECK(runs.text(1, "run_name") == "mine");
  CHECK(runs.text(1, "condition") == "two");
  CHECK(runs.text(0, "training.seed") == "7");
  CHECK(runs.text(0, "experiment") == "e");
  CHECK(runs.text(0, "host") == "");

  CHECK_THROWS_WITH_AS(
      plan(read_cells("[\"a\",\"--output_dir\",\"" + place.path() + "/none\"]\n[\"b\",\"--seeed\",\"7\"]\n"), {}),
      "b: unknown option '--seeed', did you mean '--seed'?", zs::Error);
  CHECK_THROWS_AS(read_cells("[]"), zs::UsageError);
  CHECK_THROWS_AS(read_cells("{}"), zs::UsageError);
  CHECK_FALSE(fs::exists(place.path() + "/none"));
}

TEST_CASE("rerun: what failed or is missing, by the script that planned it, and nothing else") {
  const zs::TemporaryFolder place;
  const std::string registry = place.path() + "/runs";
  const auto line = [&](const std::string& name) {
    return "[\"" + name + "\",\"--output_dir\",\"" + registry + "\"]\n";
  };
  // An installation, and the results folder of an experiment.
  const std::string experiment = place.file("e"), script = place.file("share/slurm/batch.sbatch");
  for (const char* const folder : {"share/conditions", "share/slurm", "e"}) fs::create_directories(place.file(folder));
  zs::write_file(script, "");
  zs::write_file(experiment + "/metadata.json", "{}");
  ::setenv("ZS_SHARE", place.file("share").c_str(), 1);
  const auto planned = plan(read_cells(line("a") + line("b") + line("c")),
                            {{"experiment", experiment}, {"script", "/elsewhere/batch.sbatch"}, {"directory", "/"}});
  const zs::registry::Run done(registry, fs::path(planned[0].run()).filename());
  done.update({{"exit_code", "0"}});
  write_metrics(planned[0].run(), {1, 2}, 2, true);
  const auto config = zs::config::Config::parse("model: {name: tiny}", "c.yaml");
  const auto single = zs::registry::Run::create(registry, config, {{"exit_code", "1"}});
  auto runs = zs::registry::read_runs(registry, [](const zs::Fault& fault) { FAIL(fault.what); });
  const auto rows = find_states(registry, {}, runs);
  REQUIRE(rows.size() == 4);
  std::vector<std::string> told;
  const auto chosen = [&](const Choice& choice) {
    told.clear();
    return to_rerun(registry, runs, rows, choice, [&](const zs::Fault& fault) { told.push_back(fault.what); });
  };
  auto jobs = chosen({});
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].script == script);  // of this installation, wherever it was planned
  CHECK(jobs[0].directory == "/");
  // Runs that were planned in one tick of the clock have no order.
  std::sort(jobs[0].conditions.begin(), jobs[0].conditions.end());
  CHECK(jobs[0].conditions == std::vector<std::string>{"b", "c"});
  CHECK(jobs[0].runs.size() == 2);
  CHECK(jobs[0].command(false) ==
        std::vector<std::string>{"bash", script, "--rerun", experiment, "--as_before", "--cells", "-"});
  REQUIRE(told.size() == 1);
  CHECK(told[0] ==
        "no script has planned it: zs-train --resume " + single.id() + " continues it if it has a checkpoint");

  const zs::registry::Run b(registry, fs::path(planned[1].run()).filename());
  SUBCASE("what others may have written is not run, unless asked for") {
    if (::geteuid() != 0) return;  // only root can give files away
    std::string theirs;
    SUBCASE("the run") { theirs = b.folder(); }
    SUBCASE("a part of its record") { theirs = fs::directory_iterator(b.folder() + "/record")->path().string(); }
    SUBCASE("its configuration") { theirs = b.folder() + "/config.yaml"; }
    SUBCASE("the results folder") { theirs = experiment; }
    SUBCASE("what is planned there") { theirs = experiment + "/metadata.json"; }
    REQUIRE(::chown(theirs.c_str(), 65534, static_cast<gid_t>(-1)) == 0);
    jobs = chosen({});
    CHECK((jobs.empty() || jobs[0].conditions == std::vector<std::string>{"c"}));
    REQUIRE(told.size() > 1);
    CHECK(told[0].ends_with("its commands would run as you (--any_owner runs them)"));
    jobs = chosen({.strict = false, .any_owner = true});
    REQUIRE(jobs.size() == 1);
    CHECK(jobs[0].runs.size() == 2);
    CHECK(jobs[0].command(true).back() == "--any_owner");
  }
  SUBCASE("a script that is not one of ours is never run") {
    for (const char* const script : {"/tmp/evil.sh", "batch.sbatch/../../evil.sh", "compare-revisions.sbatch", "-c"}) {
      b.update({{"script", script}});
      jobs = chosen({.strict = false, .any_owner = true});
      REQUIRE(jobs.size() == 1);
      CHECK(jobs[0].conditions == std::vector<std::string>{"c"});
      CHECK(told[0] == std::string("was planned by ") + script + ", which is not a script of zs: it is not run");
    }
  }
  ::unsetenv("ZS_SHARE");
  zs::registry::Question question;
  question.filters = {"state=COMPLETE", "condition=a"};
  CHECK(find_states(registry, question, runs).size() == 1);
}

TEST_CASE("state: a process that has ended and waits for its parent is gone") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(zs::registry::process_text(child) == "");
  ::waitpid(child, nullptr, 0);
  CHECK(zs::registry::process_text(::getpid()) != "");
}

TEST_CASE("state: metrics that are no file keep nobody waiting") {
  const zs::TemporaryFolder place;
  REQUIRE(::mkfifo(place.file("metrics.h5").c_str(), 0666) == 0);
  CHECK(progress(place.path()).fault == place.file("metrics.h5") + ": is not a regular file");
}

TEST_CASE("plan: secrets are withheld from the configuration, the record and the command") {
  const zs::TemporaryFolder place;
  zs::write_file(place.file("c.yaml"), "wandb: {api_key: s3cret}\n");
  const auto planned =
      plan({{"a", {place.file("c.yaml"), "--output_dir", place.file("runs"), "--set", "hub.token=s3cret"}}}, {});
  const std::string folder = planned[0].run();
  CHECK(planned[0].arguments.back() == "hub.token=(withheld)");
  CHECK(value(planned[0].fields, "command").find("s3cret") == std::string::npos);
  CHECK(zs::Input(folder + "/config.yaml").read_all().find("s3cret") == std::string::npos);
  const auto record = zs::registry::read_record(folder);
  for (const auto& [key, value] : record) CHECK_MESSAGE(value.find("s3cret") == std::string::npos, key);
  CHECK(value(record, "wandb.api_key") == "(withheld)");
}

TEST_CASE("registry: a run that goes on counts its restarts and keeps where its parts begin") {
  const zs::TemporaryFolder place;
  const std::string registry = place.path() + "/runs";
  const auto planned = plan({{"a", {"--output_dir", registry}}}, {});
  const zs::registry::Run run(registry, fs::path(planned[0].run()).filename());
  run.begin(0, {});
  auto record = zs::registry::read_record(run.folder());
  CHECK(value(record, "restarts") == "0");
  CHECK(value(record, "segments") == "");
  CHECK(process(record) == Process::alive);
  run.update({{"exit_code", "75"}, {"slurm_job_id", "7"}});
  run.begin(40, {});
  run.begin(90, {});
  record = zs::registry::read_record(run.folder());
  CHECK(value(record, "restarts") == "2");
  CHECK(value(record, "segments") == "0,40,90");
  CHECK(value(record, "exit_code") == "");
  CHECK(value(record, "slurm_job_id") == "");
  zs::registry::set(record, "process", std::to_string(::getpid()) + ":1");
  CHECK(process(record) == Process::gone);
  zs::registry::set(record, "host", "elsewhere");
  CHECK(process(record) == Process::elsewhere);
}

}  // namespace zs::experiment
