// SPDX-License-Identifier: Apache-2.0
// metadata.json is read and written here alone. It is written whole, under a lock; who reads it needs none.
#include "experiment/experiment.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "cli/progress.hpp"

namespace zs::experiment {
namespace {

using Json = nlohmann::ordered_json;
using registry::value;

std::string path_of(const std::string& folder) { return folder + "/metadata.json"; }

Json json_of(const std::string& key, const std::string& text) {
  if (text.empty()) return nullptr;
  const attribute::Attribute* const row = attribute::find(key);
  const auto number = row && row->type != attribute::Type::text ? parse_int(text) : std::nullopt;
  return number ? Json(*number) : Json(withheld(key, text));
}

void put(Json& object, const registry::Fields& fields) {
  for (const auto& [key, text] : fields) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos)
      object[key] = json_of(key, text);
    else
      object[key.substr(0, dot)][key.substr(dot + 1)] = json_of(key.substr(dot + 1), text);
  }
}

std::string text_of(const Json& value) {
  return value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
}

registry::Fields fields_of(const Json& object) {
  registry::Fields fields;
  for (const auto& [key, member] : object.items()) {
    if (member.is_object()) {
      for (const auto& [inner, value] : member.items()) registry::set(fields, key + "." + inner, text_of(value));
    } else if (!member.is_array()) {
      registry::set(fields, key, text_of(member));
    }
  }
  return fields;
}

/// The parts of an object that are not in fields.
Json lists_of(const Json& object) {
  Json lists = Json::object();
  for (const auto& [key, member] : object.items()) {
    if (member.is_array()) lists[key] = member;
  }
  return lists;
}

}  // namespace

std::string Cell::run() const {
  const std::string run = value(fields, "run");  // for a comparison, its number
  return run.find('/') == std::string::npos ? "" : run;
}

bool Experiment::at(const std::string& folder) { return std::filesystem::is_regular_file(path_of(folder)); }

Experiment Experiment::read(const std::string& folder) {
  if (!at(folder)) throw Error(folder, 0, "is not the results folder of an experiment: it has no metadata.json");
  Experiment experiment{std::filesystem::canonical(folder).string()};
  const std::string path = path_of(experiment.folder);
  try {
    Json content = read_json<Json>(path);
    const Json conditions = content.value("conditions", Json::object());
    auto order = content.value("condition_order", std::vector<std::string>());
    for (const auto& [name, condition] : conditions.items()) {
      if (std::ranges::find(order, name) == order.end()) order.push_back(name);
    }
    for (const std::string& name : order) {
      const Json& condition = conditions.at(name);
      experiment.cells.push_back(
          {name, condition.value("arguments", std::vector<std::string>()), fields_of(condition)});
    }
    content.erase("conditions");
    experiment.fields = fields_of(content);
  } catch (const Json::exception& error) {
    const std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 3, ..."
    throw Error(path, 0, what.substr(std::min(what.find("] ") + 2, what.size())));
  }
  return experiment;
}

void Experiment::write() const {
  const Json before = at(folder) ? read_json<Json>(path_of(folder)) : Json::object();
  const Json known = before.value("conditions", Json::object());
  Json content = lists_of(before), order = Json::array(), conditions = Json::object();
  put(content, fields);
  for (const Cell& cell : cells) {
    order.push_back(cell.name);
    Json& condition = conditions[cell.name] = lists_of(known.value(cell.name, Json::object()));
    put(condition, cell.fields);
    if (!cell.arguments.empty()) condition["arguments"] = cell.arguments;
  }
  content["condition_order"] = order;
  content["conditions"] = conditions;
  // Typed words may be invalid UTF-8.
  write_file(path_of(folder), content.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Cell& Experiment::cell(const std::string& name) {
  std::vector<std::string> names;
  for (Cell& cell : cells) {
    if (cell.name == name) return cell;
    names.push_back(cell.name);
  }
  throw Error(folder, 0, "has no condition '" + name + "'" + did_you_mean(name, names));
}

std::int64_t Experiment::planned() const {
  return parse_int(value(fields, "runs_planned")).value_or(static_cast<std::int64_t>(cells.size()));
}

std::string Experiment::label(const Cell& cell) const {
  const auto place = std::ranges::find(cells, cell.name, &Cell::name);
  return "[" + to_text(place - cells.begin() + 1) + "/" + to_text(planned()) + "] " + cell.name;
}

std::int64_t Experiment::waiting() const {
  return planned() - std::ranges::count_if(cells, [](const Cell& cell) { return cell.ended(); });
}

std::string Experiment::progress() const {
  double seconds = 0, timed = 0;
  for (const Cell& cell : cells) {
    const auto took = parse_real(value(cell.fields, "seconds"));
    if (cell.ended() && took) seconds += *took, ++timed;
  }
  std::string text = to_text(planned() - waiting()) + " of " + to_text(planned()) + " have ended";
  if (waiting() > 0 && seconds > 0 && !std::getenv("SLURM_ARRAY_TASK_ID"))
    text += ", the rest takes about " + cli::clock_text(seconds / timed * static_cast<double>(waiting()));
  return text;
}

std::string Experiment::log(const Cell& cell) const {
  const std::string name = value(cell.fields, "log");
  return folder + "/" + (name.empty() ? cell.name + ".log" : name);
}

std::string Experiment::detailed_log(const Cell& cell) const { return folder + "/" + cell.name + "_detailed.log"; }

std::vector<State> Experiment::judge() {
  std::vector<std::string> runs;
  for (const Cell& cell : cells) runs.push_back(cell.run());
  std::vector<State> states;
  for (const Found& found : find(runs)) {
    Cell& cell = cells[states.size()];
    for (const auto& [key, text] : {std::pair{"state", std::string(name(found.state.state))},
                                    {"basis", found.state.basis},
                                    {"steps", found.steps},
                                    {"slurm_job", found.job_id},
                                    {"nodes", found.nodes}})
      registry::set(cell.fields, std::string("found.") + key, text);
    states.push_back(found.state);
  }
  return states;
}

Lock::Lock(const std::string& folder) {
  const std::string path = folder + "/.lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  int status = -1;
  while (file_ >= 0 && (status = ::flock(file_, LOCK_EX)) != 0 && errno == EINTR) continue;
  if (status == 0) return;
  const std::string what = errno_text();
  if (file_ >= 0) ::close(file_);
  throw Error(path, 0, "lock: " + what);
}

Lock::~Lock() { ::close(file_); }

void append(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::app);
  if (!(file << text << std::flush)) throw Error(path, 0, "write: " + errno_text());
}

std::string time_text() { return fmt::format("{:%FT%T%z}", fmt::localtime(std::time(nullptr))); }

}  // namespace zs::experiment
