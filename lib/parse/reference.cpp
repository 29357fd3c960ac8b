// SPDX-License-Identifier: Apache-2.0
// The metric line of ds_verify_loss and zs-train, and the closing line of the former:
//   Epoch 1, Step 40, Loss: 10.555366 sync: True time: 0.48 alloc_mem: 28307113472 peak_mem: 50064946688
//   MODEL ds=True np=8 batch_size=1 seq=512 zero_stage=1 ... iteration time: 0.4782 alloc_mem: ... peak_mem: ...
// Many ranks write at once, so text of others may stand before, behind, or in the middle of the line.
#include <algorithm>
#include <array>
#include <optional>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

constexpr std::array<std::string_view, 4> kCore = {"sync", "time", "alloc_mem", "peak_mem"};

/// What was read of one metric line.
struct Step {
  std::vector<Field> fields;
  unsigned core = 0;             ///< bit i: kCore[i] is there
  std::string_view rest;         ///< what was not read
  std::string_view torn;         ///< what follows the last value without a blank, or a key without its value
  std::string fault;             ///< why there is no record
  bool last_touches_end = false; ///< the last value reaches the end of the text
};

std::string quoted_start(std::string_view text) {
  std::string start(text.substr(0, 24));
  for (char& c : start) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return "'" + start + (text.size() > 24 ? "...'" : "'");
}

bool starts_record(std::string_view text) {
  return skip(text, "Epoch ") && !text.empty() && is_digit(text.front());
}

/// Reads "key: value" pairs from step.rest on, until something else stands there.
void read_pairs(Step& step) {
  std::string_view& rest = step.rest;
  while (true) {
    std::string_view ahead = rest;
    skip_blanks(ahead);
    if (ahead.empty() || starts_record(ahead)) {
      rest = ahead;
      return;
    }
    if (!is_alpha(ahead.front())) break;
    const std::string_view key = take_key(ahead);
    if (!skip(ahead, ":")) break;
    skip_blanks(ahead);
    Token value = take_number(ahead);
    if (value.text.empty()) {
      for (const std::string_view word : {std::string_view("True"), std::string_view("False"), std::string_view("None")}) {
        if (!value.text.empty() || !ahead.starts_with(word)) continue;
        value = {ahead.substr(0, word.size()), Kind::word};
        ahead.remove_prefix(word.size());
      }
    }
    if (value.text.empty()) break;
    for (unsigned i = 0; i < kCore.size(); ++i) {
      if (key == kCore[i]) step.core |= 1U << i;
    }
    step.fields.push_back({key, value.text, value.kind});
    rest = ahead;
    step.last_touches_end = rest.empty();
    skip(rest, ",");
    if (!rest.empty() && !is_blank(rest.front()) && !starts_record(rest)) break;
  }
  step.torn = rest;
}

/// Reads a metric line from its "Epoch " or "Step " on; nothing if it is not one.
std::optional<Step> read_step(std::string_view text, bool ended) {
  Step step;
  std::string_view& rest = step.rest;
  rest = text;
  Token epoch;
  if (skip(rest, "Epoch ")) {
    epoch = take_number(rest);
    if (epoch.kind != Kind::integer || !skip(rest, ",")) return {};
    skip_blanks(rest);
    const std::string_view word = "Step ";
    const bool cut = rest.size() < word.size() && word.starts_with(rest);
    if (cut && (!ended || !rest.empty())) {
      step.fault = "it ends in " + quoted_start(text);
      return step;
    }
  }
  if (!skip(rest, "Step ")) return {};
  const Token number = take_number(rest);
  if (number.text.empty() && epoch.text.empty()) return {};
  if (number.kind != Kind::integer) {
    step.fault = "no step number after 'Step'";
    return step;
  }
  const bool comma = skip(rest, ",");
  skip_blanks(rest);
  if (!comma || !skip(rest, "Loss:")) {
    if (epoch.text.empty()) return {};
    step.fault = "no 'Loss:' after step " + std::string(number.text);
    return step;
  }
  skip_blanks(rest);
  const Token loss = take_number(rest);
  if (loss.text.empty()) {
    step.fault = "no number after 'Loss:' but " + quoted_start(rest);
    return step;
  }
  step.fields.reserve(12);
  step.fields.push_back({"step", number.text, Kind::integer});
  if (!epoch.text.empty()) step.fields.push_back({"epoch", epoch.text, Kind::integer});
  step.fields.push_back({"loss", loss.text, loss.kind});
  step.last_touches_end = rest.empty();
  skip(rest, ",");
  if (rest.empty() || is_blank(rest.front()) || starts_record(rest)) {
    read_pairs(step);
  } else {
    step.torn = rest;
  }
  return step;
}

bool find_closing(std::string_view text, Findings& findings);

class Reference : public Dialect {
 public:
  Verdict read(const Line& line, Findings& findings) override {
    Verdict verdict;
    std::string_view text = line.text;
    std::string_view prefix;
    while (true) {
      const std::size_t at = starts_record(text) ? 0 : head(text);
      if (at == std::string_view::npos) break;
      if (!verdict.matched) prefix = text.substr(0, at);
      auto step = read_step(text.substr(at), line.ended);
      if (!step) {
        text.remove_prefix(at + 5);
        continue;
      }
      if (step->fault.empty()) check(*step, line);
      if (step->fields.size() >= 2) {
        findings.record(step->fields, prefix, line.number);
        verdict.matched = true;
      }
      if (!step->fault.empty()) verdict.fault = "malformed step line: " + step->fault;
      if (step->rest.size() >= text.size()) break;
      text = step->rest;
    }
    if (verdict.matched || !verdict.fault.empty()) return verdict;
    if (find_closing(line.text, findings)) return {true};
    if (lost_head(line.text)) return {false, "malformed step line: its start is missing"};
    return {};
  }

