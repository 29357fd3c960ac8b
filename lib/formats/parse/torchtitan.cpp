// SPDX-License-Identifier: Apache-2.0
// torchtitan, behind the stamp of its logger and in colours:
//   step:  1  loss: 12.2691  grad_norm:  1.0613  memory:  1.03GiB(1.09%)  tps: 1,234  tflops: 12.34  mfu: 3.95%
//   validate step: 10  loss:  4.0123  memory:  1.03GiB(1.09%)  tps: 12,345
// Memory is the largest reserved; tps counts tokens per second and device. A step's time is the difference of the
// logger's stamps over the steps between.
#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

/// The seconds of the last stamp in a text, "2025-06-01 12:00:00,123", and where it begins.
std::optional<std::pair<double, std::size_t>> stamp_in(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  for (std::size_t at = text.size(); at-- > 0;) {
    if (text.size() - at < kForm.size() || !is_digit(text[at])) continue;
    const auto fits = [&](std::size_t i) {
      const char c = text[at + i];
      return kForm[i] == '0' ? is_digit(c) : c == kForm[i] || (kForm[i] == ' ' && c == 'T');
    };
    bool all = at == 0 || !is_digit(text[at - 1]);
    for (std::size_t i = 0; i < kForm.size(); ++i) all = all && fits(i);
    if (!all) continue;
    const auto number = [&](std::size_t i, std::size_t size) {
      int value = 0;
      for (const char c : text.substr(at + i, size)) value = 10 * value + (c - '0');
      return value;
    };
    const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                          std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                          std::chrono::day(static_cast<unsigned>(number(8, 2)))};
    if (!day.ok()) return {};
    double seconds = 86400.0 * std::chrono::sys_days(day).time_since_epoch().count() + 3600.0 * number(11, 2) +
                     60.0 * number(14, 2) + number(17, 2);
    const std::size_t end = at + kForm.size();
    if (end < text.size() && (text[end] == ',' || text[end] == '.')) {
      double unit = 0.1;
      for (std::size_t i = end + 1; i < text.size() && is_digit(text[i]); ++i, unit /= 10)
        seconds += unit * (text[i] - '0');
    }
    return std::pair(seconds, at);
  }
  return {};
}

class TorchTitan : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    static constexpr std::string_view kHead = "step:";
    for (std::size_t at = line.text.find(kHead); at != std::string_view::npos; at = line.text.find(kHead, at + 1)) {
      if (at > 0 && is_key(line.text[at - 1])) continue;
      std::string_view rest = line.text.substr(at + kHead.size());
      skip_blanks(rest);
      const Token step = take_number(rest);
      if (step.text.empty() || step.kind != Kind::integer) continue;
      const std::size_t blanks = std::min(rest.find_first_not_of(' '), rest.size());
      rest.remove_prefix(blanks);
      if (blanks < 2 || !rest.starts_with("loss:")) continue;
      return read_pairs(line, at, step, rest, emitter);
    }
    if (width_ == 0 || line.text.find("INFO - Training completed") == std::string_view::npos) return {};
    emitter.attribute("exit_state", "finished");
    return {true, ""};
  }

 private:
  Verdict read_pairs(const Line& line, std::size_t at, Token step, std::string_view rest, Emitter& emitter) {
    const std::string_view before = line.text.substr(0, at);
    const bool validation = before.ends_with("validate ");
    std::vector<Field> fields = {{"step", step.text, Kind::integer}};
    made_.clear();
    std::string fault;
    while (true) {
      skip_blanks(rest);
      const std::string_view key = take_key(rest);
      if (key.empty() || !skip(rest, ":")) break;
      skip_blanks(rest);
      const bool grouped = key == "tps" || key == "tflops";
      const Token number = grouped ? take_grouped_number(rest, made_) : take_number(rest);
      if (number.text.empty()) {
        fault = "malformed step line: no number after '" + std::string(key) + ":'";
        break;
      }
      if (!line.ended && rest.find_first_not_of(",0123456789") == std::string_view::npos) {
        fault = "malformed step line: the log ends within the value of '" + std::string(key) + "'";
        break;
      }
      if (key == "memory") {
        const std::string bytes = bytes_of(number.text, take_key(rest));
        if (bytes.empty())
          fault = "malformed step line: memory in an unknown unit";
        else
          fields.push_back({"peak_reserved_mem", made_.emplace_back(bytes), Kind::integer});
        if (skip(rest, "(")) rest.remove_prefix(std::min(rest.size(), rest.find(')') + 1));
        if (!rest.empty() && !is_blank(rest.front())) break;  // of another writer
      } else if (skip(rest, "%") || number_ends(rest)) {
        fields.push_back({validation && key == "loss" ? "valid_loss" : key, number.text, number.kind});
      } else {
        fault = "malformed step line: other text within '" + std::string(key) + "'";
        break;
      }
    }
    const bool any_loss = fields.size() > 1 && fields[1].key.ends_with("loss");
    if (!any_loss) return {false, fault};
    if (!validation) {
      if (fault.empty() && fields.size() < width_) fault = "malformed step line: it ends early";
      width_ = std::max(width_, fields.size());
      add_time(before, fields);
    }
    emitter.record(fields, before, line.number);
    return {true, fault};
  }

  /// The time of a step since the step line before, of the same rank.
  void add_time(std::string_view before, std::vector<Field>& fields) {
    const auto stamp = stamp_in(before);
    const auto step = parse_int(fields[0].value);
    if (!stamp || !step) return;
    Logged& last = logged_[std::string(before.substr(0, stamp->second))];
    if (*step > last.step && stamp->first > last.seconds && last.step >= 0)
      fields.push_back({"iteration_time",
                        made_.emplace_back(
                            to_rounded_text((stamp->first - last.seconds) / static_cast<double>(*step - last.step), 6)),
                        Kind::real});
    last = {*step, stamp->first};
  }

  struct Logged {
    std::int64_t step = -1;
    double seconds = 0;
  };
  std::map<std::string, Logged> logged_;  // the last step line, by what stands before its stamp
  std::size_t width_ = 0;                 // fields of the widest step line so far
  std::deque<std::string> made_;          // texts that are not the log's
};

}  // namespace

std::unique_ptr<Dialect> make_torchtitan() { return std::make_unique<TorchTitan>(); }

}  // namespace zs::parse
