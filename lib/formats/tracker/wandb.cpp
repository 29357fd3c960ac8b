// SPDX-License-Identifier: Apache-2.0
#include "tracker/wandb.hpp"

#include <fmt/chrono.h>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/temporary.hpp"
#include "tracker/tensorboard.hpp"

namespace zs::tracker {
namespace {

namespace fs = std::filesystem;

std::string time_name(double seconds) {
  return fmt::format("{:%Y%m%d_%H%M%S}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

/// JSON as Python's json writes it: NaN and Infinity are values.
std::string number_json(const std::string& text) {
  const double value = *parse_real(text);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return text;
}

std::string text_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A fact in the type that it looks like.
std::string fact_json(const std::string& text) {
  if (text == "true" || text == "false") return text;
  // Letters are no number here ("inf" is a name); JSON knows no leading zero and no point without a digit.
  const bool number = parse_real(text).has_value() && nlohmann::json::accept(text);
  return number ? text : text_json(text);
}

}  // namespace

WandbWriter::WandbWriter(WandbRun run) : run_(std::move(run)), start_(wall_time()) {
  if (run_.id.empty()) run_.id = random_letters(8);
  if (run_.folder.empty()) run_.folder = run_.place + "/wandb/offline-run-" + time_name(start_) + "-" + run_.id;
}

void WandbWriter::add(WandbRecord record) {
  record.number = ++number_;
  file_->append(store_.add(to_bytes(record)));
}

void WandbWriter::begin(const std::string& run, const Facts& attributes) {
  const std::string path = run_.folder + "/run-" + run_.id + ".wandb";
  // A resumed run writes its earlier rows again: the file is rewritten, and sync must upload it again.
  std::error_code error;
  fs::create_directories(run_.folder + "/files", error);
  if (error) throw Error(run_.folder, 0, error.message());
  fs::remove(path + ".synced", error);
  fs::remove(path, error);
  file_ = std::make_unique<AppendedFile>(path);
  file_->append(Datastore::header());
  add({.kind = WandbRecord::Kind::header});
  WandbRecord first{.kind = WandbRecord::Kind::run};
  first.id = run_.id;
  first.entity = run_.entity;
  first.project = run_.project;
  first.name = without_secret_values(run_.name.empty() ? run : run_.name);
  first.tags = run_.tags;
  first.host = host_name();
  first.start_time = start_;
  for (const auto& [key, value] : attributes) {
    first.items.push_back({key, fact_json(withheld(key, value))});
  }
  add(std::move(first));
  for (const std::string& line : early_) output(line);
  early_.clear();
  // The form that `wandb sync` makes of the record; JSON's values are YAML's too.
  std::string config = "wandb_version: 1\n";
  for (const auto& [key, value] : attributes) {
    config += text_json(key) + ":\n  value: " + fact_json(withheld(key, value)) + "\n";
  }
  write_file(run_.folder + "/files/config.yaml", config);
  const nlohmann::ordered_json metadata = {{"program", "zs-train"}, {"host", host_name()}};
  write_file(run_.folder + "/files/wandb-metadata.json", metadata.dump(2) + "\n");
  // The place where W&B's own tools look for the newest run.
  const fs::path latest = fs::path(run_.folder).parent_path() / "latest-run";
  if (fs::is_symlink(latest) || !fs::exists(latest)) {
    fs::remove(latest, error);
    fs::create_directory_symlink(fs::path(run_.folder).filename(), latest, error);  // a convenience: may fail
  }
}

void WandbWriter::row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) {
  WandbRecord record{.kind = WandbRecord::Kind::history};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (cells[i].empty()) continue;
    const std::string text(cells[i]);
    const bool is_text = columns[i].type == metric::Type::text;
    record.items.push_back({tracked_name(columns[i].name), is_text ? text_json(text) : number_json(text)});
    if (columns[i].name == "step") record.step = parse_int(text).value_or(0);
  }
  const double time = wall_time();
  record.items.push_back({"_step", to_text(record.step)});
  record.items.push_back({"_runtime", to_text(time - start_)});
  record.items.push_back({"_timestamp", to_text(time)});
  for (const Item& item : record.items) {
    const auto known = std::ranges::find(last_, item.key, &Item::key);
    known == last_.end() ? void(last_.push_back(item)) : void(known->json = item.json);
  }
  add(std::move(record));
}

void WandbWriter::flush(bool now) {
  if (now) file_->sync();
}

void WandbWriter::output(const std::string& line) {
  if (!file_) return early_.push_back(line);
  WandbRecord record{.kind = WandbRecord::Kind::output};
  record.line = line + "\n";
  record.start_time = wall_time();
  add(std::move(record));
}

void WandbWriter::finish(const Facts& attributes) {
  WandbRecord summary{.kind = WandbRecord::Kind::summary};
  summary.items = last_;
  for (const char* const key : {"state_digest", "state_bytes", "mfu"}) {
    const auto found = attributes.find(key);
    if (found != attributes.end())
      summary.items.push_back(
          {key, key == std::string("state_digest") ? text_json(found->second) : fact_json(found->second)});
  }
  std::string text = "{";
  for (const Item& item : summary.items) text += text_json(item.key) + ": " + item.json + ", ";
  write_file(run_.folder + "/files/wandb-summary.json",
             text + "\"_wandb\": {\"runtime\": " + to_text(static_cast<std::int64_t>(wall_time() - start_)) + "}}");
  add(std::move(summary));
  file_->sync();
}

void WandbWriter::close(int exit_code) {
  WandbRecord exit{.kind = WandbRecord::Kind::exit};
  exit.exit_code = exit_code;
  exit.runtime = static_cast<std::int64_t>(wall_time() - start_);
  add(std::move(exit));
  add({.kind = WandbRecord::Kind::final});
  add({.kind = WandbRecord::Kind::footer});
  file_->sync();
}

}  // namespace zs::tracker
