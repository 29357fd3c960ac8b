// SPDX-License-Identifier: Apache-2.0
#include "parse/run.hpp"

#include <algorithm>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "metric/file.hpp"
#include "metric/jsonl_writer.hpp"
#include "parse/dialect.hpp"
#include "parse/document.hpp"
#include "parse/mlflow.hpp"
#include "parse/names.hpp"
#include "parse/text.hpp"
#include "parse/tracked.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kHeld = 2 << 20, kBlock = 1 << 18;  // bytes of text

/// "logs/run.log.2.gz" -> {"run", 2}; rotation 0 is the newest part.
struct LogName {
  std::string run;
  std::int64_t rotation = 0;
};

LogName name_of(const std::string& path) {
  if (path == "-") return {"stdin"};
  std::string name = uncompressed_name(std::filesystem::path(path).filename().string());
  const auto drop = [&](const std::string& ending) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  };
  std::int64_t rotation = 0;
  if (const std::size_t point = name.rfind('.'); point != std::string::npos && point > 0) {
    const Token number = value_of(std::string_view(name).substr(point + 1));
    const bool rotated =
        number.kind == Kind::integer && number.text.size() < 6 && name.substr(0, point).ends_with(".log");
    if (rotated) {
      rotation = std::stoll(std::string(number.text));
      name.resize(point);
    }
  }
  drop(".log");
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(path, ignored).parent_path();
  const bool lightning = name == "metrics.csv" && folder.filename().string().starts_with("version_");
  // A training's own log, and Lightning's lightning_logs/version_0/metrics.csv, are named as their folder is.
  if (lightning || (name == "run" && is_folder(folder / "record"))) name = folder.filename().string();
  return {as_word(name), rotation};
}

/// The run that a tracker's file is of: run-ID.wandb is ID's, an event file its folder's.
std::string tracked_name_of(const std::string& path, Source source) {
  std::filesystem::path file(path);
  if (source == Source::tensorboard)
    return as_word(std::filesystem::weakly_canonical(file).parent_path().filename().string());
  const std::string name = file.stem().string();
  return as_word(name.starts_with("run-") ? name.substr(4) : name);
}

/// The runs of a table that W&B exported, whose columns are "NAME - loss", "NAME - loss__MIN", or of a document with
/// the results of methods; empty for any other file.
std::vector<std::string> runs_of_table(const std::string& path) {
  constexpr std::size_t kLongest = 1 << 20;  // a table's header
  const std::string name = uncompressed_name(path);
  const bool document = name.ends_with(".json");
  if (!(document || name.ends_with(".csv")) || !is_file(path)) return {};
  Input input(path);
  if (document) return methods_of(input.read_all());
  std::string head(kLongest, '\0');
  head.resize(input.read(head.data(), head.size()));
  head.resize(std::min(head.find('\n'), head.size()));
  std::vector<std::string> runs;
  std::deque<std::string> made;
  for (const std::string_view cell : cells_of(head, ',', made)) {
    const std::size_t at = cell.rfind(" - ");
    const bool limit = cell.ends_with("__MIN");
    if (!limit || at == std::string_view::npos) continue;
    if (std::string run(cell.substr(0, at)); std::ranges::find(runs, run) == runs.end()) runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::string as_word(std::string name) {
  for (char& c : name) {
    if (static_cast<unsigned char>(c) <= 32 || c == '/') c = '_';
  }
  return name;
}

Job job_of(const std::vector<std::string>& logs, const std::string& name) {
  Job job{name, logs, {}};
  job.source = logs.empty() ? Source::log : source_of(logs[0]);
  for (const std::string& log : logs) {
    if (source_of(log) != job.source) throw Error(log, 0, "is another kind of file than " + logs[0]);
  }
  return job;
}

std::vector<Job> jobs_of(const std::vector<std::string>& logs) {
  std::vector<Job> jobs;
  struct Part {
    LogName name;
    std::string path;
  };
  std::vector<Part> parts;
  for (const std::string& operand : logs) {
    if (const Source source = source_of(operand); source == Source::mlflow) {
      std::ranges::move(mlflow_jobs(operand), std::back_inserter(jobs));
      continue;
    } else if (source != Source::log) {
      const std::string run = tracked_name_of(operand, source);
      const auto same = std::ranges::find_if(jobs, [&](const Job& j) { return j.run == run && j.source == source; });
      if (same != jobs.end()) {  // a further file of it
        same->logs.push_back(operand);
        continue;
      }
      Job job{run, {operand}, {}};
      job.source = source;
      jobs.push_back(std::move(job));
      continue;
    }
    if (const std::vector<std::string> runs = runs_of_table(operand); !runs.empty()) {
      for (const std::string& run : runs) {
        Job job{as_word(run), {operand}, {}};
        job.series = run;
        jobs.push_back(std::move(job));
      }
      continue;
    }
    const LogName log = name_of(operand);
    const bool first = std::ranges::none_of(parts, [&](const Part& part) { return part.name.run == log.run; });
    if (first) jobs.push_back({log.run, {}, {}});
    parts.push_back({log, operand});
  }
  std::ranges::stable_sort(parts, [](const Part& a, const Part& b) { return a.name.rotation > b.name.rotation; });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const bool clash = parts[k].name.run == parts[i].name.run && parts[k].name.rotation == parts[i].name.rotation;
      if (clash)
        throw Error(parts[i].path, 0,
                    "a second run '" + parts[i].name.run + "', as in " + parts[k].path +
                        "; parse them separately, with --run NAME");
    }
    const auto job = std::ranges::find(jobs, parts[i].name.run, &Job::run);
    job->logs.push_back(parts[i].path);
  }
  name_as_given(jobs);
  return jobs;
}

