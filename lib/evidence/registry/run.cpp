// SPDX-License-Identifier: Apache-2.0
#include "registry/run.hpp"

#include <fmt/chrono.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/temporary.hpp"
#include "base/words.hpp"
#include "config/known.hpp"
#include "registry/record.hpp"
#include "registry/runs.hpp"

namespace zs::registry {
namespace {

/// The part of the second as three letters, so that ids sort by time: to make a run takes longer than their 31 us.
std::string part_of_second(std::int64_t nanoseconds) {
  const auto part = static_cast<std::size_t>(nanoseconds * 32768 / 1'000'000'000);
  return {kClearLetters[part / 1024], kClearLetters[part / 32 % 32], kClearLetters[part % 32]};
}

constexpr std::array kSlurm = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID",   "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                               "SLURM_STEP_ID",      "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_RESTART_COUNT"};

constexpr std::size_t kLongestName = 255;

bool visible(unsigned char c) { return c >= 0x20 && c != 0x7F; }

/// Makes a folder that no other process on any host has made: mkdir is exclusive, on NFS too.
std::string make_folder(const std::string& registry, const timespec& now) {
  std::error_code failure;
  std::filesystem::create_directories(registry, failure);
  if (failure) throw Error(registry, 0, failure.message());
  while (true) {
    const std::string id = fmt::format("{:%Y%m%d_%H%M%S}_{}{}", fmt::localtime(now.tv_sec), part_of_second(now.tv_nsec),
                                       random_letters(3));
    if (::mkdir((registry + "/" + id).c_str(), 0777) == 0) return id;
    if (errno != EEXIST) throw Error(registry, 0, errno_text());
  }
}

Run create_run(const std::string& registry, const std::string& name, const std::string& config, const Fields& fields) {
  check(fields);
  check({{"run_name", name}});
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string id = make_folder(registry, now);
  const Run run(registry, id);
  if (!config.empty()) write_file(run.folder() + "/config.yaml", config);
  Fields record = {{"run_id", id},
                   {"run_name", name.empty() ? id : name},
                   {"timestamp", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now.tv_sec))}};
  set(record, fields);
  add_to_record(run.folder(), record);
  refresh_soon(registry);
  return run;
}

}  // namespace

void check(const Fields& fields) {
  for (const auto& [key, value] : fields) {
    const bool named = key == "run_name" && !std::ranges::all_of(value, visible);
    if (named || !std::ranges::all_of(key, visible))
      throw Error((named ? "a run's name" : "a field's name") +
                  std::string(" is one line, without control characters"));
    if (key == "run_name" && value.size() > kLongestName)
      throw Error("a run's name has at most " + std::to_string(kLongestName) + " letters, not " +
                  std::to_string(value.size()));
    if (names_secret(key) && withheld(key, value) != value)
      throw Error(key + " names a secret: it has no place in a record, which others read");
    if (key.empty()) throw Error("a field needs a name: NAME=VALUE");
    if (key == "run_id") throw Error("run_id cannot be changed: it names the folder of the run");
  }
}

std::string place(const std::string& given) {
  const std::string folder = given.empty() ? environment_variable("ZS_REGISTRY") : given;
  return folder.empty() ? "saved_models" : folder;
}

std::string process_text(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  // "PID (NAME) STATE ...": the name may hold anything; the 22nd field is the time of the start.
  std::istringstream rest(line.substr(std::min(line.size(), line.rfind(')') + 2)));
  std::string word;
  for (int field = 3; field <= 22; ++field) {
    rest >> word;
    // It has ended, and only waits for its parent to ask how (in a container without an init, for ever).
    if (field == 3 && (word == "Z" || word == "X")) return "";
  }
  return rest && !line.empty() ? std::to_string(pid) + ":" + word : "";
}

Fields environment() {
  Fields fields;
  if (const std::string host = host_name(); !host.empty()) fields.emplace_back("host", host);
  if (const passwd* const user = ::getpwuid(::geteuid())) fields.emplace_back("user", user->pw_name);
  std::error_code failure;
  const std::string directory = std::filesystem::current_path(failure).string();
  if (!failure) fields.emplace_back("directory", directory);
  fields.emplace_back("process", process_text(::getpid()));
  for (const char* const name : kSlurm) {
    if (const std::string value = environment_variable(name); !value.empty()) fields.emplace_back(lower(name), value);
  }
  return fields;
}

Fields settings(const config::Config& config) {
  Fields values = {{"sweep_name", config.text("sweep_name")}};
  for (const config::Entry& entry : config.entries()) {
    if (entry.kind == config::Kind::null || entry.key == "run.name") continue;  // run_name
    const config::Known* const row = config::known(entry.key);
    std::string value = withheld(entry.key, entry.value);
    if (row && row->type == config::Type::boolean) value = config.boolean(entry.key) ? "true" : "false";  // yes, on, 1
    if (row && row->type == config::Type::count) value = to_text(config.integer(entry.key));
    if (entry.key == "sweep_name")
      values.front().second = value;
    else
      values.emplace_back(entry.key, value);  // a configuration has each key once
  }
  return values;
}

Run Run::create(const std::string& registry, const config::Config& config, const Fields& fields) {
  Fields record = settings(config);
  set(record, "status", status::running);
  set(record, environment());
  set(record, fields);
  return create_run(registry, config.text("run.name"), config.to_yaml(), record);
}

Run Run::create(const std::string& registry, const std::string& name, const Fields& fields) {
  Fields record = {{"sweep_name", ""}, {"status", status::recorded}};
  set(record, fields);
  return create_run(registry, name, "", record);
}

Run Run::plan(const std::string& registry, const config::Config& config, const std::string& name,
              const Fields& fields) {
  Fields record = settings(config);
  set(record, "status", status::planned);
  set(record, fields);
  const std::string own_name = config.text("run.name");
  return create_run(registry, own_name.empty() ? name : own_name, config.to_yaml(), record);
}

void Run::begin(std::int64_t done, const Fields& fields) const {
  const Fields before = read_record(folder());
  Fields changes = {{"status", status::running}, {"exit_code", ""}, {"error", ""}};
  for (const char* const name : kSlurm) set(changes, lower(name), "");
  const std::string earlier = value(before, "restarts");
  if (earlier.empty() && value(before, "status") == status::planned) {
    set(changes, "restarts", "0");
  } else {
    const std::string segments = value(before, "segments");
    set(changes, "restarts", std::to_string(parse_int(earlier).value_or(0) + 1));
    set(changes, "segments", (segments.empty() ? "0" : segments) + "," + std::to_string(done));
  }
  set(changes, environment());
  set(changes, fields);
  update(changes);
  refresh_soon(registry_);
}

void Run::update(const Fields& fields) const {
  check(fields);
  add_to_record(folder(), fields);
}

void Run::finish(const std::string& status, const Fields& fields) const {
  Fields changes = fields;
  set(changes, "status", status);
  update(changes);
  refresh_soon(registry_);
}

bool registered(const std::string& registry, const std::string& id) {
  return names_file(id) && is_folder(registry + "/" + id + "/record");
}

void remove(const std::string& registry, const std::string& id) {
  const std::string hidden = registry + "/.removed_" + id + "_" + random_letters(6);
  if (::rename((registry + "/" + id).c_str(), hidden.c_str()) != 0) throw Error(registry + "/" + id, 0, errno_text());
  std::error_code failure;
  std::filesystem::remove_all(hidden, failure);
  if (failure)
    throw Error(hidden, 0, failure.message() + ": the run is out of the registry, its files are not all gone");
}

}  // namespace zs::registry
