// SPDX-License-Identifier: Apache-2.0
// Groups the operands of zs-parse into runs: which logs belong to which run, in which order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/sheet.hpp"
#include "parse/log.hpp"

namespace zs::parse {

/// The kind of a run's files.
enum class Source { log, tensorboard, wandb, mlflow };

/// A name of a run that is one word: blanks and slashes become underscores.
std::string as_word(std::string name);

/// A run and its logs, in order.
struct Job {
  std::string run;
  std::vector<std::string> logs;                  ///< may be empty: then a fault gives the reason
  std::map<std::string, std::string> attributes;  ///< from sources other than the logs
  bool of_directory = false;                      ///< a condition, which may have failed before its first line
  std::vector<Fault> faults{};                    ///< found before the logs are read
  std::string metrics{};                          ///< file with its records; the logs then only show how it ended
  Source source = Source::log;                    ///< the kind of `logs`
  std::string series{};                           ///< as Options::series
  std::vector<std::string> wandb_places{};        ///< folders to search for the W&B run that the log names
  std::shared_ptr<const metric::Run> records{};   ///< the run itself, if it was read from a file of records
};

/// Reads a results directory: metadata.json, experiment_log.txt and a log per condition.
/// Returns a job per condition, in the order of "condition_order", with its command, exit_code
/// and so on as attributes; also for a condition whose log is missing (a fault) or that failed
/// before its first step. Facts from experiment_log.txt are added; it suffices alone for a
/// batch that stopped before it wrote metadata.json. Throws Error if neither can be read.
std::vector<Job> read_directory(const std::string& path);

/// The logs of any other folder: a run for each *.log, named after its file (NAME_detailed.log only if there is no
/// NAME.log), and for each log in its folders logs_REVISION_runN, with REVISION and N as attributes.
std::vector<Job> jobs_in(const std::string& folder);

/// Logs and trackers' files as jobs: each is a run, named after its file ("-" is "stdin"); run.log.2.gz, run.log.1,
/// run.log are parts of one run. Throws Error at two runs with the same name.
std::vector<Job> jobs_of(const std::vector<std::string>& logs);

/// Logs or files of one tracker as the parts of one run, in order.
Job job_of(const std::vector<std::string>& logs, const std::string& name);

enum class Form { tsv, csv, h5, jsonl };

struct Count {
  std::string run;
  Stats stats;
  std::int64_t left_out = 0;  ///< records of other ranks, left out by Options::ranks
};

/// Reads a run into `rows`.
Count read_job(const Job& job, Options options, metric::Writer& rows, const FaultSink& faults);

/// Reads all jobs and writes their records to `out`.
std::vector<Count> convert(const std::vector<Job>& jobs, const Options& options, Form form, Output& out,
                           const FaultSink& faults);

/// All runs of `jobs`, in memory; `counts`, if given, as convert() returns them.
metric::Store collect(const std::vector<Job>& jobs, const Options& options, const FaultSink& faults,
                      std::vector<Count>* counts = nullptr);

/// The counts as a table: run, what, count. The lines of a run sum to its lines read.
Sheet as_sheet(const std::vector<Count>& counts);

/// Parses "loss=train/loss,step=it" (COLUMN=KEY) as Options::map; COLUMN may be any known name of the column (step_time
/// for iteration_time). Throws UsageError; messages call it `what`.
std::map<std::string, std::string> map_of(const std::string& text, const std::string& what = "--map");

/// "revision=v1,note=a, b" (KEY=VALUE) as attributes, under their usual names. Throws UsageError, also at a secret.
std::map<std::string, std::string> attributes_of(const std::string& text);

}  // namespace zs::parse
