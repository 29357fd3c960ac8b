// SPDX-License-Identifier: Apache-2.0
// Tables are written in two ways: a list of objects, one a row, {"log_history": [{"step": 5, "loss": 2.3}, ...]}, or an
// object of columns, {"lm loss": {"start_step": 1, "step_interval": 1, "values": {"1": 10.8, ...}}, ...} or
// {"loss": [2.3, ...], "val_loss": [2.4, ...]}. The largest table of the document is read.
#include "parse/document.hpp"

#include <algorithm>
#include <array>
#include <deque>
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

/// Where a value stands: "log_history[3].loss" is row 3 of column "loss" of the table "log_history[]"; "lm
/// loss.values.1" is row 1 of column "lm loss" of the table "".
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

constexpr std::string_view kLosses = ".train_losses[";

/// Emits the results of methods, a record for each epoch with the columns of each run; false for another document.
bool read_methods(const FlatJson& json, std::int64_t line, Emitter& emitter) {
  static constexpr auto kColumns =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"epoch_duration", "epoch_time"},
                                                                    {"throughput", "samples_per_second"},
                                                                    {"final_accuracy", "valid_accuracy"},
                                                                    {"final_valid_loss", "valid_loss"},
                                                                    {"peak_memory_gb", "peak_mem"}});
  std::deque<std::string> made;
  std::map<std::string, std::vector<std::vector<Field>>> methods;
  const auto field = [&](const std::string& method, std::string_view column, std::string_view value, Kind kind) {
    return Field{made.emplace_back(method + std::string(kSeries) + std::string(column)), value, kind};
  };
  for (const Field& one : json.fields()) {
    if (const std::size_t at = one.key.find(kLosses); at != std::string_view::npos) {
      const std::string method(one.key.substr(0, at));
      auto& rows = methods[method];
      const std::string_view epoch = made.emplace_back(to_text(static_cast<std::int64_t>(rows.size()) + 1));
      rows.push_back(std::vector<Field>{{"epoch", epoch, Kind::integer}, field(method, "loss", one.value, Kind::real)});
    }
  }
  for (const Field& one : json.fields()) {
    const std::size_t point = one.key.rfind('.');
    const auto method = methods.find(std::string(one.key.substr(0, std::min(point, one.key.size()))));
    if (method == methods.end()) continue;
    if (one.key.substr(point + 1) == "error") {  // JSON has no nan, and the lists of a method that failed end before it
      const std::string_view epoch = made.emplace_back(to_text(static_cast<std::int64_t>(method->second.size()) + 1));
      method->second.push_back({{"epoch", epoch, Kind::integer}, field(method->first, "loss", "nan", Kind::real)});
    }
    if (one.kind == Kind::word) continue;
    const auto column =
        std::ranges::find_if(kColumns, [&](const auto& row) { return row.first == one.key.substr(point + 1); });
    if (column == kColumns.end()) continue;
    const int places = column->second == "peak_mem" ? 9 : column->second == "valid_accuracy" ? -2 : 0;  // GB, per cent
    const std::string_view value = places == 0 ? one.value : made.emplace_back(shifted(one.value, places));
    const Field& made_field = method->second.back().emplace_back(field(method->first, column->second, value, one.kind));
    if (column->second == "samples_per_second" || column->second == "epoch_time")
      emitter.attribute(made_field.key, value, true);  // of the run, as zs-train says them
  }
  for (const auto& [name, rows] : methods) {
    for (const std::vector<Field>& row : rows) emitter.record(row, {}, line);
  }
  return !methods.empty();
}

/// Whether one of the fields that are no words is of this column.
bool has_column(const std::vector<Field>& fields, std::string_view column) {
  return std::ranges::any_of(
      fields, [&](const Field& f) { return f.kind != Kind::word && column_named(f.key).column == column; });
}

struct Table {
  std::map<std::int64_t, std::vector<Field>> rows;
  std::size_t values = 0;
  bool of_columns = false;  ///< an object of columns, whose table has no name
  bool has(std::string_view column) const {
    return std::ranges::any_of(rows, [&](const auto& row) { return has_column(row.second, column); });
  }
};

