// SPDX-License-Identifier: Apache-2.0
// PyTorch Lightning's progress bar, with the metrics that a module logs with prog_bar=True:
//   Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315]
//   `Trainer.fit` stopped: `max_epochs=3` reached.
// A batch is drawn more than once; the last drawing has its metrics. Batches are counted across epochs. The rate is the
// mean over the epoch so far, not the time of a step. (Its CSVLogger writes a table, which is the dialect csv.)
#include <algorithm>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class Lightning : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::size_t at = line.text.find("`Trainer.fit` stopped: `max_"); at != std::string_view::npos)
      return read_closing(line.text.substr(at), emitter);
    std::string_view rest = line.text;
    const std::size_t at = rest.find("Epoch ");
    if (at == std::string_view::npos || (at > 0 && is_key(rest[at - 1]))) return {};
    rest.remove_prefix(at + 6);
    const auto epoch = parse_int(take_digits(rest));
    if (!epoch || !skip(rest, ": ")) return {};
    const std::size_t bracket = rest.find(" [");
    const std::size_t slash = rest.rfind('/', bracket);
    if (bracket == std::string_view::npos || slash == std::string_view::npos) return {};
    std::size_t first = slash;
    while (first > 0 && is_digit(rest[first - 1])) --first;
    const auto batch = parse_int(rest.substr(first, slash - first));
    const auto batches = parse_int(rest.substr(slash + 1, bracket - slash - 1));
    const std::size_t percent = rest.find('%');
    if (!batch || !batches || *epoch > 1'000'000'000 || *batches > 1'000'000'000 || percent == std::string_view::npos ||
        percent > first)
      return {};
    rest.remove_prefix(bracket + 2);
    const std::size_t metrics = std::min(rest.find("it/s, "), rest.find("s/it, "));
    if (metrics == std::string_view::npos) return {};  // nothing was logged, or nothing yet
    rest.remove_prefix(metrics + 6);
    Held held{
        to_text(*epoch * *batches + *batch), to_text(*epoch), std::string(line.text.substr(0, at)), {}, line.number};
    std::string fault = read_metrics(rest, held);
    if (held.metrics.empty()) return {false, fault};
    if (!held_.metrics.empty() && held_.step != held.step) emit(emitter);
    held_ = std::move(held);
    return {true, fault};
  }

  void finish(Emitter& emitter) override { emit(emitter); }

 private:
  struct Held {
    std::string step, epoch, prefix;
    std::vector<std::pair<std::string, std::string>> metrics;
    std::int64_t line = 0;
  };

  /// Reads "loss=9.947, v_num=193315]".
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
      if (!number.text.empty() && !trimmed(value).empty())
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
    std::vector<Field> fields = {{"step", held_.step, Kind::integer}, {"epoch", held_.epoch, Kind::integer}};
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
};

}  // namespace

std::unique_ptr<Dialect> make_lightning() { return std::make_unique<Lightning>(); }

}  // namespace zs::parse