  void finish(Findings& findings) override {
    for (const std::int64_t number : short_lines_) findings.fault(number, "malformed step line: it ends early, later ones have more values");
    short_lines_.clear();
  }

  bool repeats() const override { return core_seen_ == kAllCore; }

 private:
  static constexpr unsigned kAllCore = (1U << kCore.size()) - 1;

  static std::size_t head(std::string_view text) {
    for (std::size_t at = text.find("Epoch "); at != std::string_view::npos; at = text.find("Epoch ", at + 1)) {
      if (starts_record(text.substr(at))) return at;
    }
    for (std::size_t at = text.find("Step "); at != std::string_view::npos; at = text.find("Step ", at + 1)) {
      std::string_view rest = text.substr(at + 5);
      if (!take_number(rest).text.empty() && rest.starts_with(", Loss:")) return at;
    }
    return std::string_view::npos;
  }

  /// A line whose rest says that a metric line was torn before its start.
  static bool lost_head(std::string_view text) {
    const std::size_t at = text.find("sync: ");
    if (at != std::string_view::npos) {
      const std::string_view value = text.substr(at + 6);
      return value.starts_with("True time: ") || value.starts_with("False time: ");
    }
    return text.find("alloc_mem: ") != std::string_view::npos && text.find("peak_mem: ") != std::string_view::npos &&
           text.find("Summary:") == std::string_view::npos && text.find("iteration time:") == std::string_view::npos;
  }

  /// Finds out whether the step is whole; if not, drops the value in doubt and says so in step.fault.
  void check(Step& step, const Line& line) {
    if (!line.ended && step.last_touches_end && step.rest.empty()) {
      const std::string key(step.fields.back().key);
      drop_last(step);
      step.fault = "the log ends within the value of '" + key + "'";
      return;
    }
    if (!line.ended && !step.torn.empty()) {
      step.fault = "the log ends at " + quoted_start(step.torn);
      return;
    }
    const unsigned missing = core_seen_ & ~step.core;
    if (missing != 0) {
      std::string names;
      for (unsigned i = 0; i < kCore.size(); ++i) {
        if (missing >> i & 1U) names += (names.empty() ? "'" : ", '") + std::string(kCore[i]) + "'";
      }
      const bool in_doubt = !step.torn.empty() && !is_blank(step.torn.front());
      step.fault = step.torn.empty() ? "it ends before " + names : quoted_start(step.torn) + " stands where " + names + " should be";
      if (in_doubt) drop_last(step);
      return;
    }
    if ((step.core & ~core_seen_) != 0) {
      core_seen_ |= step.core;
      short_lines_.insert(short_lines_.end(), complete_lines_.begin(), complete_lines_.end());
      complete_lines_.clear();
    }
    // Until a whole line is known, each line before may turn out to be a short one; later this cannot happen.
    if (core_seen_ != kAllCore && complete_lines_.size() < 1000) complete_lines_.push_back(line.number);
  }

  static void drop_last(Step& step) {
    if (step.fields.back().key == "loss") {
      step.fields.clear();
    } else {
      step.fields.pop_back();
    }
  }

  unsigned core_seen_ = 0;
  std::vector<std::int64_t> complete_lines_, short_lines_;
};

/// The closing line: facts about the run.
bool find_closing(std::string_view text, Findings& findings) {
  const std::size_t time = text.find(" iteration time: ");
  const std::size_t start = std::min(text.find(" ds="), text.find(" np="));
  if (time == std::string_view::npos || start == std::string_view::npos || start > time) return false;
  std::string_view model = text.substr(0, start);
  model.remove_prefix(model.find_last_of(" )]") + 1);  // npos + 1 is 0
  if (!model.empty()) findings.attribute("model_name", model);
  std::string_view pairs = text.substr(start, time - start);
  while (true) {
    skip_blanks(pairs);
    if (pairs.empty()) break;
    const std::string_view word = pairs.substr(0, std::min(pairs.find(' '), pairs.size()));
    pairs.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = word.substr(0, equals);
    if (key != "ds") findings.attribute(key == "backend" ? "compile_backend" : key, word.substr(equals + 1));
  }
  std::string_view rest = text.substr(time + 1);
  skip(rest, "iteration time: ");
  findings.attribute("summary.iteration_time", take_number(rest).text);
  for (const std::string_view key : {std::string_view("alloc_mem"), std::string_view("peak_mem")}) {
    skip_blanks(rest);
    if (!skip(rest, key) || !skip(rest, ": ")) break;
    findings.attribute("summary." + std::string(key), take_number(rest).text);
  }
  findings.attribute("exit_state", "finished");
  return true;
}

}  // namespace

std::unique_ptr<Dialect> make_reference() { return std::make_unique<Reference>(); }

}  // namespace zs::parse
