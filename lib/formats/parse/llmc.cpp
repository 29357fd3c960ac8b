// SPDX-License-Identifier: Apache-2.0
// llm.c:
//   step    2/32000 | loss 10.539388 (+nanz)| norm 43.5996 (+nanz)| lr 1.71e-06 | 2747.19 ms | 47.4% bf16 MFU | 381690
//   tok/s val loss 10.609911 step 10: train loss 4.201553 (took 1230.1 ms)
// and in its main.log: train and validation loss, and the accuracy of an evaluation:
//   s:10 trl:9.7153 lr:0.000003 norm:13.12
//   s:250 tel:6.4012
//   s:250 eval:0.2512
// The z-scores in parentheses are left out. "val loss" is that after the step before.
#include <algorithm>
#include <deque>

#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class LlmC : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    if (const std::size_t at = line.text.find("val loss "); at != std::string_view::npos)
      return read_validation(line, at, emitter);
    if (line.text.starts_with("s:")) return read_logger(line, emitter);
    if (line.text.starts_with("total average iteration time: ")) return read_closing(line, emitter);
    for (std::size_t at = line.text.find("step "); at != std::string_view::npos; at = line.text.find("step ", at + 1)) {
      if (at > 0 && is_key(line.text[at - 1])) continue;
      const Verdict verdict = read_step(line, at, emitter);
      if (verdict.matched || !verdict.fault.empty()) return verdict;
    }
    return {};
  }

 private:
  Verdict read_step(const Line& line, std::size_t at, Emitter& emitter) {
    std::string_view rest = line.text.substr(at + 5);
    skip_blanks(rest);
    const Token step = take_number(rest);
    if (step.text.empty() || step.kind != Kind::integer) return {};
    const bool first_form = rest.starts_with(": train loss ");
    if (first_form) {
      skip(rest, ": ");
    } else {
      if (!skip(rest, "/")) return {};
      skip_blanks(rest);
      const Token total = take_number(rest);
      if (total.text.empty() || !skip(rest, " | ")) return {};
      if (total.kind == Kind::integer) emitter.attribute("expected_steps", total.text);
    }
    std::vector<Field> fields = {{"step", step.text, Kind::integer}};
    made_.clear();
    std::string fault;
    skip(rest, "train ");
    if (!skip(rest, "loss ")) return {};
    const Token loss = take_number(rest);
    if (loss.text.empty()) return {false, "malformed step line: no number after 'loss'"};
    if (!line.ended && rest.empty()) return {false, "malformed step line: the log ends within the value of 'loss'"};
    if (!number_ends(rest) && !rest.starts_with('|')) return {false, "malformed step line: other text within 'loss'"};
    fields.push_back({"loss", loss.text, loss.kind});
    if (first_form) {
      if (!rest.empty() && !rest.starts_with(" (took ")) return {};  // of nanoGPT
      if (skip(rest, " (took ")) {
        const Token time = take_number(rest);
        if (!time.text.empty() && rest.starts_with(" ms)"))
          fields.push_back({"iteration_time", made_.emplace_back(shifted(time.text, -3)), Kind::real});
        else
          fault = "malformed step line: no time in ms after 'took'";
      } else if (!line.ended) {
        fault = "malformed step line: the log ends in it";
      }
    } else {
      fault = read_cells(rest, fields);
      if (fault.empty() && !line.ended && !complete(rest)) fault = "malformed step line: the log ends in it";
      if (fault.empty() && fields.size() < width_) fault = "malformed step line: it ends early";
      width_ = std::max(width_, fields.size());
    }
    last_step_ = step.text;
    emitter.record(fields, line.text.substr(0, at), line.number);
    return {true, fault};
  }

  static Verdict read_logger(const Line& line, Emitter& emitter) {
    std::string_view rest = line.text.substr(2);
    const std::string_view step = take_digits(rest);
    std::vector<Field> fields = {{"step", step, Kind::integer}};
    while (skip(rest, " ")) {
      const std::string_view key = take_key(rest);
      if (!skip(rest, ":")) return {};
      const Token value = take_number(rest);
      const bool ours = key == "trl" || key == "tel" || key == "eval" || key == "lr" || key == "norm";
      if (!ours || value.text.empty()) return {};
      if (!line.ended && rest.empty())
        return {false, "malformed step line: the log ends within the value of '" + std::string(key) + "'"};
      if (!number_ends(rest)) return {false, "malformed step line: other text within '" + std::string(key) + "'"};
      fields.push_back({key == "trl" ? "loss" : key == "tel" ? "valid_loss" : key, value.text, value.kind});
    }
    if (step.empty() || fields.size() < 2 || !rest.empty()) return {};
    emitter.record(fields, {}, line.number);
    return {true};
  }

  /// Reads the cells between bars: "norm 1.2 (+0.1z)", "lr 1e-06", "12.3 ms", "40% bf16 MFU", "123 tok/s", "comp_t
  /// 3.2ms".
  std::string read_cells(std::string_view rest, std::vector<Field>& fields) {
    while (true) {
      rest.remove_prefix(std::min(rest.find('|'), rest.size()));
      if (!skip(rest, "|")) return {};
      std::string_view cell = trimmed(rest.substr(0, rest.find('|')));
      const bool bracketed = skip(cell, "(");
      const std::string_view whole = cell;
      const Token number = take_number(cell);
      if (!number.text.empty()) {
        if (cell.starts_with(" ms"))
          fields.push_back({"iteration_time", made_.emplace_back(shifted(number.text, -3)), Kind::real});
        else if (cell.starts_with(" tok/s"))
          fields.push_back({"tokens_per_second", number.text, number.kind});
        else if (cell.starts_with("%"))
          fields.push_back({"mfu", number.text, number.kind});
        else
          return "malformed step line: '" + std::string(whole.substr(0, 24)) + "' is no value with a known unit";
        continue;
      }
      const std::string_view key = take_key(cell);
      skip_blanks(cell);
      const Token value = take_number(cell);
      const bool in_doubt =
          cell.empty() ? rest.find('|') == std::string_view::npos : !number_ends(cell) && !cell.starts_with("ms");
      if (in_doubt && !value.text.empty())
        return "malformed step line: '" + std::string(whole.substr(0, 24)) + "' is cut";
      if (key.empty() || value.text.empty()) {
        if (whole.empty() || bracketed) return "malformed step line: an empty cell";
        return "malformed step line: no number in '" + std::string(whole.substr(0, 24)) + "'";
      }
      const bool milliseconds = cell.starts_with("ms");
      fields.push_back({key, milliseconds ? std::string_view(made_.emplace_back(shifted(value.text, -3))) : value.text,
                        milliseconds ? Kind::real : value.kind});
    }
  }

  /// Whether the last line of the log is complete, judged by its unit.
  static bool complete(std::string_view rest) { return rest.ends_with("tok/s") || rest.ends_with("tok/s)"); }

  Verdict read_validation(const Line& line, std::size_t at, Emitter& emitter) {
    if (at > 0 && line.text.find_first_not_of(' ') != at && line.text[at - 1] != ' ') return {};
    std::string_view rest = line.text.substr(at + 9);
    const Token loss = take_number(rest);
    if (at > 0 && line.text.substr(0, at).find("loss") != std::string_view::npos) return {};  // of nanoGPT
    if (!number_ends(rest))
      return {false, loss.text.empty() ? "" : "malformed validation line: other text within 'val loss'"};
    if (!trimmed(rest).empty()) return {};
    if (loss.text.empty() || (!line.ended && rest.empty()))
      return {false, "malformed validation line: no number after 'val loss'"};
    emitter.record({{"step", last_step_, Kind::integer}, {"valid_loss", loss.text, loss.kind}}, line.text.substr(0, at),
                   line.number);
    return {true};
  }

  static Verdict read_closing(const Line& line, Emitter& emitter) {
    std::string_view rest = line.text;
    skip(rest, "total average iteration time: ");
    const Token time = take_number(rest);
    if (time.text.empty() || !skip(rest, " ms")) return {false, "malformed closing line: no time in ms"};
    emitter.attribute("summary.iteration_time", shifted(time.text, -3));
    emitter.attribute("exit_state", "finished");
    return {true};
  }

  std::string last_step_ = "0";
  std::size_t width_ = 0;         // fields of the widest step line so far
  std::deque<std::string> made_;  // texts that are not the log's
};

}  // namespace

std::unique_ptr<Dialect> make_llmc() { return std::make_unique<LlmC>(); }

}  // namespace zs::parse
