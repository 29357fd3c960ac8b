// SPDX-License-Identifier: Apache-2.0
// The metric line of ds_verify_loss and zs-train, and the closing line of the former:
//   Epoch 1, Step 40, Loss: 10.555366 sync: True time: 0.48 alloc_mem: 28307113472 peak_mem: 50064946688
//   MODEL ds=True np=8 batch_size=1 seq=512 zero_stage=1 ... iteration time: 0.4782 alloc_mem: ... peak_mem: ...
// Many ranks write at once, so text of other ranks may be before, after, or in the middle of the line.
//
// How a torn line is joined:
//   line 7   Epoch 1, Step 40, Loss: 10.5 sync: True ti[rank1]: loading       the values end before "time": kept as
//   Torn, line 8   me: 0.48 alloc_mem: 28307113472 peak_mem: 50064946688            and the rest is searched for here
// The rest is a line that has the later values without a beginning (lost_head). It must come within kFurthestRest
// lines, and both parts together must form one whole step, read by the same function as other lines. If the rest begins
// with a key, the tear was between two values. Otherwise it was after or within the last value, which may lack digits
// or contain other text: that value is left out, with a fault. If two lines are torn at once, the rests cannot be
// assigned: both are faults, and nothing is guessed. Lines without a step cost one additional search.
#include <algorithm>
#include <optional>
#include <utility>

#include "parse/step_line.hpp"

namespace zs::parse {
namespace {

constexpr std::string_view kFault = "malformed step line: ";
constexpr std::int64_t kFurthestRest = 20;  // lines between the two parts of a torn line

Verdict read_closing(const Line& line, Emitter& emitter);

std::size_t offset_behind(std::string_view part, std::string_view whole) {
  return static_cast<std::size_t>(part.data() + part.size() - whole.data());
}

class Reference : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (torn_ && line.number > torn_->line + kFurthestRest) give_up(emitter);
    Verdict verdict;
    std::string_view text = line.text;
    std::string_view prefix = text;
    for (std::size_t at; (at = head(text)) != std::string_view::npos;) {
      if (!verdict.matched) prefix = line.text.substr(0, offset_behind(text.substr(0, at), line.text));
      auto step = read_step(text.substr(at), line.ended);
      if (!step) {
        text.remove_prefix(at + 5);
        continue;
      }
      const std::string fault = step->fault.empty() ? take(*step, text.substr(at), prefix, line, emitter) : step->fault;
      if (!fault.empty()) verdict.fault = std::string(kFault) + fault;
      verdict.matched = verdict.matched || !step->fields.empty();
      text = step->rest.size() < text.size() - at ? step->rest : text.substr(at + 5);
    }
    if (verdict.matched || !verdict.fault.empty()) return verdict;
    if (const Verdict closing = read_closing(line, emitter); closing.matched) return closing;
    if (!lost_head(line.text)) return {};
    return torn_ ? join(line, emitter) : Verdict{false, std::string(kFault) + "its start is missing"};
  }

  void finish(Emitter& emitter) override {
    give_up(emitter);
    for (const std::int64_t number : short_lines_)
      emitter.fault(number, std::string(kFault) + "it ends early, later ones have more values");
    short_lines_.clear();
  }

 private:
  /// A line that other text broke into, kept until its rest turns up.
  struct Torn {
    std::string prefix, text;
    std::size_t last_end, before_last_end;  ///< ends of the last value and of the one before it
    std::int64_t line;
    std::string fault;  ///< the fault if the rest is not found
    bool in_doubt;      ///< the last value may lack digits, or have some of the other text
  };

  static std::size_t head(std::string_view text) {
    if (starts_step(text)) return 0;
    for (std::size_t at = text.find("Epoch "); at != std::string_view::npos; at = text.find("Epoch ", at + 1)) {
      if (starts_step(text.substr(at))) return at;
    }
    for (std::size_t at = text.find("Step "); at != std::string_view::npos; at = text.find("Step ", at + 1)) {
      std::string_view rest = text.substr(at + 5);
      if (!take_number(rest).text.empty() && rest.starts_with(", Loss:")) return at;
    }
    return std::string_view::npos;
  }

