// SPDX-License-Identifier: Apache-2.0
// The Hugging Face Trainer prints Python dicts:
//   {'loss': 2.075, 'grad_norm': 1.25, 'learning_rate': 0.0002329900014453396, 'epoch': 0.04}
//   {'eval_loss': 1.9, 'eval_runtime': 12.3, 'eval_samples_per_second': 81.3, 'epoch': 1.0}
//   {'train_runtime': 100.0, 'train_samples_per_second': 12.5, 'train_loss': 0.5, 'epoch': 3.0}
// They have no step and no time: these are taken from the progress bar in front, "10/500 [00:05<04:20,  1.88it/s]".
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

struct Bar {
  std::string step, total, seconds;  // seconds of a step, as the bar says; "" if it does not
};

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
      return Bar{std::string(text.substr(first, slash - first)), std::string(total), seconds_of(rest.substr(2))};
  }
  return {};
}

class HuggingFace : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::string_view text = line.text;
    const std::size_t brace = text.find("{'");
    if (const auto bar = bar_of(text.substr(0, brace))) {
      last_ = *bar;
      if (total_ == bar->total) step_ = bar->step;
      if (total_ == bar->total && step_ == total_) emitter.attribute("summary.steps", step_, true);
    }
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
    } else {
      record(pairs, find("loss") != pairs.end(), text.substr(0, brace), line, emitter);
    }
    return {true, whole ? "" : "malformed Trainer line: " + fault};
  }

 private:
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
      const Token value = take_number(rest);
      if (value.text.empty()) return fault = "no number as '" + std::string(key) + "'", false;
      const bool ends = (!quoted || skip(rest, "'")) && (rest.starts_with(", '") || rest.starts_with('}'));
      if (!ends) {
        const char* const what = rest.empty() ? "it is cut within" : "other text within";
        return fault = std::string(what) + " the value of '" + std::string(key) + "'", false;
      }
      pairs.push_back({key, value.text, value.kind});
      if (skip(rest, "}")) return true;
      if (!skip(rest, ", ")) return fault = "it is cut behind '" + std::string(key) + "'", false;
    }
  }

  void record(std::vector<Field>& pairs, bool training, std::string_view prefix, const Line& line, Emitter& emitter) {
    if (training && !last_.total.empty()) {  // the bar before a training loss counts the steps
      total_ = last_.total;
      step_ = counted(last_.step, pairs);
      emitter.attribute("expected_steps", total_);
      if (step_ == total_) emitter.attribute("summary.steps", step_, true);
    }
    std::vector<Field> fields;
    if (!step_.empty()) fields.push_back({"step", step_, Kind::integer});
    if (training && !last_.seconds.empty()) fields.push_back({"iteration_time", last_.seconds, Kind::real});
    for (const Field& pair : pairs) {
      if (pair.key == "step" && !step_.empty()) continue;
      fields.push_back(pair);
    }
    emitter.record(fields, prefix, line.number);
  }

  /// The step of a training loss. The bar and the losses are written to different files, so a bar may be late: if it
  /// has not advanced since the previous loss, the epoch gives the number of steps between the two losses.
  std::string counted(const std::string& step, const std::vector<Field>& pairs) {
    const auto at = std::ranges::find_if(pairs, [](const Field& pair) { return pair.key == "epoch"; });
    const double epoch = at == pairs.end() ? 0 : parse_real(at->value).value_or(0);
    auto number = parse_int(step);
    if (!(epoch > 0) || !number) return step;
    if (epoch_ > 0 && epoch > epoch_ && *number <= counted_)
      number = std::clamp<std::int64_t>(std::llround(epoch * static_cast<double>(counted_) / epoch_), counted_ + 1,
                                        std::max(counted_ + 1, parse_int(last_.total).value_or(0)));
    epoch_ = epoch, counted_ = *number;
    return to_text(*number);
  }

  Bar last_;
  std::string total_, step_;
  double epoch_ = 0;          // of the last training loss
  std::int64_t counted_ = 0;  // its step
};

}  // namespace

std::unique_ptr<Dialect> make_huggingface() { return std::make_unique<HuggingFace>(); }

}  // namespace zs::parse
