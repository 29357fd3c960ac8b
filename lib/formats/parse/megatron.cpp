// SPDX-License-Identifier: Apache-2.0
// Megatron-LM and its descendants (GPT-NeoX, Megatron-DeepSpeed):
//    iteration        5/     100 | consumed samples:           40 | elapsed time per iteration (ms): 1234.5 | learning
//    rate: 1.500000E-04 | global batch size:     8 | lm loss: 1.083124E+01 | loss scale: 1.0 | grad norm: 2.345 | ...
//    validation loss at iteration 100 | lm loss value: 6.012345E+00 | lm loss PPL: 4.084491E+02 |
// Bars separate the cells. Older versions leave out the colons.
#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

constexpr std::string_view kStep = "iteration ", kValidation = "validation loss at ";

struct Name {
  std::string_view cell, key;
};
constexpr std::array kNames = {Name{"lm loss", "loss"},
                               Name{"lm-loss", "loss"},  // as the pipeline engine writes it
                               Name{"elapsed time per iteration (ms)", "iteration_time"},
                               Name{"throughput per GPU (TFLOP/s/GPU)", "tflops"},
                               Name{"learning rate", "learning_rate"},
                               Name{"number of skipped iterations", "skipped_iterations"},
                               Name{"number of nan iterations", "nan_iterations"}};

class Megatron : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::size_t at = line.text.find(kValidation); at != std::string_view::npos)
      return read_validation(line, at, emitter);
    const std::size_t at = line.text.find(kStep);
    if (at == std::string_view::npos || (at > 0 && is_key(line.text[at - 1]))) return {};
    std::string_view rest = line.text.substr(at + kStep.size());
    skip_blanks(rest);
    const std::string_view step = take_digits(rest);
    if (step.empty() || !skip(rest, "/")) return {};
    skip_blanks(rest);
    const std::string_view total = take_digits(rest);
    const bool of_nemo = line.text.substr(0, at).find("epoch ") != std::string_view::npos;
    if (total.empty() || of_nemo || !skip(rest, " |")) return {};
    emitter.attribute("expected_steps", total);
    std::vector<Field> fields = {{"step", step, Kind::integer}};
    made_.clear();
    // GPT-NeoX puts samples/sec first.
    std::string_view prefix = line.text.substr(0, at);
    if (const std::size_t speed = prefix.find("samples/sec:"); speed != std::string_view::npos) {
      const std::string_view cell = prefix.substr(speed, prefix.find('|', speed) - speed);
      read_cell(cell, fields);
      prefix = prefix.substr(0, speed);
    }
    std::string fault;
    while (!rest.empty() && fault.empty()) {
      const std::size_t bar = rest.find('|');
      const std::string_view cell = trimmed(rest.substr(0, bar));
      if (bar == std::string_view::npos) {  // each cell ends with a bar
        const bool size = cell.find("mem usage") != std::string_view::npos && line.ended;
        if (!cell.empty() && !(size && is_sizes(trimmed(cell.substr(cell.find(':') + 1)))))
          fault = "malformed iteration line: it ends in '" + std::string(cell.substr(0, 40)) + "'";
        break;
      }
      rest.remove_prefix(bar + 1);
      fault = read_cell(cell, fields);
    }
    const bool loss = std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.key.ends_with("loss"); });
    if (fields.size() < 2) return {false, fault};
    // A step whose loss was not finite, or skipped, has none.
    if (fault.empty() && !line.ended && !loss) fault = "malformed iteration line: the log ends in it";
    emitter.record(fields, prefix, line.number);
    last_step_ = step;
    return {true, fault};
  }

 private:
  /// Reads "lm loss: 1.08E+01"; gives what is wrong with it.
  std::string read_cell(std::string_view cell, std::vector<Field>& fields) {
    cell = trimmed(cell);
    if (cell.empty()) return "";
    std::size_t split = cell.find(':');
    if (split == std::string_view::npos) split = cell.rfind(' ');
    if (split == std::string_view::npos)
      return "malformed iteration line: '" + std::string(cell.substr(0, 40)) + "' is not a pair";
    const std::string_view name = trimmed(cell.substr(0, split));
    std::string_view rest = trimmed(cell.substr(split + 1));
    const Token number = take_number(rest);
    if (number.text.empty()) {
      const bool word = !name.ends_with("loss") && name != "learning rate";
      return word ? "" : "malformed iteration line: no number after '" + std::string(name) + ":'";
    }
    if (skip(rest, "/")) take_number(rest);  // "1234.5/1230.1": this one, and the mean
    if (!rest.empty() && name.find("flops") != std::string_view::npos) return "";  // GPT-NeoX's "12.3TFLOPS"
    if (name.find("mem usage") != std::string_view::npos && is_sizes(trimmed(cell.substr(split + 1)))) return "";
    if (!rest.empty()) return "malformed iteration line: other text within '" + std::string(name) + "'";
    const auto* const known =
        std::find_if(kNames.begin(), kNames.end(), [&](const Name& one) { return one.cell == name; });
    std::string key(known != kNames.end() ? known->key : name.substr(0, name.find(" (")));
    std::replace(key.begin(), key.end(), ' ', '_');
    const bool milliseconds = name.ends_with("(ms)");
    const std::string_view value =
        milliseconds ? std::string_view(made_.emplace_back(shifted(number.text, -3))) : number.text;
    fields.push_back({made_.emplace_back(std::move(key)), value, milliseconds ? Kind::real : number.kind});
    return "";
  }

  /// Primus's "232.82GB/55.17GB/287.98GB/80.84%", of one GPU at one time: no column holds it.
  static bool is_sizes(std::string_view text) {
    do {
      if (take_number(text).text.empty()) return false;
      text.remove_prefix(std::min(text.find_first_not_of("KMGTiB%"), text.size()));
    } while (skip(text, "/"));
    return text.empty();
  }

  Verdict read_validation(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view rest = line.text.substr(at + kValidation.size());
    const std::size_t bar = rest.find(" |");
    if (bar == std::string_view::npos) return {};
    std::string_view where = rest.substr(0, bar);
    rest.remove_prefix(bar + 2);
    std::string step = last_step_;  // "the end of training for val data"
    if (skip(where, kStep)) step = take_digits(where);
    const std::size_t value = rest.find(" value:");
    if (step.empty() || value == std::string_view::npos) return {};
    std::string_view number = rest.substr(value + 7);
    skip_blanks(number);
    const Token loss = take_number(number);
    if (loss.text.empty()) return {false, "malformed validation line: no number after 'value:'"};
    if (!number.starts_with(" |")) return {false, "malformed validation line: other text within 'value'"};
    const bool test = where.find("test") != std::string_view::npos;
    emitter.record({{"step", step, Kind::integer}, {test ? "test_loss" : "valid_loss", loss.text, loss.kind}},
                   line.text.substr(0, at), line.number);
    return {true};
  }

  std::deque<std::string> made_;  // texts that are not the log's
  std::string last_step_;
};

}  // namespace

std::unique_ptr<Dialect> make_megatron() { return std::make_unique<Megatron>(); }

}  // namespace zs::parse
