// SPDX-License-Identifier: Apache-2.0
#include "parse/run.hpp"

#include <algorithm>
#include <filesystem>

#include "metric/file.hpp"
#include "parse/directory.hpp"
#include "parse/text.hpp"

namespace zs::parse {
namespace {

/// "logs/run.log.2.gz" -> {"run", 2}; rotation 0 is the newest part.
struct LogName {
  std::string run;
  std::int64_t rotation = 0;
};

LogName name_of(const std::string& path) {
  if (path == "-") return {"stdin"};
  std::string name = std::filesystem::path(path).filename().string();
  const auto drop = [&](const std::string& ending) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  };
  drop(".gz");
  std::int64_t rotation = 0;
  if (const std::size_t point = name.rfind('.'); point != std::string::npos && point > 0) {
    const Token number = value_of(std::string_view(name).substr(point + 1));
    const bool rotated = number.kind == Kind::integer && number.text.size() < 6 && name.substr(0, point).ends_with(".log");
    if (rotated) {
      rotation = std::stoll(std::string(number.text));
      name.resize(point);
    }
  }
  drop(".log");
  for (char& c : name) {
    if (is_blank(c) || static_cast<unsigned char>(c) < 32) c = '_';  // a run's name is one word
  }
  return {name, rotation};
}

}  // namespace

std::vector<Job> jobs_of(const std::vector<std::string>& operands, const std::string& name) {
  std::vector<Job> jobs;
  if (!name.empty()) {
    jobs.push_back({name, operands, {}});
    return jobs;
  }
  struct Part {
    LogName name;
    std::string path;
  };
  std::vector<Part> parts;
  for (const std::string& operand : operands) {
    if (std::error_code ignored; operand != "-" && std::filesystem::is_directory(operand, ignored)) {
      for (Job& job : read_directory(operand)) jobs.push_back(std::move(job));
      continue;
    }
    const LogName log = name_of(operand);
    const bool first = std::none_of(parts.begin(), parts.end(), [&](const Part& part) { return part.name.run == log.run; });
    if (first) jobs.push_back({log.run, {}, {}});
    parts.push_back({log, operand});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.name.rotation > b.name.rotation; });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const bool clash = parts[k].name.run == parts[i].name.run && parts[k].name.rotation == parts[i].name.rotation;
      if (clash) throw Error(parts[i].path, 0, "a second run '" + parts[i].name.run + "', beside " + parts[k].path + "; parse them apart, with --run NAME");
    }
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.run == parts[i].name.run; });
    job->logs.push_back(parts[i].path);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool twice = std::any_of(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(i), [&](const Job& j) { return j.run == jobs[i].run; });
    if (twice) throw Error("two runs '" + jobs[i].run + "'; parse them apart, with --run NAME");
  }
  return jobs;
}

std::vector<Count> convert(const std::vector<Job>& jobs, const Options& options, Form form, Output& out, const FaultSink& faults) {
  std::vector<Count> counts;
  metric::Store store;
  for (const Job& job : jobs) {
    if (!job.fault.what.empty()) faults(job.fault);
    std::unique_ptr<Rows> rows;
    if (form == Form::tsv) {
      rows = std::make_unique<TsvRows>(job.run, out, counts.empty());
    } else {
      store.runs.reserve(jobs.size());  // RunRows keep a reference
      rows = std::make_unique<RunRows>(store.runs.emplace_back(metric::Run{job.run, {}, {}}));
    }
    LogReader reader(options, *rows, faults);
    for (const std::string& log : job.logs) reader.read(log);
    const bool empty = reader.bytes() == 0 && !job.logs.empty() && !job.of_directory;
    if (empty) throw Error(job.logs.front() == "-" ? "stdin" : job.logs.front(), 0, "is empty, expected a training log");
    for (const auto& [key, value] : job.attributes) reader.set_attribute(key, value);
    reader.finish();
    counts.push_back({job.run, reader.stats()});
  }
  if (form == Form::h5) out.write(metric::to_h5(store));
  if (form == Form::jsonl) out.write(metric::to_jsonl(store.runs));
  return counts;
}

}  // namespace zs::parse