/// The values of a document: those of tables, and the others by their keys.
class Content {
 public:
  explicit Content(const FlatJson& json) {
    names_.reserve(json.fields().size());
    for (const Field& field : json.fields()) {
      const auto cell = cell_of(field.key);
      if (!cell) {
        facts.emplace(field.key, field.value);
        continue;
      }
      keyed_ = keyed_ || cell->keyed;
      Table& table = tables[cell->table];
      table.rows[cell->row].push_back({names_.emplace_back(cell->column), field.value, field.kind});
      table.of_columns = cell->table.empty();
      ++table.values;
    }
  }

  /// The largest table that has steps or losses; null if none has.
  const Table* largest() const {
    const Table* most = nullptr;
    for (const auto& [name, table] : tables) {
      const bool told = (table.of_columns && keyed_) || table.has("step") || table.has("loss");
      if (told && (!most || most->values < table.values)) most = &table;
    }
    return most;
  }

  /// The step of a row of columns; "" if nothing tells it.
  std::string step_of(const Table& table, std::int64_t row) const {
    if (!table.of_columns) return "";
    if (keyed_) return to_text(row);
    const auto fact = [&](const char* what) {
      const auto found = facts.find(std::string(table.rows.at(row).front().key) + what);
      return found == facts.end() ? std::nullopt : parse_int(found->second);
    };
    const auto start = fact(".start_step"), interval = fact(".step_interval");
    return start && interval ? to_text(*start + row * *interval) : "";
  }

  std::map<std::string, Table> tables;
  std::map<std::string, std::string_view> facts;

 private:
  std::vector<std::string> names_;
  bool keyed_ = false;  ///< rows are steps
};

/// Reads the Trainer's eval_results.json.
void read_results(const FlatJson& json, std::int64_t line, Emitter& emitter) {
  std::vector<Field> record;
  for (const Field& field : json.fields()) {
    if (!field.key.starts_with("train_") && !field.key.starts_with("total_")) record.push_back(field);
    if (field.key == "train_runtime") emitter.attribute("exit_state", "finished");
    if (field.key.starts_with("train_")) emitter.attribute("summary." + std::string(field.key), field.value);
  }
  if (has_column(record, "valid_loss")) emitter.record(record, {}, line);
}

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

std::vector<std::string> methods_of(std::string_view document) {
  std::string text(document);
  std::ranges::replace(text, '\n', ' ');
  FlatJson json;
  std::vector<std::string> methods;
  if (text.find("\"train_losses\"") == std::string::npos || !json.read_all(text)) return methods;
  for (const Field& one : json.fields()) {
    if (one.key.ends_with(std::string(kLosses) + "0]")) methods.emplace_back(one.key.substr(0, one.key.find(kLosses)));
  }
  return methods;
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
  if (whole && read_methods(json, lines.front().second, emitter)) return;
  Content content(json);
  if (content.tables.empty()) {
    if (whole && lines.size() > 1) read_results(json, lines.front().second, emitter);
    return;
  }
  const Table* const table = content.largest();
  if (!table) return;
  if (!whole) emitter.fault(lines.back().second, "malformed JSON document: " + json.fault());
  if (content.facts.contains("max_steps")) emitter.attribute("expected_steps", content.facts["max_steps"]);
  for (const auto& [row, fields] : table->rows) {
    // The Trainer's last entry describes the whole training.
    if (std::ranges::any_of(fields, [](const Field& f) { return f.key == "train_runtime"; })) {
      for (const Field& field : fields) emitter.attribute("summary." + std::string(field.key), field.value, true);
      emitter.attribute("exit_state", "finished");
      continue;
    }
    const std::string step = content.step_of(*table, row);
    std::vector<Field> record;
    if (!step.empty()) record.push_back({"step", step, Kind::integer});
    record.insert(record.end(), fields.begin(), fields.end());
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
