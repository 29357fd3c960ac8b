// SPDX-License-Identifier: Apache-2.0
#include "verify/report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/number.hpp"

namespace zs::verify {
namespace {

std::string triple(const Difference& d) {
  return fmt::format("  {:>9} {:>9} {:>6}", to_brief_text(d.absolute), to_brief_text(d.relative),
                     compare::ulp_text(d.ulp));
}

}  // namespace

std::string header() {
  return fmt::format("{:>5} {:>12}  {:^26}  {:^26}  {:^26}\n", "", "", "loss", "gradient", "parameter") +
         fmt::format("{0:>5} {1:>12}{2}{2}{2}\n", "step", "loss",
                     fmt::format("  {:>9} {:>9} {:>6}", "abs", "rel", "ulp"));
}

std::string to_text(const StepRow& row) {
  return fmt::format("{:>5} {:>12}", row.step, to_rounded_text(row.loss, 9)) + triple(row.losses) +
         (row.skipped ? fmt::format("  {:>26}", fmt::format("skipped at scale {}", zs::to_text(row.loss_scale)))
                      : triple(row.gradient)) +
         triple(row.parameter) + "\n";
}

std::string units_text(const StepRow& row, const SideBySide& sides) {
  std::string text;
  for (std::size_t u = 0; u < sides.units(); ++u) {
    text += fmt::format("{:>5} {:>12}  {:>26}", "", sides.unit_name(u), "") + triple(row.gradients[u]) +
            triple(row.parameters[u]) + "\n";
  }
  return text;
}

void add(metric::Table& records, const StepRow& row, const std::string& loss_unit) {
  using metric::Type;
  if (records.columns.empty()) {
    for (const char* name : {"step", "loss", "target_loss", "grad_norm"}) records.column(name, Type::real, loss_unit);
    for (const std::string what : {"loss", "gradient", "parameter", "norm"}) {
      records.column(what + "_abs", Type::real, what == "loss" ? loss_unit : "");
      records.column(what + "_rel", Type::real);
      records.column(what + "_ulp", Type::integer, "ulp");
    }
    records.column("loss_scale"), records.column("skipped");
    records.find("loss")->unit = loss_unit;  // not as usual
  }
  const auto real = [&](const std::string& name, double value) { records.find(name)->reals().push_back(value); };
  const auto integer = [&](const std::string& name, std::int64_t value) {
    records.find(name)->integers().push_back(value);
  };
  const auto three = [&](const std::string& what, const Difference& d) {
    real(what + "_abs", d.absolute);
    real(what + "_rel", d.relative);
    integer(what + "_ulp", d.ulp);
  };
  integer("step", row.step);
  real("loss", row.loss);
  real("target_loss", row.target_loss);
  real("grad_norm", row.grad_norm);
  three("loss", row.losses);
  three("gradient", row.gradient);
  three("parameter", row.parameter);
  three("norm", row.norms);
  real("loss_scale", row.loss_scale);
  integer("skipped", row.skipped ? 1 : 0);
}

Lines lines(const Verdict& verdict, const SideBySide& sides, const comm::Group& group, const Request& request) {
  const auto within = [&] {
    const std::string both =
        "rtol " + zs::to_text(request.tolerance.rtol) + ", atol " + zs::to_text(request.tolerance.atol);
    return request.across() ? both +
                                  "; a gradient: rtol of the largest of its unit; a parameter: twice the sum of "
                                  "learning rates, and its rounding"
                            : both;
  };
  Lines lines;
  const auto add = [&](const char* key, const std::string& value) { lines.emplace_back(key, value); };
  const auto tell_arithmetics = [&] {
    if (request.across())
      add("arithmetics",
          request.apart    ? "the reference computes each document alone, the target packed rows: the same "
                             "bits are not expected"
          : request.merged ? "the reference adds adapters to the weights, the target to the products: the same bits "
                             "are not expected"
          : request.whole  ? "the reference computes whole sequences, the target chunks of them: the same "
                             "bits are not expected"
                           : "the reference is PyTorch's amp, the target is not: the same bits are not "
                             "expected");
  };
  add("verdict", std::string(compare::name(verdict.kind)));
  if (!verdict.reason.empty()) add("reason", verdict.reason);
  if (verdict.kind != compare::Verdict::different) {
    add("steps", zs::to_text(verdict.steps));
    tell_arithmetics();
    if (verdict.kind == compare::Verdict::within) add("tolerance", within());
    return lines;
  }
  const Finding& f = verdict.finding;
  add("step", zs::to_text(verdict.step));
  add("what", name(f.what));
  add("stage", name(f.phase));
  if (f.parameter >= 0) {
    add("parameter", sides.parameter_name(f));
    add("index", zs::to_text(f.index));
    add("place", sides.place_in_shape(f));
  }
  if (f.leaf >= 0) add("micro-batch", zs::to_text(f.leaf));
  add("rank", zs::to_text(static_cast<std::int64_t>(f.rank)));
  add("host", group.host(f.rank));
  add("reference", decimal(f.reference));
  add("reference_hex", hexadecimal(f.reference));
  add("target", decimal(f.target));
  add("target_hex", hexadecimal(f.target));
  add("difference", zs::to_text(std::fabs(f.target - f.reference)));
  add("ulp", compare::ulp_text(f.ulp));
  add("tolerance", within());
  tell_arithmetics();
  return lines;
}

}  // namespace zs::verify
