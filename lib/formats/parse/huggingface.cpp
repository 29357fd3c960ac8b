// SPDX-License-Identifier: Apache-2.0
// The Hugging Face Trainer prints Python dicts:
//   {'loss': 2.075, 'grad_norm': 1.25, 'learning_rate': 0.0002329900014453396, 'epoch': 0.04}
//   {'eval_loss': 1.9, 'eval_runtime': 12.3, 'eval_samples_per_second': 81.3, 'epoch': 1.0}
//   {'train_runtime': 100.0, 'train_samples_per_second': 12.5, 'train_loss': 0.5, 'epoch': 3.0}
// They have no step and no time: these are taken from the progress bar, "10/500 [00:05<04:20,  1.88it/s]".
//
// The bar is drawn at most ten times a second, and more seldom after a resume, so the one in front of a line may be
// old. But Trainer writes each line through the bar, which is cleared with blanks and drawn again, with the step of the
// line. Where lines and bars come through different pipes, the lines come late, in heaps or early: the n-th line
// belongs to the n-th bar that was drawn again, unless the epochs contradict. Without such bars the bar in front is all
// there is.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

struct Bar {
  std::string step, total;
  std::int64_t elapsed = 0;  // seconds
  std::string seconds;       // of a step, as the bar says; "" if it does not
};

/// The seconds of "00:05" or "1:02:03".
std::int64_t elapsed_of(std::string_view text) {
  std::int64_t seconds = 0;
  do {
    seconds = seconds * 60 + parse_int(take_digits(text)).value_or(0);
  } while (skip(text, ":"));
  return seconds;
}

/// The seconds of a step in the rest of a bar: "00:05<04:20,  1.88it/s]", "00:05<04:20,  1.05s/it]".
std::string seconds_of(std::string_view rest) {
  rest = rest.substr(0, rest.find(']'));
  const std::size_t comma = rest.rfind(',');
  if (comma == std::string_view::npos) return "";
  rest.remove_prefix(comma + 1);
  skip_blanks(rest);
  const auto value = parse_real(take_number(rest).text);
  if (!value || !(*value > 0) || (rest != "it/s" && rest != "s/it")) return "";
  return to_rounded_text(rest == "s/it" ? *value : 1 / *value, 6);
}

/// The "10/500 [" of a progress bar.
std::optional<Bar> bar_of(std::string_view text) {
  for (std::size_t slash = text.find('/'); slash != std::string_view::npos; slash = text.find('/', slash + 1)) {
    std::size_t first = slash;
    while (first > 0 && is_digit(text[first - 1])) --first;
    std::string_view rest = text.substr(slash + 1);
    const std::string_view total = take_digits(rest);
    if (first < slash && !total.empty() && rest.starts_with(" ["))
      return Bar{std::string(text.substr(first, slash - first)), std::string(total), elapsed_of(rest.substr(2)),
                 seconds_of(rest.substr(2))};
  }
  return {};
}

/// The time of a step. A bar says a smoothed rate, which is wrong for long behind a pause for an evaluation, and behind
/// a resume, where the bar jumps.
class Pace {
 public:
  void see(const Bar& bar) {
    const std::int64_t step = parse_int(bar.step).value_or(0);
    if (step > step_) ++drawn_;
    if (step < step_) {
      disturb();
    } else if (step_ == 0 && step > 1) {  // a fast training, or one that was resumed: the next bar tells
      jumped_ = step;
    } else if (jumped_ > 0 && step > step_) {
      if ((step - step_) * 4 < jumped_) disturb();
      jumped_ = 0;
    }
    step_ = step;
  }
  /// What takes time, but is no step.
  void disturb() { drawn_ = 0, mark_.reset(); }
  /// The seconds of a step, up to a loss whose bar stands behind or in front of it; "" if it cannot be told.
  std::string of(const Bar& bar) {
    const std::optional<Bar> before = std::exchange(mark_, bar);
    constexpr int kSettled = 40;  // bars: 0.7 ** 40 of what disturbed is left
    if (drawn_ >= kSettled && jumped_ == 0) return bar.seconds;
    if (!before) return "";
    const std::int64_t steps = parse_int(bar.step).value_or(0) - parse_int(before->step).value_or(0),
                       seconds = bar.elapsed - before->elapsed;
    constexpr std::int64_t kLong = 10;  // for whole seconds to be exact enough
    return steps > 0 && seconds >= kLong ? to_rounded_text(static_cast<double>(seconds) / static_cast<double>(steps), 6)
                                         : "";
  }