  /// A line that holds the rest of a metric line, but not its start.
  static bool lost_head(std::string_view text) {
    const std::size_t at = text.find("sync: ");
    if (at != std::string_view::npos) {
      const std::string_view value = text.substr(at + 6);
      return value.starts_with("True time: ") || value.starts_with("False time: ");
    }
    return text.find("peak_mem: ") != std::string_view::npos && text.find("Summary:") == std::string_view::npos &&
           text.find("iteration time:") == std::string_view::npos;
  }

  /// Records the step, or keeps it for its rest; gives what is wrong with the line, if that is already sure.
  std::string take(Step& step, std::string_view text, std::string_view prefix, const Line& line, Emitter& emitter) {
    if (!line.ended && (step.rest.empty() || step.torn)) {  // the log ends here, and perhaps in a value
      const bool in_value = step.rest.empty();
      const std::string where = in_value ? "within the value of '" + std::string(step.fields.back().key) + "'"
                                         : "at " + quoted_start(step.rest);
      if (in_value || step.in_doubt) drop_last(step.fields);
      if (!step.fields.empty()) emitter.record(step.fields, prefix, line.number);
      return "the log ends " + where;
    }
    // A whole line, and then "[rank3]: ..." of another writer without a line end: a bracket is part of no number.
    const bool bracket = step.in_doubt && std::string_view("[({<").find(step.rest.front()) != std::string_view::npos;
    if (const unsigned missing = core_seen_ & ~step.core; missing != 0 || (step.in_doubt && !bracket)) {
      const bool several = torn_ || line.number < several_until_;  // then it is unclear whose rest this is
      give_up(emitter);
      if (several) several_until_ = line.number + kFurthestRest;
      std::string names;
      for (unsigned i = 0; i < kCore.size(); ++i) {
        if (missing >> i & 1U) names += (names.empty() ? "'" : ", '") + std::string(kCore[i]) + "'";
      }
      const Field& last = step.fields.back();
      const std::string fault = missing == 0 ? quoted_start(step.rest) + " follows '" + std::string(last.value) +
                                                   "' of '" + std::string(last.key) + "'"
                                : step.torn ? quoted_start(step.rest) + " stands where " + names + " should be"
                                            : "it ends before " + names;
      const std::size_t last_end = offset_behind(step.fields.back().value, text);
      const std::size_t before = offset_behind(step.fields[step.fields.size() - 2].value, text);
      torn_ = Torn{std::string(prefix), std::string(text), last_end, before, line.number, fault, step.in_doubt};
      if (several) give_up(emitter);
      return {};
    }
    if (step.core != core_seen_) {
      core_seen_ |= step.core;
      short_lines_.insert(short_lines_.end(), complete_lines_.begin(), complete_lines_.end());
      complete_lines_.clear();
    }
    // Until a whole line is known, each line before may turn out to be a short one; later this cannot happen.
    if (core_seen_ != kAllCore && complete_lines_.size() < 1000) complete_lines_.push_back(line.number);
    emitter.record(step.fields, prefix, line.number);
    return {};
  }