namespace {

/// Reads the metrics file of `job`: the records go to `rows`, everything else becomes attributes.
void read_metrics(const Job& job, metric::Writer& rows, LogReader& reader) {
  Input input(job.metrics);
  const std::string bytes = input.read_all();
  metric::Store store = metric::parse(bytes, job.metrics);
  if (store.runs.size() != 1)
    throw Error(job.metrics, 0, "holds " + std::to_string(store.runs.size()) + " runs, expected one");
  const metric::Run& run = store.runs.front();
  for (std::size_t row = 0; row < run.records.rows(); ++row) metric::write_row(run.records, row, rows);
  for (const auto& [key, value] : run.attributes) reader.set_attribute(key, value);
  reader.set_attribute("source", job.metrics);
  reader.set_attribute("source_sha256", sha256(bytes));
}

/// Reads the logs of `job` and what W&B has of the run that they name.
void read_with_wandb(const Job& job, const Options& options, metric::Writer& rows, const FaultSink& faults,
                     LogReader& reader, metric::Run& logged) {
  reader.finish();
  const std::string id = logged.attribute("wandb_run");
  const std::vector<std::string> files = id.empty() ? std::vector<std::string>() : wandb_files(job.wandb_places, id);
  if (!files.empty() && source_of(files[0]) == Source::wandb) {
    metric::Run other;
    metric::MemoryWriter memory(other);
    TrackedReader wandb(options, memory, faults);
    wandb.read_wandb(files);
    wandb.finish();
    if (!join(logged.records, other.records))
      faults({files[0], 0, "counts its own calls as steps, and no steps of the trainer: not joined"});
    for (const auto& [key, value] : other.attributes) {
      if (key.starts_with("source")) logged.attributes["wandb_" + key] = value;
      logged.attributes.emplace(key, value);
    }
  }
  for (std::size_t row = 0; row < logged.records.rows(); ++row) metric::write_row(logged.records, row, rows);
  rows.finish(logged.attributes);
}

Count read_tracked(const Job& job, const Options& options, metric::Writer& rows, const FaultSink& faults) {
  TrackedReader reader(options, rows, faults);
  if (job.source == Source::tensorboard)
    reader.read_tensorboard(job.logs);
  else if (job.source == Source::mlflow)
    reader.read_mlflow(job.logs.front(), job.series);
  else
    reader.read_wandb(job.logs);
  for (const auto& [key, value] : job.attributes) reader.set_attribute(key, value);
  reader.finish();
  return {job.run, reader.stats(), 0};
}

Count read_records(const metric::Run& run, const Job& job, metric::Writer& rows) {
  for (std::size_t row = 0; row < run.records.rows(); ++row) metric::write_row(run.records, row, rows);
  std::map<std::string, std::string> attributes = run.attributes;
  for (const auto& [key, value] : job.attributes) attributes[key] = value;
  rows.finish(attributes);
  Stats stats;
  stats.records = static_cast<std::int64_t>(run.records.rows());
  return {job.run, stats, 0};
}

}  // namespace

