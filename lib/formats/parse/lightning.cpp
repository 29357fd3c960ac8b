// SPDX-License-Identifier: Apache-2.0
// Progress bars with metrics, of PyTorch Lightning and any that tqdm draws, and of Keras:
//   Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315]
//   Steps:  10%|█         | 50/500 [00:10<01:30,  5.00it/s, lr=1e-5, step_loss=0.123]
//   `Trainer.fit` stopped: `max_epochs=3` reached.
//   1875/1875 [==============================] - 5s 2ms/step - loss: 0.2951 - accuracy: 0.9143
// A batch is drawn more than once; the last drawing has its metrics. Batches are counted across epochs, unless the
// metrics have the step; a bar that begins at 0 shows the metrics of the one before it. A rate in brackets is the mean
// over the epoch so far, not the time of a step. (Lightning's CSVLogger writes a table, which is the dialect csv.)
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/number.hpp"
#include "base/words.hpp"
#include "parse/dialect.hpp"
#include "parse/names.hpp"

namespace zs::parse {
namespace {

class Lightning : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::size_t at = line.text.find("`Trainer.fit` stopped: `max_"); at != std::string_view::npos)
      return read_closing(line.text.substr(at), emitter);
    if (const std::size_t at = keras_values(line.text); at != std::string_view::npos)
      return read_keras(line, at, emitter);
    if (std::string_view rest = trimmed(line.text); skip(rest, "Epoch ")) {  // Keras: "Epoch 1/5" before its bars
      const std::string_view epoch = take_digits(rest);
      const bool alone = skip(rest, "/") && !take_digits(rest).empty() && trimmed(rest).empty();
      if (alone) keras_epoch_ = epoch;
    }
    const std::size_t percent = line.text.find('%');
    if (percent == std::string_view::npos) return {};
    const std::size_t bracket = line.text.find(" [", percent);
    const std::size_t slash = line.text.rfind('/', bracket);
    if (bracket == std::string_view::npos || slash == std::string_view::npos) return {};
    std::size_t first = slash;
    while (first > 0 && is_digit(line.text[first - 1])) --first;
    const auto batch = parse_int(line.text.substr(first, slash - first));
    const auto batches = parse_int(line.text.substr(slash + 1, bracket - slash - 1));
    if (!batch || !batches || *batches > 1'000'000'000 || percent > first) return {};
    std::string_view rest = line.text.substr(bracket + 2);
    std::string_view title = line.text.substr(0, percent);
    while (!title.empty() && is_digit(title.back())) title.remove_suffix(1);
    const Epoch epoch = epoch_of(title);
    if (!epoch.trains) return {};
    const std::size_t metrics = std::min(rest.find("it/s, "), rest.find("s/it, "));
    if (metrics == std::string_view::npos) {  // nothing was logged, or nothing yet
      if (*batch == 0 && !lags_) drawn_empty_ = true;
      return {};
    }
    rest.remove_prefix(metrics + 6);
    Held held{"",
              epoch.known ? to_text(epoch.number) : "",
              std::string(trimmed(title.substr(0, epoch.begin))),
              {},
              line.number};
    std::string fault = read_metrics(rest, held);
    if (held.metrics.empty()) return {false, fault};
    if (!lags_) lags_ = *batch == 0 && drawn_empty_;
    if (*batch == 0 && !*lags_) return {true, fault};  // a bar begins with the metrics of the one before it
    const std::int64_t done = std::min(*batch + (*lags_ ? 1 : 0), *batches);
    std::int64_t before = 0;  // batches of the epochs before
    if (epoch.known)
      before = (epoch.number - epoch.first) * *batches;
    else
      before = batches_before(held.prefix, done, *batches);
    held.step = to_text(before + done);
    if (!held_.metrics.empty() && held_.step != held.step) emit(emitter);
    held_ = std::move(held);
    return {true, fault};
  }

  void finish(Emitter& emitter) override {
    emit(emitter);
    keras_epoch_.clear();
  }