  /// The line holds the rest of the torn one. If that begins with a key, the tear was between two values; else it was
  /// after or within the last value, which is then left out, since it may contain text of the other writer.
  Verdict join(const Line& line, Emitter& emitter) {
    const Torn torn = *std::exchange(torn_, {});
    std::string_view rest = line.text;
    const bool at_key = is_alpha(rest.front());
    if (!at_key) rest.remove_prefix(std::min(rest.find_first_not_of("0123456789.eE+-"), rest.size()));
    const unsigned left_out = at_key ? 0 : last_core(torn);
    const std::size_t first = at_key ? torn.last_end : torn.before_last_end;
    const std::size_t last = at_key ? std::min(torn.last_end + 12, torn.text.size()) : first;  // a key may be torn, too
    for (std::size_t cut = first; cut <= last; ++cut) {
      const std::string joined = torn.text.substr(0, cut) + std::string(rest);
      const auto step = read_step(joined, line.ended);
      if (!step || step->fields.empty() || (!line.ended && step->rest.empty())) continue;
      if ((core_seen_ & ~step->core & ~left_out) != 0) continue;
      emitter.record(step->fields, torn.prefix, torn.line);
      if (!at_key) emitter.fault(torn.line, std::string(kFault) + "torn within the value of '" + last_key(torn) + "'");
      return {true};
    }
    torn_ = torn;
    give_up(emitter);
    return {false, std::string(kFault) + "its start is missing"};
  }

  static std::string last_key(const Torn& torn) {
    const auto step = read_step(std::string_view(torn.text).substr(0, torn.last_end), true);
    return step && !step->fields.empty() ? std::string(step->fields.back().key) : "loss";
  }
  static unsigned last_core(const Torn& torn) {
    const auto found = std::ranges::find(kCore, last_key(torn));
    return found == kCore.end() ? 0 : 1U << (found - kCore.begin());
  }

  /// Records the step although the rest of its lines is missing.
  void give_up(Emitter& emitter) {
    if (!torn_) return;
    const Torn torn = *std::exchange(torn_, {});
    auto step = read_step(std::string_view(torn.text).substr(0, torn.last_end), true);
    if (step && torn.in_doubt) drop_last(step->fields);
    if (step && !step->fields.empty()) emitter.record(step->fields, torn.prefix, torn.line);
    emitter.fault(torn.line, std::string(kFault) + torn.fault);
  }

  static void drop_last(std::vector<Field>& fields) {
    if (fields.back().key == "loss")
      fields.clear();
    else
      fields.pop_back();
  }

  unsigned core_seen_ = 0;
  std::vector<std::int64_t> complete_lines_, short_lines_;
  std::optional<Torn> torn_;
  std::int64_t several_until_ = 0;
};

/// The closing line: facts about the run.
Verdict read_closing(const Line& line, Emitter& emitter) {
  const std::string_view text = line.text;
  const std::size_t time = text.find(" iteration time: ");
  const std::size_t start = std::min(text.find(" ds="), text.find(" np="));
  if (time == std::string_view::npos || start == std::string_view::npos || start > time) return {};
  std::string_view model = text.substr(0, start);
  model.remove_prefix(model.find_last_of(" )]") + 1);  // npos + 1 is 0
  if (!model.empty()) emitter.attribute("model_name", model);
  std::string_view pairs = text.substr(start, time - start);
  while (true) {
    skip_blanks(pairs);
    if (pairs.empty()) break;
    const std::string_view word = pairs.substr(0, std::min(pairs.find(' '), pairs.size()));
    pairs.remove_prefix(word.size());
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = word.substr(0, equals);
    if (key != "ds") emitter.attribute(key == "backend" ? "compile_backend" : key, word.substr(equals + 1));
  }
  std::string_view rest = text.substr(time + 1);
  for (const auto& [key, name] :
       {std::pair("iteration time", "iteration_time"), {"alloc_mem", "alloc_mem"}, {"peak_mem", "peak_mem"}}) {
    skip_blanks(rest);
    if (!skip(rest, key) || !skip(rest, ": ")) break;
    const std::string_view value = take_number(rest).text;
    if (!line.ended && rest.empty())
      return {true, "malformed closing line: the log ends within the value of '" + std::string(key) + "'"};
    if (value.empty() || !number_ends(rest))
      return {true, "malformed closing line: no number as '" + std::string(key) + "'"};
    emitter.attribute("summary." + std::string(name), value);
  }
  emitter.attribute("exit_state", "finished");
  return {true};
}

}  // namespace

std::unique_ptr<Dialect> make_reference() { return std::make_unique<Reference>(); }

}  // namespace zs::parse
