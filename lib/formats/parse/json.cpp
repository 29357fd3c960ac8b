// SPDX-License-Identifier: Apache-2.0
// JSON lines: wandb-history.jsonl, and any object with a step, or with a loss, and another number. A logger's words may
// stand in front, as in fairseq's logs:
//   {"train/loss": 2.0751, "train/global_step": 40, "_step": 3, "_runtime": 61.4, "_timestamp": 1750132261.4}
//   2025-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "loss": "16.475", "num_updates": "1"}
// A file that is one JSON document is read at its end (document.hpp).
#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "parse/document.hpp"
#include "parse/flat_json.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

bool names_loss(std::string_view key) {
  const std::string_view column = column_named(key).column;
  return column == "loss" || column == "valid_loss";
}

class JsonLines : public Dialect {
 public:
  bool wants_all() const override { return document_.open(); }

  Verdict read(const Line& line, Emitter& emitter) override {
    if (document_.add(line.text, line.number)) return {true};
    const Verdict verdict = read_object(line, emitter);
    if (verdict.matched) document_.forget();
    return verdict;
  }

  void finish(Emitter& emitter) override { document_.finish(emitter); }

 private:
  Verdict read_object(const Line& line, Emitter& emitter) {
    const std::size_t at = line.text.find("{\"");
    if (at == std::string_view::npos) return {};
    const std::string_view prefix = line.text.substr(0, at);
    const bool prose = !trimmed(prefix).empty() && rank_of(prefix).empty();
    const bool whole = json_.read(line.text.substr(at));
    const auto& fields = json_.fields();
    const auto any = [&](auto test) {
      return std::ranges::any_of(fields, [&](const Field& f) { return f.kind != Kind::word && test(f); });
    };
    const bool step = any([](const Field& f) { return column_named(f.key).column == "step"; });
    const bool loss = any([](const Field& f) { return names_loss(f.key); });
    if (!whole) {
      const bool like_one = prose ? prose_ && line.text.find("loss\":") != std::string_view::npos
                                  : line.text.find("step\":") != std::string_view::npos || seen_ || step;
      if (!like_one) return {};  // some other text in braces
      return {false, "malformed JSON line: " + json_.fault()};
    }
    if (prose && !(loss && trimmed(json_.rest()).empty())) return {};
    const auto numbers = std::ranges::count_if(fields, [](const Field& f) { return f.kind != Kind::word; });
    // The means of an epoch are not a step, if its steps are logged, too.
    if (numbers < 2 || !(step || (loss && !stepped_))) return {};
    seen_ = true;
    prose_ = prose_ || prose;
    stepped_ = stepped_ || step;
    if (const std::string_view twice = repeated_key(); !twice.empty())
      return {false, "malformed JSON line: key '" + std::string(twice) + "' stands twice"};
    for (const Field& field : fields) {
      if ((field.key == "total_steps" || field.key == "max_steps") && field.kind == Kind::integer)
        emitter.attribute("expected_steps", field.value);
    }
    emitter.record(fields, prefix, line.number);
    return {true};
  }

  /// A repeated key, whose value is ambiguous.
  std::string_view repeated_key() {
    keys_.clear();
    for (const Field& field : json_.fields()) keys_.push_back(field.key);
    std::ranges::sort(keys_);
    const auto twice = std::ranges::adjacent_find(keys_);
    return twice == keys_.end() ? std::string_view() : *twice;
  }

  FlatJson json_;
  Document document_;
  std::vector<std::string_view> keys_;
  bool seen_ = false, prose_ = false, stepped_ = false;  // a record was seen; one behind words; one with a step
};

/// MLPerf's log: facts, evaluations, and in some statistics of steps:
///   :::MLLOG {"key": "eval_accuracy", "value": 5.26, "metadata": {"samples_count": 12288}, "time_ms": 17837}
/// What a language model's "accuracy" holds is its loss. Samples become steps where the batch is known.
class MlLog : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::size_t at = line.text.find(":::MLLOG {");
    if (at == std::string_view::npos) return {};
    if (!json_.read(line.text.substr(at + 9))) return {false, "malformed MLLOG line: " + json_.fault()};
    const std::string_view key = of("key"), value = of("value");
    if (key == "run_stop") {
      const std::string_view status = of("metadata.status");
      if (status == "success" || status == "aborted")
        emitter.attribute("exit_state", status == "success" ? "finished" : "failed", true);
      return {true};
    }
    std::vector<Field> fields;
    if (key.starts_with("eval_") && value_of(value).kind != Kind::word) {
      fields.push_back({key == "eval_accuracy" && language_ ? "valid_loss" : key, value, value_of(value).kind});
    } else if (key == "tracked_stats" || key == "train_loss") {
      if (key == "train_loss") fields.push_back({"loss", value, value_of(value).kind});
      for (Field field : json_.fields()) {
        if (skip(field.key, "value.")) fields.push_back(field);
      }
    } else {
      if (key == "submission_benchmark")
        language_ = std::ranges::any_of(
            kLanguage, [&](std::string_view name) { return value.find(name) != std::string_view::npos; });
      if (key == "global_batch_size") batch_ = parse_int(value).value_or(0);
      if (of("event_type") == "POINT_IN_TIME" && !value.empty()) emitter.attribute(key, value);
      return {true};
    }
    if (fields.empty()) return {true};
    std::string made;
    const auto samples = parse_int(of("metadata.samples_count"));
    for (const char* const name : {"metadata.step", "metadata.step_num"}) {
      if (made.empty()) made = of(name);
    }
    if (made.empty() && samples && batch_ > 0 && *samples % batch_ == 0) made = to_text(*samples / batch_);
    if (!made.empty()) fields.push_back({"step", made, Kind::integer});
    for (const char* const name : {"samples_count", "epoch_num"}) {
      const std::string_view count = of("metadata." + std::string(name));
      if (!count.empty()) fields.push_back({name, count, value_of(count).kind});
    }
    emitter.record(fields, line.text.substr(0, at), line.number);
    return {true};
  }

 private:
  static constexpr std::array<std::string_view, 5> kLanguage = {"gpt", "llama", "mixtral", "deepseek", "moe"};

  std::string_view of(std::string_view key) const {
    const auto found = std::ranges::find(json_.fields(), key, &Field::key);
    return found == json_.fields().end() ? std::string_view() : found->value;
  }

  FlatJson json_;
  std::int64_t batch_ = 0;  // sequences in a step; 0: not told
  bool language_ = false;
};

}  // namespace

std::unique_ptr<Dialect> make_json() { return std::make_unique<JsonLines>(); }
std::unique_ptr<Dialect> make_mllog() { return std::make_unique<MlLog>(); }

}  // namespace zs::parse
