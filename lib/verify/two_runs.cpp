// SPDX-License-Identifier: Apache-2.0
#include "verify/two_runs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "base/number.hpp"
#include "tensorfile/state_dict.hpp"
#include "verify/finding.hpp"

namespace zs::verify {
namespace {

/// What training decides. Everything else a run records is about the machine, or unknown here.
constexpr std::array kDecided = {"loss",       "valid_loss", "grad_norm", "clipped_norm", "learning_rate",
                                 "loss_scale", "skipped",    "tokens",    "epoch",        "state_digest"};

using Lines = std::vector<std::pair<std::string, std::string>>;

/// Rows by step; a step that was logged again counts as it was logged last.
std::map<std::int64_t, std::size_t> rows_by_step(const metric::Table& records) {
  std::map<std::int64_t, std::size_t> rows;
  const metric::Column* const step = records.find("step");
  if (!step || step->type() != metric::Type::integer) return rows;
  for (std::size_t row = 0; row < step->size(); ++row) {
    if (!step->absent(row)) rows[step->integers()[row]] = row;
  }
  return rows;
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Comparison {
 public:
  Comparison(const Recorded& a, const Recorded& b, const Tolerance& tolerance)
      : a_(a), b_(b), tolerance_(tolerance), tolerates_(tolerance.rtol > 0 || tolerance.atol > 0) {}

  RunsVerdict run() {
    metrics();
    digests();
    checkpoints();
    if (steps_ == 0) fail(0, "the runs have no step in common");
    for (const Recorded* side : {&a_, &b_}) {
      if (!side->faults.empty())
        fail(INT64_MAX, std::to_string(side->faults.size()) + " faults in " + side->path + ": " + side->faults.front());
    }
    return verdict();
  }

 private:
  struct Trouble {
    std::int64_t step = 0;  ///< the least is told
    bool different = false;
    Lines lines;
  };

  const Recorded& a_;
  const Recorded& b_;
  Tolerance tolerance_;
  bool tolerates_;  // more than nothing
  std::optional<Trouble> trouble_;
  std::int64_t steps_ = 0;
  bool rounded_ = false, apart_ = false;
  Lines notes_;
  metric::Table columns_ = empty_columns();

  static metric::Table empty_columns() {
    metric::Table table;
    using metric::Type;
    table.columns = {{"column", "", Type::text}, {"steps", "", Type::integer},  {"abs", "", Type::real},
                     {"rel", "", Type::real},    {"ulp", "ulp", Type::integer}, {"known_to", "", Type::text}};
    return table;
  }

  void tell(Trouble trouble) {
    if (!trouble_ || trouble.step < trouble_->step) trouble_ = std::move(trouble);
  }
  void fail(std::int64_t step, const std::string& reason) { tell({step, false, {{"reason", reason}}}); }

  void metrics() {
    const auto rows_a = rows_by_step(a_.run.records), rows_b = rows_by_step(b_.run.records);
    std::set<std::int64_t> steps;
    for (const auto& [step, row] : rows_a) steps.insert(step);
    for (const auto& [step, row] : rows_b) steps.insert(step);
    std::vector<std::array<std::size_t, 2>> pairs;
    std::vector<std::int64_t> common;
    for (const std::int64_t step : steps) {
      if (rows_a.contains(step) && rows_b.contains(step)) {
        common.push_back(step);
        pairs.push_back({rows_a.at(step), rows_b.at(step)});
      } else if (!rows_a.empty() && !rows_b.empty()) {
        const bool in_a = rows_a.contains(step);
        fail(step,
             "step " + to_text(step) + " is in " + (in_a ? a_ : b_).path + " and missing in " + (in_a ? b_ : a_).path);
      }
    }
    steps_ = static_cast<std::int64_t>(common.size());
    std::vector<std::string> compared, only;
    for (const char* name : kDecided) {
      const metric::Column* const left = a_.run.records.find(name);
      const metric::Column* const right = b_.run.records.find(name);
      if (left && right) column(*left, *right, common, pairs);
      if (left && right)
        compared.push_back(name);
      else if (left || right)
        only.push_back(std::string(name) + " (only in " + (left ? a_ : b_).path + ")");
    }
    notes_.emplace_back("steps", to_text(steps_));
    notes_.emplace_back("compared", compared.empty() ? "nothing" : list(compared));
    if (!only.empty()) notes_.emplace_back("not compared", list(only));
    if (steps_ > 0 && std::find(compared.begin(), compared.end(), "loss") == compared.end())
      fail(0, "not both runs have a loss");
  }

  void column(const metric::Column& left, const metric::Column& right, const std::vector<std::int64_t>& steps,
              const std::vector<std::array<std::size_t, 2>>& pairs) {
    const bool text = left.type() == metric::Type::text || right.type() == metric::Type::text;
    const Precision pa = precision(a_, left.name), pb = precision(b_, left.name);
    // Equal digits of one format are equal; of two formats, what the coarser one does not tell apart.
    const bool alike = pa.every_bit == pb.every_bit && pa.decimals == pb.decimals;
    const double slack = pa.every_bit && pb.every_bit ? 0 : alike ? 0 : std::max(pa.uncertainty(), pb.uncertainty());
    Difference difference;
    std::int64_t seen = 0;
    std::set<double> values;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto [row_a, row_b] = pairs[i];
      if (left.absent(row_a) && right.absent(row_b)) continue;
      const std::string cell_a = left.text(row_a), cell_b = right.text(row_b);
      if (left.absent(row_a) || right.absent(row_b)) {
        fail(steps[i],
             left.name + " of step " + to_text(steps[i]) + " is missing in " + (left.absent(row_a) ? a_ : b_).path);
        continue;
      }
      ++seen;
      if (text) {
        if (cell_a != cell_b && !tolerates_) differs(steps[i], left.name, cell_a, cell_b, {});
        continue;
      }
      const double x = left.real(row_a), y = right.real(row_b);
      values.insert(x), values.insert(y);
      if (!std::isfinite(x) || !std::isfinite(y)) {
        const std::string where = std::isfinite(x) ? b_.path : std::isfinite(y) ? a_.path : "both";
        fail(steps[i], left.name + " of step " + to_text(steps[i]) + " is not finite in " + where + ": " + cell_a +
                           " and " + cell_b);
        continue;
      }
      if (x == y) continue;
      if (std::fabs(x - y) <= slack * (1 + 1e-9)) continue;
      difference.add(x, y, ulps(x, y).first);
      apart_ = true;
      if (!tolerance_.accepts(x, y)) differs(steps[i], left.name, cell_a, cell_b, std::pair(x, y));
    }
    if (seen == 0) return;
    const bool integers = left.type() == metric::Type::integer && right.type() == metric::Type::integer;
    const bool result =
        left.name.ends_with("loss") || left.name.ends_with("norm");  // others are settings, short by themselves
    rounded_ = rounded_ || (result && !(pa.every_bit && pb.every_bit));
    if (left.name == "loss" && seen > 1 && values.size() == 1)
      fail(0, "the loss does not move: it is " + to_text(*values.begin()) + " in every step");
    if (left.name == "grad_norm" && values.size() == 1 && *values.begin() == 0)
      fail(0, "the gradient norm is 0 in every step");
    columns_.find("column")->texts().push_back(left.name);
    columns_.find("steps")->integers().push_back(seen);
    columns_.find("abs")->reals().push_back(difference.absolute);
    columns_.find("rel")->reals().push_back(difference.relative);
    columns_.find("ulp")->integers().push_back(difference.ulp);
    columns_.find("known_to")
        ->texts()
        .push_back(text || integers || alike ? pa.text() : pa.text() + " and " + pb.text());
  }

  static Precision precision(const Recorded& side, const std::string& name) {
    const auto found = side.precision.find(name);
    return found == side.precision.end() ? Precision{} : found->second;
  }

  void differs(std::int64_t step, const std::string& what, const std::string& left, const std::string& right,
               std::optional<std::pair<double, double>> values, const std::string& step_text = "") {
    Lines lines = {
        {"step", step_text.empty() ? to_text(step) : step_text}, {"what", what}, {a_.path, left}, {b_.path, right}};
    if (values) {
      lines.emplace_back(a_.path + "_hex", hexadecimal(values->first));
      lines.emplace_back(b_.path + "_hex", hexadecimal(values->second));
      lines.emplace_back("difference", to_text(std::fabs(values->first - values->second)));
      const auto [ulp, narrow] = ulps(values->first, values->second);
      lines.emplace_back("ulp", to_text(ulp) + (narrow ? " (float32)" : " (float64)"));
    }
    tell({step, true, lines});
  }

  /// How many units in the last place two values are apart, and whether these are float32's, as both values are.
  static std::pair<std::int64_t, bool> ulps(double a, double b) {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    const bool narrow = static_cast<double>(x) == a && static_cast<double>(y) == b;
    return {narrow ? ulp_distance(x, y) : ulp_distance(a, b), narrow};
  }

  void digests() {
    const std::string left = a_.run.attribute("state_digest"), right = b_.run.attribute("state_digest");
    if (left.empty() != right.empty()) {
      notes_.emplace_back("state_digest", "only in " + (left.empty() ? b_ : a_).path);
    } else if (left.empty()) {
      notes_.emplace_back("state_digest", "in neither: nothing is known of the parameters");
    } else if (left == right) {
      notes_.emplace_back("state_digest", "equal: all parameters after the last step are the same bits");
    } else if (tolerates_) {
      apart_ = true;
      notes_.emplace_back("state_digest", "different: a digest knows no tolerance");
    } else {
      differs(INT64_MAX - 1, "state_digest", left, right, {}, "the last");
    }
  }

  void checkpoints() {
    const auto left = a_.checkpoints(), right = b_.checkpoints();
    for (const std::string& name : left) {
      if (std::find(right.begin(), right.end(), name) != right.end())
        checkpoint(name);
      else
        notes_.emplace_back(name, "only in " + a_.path);
    }
    for (const std::string& name : right) {
      if (std::find(left.begin(), left.end(), name) == left.end()) notes_.emplace_back(name, "only in " + b_.path);
    }
  }

  void checkpoint(const std::string& name) {
    const auto left = tensorfile::open_state_dict(a_.folder + "/" + name),
               right = tensorfile::open_state_dict(b_.folder + "/" + name);
    const std::int64_t step = parse_int(name.substr(name.rfind('_') + 1)).value_or(INT64_MAX - 1);
    for (const auto& entry : right.entries()) {
      if (!left.find(entry.name)) return fail(step, "parameter " + entry.name + " is missing in " + left.path());
    }
    for (const auto& entry : left.entries()) {
      const tensorfile::Tensor* const other = right.find(entry.name);
      if (!other) return fail(step, "parameter " + entry.name + " is missing in " + right.path());
      if (entry.tensor.shape != other->shape || entry.tensor.dtype != other->dtype)
        return fail(step, "parameter " + entry.name + " has another shape or type in " + right.path());
      std::string x(entry.tensor.byte_count(), 0), y(other->byte_count(), 0);
      tensorfile::read_raw(entry.tensor, x);
      tensorfile::read_raw(*other, y);
      if (x == y) continue;
      const std::size_t size = tensorfile::size_of(entry.tensor.dtype);
      const auto at = static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin()) / size;
      std::optional<std::pair<double, double>> values;
      if (entry.tensor.dtype == tensorfile::Dtype::f32) {
        float u = 0, v = 0;
        std::memcpy(&u, x.data() + at * size, size), std::memcpy(&v, y.data() + at * size, size);
        values = {u, v};
        if (tolerance_.accepts(u, v)) continue;
      }
      return differs(step, entry.name + " at index " + std::to_string(at) + " in " + name,
                     values ? decimal(values->first) : "other bits", values ? decimal(values->second) : "other bits",
                     values);
    }
    notes_.emplace_back(name, "equal: " + std::to_string(left.entries().size()) + " tensors");
  }

  RunsVerdict verdict() {
    RunsVerdict result;
    using Kind = RunsVerdict::Kind;
    result.columns = columns_;
    result.kind = trouble_   ? (trouble_->different ? Kind::different : Kind::failed)
                  : apart_   ? Kind::within
                  : rounded_ ? Kind::printed
                             : Kind::exact;
    static constexpr std::array kNames = {"exact", "equal as printed", "within tolerance", "DIFFERENT", "FAILED"};
    result.lines = {{"verdict", kNames[static_cast<std::size_t>(result.kind)]}};
    if (trouble_) result.lines.insert(result.lines.end(), trouble_->lines.begin(), trouble_->lines.end());
    result.lines.insert(result.lines.end(), notes_.begin(), notes_.end());
    return result;
  }
};

}  // namespace

RunsVerdict compare_runs(const Recorded& a, const Recorded& b, const Tolerance& tolerance) {
  return Comparison(a, b, tolerance).run();
}

}  // namespace zs::verify
