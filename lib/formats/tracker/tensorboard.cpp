// SPDX-License-Identifier: Apache-2.0
#include "tracker/tensorboard.hpp"

#include <unistd.h>

#include <array>
#include <chrono>

#include "base/host.hpp"
#include "base/number.hpp"
#include "base/secret.hpp"
#include "base/temporary.hpp"
#include "tracker/tfevents.hpp"

namespace zs::tracker {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 9> kNames = {{
    {"loss", "train/loss"},
    {"epoch", "train/epoch"},
    {"learning_rate", "train/learning_rate"},
    {"grad_norm", "train/grad_norm"},
    {"valid_loss", "valid/loss"},
    {"iteration_time", "timing/iteration_time"},
    {"alloc_mem", "system/cuda_memory_allocated"},
    {"peak_mem", "system/cuda_memory_peak"},
    {"step", "train/global_step"},
}};

/// A cell of a Markdown table, and back.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '|') out += '\\';
    out += c == '\n' ? "<br>" : c == '\r' ? std::string(" ") : std::string(1, c);
  }
  return out;
}

/// The cell that `row` begins with, taken off with its bar.
std::string take_cell(std::string_view& row) {
  std::string text;
  std::size_t i = 0;
  for (; i < row.size() && row[i] != '|'; ++i) {
    if (row[i] == '\\' && i + 1 < row.size()) ++i;
    text += row[i];
  }
  row.remove_prefix(std::min(i + 1, row.size()));
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string tracked_name(const std::string& column) {
  for (const auto& [name, tracked] : kNames) {
    if (column == name) return tracked;
  }
  return column;
}

std::string facts_text(const metric::Writer::Facts& facts) {
  std::string text = "| attribute | value |\n| --- | --- |\n";
  for (const auto& [key, value] : facts) text += "| " + escaped(key) + " | " + escaped(withheld(key, value)) + " |\n";
  return text;
}

metric::Writer::Facts facts_of(const std::string& text) {
  metric::Writer::Facts facts;
  std::string_view rest = text;
  for (int line = 0; !rest.empty(); ++line) {
    std::string_view row = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(row.size() + 1, rest.size()));
    if (line < 2 || !row.starts_with("| ")) continue;
    row.remove_prefix(2);
    const std::string key = take_cell(row), value = take_cell(row);
    if (!key.empty()) facts[key] = value;
  }
  return facts;
}

void TensorboardWriter::write_facts(const Facts& attributes) {
  Event event{wall_time(), step_, {}, false, {{kFactsTag, 0, facts_text(attributes), true}}, 0};
  if (const auto digest = attributes.find("state_digest"); digest != attributes.end())
    event.values.push_back({"state_digest/text_summary", 0, digest->second, true});
  file_->append(to_frame(event));
}

void TensorboardWriter::begin(const std::string&, const Facts& attributes) {
  const auto resumed = attributes.find("resumed_after_step");
  done_ = step_ = resumed == attributes.end() ? 0 : parse_int(resumed->second).value_or(0);
  const double time = wall_time();
  std::string seconds = to_text(static_cast<std::int64_t>(time));
  seconds.insert(0, 10 - std::min<std::size_t>(10, seconds.size()), '0');
  // TensorBoard reads the files of a folder in the order of their names.
  file_ = std::make_unique<AppendedFile>(folder_ + "/events.out.tfevents." + seconds + "." + host_name() + "." +
                                         std::to_string(::getpid()) + "." + random_letters(6));
  file_->append(to_frame({time, 0, "brain.Event:2", false, {}, 0}));
  if (done_ > 0) file_->append(to_frame({time, done_ + 1, {}, true, {}, 0}));
  write_facts(attributes);
}

void TensorboardWriter::row(const std::vector<metric::ColumnInfo>& columns,
                            const std::vector<std::string_view>& cells) {
  Event event{wall_time(), step_, {}, false, {}, 0};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (cells[i].empty()) continue;
    if (columns[i].name == "step") {
      event.step = parse_int(cells[i]).value_or(0);
      continue;
    }
    const std::string tag = tracked_name(columns[i].name);
    if (columns[i].type == metric::Type::text)
      event.values.push_back({tag + "/text_summary", 0, std::string(cells[i]), true});
    else
      event.values.push_back({tag, parse_real(cells[i]).value_or(0)});
  }
  step_ = event.step;
  if (step_ > done_ && !event.values.empty()) file_->append(to_frame(event));
}

void TensorboardWriter::flush(bool now) {
  if (now) file_->sync();
}

void TensorboardWriter::finish(const Facts& attributes) {
  write_facts(attributes);
  file_->sync();
}

}  // namespace zs::tracker