 private:
  std::int64_t step_ = -1, jumped_ = 0;  // -1: no bar came
  int drawn_ = 1 << 20;                  // bars since a disturbance
  std::optional<Bar> mark_;              // of the last loss, if nothing disturbed since
};

class HuggingFace : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::string_view text = line.text;
    const std::size_t brace = text.find("{'");
    const auto bar = bar_of(text.substr(0, brace));
    if (bar)
      see(*bar, line, emitter);
    else if (is_cleared(text))
      ++cleared_;
    if (brace == std::string_view::npos) return {};
    std::vector<Field> pairs;
    std::string_view rest = text.substr(brace + 1);
    std::string fault;
    const bool whole = read_pairs(rest, pairs, fault);
    const auto find = [&](std::string_view key) { return std::ranges::find(pairs, key, &Field::key); };
    const bool metric = find("loss") != pairs.end() || find("eval_loss") != pairs.end() || find("epoch") != pairs.end();
    const bool closing = find("train_runtime") != pairs.end();
    const bool suspect = text.substr(brace).starts_with("{'loss'") || text.substr(brace).starts_with("{'eval_loss'");
    if (!metric && !closing) return {false, suspect ? "malformed Trainer line: " + fault : ""};
    if (!whole && (pairs.empty() || !suspect)) return {};
    if (closing) {
      for (const Field& pair : pairs) emitter.attribute("summary." + std::string(pair.key), pair.value, true);
      emitter.attribute("exit_state", "finished");
    }
    const bool training = !closing && find("loss") != pairs.end();
    if (!training && !closing) pace_.disturb();
    waiting_.push_back({line.number, std::string(text), brace, training, closing, !bar && bar_line_ == line.number,
                        epoch_of(pairs), step_, last_, std::nullopt, 0});
    // A log may have no bar that was drawn again: then other dialects wait for the line in vain.
    const bool through = waiting_.back().over || cleared_ > 0 || marked_ || waiting_.size() > 1 ||
                         trimmed(text.substr(0, brace)).ends_with("]:");  // of torchrun --tee
    if (through && !last_.total.empty() && !closed_)
      match(emitter);
    else
      finish(emitter);
    closed_ = closed_ || closing;
    return {true, whole ? "" : "malformed Trainer line: " + fault};
  }
  bool holds() const override { return !waiting_.empty(); }
  void finish(Emitter& emitter) override {
    match(emitter);
    while (!waiting_.empty()) settle_without_mark(emitter);
  }

 private:
  /// A line of metrics.
  struct Waiting {
    std::int64_t number;
    std::string text;
    std::size_t brace;
    bool training;              // it has a loss of the training
    bool closing;               // it is the last one
    bool over;                  // it stands where a bar stood, which it has cleared
    double epoch;               // 0: unknown
    std::string step;           // of the line before
    Bar front;                  // the bar in front of it
    std::optional<Bar> behind;  // the bar in the next line
    int bars;                   // of the training behind it
  };

  /// Blanks over a bar, perhaps between marks of a launcher: "[default0]:       [default0]:".
  static bool is_cleared(std::string_view text) {
    constexpr std::size_t kFewest = 5;  // blanks
    bool found = false;
    while (!text.empty()) {
      const std::string_view blanks = take_while(text, is_blank);
      found = found || blanks.size() >= kFewest;
      const std::string_view mark = take_while(text, [](char c) { return !is_blank(c); });
      if (!mark.empty() && std::string_view(":]|").find(mark.back()) == std::string_view::npos) return false;
    }
    return found;
  }

  static double epoch_of(const std::vector<Field>& pairs) {
    const auto at = std::ranges::find_if(pairs, [](const Field& pair) { return pair.key == "epoch"; });
    return at == pairs.end() ? 0 : parse_real(at->value).value_or(0);
  }

  void see(const Bar& bar, const Line& line, Emitter& emitter) {
    // A bar of an evaluation may have as many batches as the training has steps.
    const bool below = line.below || (!total_.empty() && total_ != bar.total);
    if (below) {
      pace_.disturb();
      below_ = true;
      cleared_ = 0;
      return;
    }
    const bool same = last_.total == bar.total;
    if (total_.empty() && !same) pace_ = Pace();  // data sets and weights were loaded with bars
    const auto step = parse_int(bar.step).value_or(0);
    if (same && step < parse_int(last_.step).value_or(0)) {  // another training
      finish(emitter);
      marks_.clear();
      lowest_ = 0, highest_ = std::numeric_limits<double>::infinity();
    }
    if (step < parse_int(last_.step).value_or(0) || !same) closed_ = false;
    pace_.see(bar);
    const bool again = same && cleared_ > (below_ ? 1 : 0);  // the end of a bar below another one clears that alone
    if (cleared_ > 0) below_ = false;
    cleared_ = 0;
    last_ = bar, bar_line_ = line.number;
    for (Waiting& one : waiting_) {
      if (line.number == one.number + 1 && !one.behind && line.text.find("{'") == std::string_view::npos)
        one.behind = bar;
      ++one.bars;
    }
    if (again) {
      marked_ = true;
      marks_.push_back(bar);
      match(emitter);
    }
    constexpr int kMost = 3;  // bars without a mark: none comes
    while (!waiting_.empty() && waiting_.front().bars > kMost) settle_without_mark(emitter);
    if (total_ == bar.total) step_ = bar.step;
    if (total_ == bar.total && step_ == total_) emitter.attribute("summary.steps", step_, true);
  }

  /// Gives lines the bars that were drawn again.
  void match(Emitter& emitter) {
    constexpr double kEpoch = 0.00501;  // to which an epoch may be rounded
    while (!waiting_.empty() && !marks_.empty()) {
      const double step = static_cast<double>(parse_int(marks_.front().step).value_or(0)),
                   epoch = waiting_.front().epoch;
      if (epoch > 0 && lowest_ <= highest_) {
        if (step < (epoch - kEpoch) * lowest_ - 1) {  // of other text that was written through the bar
          marks_.pop_front();
          continue;
        }
        if (step > (epoch + kEpoch) * highest_ + 1) {
          settle_without_mark(emitter);
          continue;
        }
      }
      if (epoch > 0) {
        lowest_ = std::max(lowest_, step / (epoch + kEpoch));
        if (epoch > kEpoch) highest_ = std::min(highest_, step / (epoch - kEpoch));
      }
      const Bar mark = marks_.front();
      marks_.pop_front();
      settle(mark, true, emitter);
    }
  }

  /// REQUIRES: a line waits.
  void settle_without_mark(Emitter& emitter) {
    const Waiting& line = waiting_.front();
    const bool exact = line.over && line.behind;
    settle(Bar(exact ? *line.behind : line.front), exact, emitter);
  }

  /// Reads 'key': value up to the closing brace; false at anything else.
  static bool read_pairs(std::string_view& rest, std::vector<Field>& pairs, std::string& fault) {
    while (true) {
      if (!skip(rest, "'")) return fault = "it is cut", false;
      const std::size_t quote = rest.find('\'');
      if (quote == std::string_view::npos) return fault = "it is cut", false;
      const std::string_view key = rest.substr(0, quote);
      rest.remove_prefix(quote + 1);
      if (!skip(rest, ": ")) return fault = "no value of '" + std::string(key) + "'", false;
      const bool quoted = skip(rest, "'");  // newer versions print texts
      const std::string_view from = rest;
      Token value = take_number(rest);
      const auto ends = [&] {
        return (!quoted || skip(rest, "'")) && (rest.starts_with(", '") || rest.starts_with('}'));
      };
      bool whole = !value.text.empty() && ends();
      if (!whole && quoted && from.find('\'') != std::string_view::npos) {  // "5/1000", "0.50%"
        value = {from.substr(0, from.find('\'')), Kind::word};
        rest = from.substr(value.text.size());
        whole = ends();
      }
      if (!whole) {
        if (value.text.empty()) return fault = "no number as '" + std::string(key) + "'", false;
        const char* const what = rest.empty() ? "it is cut within" : "other text within";
        return fault = std::string(what) + " the value of '" + std::string(key) + "'", false;
      }
      // A text of 1.0 is "1".
      const bool real = value.kind == Kind::integer && quoted && key == "epoch";
      pairs.push_back({key, value.text, real ? Kind::real : value.kind});
      if (skip(rest, "}")) return true;
      if (!skip(rest, ", ")) return fault = "it is cut behind '" + std::string(key) + "'", false;
    }
  }

  /// REQUIRES: a line waits.
  void settle(const Bar& bar, bool exact, Emitter& emitter) {
    const Waiting line = waiting_.front();
    waiting_.pop_front();
    if (line.closing) {
      if (exact) emitter.attribute("summary.steps", bar.step, true);  // it may end early
      return;
    }
    const std::string_view text = line.text;
    std::string_view rest = text.substr(line.brace + 1);
    std::vector<Field> pairs;
    std::string told;  // of what is malformed in it
    read_pairs(rest, pairs, told);
    if (!line.training && !exact) step_ = line.step;
    record(pairs, line.training, text.substr(0, line.brace), line.number, bar, exact, emitter);
  }

  /// `exact`: the bar is drawn behind the line, with its step.
  void record(const std::vector<Field>& pairs, bool training, std::string_view prefix, std::int64_t number,
              const Bar& bar, bool exact, Emitter& emitter) {
    std::string seconds;
    if (training && !bar.total.empty()) {
      total_ = bar.total;
      step_ = counted(bar.step, exact, pairs);
      seconds = pace_.of(bar);
      emitter.attribute("expected_steps", total_);
      if (step_ == total_) emitter.attribute("summary.steps", step_, true);
    } else if (exact) {
      step_ = bar.step;
    }
    std::vector<Field> fields;
    if (!step_.empty()) fields.push_back({"step", step_, Kind::integer});
    if (!seconds.empty()) fields.push_back({"iteration_time", seconds, Kind::real});
    for (const Field& pair : pairs) {
      if (pair.key == "step" && !step_.empty()) continue;
      if (pair.key == "global_step/max_steps") {  // of ms-swift: "5/1000"
        std::string_view total = pair.value;
        const std::string_view step = take_digits(total);
        if (step.empty() || !skip(total, "/") || parse_int(total).value_or(0) <= 0) continue;
        if (step_.empty()) fields.push_back({"step", step, Kind::integer});
        if (total_.empty()) emitter.attribute("expected_steps", total);
        continue;
      }
      fields.push_back(pair);
    }
    emitter.record(fields, prefix, number);
  }

  /// The step of a training loss. A bar in front may be late: if it has not advanced since the previous loss, the epoch
  /// gives the number of steps between the two losses.
  std::string counted(const std::string& step, bool exact, const std::vector<Field>& pairs) {
    const double epoch = epoch_of(pairs);
    auto number = parse_int(step);
    if (!(epoch > 0) || !number) return step;
    if (!exact && epoch_ > 0 && epoch > epoch_ && *number <= counted_)
      number = std::clamp<std::int64_t>(std::llround(epoch * static_cast<double>(counted_) / epoch_), counted_ + 1,
                                        std::max(counted_ + 1, parse_int(last_.total).value_or(0)));
    epoch_ = epoch, counted_ = *number;
    return to_text(*number);
  }

  Bar last_;
  std::int64_t bar_line_ = 0;                                              // of the last bar
  std::deque<Waiting> waiting_;                                            // lines without a mark
  std::deque<Bar> marks_;                                                  // bars that were drawn again, without a line
  bool marked_ = false;                                                    // bars were drawn again in this log
  int cleared_ = 0;                                                        // bars that were cleared since one was drawn
  bool below_ = false;                                                     // a bar is open below that of the training
  bool closed_ = false;                                                    // the closing line came: the bar is gone
  double lowest_ = 0, highest_ = std::numeric_limits<double>::infinity();  // steps of an epoch, by the lines so far
  Pace pace_;
  std::string total_, step_;
  double epoch_ = 0;          // of the last training loss
  std::int64_t counted_ = 0;  // its step
};

}  // namespace

std::unique_ptr<Dialect> make_huggingface() { return std::make_unique<HuggingFace>(); }

}  // namespace zs::parse
