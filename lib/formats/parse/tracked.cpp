// SPDX-License-Identifier: Apache-2.0
#include "parse/tracked.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "base/checksum.hpp"
#include "base/number.hpp"
#include "base/protobuf.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "config/config.hpp"
#include "parse/flat_json.hpp"
#include "parse/mlflow.hpp"
#include "tracker/datastore.hpp"
#include "tracker/tensorboard.hpp"
#include "tracker/tfevents.hpp"

namespace zs::parse {
namespace {

constexpr std::string_view kTextEnding = "/text_summary";

/// A value in a cell or an attribute: no form holds a NUL.
std::string clean(std::string text) {
  for (std::size_t at; (at = text.find('\0')) != std::string::npos;) text.replace(at, 1, "\xEF\xBF\xBD");
  return text;
}

std::string quoted(const std::string& key) {
  std::string out = "\"";
  for (const char c : clean(key)) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 32) out += c;
  }
  return out + "\"";
}

/// The items of a record as one object of JSON, without pictures, tables and similar items, which only have a path.
std::string object_of(const std::vector<tracker::Item>& items) {
  std::string text = "{";
  for (const tracker::Item& item : items) {
    if (item.key == "_wandb" || item.key.empty() || item.json.find("\"_type\"") != std::string::npos) continue;
    text += (text.size() > 1 ? ", " : "") + quoted(item.key) + ": " + item.json;
  }
  return text + "}";
}

/// A row: what was written of one step until a name came again.
struct TrackedStep {
  std::int64_t step, number;
  int part;
  double time;  ///< unix seconds
  std::vector<Field> values{};
};

/// Puts values, which trackers keep by name, into rows by step. The texts live as long as this.
class TrackedSteps {
 public:
  void add(TrackedStep at, std::string column, std::string value, Kind kind) {
    const auto known = newest_.find(at.step);
    TrackedStep* step = known == newest_.end() ? nullptr : &steps_[known->second];
    const bool again = step && std::ranges::any_of(step->values, [&](const Field& f) { return f.key == column; });
    if (again && kind == Kind::word) return;  // the digest of the end, said once more
    if (!step || again) {
      newest_[at.step] = steps_.size();
      step = &steps_.emplace_back(std::move(at));
    }
    const std::string_view name = keep(std::move(column)), text = keep(std::move(value));
    step->values.push_back({name, text, kind});
  }

  /// Forgets the rows from a step on: the run began again there.
  void restart(std::int64_t from) {
    std::erase_if(steps_, [&](const TrackedStep& s) { return s.step >= from; });
    newest_.clear();
    for (std::size_t i = 0; i < steps_.size(); ++i) newest_[steps_[i].step] = i;
  }

  /// Calls `row` with the fields of each row, in the order of the file.
  template <typename Row>
  void each(Row row) {
    for (const TrackedStep& step : steps_) {
      std::vector<Field> fields = {{"step", keep(to_text(step.step)), Kind::integer}};
      fields.insert(fields.end(), step.values.begin(), step.values.end());
      if (step.time > 0) fields.push_back({"_timestamp", keep(to_text(step.time)), Kind::real});
      row(fields, step.number, step.part);
    }
  }

 private:
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<TrackedStep> steps_;
  std::map<std::int64_t, std::size_t> newest_;  // by step: index in `steps_`
  std::deque<std::string> texts_;
};

}  // namespace

TrackedReader::TrackedReader(const Options& options, metric::Writer& rows, const FaultSink& faults)
    : rows_(rows), records_(options.map, rows) {
  faults_ = [this, &faults](const Fault& fault) {
    ++stats_.faulty;
    ++stats_.faults[fault.what.substr(fault.what.rfind(": ") + 2)];
    faults(fault);
  };
}

std::string TrackedReader::read_file(const std::string& path) {
  Input input(path);
  std::string bytes = input.read_all();
  if (bytes.empty()) throw Error(path, 0, "is empty, expected a run");
  path_ = path;
  const std::string part = ++parts_ == 1 ? "" : "." + std::to_string(parts_);
  attributes_["source" + part] = path;
  attributes_["source_sha256" + part] = sha256(bytes);
  return bytes;
}

void TrackedReader::fault(const std::string& what, std::int64_t number) { faults_({path_, number, what}); }

void TrackedReader::row(const std::vector<Field>& fields, std::int64_t number, int part) {
  for (const std::string& what : records_.add(fields, {{}, number, part}))
    fault("record " + to_text(number) + ": " + what);
  ++stats_.records;
}

void TrackedReader::fact(std::string_view key, std::string_view value) {
  if (value.empty() || value == "None" || names_secret(key)) return;
  const std::string name = attribute_named(key);
  if (!name.empty()) attributes_[name] = clean(std::string(attribute_value(value)));
}

void TrackedReader::read_tensorboard(const std::vector<std::string>& files) {
  TrackedSteps steps;
  FlatJson json;
  for (const std::string& file : files) {
    const std::string bytes = read_file(file);
    const auto use = [&](const tracker::Event& event, std::int64_t number) {
      ++stats_.lines;
      if (!event.version.empty() && !event.version.starts_with("brain.Event:"))
        fault("event " + to_text(number) + ": of a version that zs does not know: " + event.version);
      if (event.restarts) steps.restart(event.step);
      for (const tracker::EventValue& value : event.values) {
        std::string column = clean(value.tag);
        if (value.is_text) {
          if (value.tag == tracker::kFactsTag) {
            for (const auto& [key, text] : tracker::facts_of(value.text)) fact(key, text);
            continue;
          }
          if (column.ends_with(kTextEnding)) column.resize(column.size() - kTextEnding.size());
          if (column == "args" && json.read(value.text)) {  // the Trainer's own
            for (const Field& field : json.fields()) fact(field.key, field.value);
            continue;
          }
          if (column != "state_digest") {
            fact("tensorboard." + column, value.text);
            continue;
          }
        }
        std::string text = value.is_text ? clean(value.text) : to_text(value.scalar);
        const Kind kind = value.is_text ? Kind::word : value_of(text).kind;
        steps.add({event.step, number, parts_, event.wall_time}, std::move(column), std::move(text), kind);
      }
      if (event.other == 0 || !event.values.empty()) ++stats_.matched["tensorboard"];
    };
    tracker::read_events(bytes, file, use, faults_);
  }
  steps.each([&](const std::vector<Field>& fields, std::int64_t number, int part) { row(fields, number, part); });
}