Count read_job(const Job& job, Options options, metric::Writer& rows, const FaultSink& faults) {
  options.series = job.series;
  for (const Fault& fault : job.faults) faults(fault);
  options.facts_only = !job.metrics.empty();
  if (options.facts_only) options.dialect = "failure";
  metric::FirstRank first(rows);
  metric::MeanOfRanks mean(rows);
  metric::Writer& chosen = options.ranks == Ranks::first  ? first
                           : options.ranks == Ranks::mean ? static_cast<metric::Writer&>(mean)
                                                          : rows;
  chosen.begin(job.run, {});
  if (job.records) return read_records(*job.records, job, chosen);
  if (job.source != Source::log) return read_tracked(job, options, chosen, faults);
  const bool joined = !job.wandb_places.empty() && job.metrics.empty();
  metric::Run logged;
  metric::MemoryWriter memory(logged);
  LogReader reader(options, joined ? static_cast<metric::Writer&>(memory) : chosen, faults);
  for (const std::string& log : job.logs) reader.read(log);
  const bool empty = reader.bytes() == 0 && !job.logs.empty() && !job.of_directory;
  if (empty) throw Error(job.logs.front() == "-" ? "stdin" : job.logs.front(), 0, "is empty, expected a training log");
  if (options.facts_only) read_metrics(job, chosen, reader);
  for (const auto& [key, value] : job.attributes) reader.set_attribute(key, value);
  if (joined)
    read_with_wandb(job, options, chosen, faults, reader, logged);
  else
    reader.finish();
  return {job.run, reader.stats(), first.left_out()};
}

metric::Store collect(const std::vector<Job>& jobs, const Options& options, const FaultSink& faults,
                      std::vector<Count>* counts) {
  metric::Store store;
  for (const Job& job : jobs) {
    metric::MemoryWriter rows(store.runs.emplace_back());
    const Count count = read_job(job, options, rows, faults);
    if (counts) counts->push_back(count);
  }
  return store;
}

std::vector<Count> convert(const std::vector<Job>& jobs, const Options& options, Form form, Output& out,
                           const FaultSink& faults) {
  std::vector<Count> counts;
  if (form == Form::h5 || form == Form::csv) {
    const metric::Store store = collect(jobs, options, faults, &counts);
    out.write(form == Form::h5 ? metric::to_h5(store) : metric::to_csv(store.runs));
    return counts;
  }
  const bool hold = !options.follow_until;
  metric::TsvWriter text([&](std::string_view bytes) { out.write(bytes); }, hold ? kHeld : 0, hold ? kBlock : 0);
  for (const Job& job : jobs) {
    metric::TextWriter tsv(text);
    metric::JsonlWriter jsonl(out);
    metric::Writer& rows = form == Form::tsv ? static_cast<metric::Writer&>(tsv) : jsonl;
    counts.push_back(read_job(job, options, rows, faults));
  }
  return counts;
}

Sheet as_sheet(const std::vector<Count>& counts) {
  Sheet sheet{{"run", "what", "count"}, {}};
  for (const Count& count : counts) {
    const auto add = [&](const std::string& what, std::int64_t number) {
      sheet.rows.push_back({count.run, what, to_text(number)});
    };
    add("lines read", count.stats.lines);
    for (const auto& [dialect, number] : count.stats.matched) add("lines matched by " + dialect, number);
    add("lines faulty", count.stats.faulty);
    add("lines other", count.stats.other);
    add("records", count.stats.records);
    if (count.left_out > 0) add("records of other ranks, left out", count.left_out);
    for (const auto& [kind, number] : count.stats.faults) add("faults: " + kind, number);
  }
  return sheet;
}

std::map<std::string, std::string> map_of(const std::string& text, const std::string& what) {
  std::map<std::string, std::string> map;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string pair = text.substr(at, comma - at);
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size()) {
      throw UsageError(what + ": '" + pair + "' is not COLUMN=KEY, as in loss=train/loss");
    }
    for (const char* reserved : {"run", "line", "part", "ranks"}) {
      if (pair.substr(0, equals) == reserved)
        throw UsageError(what + ": column '" + std::string(reserved) + "' is zs-parse's own");
    }
    const std::string column(column_named(pair.substr(0, equals)).column), key = pair.substr(equals + 1);
    for (const auto& [other, named] : map) {
      if (other == key || named == column)
        throw UsageError(what + ": " + (other == key ? "key '" + key : "column '" + column) + "' is given twice");
    }
    map[key] = column;
    at = comma + 1;
  }
  return map;
}

std::map<std::string, std::string> attributes_of(const std::string& text) {
  std::map<std::string, std::string> attributes;
  std::string* value = nullptr;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string pair = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos && value) {  // a comma of the value
      *value += "," + pair;
      continue;
    }
    if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size())
      throw UsageError("--set: '" + pair + "' is not KEY=VALUE, as in revision=v1.2");
    const std::string key = pair.substr(0, equals);
    if (names_secret(key))
      throw UsageError("--set: " + key + " names a secret: it has no place in a record, which others read");
    value = &(attributes[attribute_named(key)] = pair.substr(equals + 1));
  }
  return attributes;
}

}  // namespace zs::parse
