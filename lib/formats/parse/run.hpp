// SPDX-License-Identifier: Apache-2.0
// From the operands of zs-parse to runs: which logs make which run, and in what order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/sheet.hpp"
#include "parse/log.hpp"

namespace zs::parse {

/// What the files of a run are.
enum class Source { log, tensorboard, wandb };

/// A run and the logs that it is in, in order.
struct Job {
  std::string run;
  std::vector<std::string> logs;                  ///< may be empty: then a fault says why
  std::map<std::string, std::string> attributes;  ///< known from elsewhere
  bool of_directory = false;                      ///< a condition, which may have failed before its first line
  std::vector<Fault> faults{};                    ///< found before the logs are read
  std::string metrics{};                          ///< file of its records; the logs then only say how it ended
  Source source = Source::log;                    ///< what `logs` are
  std::vector<std::string> wandb_places{};        ///< where the W&B run that the log names may lie: it adds to the log
  std::shared_ptr<const metric::Run> records{};   ///< the run itself, where a file of records has it
};

/// A results directory: metadata.json, experiment_log.txt and a log per condition.
/// A job per condition, in the order of "condition_order", with its command, exit_code and the like as attributes; also
/// for a condition whose log is missing (which is a fault) or that failed before its first step.
/// What experiment_log.txt says is added; it also serves alone, for a batch that was stopped before it wrote
/// metadata.json. Throws Error where neither can be read.
std::vector<Job> read_directory(const std::string& path);

/// The logs of a folder that nobody described: a run for each *.log, named after its file (NAME_detailed.log only where
/// there is no NAME.log), and for each log of its folders logs_REVISION_runN, with these two as attributes.
std::vector<Job> jobs_in(const std::string& folder);

/// Logs and files of trackers as jobs: each is a run, named after its file ("-" is "stdin"); run.log.2.gz, run.log.1,
/// run.log are the parts of one. Throws Error at two runs of one name.
std::vector<Job> jobs_of(const std::vector<std::string>& logs);

/// Logs or files of one tracker as the parts of one run, in their order.
Job job_of(const std::vector<std::string>& logs, const std::string& name);

enum class Form { tsv, h5, jsonl };

/// What was counted for each run, in order.
struct Count {
  std::string run;
  Stats stats;
  std::int64_t left_out = 0;  ///< records of other ranks, by Options::ranks
};

/// Reads a run into `rows`.
Count read_job(const Job& job, Options options, metric::Writer& rows, const FaultSink& faults);

/// Reads all jobs and writes their records to `out`.
std::vector<Count> convert(const std::vector<Job>& jobs, const Options& options, Form form, Output& out,
                           const FaultSink& faults);

/// All runs of `jobs`, in memory; `counts`, if given, as convert() returns them.
metric::Store collect(const std::vector<Job>& jobs, const Options& options, const FaultSink& faults,
                      std::vector<Count>* counts = nullptr);

/// The counts as a table: run, what, count. The lines of a run add up to its lines read.
Sheet as_sheet(const std::vector<Count>& counts);

/// "loss=train/loss,step=it" (COLUMN=KEY) as Options::map; COLUMN may have any name that logs have for it (step_time
/// for iteration_time). Throws UsageError; `what` is what messages call it.
std::map<std::string, std::string> map_of(const std::string& text, const std::string& what = "--map");

/// "revision=v1,note=a, b" (KEY=VALUE) as attributes, under their usual names. Throws UsageError, also at a secret.
std::map<std::string, std::string> attributes_of(const std::string& text);

}  // namespace zs::parse
