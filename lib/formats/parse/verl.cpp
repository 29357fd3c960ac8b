// SPDX-License-Identifier: Apache-2.0
// verl, on its console:
//   step:1 - actor/pg_loss:0.012 - actor/grad_norm:0.345 - perf/max_memory_allocated_gb:45.678 - timing_s/step:123.456
//   (TaskRunner pid=1234) step:10 - train/loss:1.234 - train/lr(1e-3):0.001
// Newer versions print numbers as Python does, NumPy's among them: "critic/score/mean:np.float64(0.5)".
#include <algorithm>
#include <deque>

#include "base/number.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {
namespace {

class Verl : public Dialect {
 public:
  Verdict read(const Line& line, Emitter& emitter) override {
    const std::string_view text = line.text;
    std::size_t at = text.find("step:");
    if (at == std::string_view::npos || (at > 0 && is_key(text[at - 1]))) return {};
    std::string_view rest = text.substr(at + 5);
    const std::string_view step = take_digits(rest);
    if (step.empty() || !rest.starts_with(" - ")) return {};
    std::vector<Field> fields = {{"step", step, Kind::integer}};
    made_.clear();
    std::string fault;
    while (skip(rest, " - ") && fault.empty()) {
      const std::size_t end = std::min(rest.find(" - "), rest.size());
      fault = read_pair(rest.substr(0, end), end == rest.size() && !line.ended, fields);
      rest.remove_prefix(end);
    }
    if (fields.size() < 2) return {false, fault};
    emitter.record(fields, text.substr(0, at), line.number);
    return {true, fault};
  }

 private:
  std::string read_pair(std::string_view pair, bool cut, std::vector<Field>& fields) {
    const std::size_t colon = pair.rfind(':');
    if (colon == std::string_view::npos)
      return "malformed step line: '" + std::string(pair.substr(0, 40)) + "' is not a pair";
    std::string_view key = pair.substr(0, colon), value = pair.substr(colon + 1);
    if (skip(value, "np.") || skip(value, "numpy.")) value.remove_prefix(std::min(value.find('(') + 1, value.size()));
    const Token number = take_number(value);
    if (number.text.empty())
      return value.starts_with('\'') ? "" : "malformed step line: no number after '" + std::string(key) + ":'";
    if (cut) return "malformed step line: the log ends within the value of '" + std::string(key) + "'";
    skip(value, ")");
    if (!trimmed(value).empty()) return "malformed step line: other text within '" + std::string(key) + "'";
    std::string_view shown = number.text;
    Kind kind = number.kind;
    if (key.ends_with("(1e-3)")) {
      key.remove_suffix(6);
      shown = made_.emplace_back(shifted(shown, -3));
      kind = Kind::real;
    }
    const bool allocated = key == "perf/max_memory_allocated_gb";
    if (allocated || key == "perf/max_memory_reserved_gb") {
      const std::string& bytes = made_.emplace_back(bytes_of(shown, "GB"));
      if (bytes.empty()) return "malformed step line: no size of memory in '" + std::string(key) + "'";
      fields.push_back({allocated ? "peak_mem" : "peak_reserved_mem", bytes, Kind::integer});
      return "";
    }
    fields.push_back({key, shown, kind});
    return "";
  }

  std::deque<std::string> made_;  // texts that are not the log's
};

}  // namespace

std::unique_ptr<Dialect> make_verl() { return std::make_unique<Verl>(); }

}  // namespace zs::parse
