// SPDX-License-Identifier: Apache-2.0
// Tables are written in two ways: a list of objects, one a row, {"log_history": [{"step": 5, "loss": 2.3}, ...]}, or an
// object of columns, {"lm loss": {"start_step": 1, "step_interval": 1, "values": {"1": 10.8, ...}}, ...} or
// {"loss": [2.3, ...], "val_loss": [2.4, ...]}. The largest table of the document is read.
#include "parse/document.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/number.hpp"
#include "parse/flat_json.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

constexpr std::size_t kLargest = 1 << 28;  // bytes
constexpr std::string_view kValues = ".values";

/// Where a value stands: "log_history[3].loss" is row 3 of column "loss" of the table "log_history[]"; "lm loss.values.1"
/// is row 1 of column "lm loss" of the table "".
struct Cell {
  std::string table, column;
  std::int64_t row = 0;
  bool keyed = false;  ///< the row is a key, which is a step
};

std::optional<Cell> cell_of(std::string_view path) {
  const std::size_t close = path.rfind(']'), open = path.rfind('[');
  if (close != std::string_view::npos && open < close) {
    const auto row = parse_int(path.substr(open + 1, close - open - 1));
    if (!row) return {};
    std::string_view rest = path.substr(close + 1), head = path.substr(0, open);
    if (skip(rest, ".")) return Cell{std::string(head) + "[]", std::string(rest), *row};
    if (head.ends_with(kValues)) head.remove_suffix(kValues.size());
    return Cell{"", std::string(head), *row};
  }
  const std::size_t point = path.rfind('.');
  const auto row = point == std::string_view::npos ? std::nullopt : parse_int(path.substr(point + 1));
  if (!row) return {};
  std::string_view head = path.substr(0, point);
  const bool keyed = head.ends_with(kValues);
  if (keyed) head.remove_suffix(kValues.size());
  return Cell{"", std::string(head), *row, keyed};
}

using Table = std::map<std::int64_t, std::vector<Field>>;

}  // namespace

/// Follows brackets and quotes; false at what no JSON document has.
bool Document::scan(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted_) {
      if (c == '\\') ++i;
      if (c == '"') quoted_ = false;
      continue;
    }
    if (depth_ == 0 && i > 0 && !is_blank(c)) return false;
    if (c == '"') quoted_ = true;
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') --depth_;
  }
  return true;
}

bool Document::add(std::string_view line, std::int64_t number) {
  if (state_ == State::none) return false;
  if (trimmed(line).empty()) return state_ == State::open;
  if (state_ == State::before) {
    std::string_view rest = trimmed(line);
    const bool list = rest.starts_with('[');
    const bool begins = skip(rest, "{") || skip(rest, "[");
    skip_blanks(rest);
    const bool fits = rest.empty() || (list ? rest.starts_with('{') : rest.starts_with('"'));
    if (!begins || !fits) return forget(), false;
    line = trimmed(line);
  } else if (state_ == State::whole) {
    return forget(), false;
  }
  const bool first = state_ == State::before;
  if (!scan(line) || text_.size() > kLargest) return forget(), false;
  lines_.emplace_back(text_.size(), number);
  text_.append(line) += ' ';
  state_ = depth_ > 0 || quoted_ ? State::open : State::whole;
  return !first || state_ == State::open;  // one line may be a JSON line
}

void Document::forget() {
  if (state_ == State::none) return;
  state_ = State::none;
  text_ = {};
  lines_ = {};
}

void Document::finish(Emitter& emitter) {
  const State state = std::exchange(state_, State::before);
  const std::string text = std::exchange(text_, {});
  const auto lines = std::exchange(lines_, {});
  depth_ = 0, quoted_ = false;
  if (state != State::whole && state != State::open) return;
  FlatJson json;
  const bool whole = json.read_all(text);
  std::map<std::string, Table> tables;
  std::map<std::string, std::size_t> sizes;
  std::map<std::string, std::string_view> facts;
  std::vector<std::string> names;
  names.reserve(json.fields().size());
  bool keyed = false;
  for (const Field& field : json.fields()) {
    const auto cell = cell_of(field.key);
    if (!cell) {
      facts.emplace(field.key, field.value);
      continue;
    }
    keyed = keyed || cell->keyed;
    tables[cell->table][cell->row].push_back({names.emplace_back(cell->column), field.value, field.kind});
    ++sizes[cell->table];
  }
  const auto most = std::max_element(sizes.begin(), sizes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto has = [](const Table& table, auto test) {
    return std::any_of(table.begin(), table.end(),
                       [&](const auto& row) { return std::any_of(row.second.begin(), row.second.end(), test); });
  };
  const auto is = [](std::string_view wanted) {
    return [wanted](const Field& f) { return f.kind != Kind::word && column_named(f.key).column == wanted; };
  };
  if (most == sizes.end()) {  // the Trainer's eval_results.json
    if (!whole || lines.size() == 1) return;
    std::vector<Field> record;
    for (const Field& field : json.fields()) {
      if (!field.key.starts_with("train_") && !field.key.starts_with("total_")) record.push_back(field);
      if (field.key == "train_runtime") emitter.attribute("exit_state", "finished");
      if (field.key.starts_with("train_")) emitter.attribute("summary." + std::string(field.key), field.value);
    }
    const bool evaluated = std::any_of(record.begin(), record.end(), is("valid_loss"));
    if (evaluated) emitter.record(record, {}, lines.front().second);
    return;
  }
  const std::string& name = most->first;
  const Table& table = tables[name];
  const bool step = has(table, is("step"));
  if (!step && !keyed && !has(table, is("loss"))) return;
  if (!whole) emitter.fault(lines.back().second, "malformed JSON document: " + json.fault());
  if (facts.contains("max_steps")) emitter.attribute("expected_steps", facts["max_steps"]);
  for (const auto& [row, fields] : table) {
    std::vector<Field> record;
    std::string made;
    const auto fact = [&](const char* what) {
      const auto found = facts.find(std::string(fields.front().key) + what);
      return found == facts.end() ? std::nullopt : parse_int(found->second);
    };
    const auto start = fact(".start_step"), interval = fact(".step_interval");
    if (name.empty() && keyed)
      made = to_text(row);
    else if (name.empty() && start && interval)
      made = to_text(*start + row * *interval);
    if (!made.empty()) record.push_back({"step", made, Kind::integer});
    record.insert(record.end(), fields.begin(), fields.end());
    // The Trainer's last entry describes the whole training.
    if (std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.key == "train_runtime"; })) {
      for (const Field& field : fields) emitter.attribute("summary." + std::string(field.key), field.value, true);
      emitter.attribute("exit_state", "finished");
      continue;
    }
    // A value that is a view into the document has a known line.
    std::int64_t line = lines.front().second;
    for (const Field& field : fields) {
      const auto offset = static_cast<std::size_t>(field.value.data() - text.data());
      if (offset >= text.size()) continue;
      line = std::prev(std::upper_bound(lines.begin(), lines.end(), std::pair(offset, INT64_MAX)))->second;
      break;
    }
    emitter.record(record, {}, line);
  }
}

}  // namespace zs::parse