void TrackedReader::read_mlflow(const std::string& path, const std::string& id) {
  MlflowRun run = parse::read_mlflow(path, id, faults_);
  if (id.empty())
    read_file(path + "/meta.yaml");  // the source of the run, with its checksum
  else
    attributes_["source"] = path;
  path_ = path;
  for (const auto& [key, value] : run.facts) fact(key, value);
  stats_.lines += run.lines;
  TrackedSteps steps;
  for (MlflowValue& one : run.values) {
    ++stats_.matched["mlflow"];
    steps.add({one.step, one.number, 1, one.time}, std::move(one.name), std::move(one.value), one.kind);
  }
  steps.each([&](const std::vector<Field>& fields, std::int64_t number, int part) { row(fields, number, part); });
}

void TrackedReader::read_wandb(const std::vector<std::string>& files) {
  using Kind = tracker::WandbRecord::Kind;
  FlatJson json;
  for (const std::string& file : files) {
    const std::string bytes = read_file(file);
    const auto facts = [&](const std::vector<tracker::Item>& items, const std::string& prefix, std::int64_t number) {
      const std::string text = object_of(items);
      if (!json.read(text)) fault("record " + to_text(number) + ": a value that is not JSON: " + json.fault());
      for (const Field& field : json.fields()) fact(prefix + std::string(field.key), field.value);
    };
    const auto take = [&](const tracker::WandbRecord& record, std::int64_t number) {
      switch (record.kind) {
        case Kind::run: {
          facts(record.items, "", number);
          fact("wandb_run", record.id);
          fact("wandb_entity", record.entity);
          fact("wandb_project", record.project);
          fact("wandb_run_name", record.name);
          fact("wandb_group", record.group);
          fact("host", record.host);
          fact("commit", record.commit);
          fact("wandb_tags", joined(record.tags, ","));
          return true;
        }
        case Kind::config:
          facts(record.items, "", number);
          return true;
        case Kind::summary:
          facts(record.items, "wandb.summary.", number);
          return true;
        case Kind::exit:
          fact("exit_code", std::to_string(record.exit_code));
          if (record.exit_code == 0) fact("exit_state", "finished");
          return true;
        case Kind::history: {
          std::vector<tracker::Item> items = record.items;
          const bool counted = std::ranges::any_of(items, [](const auto& i) { return i.key == "_step"; });
          if (!counted) items.push_back({"_step", to_text(record.step)});
          const std::string text = object_of(items);
          if (!json.read(text)) fault("record " + to_text(number) + ": a value that is not JSON: " + json.fault());
          row(json.fields(), number, parts_);
          return true;
        }
        default:
          return false;
      }
    };
    const auto use = [&](std::string_view record, std::int64_t number) {
      ++stats_.lines;
      try {
        if (take(tracker::wandb_record(record), number)) ++stats_.matched["wandb"];
      } catch (const protozero::exception& error) {
        fault("record " + to_text(number) + ": not a record of W&B: " + error.what());
      }
    };
    tracker::read_datastore(bytes, file, use, faults_);
  }
}

void TrackedReader::finish() {
  std::int64_t known = 0;
  for (const auto& [name, count] : stats_.matched) known += count;
  stats_.other = std::max<std::int64_t>(0, stats_.lines - known);
  if (stats_.records == 0) fault("no metric among " + to_text(stats_.lines) + " records");
  rows_.finish(attributes_);
}

bool join(metric::Table& log, const metric::Table& tracked) {
  const metric::Column *const steps = tracked.find("step"), *const logged = log.find("step");
  const bool counts_calls = !tracked.find("_step");  // else a surer key gave the step
  if (!steps || counts_calls) return false;
  std::map<std::int64_t, std::size_t> rows;
  for (std::size_t i = 0; logged && i < logged->size(); ++i) rows[logged->integers()[i]] = i;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;  // rows of log and tracked
  std::size_t size = log.rows();
  for (std::size_t i = 0; i < steps->size(); ++i) {
    if (steps->absent(i)) continue;
    const auto [found, added] = rows.emplace(steps->integers()[i], size);
    size += added;
    pairs.emplace_back(found->second, i);
  }
  for (const metric::Column& from : tracked.columns) {
    if (from.name == "line" || from.name == "part") continue;
    metric::Column& column = log.column(from.name, from.type(), from.unit);
    if (column.type() != from.type()) continue;  // the log's own, of another meaning
    column.pad(size);
    metric::Column filled(column.name, column.unit, column.type());
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < size; ++i) cells.push_back(column.text(i));
    for (const auto& [row, source] : pairs) {
      if (cells[row].empty()) cells[row] = from.text(source);
    }
    for (const std::string& cell : cells) filled.append(cell);
    column = std::move(filled);
  }
  log.even_out();
  return true;
}

}  // namespace zs::parse