 private:
  struct Held {
    std::string step, epoch, prefix;
    std::vector<std::pair<std::string, std::string>> metrics;
    std::int64_t line = 0;
  };

  /// The text before a bar.
  struct Epoch {
    std::int64_t number = 0, first = 0;  ///< `first`: epochs count from 0, or from 1 as in "1/10"
    std::size_t begin = std::string_view::npos;
    bool known = false, trains = true;
  };

  /// Bars of an equal number of batches, by what stands in front of them.
  struct Bars {
    std::int64_t before = 0, done = 0;  ///< batches of the bars before; of this one
  };

  /// Of a bar that names no epoch: where one of as many batches was full before it, this is the next epoch.
  std::int64_t batches_before(const std::string& prefix, std::int64_t done, std::int64_t batches) {
    Bars& bars = bars_[{prefix, batches}];
    if (bars.done == batches && done < batches) bars.before += batches;
    bars.done = done;
    return bars.before;
  }

  static Epoch epoch_of(std::string_view title) {
    Epoch epoch;
    const std::string words = lower(title);
    for (const std::string_view word : {"valid", "eval", "test", "sampl", "generat", "predict", "sanity", "map"})
      epoch.trains = epoch.trains && words.find(word) == std::string::npos;
    const std::size_t at = words.find("epoch");
    if (at == std::string::npos) return epoch;
    std::string_view rest = title.substr(at + 5);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t:=#["), rest.size()));
    const auto number = parse_int(take_digits(rest));
    if (!number || *number > 1'000'000'000) return epoch;
    epoch.known = true;
    epoch.number = *number;
    epoch.first = skip(rest, "/") && !take_digits(rest).empty() && *number > 0 ? 1 : 0;
    epoch.begin = at;
    return epoch;
  }

  /// Where the values of Keras's last bar in a line begin, behind "2ms/step - " or "2s/epoch - "; of "469/469 - 1s -
  /// loss: 0.3 - 1s/epoch - 3ms/step", as it is written without a terminal, behind the first time.
  static std::size_t keras_values(std::string_view text) {
    std::string_view rest = trimmed(text);
    if (!take_digits(rest).empty() && skip(rest, "/") && !take_digits(rest).empty() && skip(rest, " - ") &&
        !take_digits(rest).empty() && skip(rest, "s - "))
      return text.size() - rest.size();
    for (const std::string_view unit : {"/step - ", "/epoch - "}) {
      const std::size_t at = text.rfind(unit);
      if (at != std::string_view::npos) return at + unit.size();
    }
    return std::string_view::npos;
  }

  /// "469/469 [=====] - 2s 4ms/step - loss: 0.35 - accuracy: 0.89": the last drawing of an epoch is its mean.
  Verdict read_keras(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view before = line.text.substr(0, at), rest = line.text.substr(at);
    const std::size_t plain = before.find(" - ");
    const std::size_t bar = std::min(before.rfind('['), before.find("\xE2\x94\x81"));  // of Keras 2, of Keras 3
    const std::size_t drawn = bar == std::string_view::npos ? plain : bar;
    const std::size_t slash = before.rfind('/', drawn);
    if (drawn == std::string_view::npos || slash == std::string_view::npos) return {};
    std::size_t first = slash;
    while (first > 0 && is_digit(before[first - 1])) --first;
    std::string_view count = before.substr(first);
    const auto batch = parse_int(take_digits(count));
    if (!batch || !skip(count, "/")) return {};
    const auto batches = parse_int(take_digits(count));
    const auto epoch = parse_int(keras_epoch_);
    if (!batches || *batches > 1'000'000'000) return {};
    Held held{epoch ? to_text((*epoch - 1) * *batches + *batch) : "", keras_epoch_, "", {}, line.number};
    std::string fault;
    while (fault.empty()) {
      const std::string_view key = take_key(rest);
      if (key.empty() || !skip(rest, ": ")) break;  // "1s/epoch"
      const Token number = take_number(rest);
      if (number.text.empty()) return {};
      if (!line.ended && rest.empty())
        fault = "malformed progress bar: it is cut";
      else if (!number_ends(rest))
        fault = "malformed progress bar: other text within '" + std::string(key) + "'";
      else
        held.metrics.emplace_back(key, number.text);
      skip_blanks(rest);
      if (!skip(rest, "- ")) break;
    }
    if (held.metrics.empty()) return {false, fault};
    if (!held_.metrics.empty() && held_.epoch != held.epoch) emit(emitter);
    held_ = std::move(held);
    return {true, fault};
  }

  /// Reads "loss=9.947, v_num=193315]". Lightning pads nan and inf as any number: "nan.0", "-inf.".
  static std::string read_metrics(std::string_view rest, Held& held) {
    std::vector<std::pair<std::string, std::string>> found;
    while (true) {
      const std::size_t equals = rest.find('=');
      const std::size_t end = std::min(rest.find_first_of(",]"), rest.size());
      if (end == rest.size()) return "malformed progress bar: it is cut";  // any part of it may be
      if (equals == std::string_view::npos || equals > end)
        return "malformed progress bar: '" + std::string(rest.substr(0, std::min<std::size_t>(end, 24))) +
               "' is not a pair";
      const std::string_view key = rest.substr(0, equals);
      std::string_view value = rest.substr(equals + 1, end - equals - 1);
      const bool last = rest[end] == ']';
      const Token number = take_number(value);
      const bool finite = number.text.find_first_of("0123456789") != std::string_view::npos;
      if (!finite && !number.text.empty() && skip(value, ".")) take_while(value, [](char c) { return c == '0'; });
      if (!number.text.empty() && !trimmed(value).empty() && key != "v_num")  // "3-16"
        return "malformed progress bar: other text within '" + std::string(key) + "'";
      if (!number.text.empty() && key != "v_num") found.emplace_back(key, number.text);
      rest.remove_prefix(end + 1);
      if (last) break;
      if (!skip(rest, " ")) return "malformed progress bar: other text within '" + std::string(key) + "'";
    }
    held.metrics = std::move(found);
    return "";
  }

  void emit(Emitter& emitter) {
    if (held_.metrics.empty()) return;
    const bool counted =
        std::ranges::any_of(held_.metrics, [](const auto& one) { return column_named(one.first).column == "step"; });
    std::vector<Field> fields;
    if (!counted && !held_.step.empty()) fields.push_back({"step", held_.step, Kind::integer});
    if (!held_.epoch.empty()) fields.push_back({"epoch", held_.epoch, Kind::integer});
    for (const auto& [key, value] : held_.metrics) fields.push_back({key, value, value_of(value).kind});
    emitter.record(fields, held_.prefix, held_.line);
    held_.metrics.clear();
  }

  static Verdict read_closing(std::string_view text, Emitter& emitter) {
    emitter.attribute("exit_state", "finished");
    const std::size_t at = text.find("`max_steps=");
    if (at == std::string_view::npos) return {true};
    std::string_view rest = text.substr(at + 11);
    const std::string_view steps = take_digits(rest);
    if (!steps.empty() && skip(rest, "`")) emitter.attribute("expected_steps", steps);
    return {true};
  }

  Held held_;
  /// Whether a bar counts a batch only behind its metrics, as in `for batch in bar: ... bar.set_postfix(loss=...)`:
  /// then the first metrics stand behind "0/10" in a new bar. Unknown before the first metrics.
  std::optional<bool> lags_;
  bool drawn_empty_ = false;  // a bar of 0 batches and without metrics
  std::map<std::pair<std::string, std::int64_t>, Bars> bars_;
  std::string keras_epoch_;  // of the bars that follow
};

}  // namespace

std::unique_ptr<Dialect> make_lightning() { return std::make_unique<Lightning>(); }

}  // namespace zs::parse
