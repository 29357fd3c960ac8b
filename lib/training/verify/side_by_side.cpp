// SPDX-License-Identifier: Apache-2.0
#include "verify/side_by_side.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.hpp"
#include "comm/pack.hpp"
#include "compare/ledger.hpp"
#include "device/tensor.hpp"
#include "setup/agreement.hpp"
#include "setup/beginning.hpp"
#include "setup/schedule.hpp"
#include "verify/probe.hpp"
#include "verify/reference.hpp"

namespace zs::verify {
namespace {

/// The type that autocast computes in if the reference is amp: the target's 16 bits, else bfloat16.
at::ScalarType autocast(const Request& request) {
  const zero::Settings& engine = request.train.engine;
  return engine.autocast != at::kFloat || !request.amp ? engine.autocast
         : engine.dtype == at::kHalf                   ? at::kHalf
                                                       : at::kBFloat16;
}

/// By Hu et al. 2022, or Kalajdzievski 2023.
double merged_scale(const model::Adaptation& how) {
  return how.rank_stabilized ? how.alpha / std::sqrt(how.rank) : how.alpha / how.rank;
}

ReferenceSettings reference_settings(const Request& request, const device::Device& device) {
  const setup::Settings& s = request.train;
  return {
      .dtype = request.amp ? at::kFloat : s.engine.dtype,
      .optimizer = s.engine.optimizer,
      .device = device::torch_device(device),
      .torch_adamw = s.engine.use_torch_adam,
      .decay_all = s.engine.decay_all,
      .max_grad_norm = s.engine.max_grad_norm,
      .loss_scaling = {s.engine.loss_scaling.fixed, s.engine.loss_scaling.initial_power, s.engine.loss_scaling.window,
                       s.engine.loss_scaling.hysteresis, s.engine.loss_scaling.consecutive,
                       s.engine.loss_scaling.minimum, s.engine.loss_scaling.grad_scaler},
      .weight_bits = s.engine.zeropp.quantized_weights ? zero::kWeightBits : 0,
      .gradient_bits = s.engine.zeropp.quantized_gradients ? zero::kGradientBits : 0,
      .float8_gathers = s.engine.float8_gathers && s.ranks > 1,
      .autocast = autocast(request),
      .apart = request.apart,
      .merged = request.merged ? merged_scale(s.model.adaptation) : 0,
      .chunks = s.chunks,
      .undivided = request.apart || request.whole,
      .seed = s.engine.seed,
      .packed = s.engine.packed,
      .begin = s.engine.begin};
}

/// Amp, documents alone and merged adapters are of LibTorch's own kernels; experts are computed by a plain loop.
model::Settings reference_kernels(const Request& request) {
  model::Settings settings = request.train.model;
  settings.fused = settings.fused && !request.amp && !request.apart && !request.merged;
  settings.experts_one_by_one = true;
  return settings;
}

}  // namespace

/// A parameter, the elements that all ranks compared together, and the elements that they should have compared.
struct SideBySide::Covered {
  const unit::Parameter* parameter;
  Coverage sum;
  std::int64_t gradients, parameters;

  /// Why nothing is proved of it after `steps` steps, or "".
  std::string fault(std::int64_t steps) const;
};

struct SideBySide::State {
  comm::Group& group;
  Request request;
  model::Model model, reference_model;
  std::int64_t leaves;
  setup::Batches batches;
  std::unique_ptr<zero::Engine> engine;
  Reference reference;
  std::optional<InjectedFault> fault;
  Probe probe;
  std::int64_t skipped = 0;
  double learned = 0;  // the sum of learning rates
  /// The settings, with the initial values of parameters.
  const setup::Settings& begun(comm::Group& g) {
    request.train.engine.begin = setup::beginning_of(g, request.train, model);
    return request.train;
  }
  double lowest_loss = INFINITY, highest_loss = -INFINITY, lowest_target = INFINITY, highest_target = -INFINITY;

  State(comm::Group& g, const Request& r)
      : group(g),
        request(r),
        model(model::make(r.train.model)),
        reference_model(model::make(reference_kernels(r))),
        leaves(r.train.leaves()),
        batches(setup::read_batches(g, r.train, model)),
        engine(std::make_unique<zero::Engine>(g, model.units, r.train.strategy(), begun(g).engine)),
        reference(reference_model.units, reference_settings(request, g.device()), leaves),
        fault(r.fault.empty() ? std::nullopt
                              : std::optional(read_fault(r.fault, model.units, r.train.max_steps, g.size(), r.train))),
        probe(*engine, model.units, g.rank(), r.tolerance, r.across(), fault,
              r.train.chunks == 1 || !(r.apart || r.whole)) {}
};

SideBySide::SideBySide(comm::Group& group, const Request& request) : state_(std::make_unique<State>(group, request)) {
  if (state_->fault && state_->fault->kind == InjectedFault::Kind::output)
    throw UsageError("--inject_fault: 'output' is a fault for --repeat: against the reference a gradient shows it");
}
SideBySide::~SideBySide() = default;

std::vector<std::string> SideBySide::pass_effects() const {
  std::vector<std::string> effects;
  for (const plan::Plan& plan : state_->engine->plans().all())
    effects.insert(effects.end(), plan.effects.begin(), plan.effects.end());
  return effects;
}
std::size_t SideBySide::units() const { return state_->model.units.size(); }
const std::string& SideBySide::unit_name(std::size_t unit) const { return state_->model.units[unit]->name(); }

const std::string& SideBySide::parameter_name(const Finding& finding) const {
  return state_->model.units[static_cast<std::size_t>(finding.unit)]
      ->parameters()[static_cast<std::size_t>(finding.parameter)]
      .name;
}

std::string SideBySide::place_in_shape(const Finding& finding) const {
  const auto& shape = state_->model.units[static_cast<std::size_t>(finding.unit)]
                          ->parameters()[static_cast<std::size_t>(finding.parameter)]
                          .shape;
  std::string text;
  std::int64_t rest = finding.index;
  for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent, text = text.empty() ? text : ", " + text) {
    text = std::to_string(rest % *extent) + text;
    rest /= *extent;
  }
  return "[" + text.substr(2) + "]";
}

Finding SideBySide::join(StepRow& row) {
  const Probe& probe = state_->probe;
  std::string blob;
  comm::put(blob, probe.first());
  comm::put(blob, probe.suspect());
  comm::put(blob, probe.loss());
  comm::put(blob, probe.norm());
  for (std::size_t u = 0; u < units(); ++u)
    comm::put(blob, probe.gradients()[u]), comm::put(blob, probe.parameters()[u]);
  row.gradients.resize(units());
  row.parameters.resize(units());
  Finding first, suspect;
  for (const std::string& packet : state_->group.all_gather_object(blob, "exchange of what was compared")) {
    std::size_t at = 0;
    if (const auto finding = comm::take<Finding>(packet, at); finding.before(first)) first = finding;
    if (const auto finding = comm::take<Finding>(packet, at); finding.before(suspect)) suspect = finding;
    row.losses.join(comm::take<Difference>(packet, at));
    row.norms.join(comm::take<Difference>(packet, at));
    for (std::size_t u = 0; u < units(); ++u) {
      row.gradients[u].join(comm::take<Difference>(packet, at));
      row.parameters[u].join(comm::take<Difference>(packet, at));
    }
  }
  for (const Difference& unit : row.gradients) row.gradient.join(unit);
  for (const Difference& unit : row.parameters) row.parameter.join(unit);
  // Within a tolerance, a leaf's gradient says where a difference of the sum began.
  const bool explains =
      first.what == What::gradient && suspect.unit == first.unit && suspect.parameter == first.parameter;
  return first.found && suspect.found && explains ? suspect : first;
}

bool SideBySide::one_step(std::int64_t step, const StepSeen& seen, Verdict& verdict) {
  State& s = *state_;
  const setup::Settings& settings = s.request.train;
  // The learning rate does not move on in steps that are skipped.
  const std::int64_t updates = step - 1 - s.reference.skipped();
  const double learning_rate = setup::learning_rate(settings.schedule, updates, settings.max_steps);
  const auto batch = [&](std::int64_t leaf) { return s.batches.training(step, leaf); };
  const auto whole = [&](std::int64_t number) { return s.batches.micro_batch(step, number); };
  const plan::Shape& shape = s.engine->plan().shape;

  std::vector<std::vector<Tensors>> by_micro(static_cast<std::size_t>(settings.micro_steps));
  std::vector<Tensors> together, shards;  // leaves of one micro-step, where gradients are divided, and their sums
  const ReferenceStep reference = s.reference.compute(step, whole, [&](std::int64_t leaf, const Tensors& gradients) {
    if (shape.divided().gradients) {
      together.push_back(s.reference.added(gradients));
      const bool last =
          static_cast<int>(together.size()) == s.group.size() * shape.chunks_of_rank() || leaf + 1 == s.leaves;
      if (last) shards.push_back(joined_sum(together, leaf + 1 - std::ssize(together), s.leaves)), together.clear();
    }
    for (int micro = 0; micro < settings.micro_steps; ++micro) {
      const std::int64_t first = s.engine->leaf(micro);
      if (first >= 0 && first <= leaf && leaf < first + shape.chunks_of_rank())
        by_micro[static_cast<std::size_t>(micro)].push_back(gradients);
    }
  });
  s.learned += learning_rate;
  s.probe.begin(step, reference, std::move(by_micro), std::move(shards), s.reference.rounded(), s.learned);
  const zero::StepResult result = s.engine->step(step, learning_rate, batch);
  s.reference.update(reference, learning_rate);
  s.probe.end(result, s.reference.parameters(), s.reference.rounded());

  StepRow row{.step = step,
              .loss = reference.loss,
              .target_loss = result.loss,
              .grad_norm = reference.grad_norm,
              .loss_scale = reference.loss_scale,
              .skipped = reference.skipped && result.skipped};
  verdict.finding = join(row);
  verdict.step = step;
  verdict.largest.losses.join(row.losses);
  verdict.largest.norms.join(row.norms);
  verdict.largest.gradient.join(row.gradient);
  verdict.largest.parameter.join(row.parameter);
  s.lowest_loss = std::min(s.lowest_loss, row.loss), s.highest_loss = std::max(s.highest_loss, row.loss);
  s.lowest_target = std::min(s.lowest_target, row.target_loss),
  s.highest_target = std::max(s.highest_target, row.target_loss);
  ++(row.skipped ? s.skipped : verdict.steps);
  if (seen) seen(row);
  return !verdict.finding.found;
}

Verdict SideBySide::run(const StepSeen& seen) {
  State& s = *state_;
  Verdict verdict;
  s.probe.begin_run(s.reference.parameters(), s.reference.rounded());
  StepRow start;
  verdict.finding = join(start);
  bool same = !verdict.finding.found;
  for (std::int64_t step = 1; same && step <= s.request.train.max_steps; ++step) same = one_step(step, seen, verdict);
  judge(verdict);
  return verdict;
}

std::string SideBySide::sum_coverage(const Verdict& verdict, std::vector<Covered>& covered) {
  State& s = *state_;
  std::vector<Coverage> mine;
  for (const auto& unit : s.probe.coverage()) mine.insert(mine.end(), unit.begin(), unit.end());
  const auto ranks = s.group.all_gather(std::span<const Coverage>(mine), "exchange of what was covered");
  const bool one_copy = plan::divided_by(s.request.train.stage).optimizer_state;
  const std::int64_t all_steps = verdict.steps + s.skipped;
  std::size_t at = 0;
  for (const auto& unit : s.model.units) {
    const int among = unit->experts() > 0 ? s.request.train.experts : 1;  // ranks that have a copy together
    const std::int64_t copies = one_copy ? 1 : s.group.size() / among;
    for (const unit::Parameter& parameter : unit->parameters()) {
      Coverage sum;
      for (const std::vector<Coverage>& rank : ranks) {
        const Coverage& coverage = rank.at(at);
        sum.gradients += coverage.gradients, sum.parameters += coverage.parameters;
        sum.gradient_seen += coverage.gradient_seen, sum.moved += coverage.moved;
      }
      ++at;
      // Every rank has, and compares, all frozen parameters.
      covered.push_back({&parameter, sum, parameter.trained ? parameter.numel() * copies * verdict.steps : 0,
                         parameter.numel() * (parameter.trained ? copies : s.group.size()) * all_steps});
      const std::string fault = covered.back().fault(all_steps);
      if (!fault.empty()) return fault;
    }
  }
  return "";
}

std::string SideBySide::Covered::fault(std::int64_t steps) const {
  if (sum.gradients != gradients || sum.parameters != parameters) {
    return "parameter " + parameter->name + " is missing in part: of its gradient " + std::to_string(sum.gradients) +
           " elements were compared, of it " + std::to_string(sum.parameters) + ", in " + std::to_string(steps) +
           " steps";
  }
  if (!parameter->trained) return "";
  if (sum.gradient_seen == 0)
    return "the gradient of " + parameter->name + " is zero in every step: nothing was proved of it" +
           (parameter->expert ? "; no token went to this expert: take more --iterations" : "");
  return sum.moved == 0 ? "parameter " + parameter->name + " does not move: is the learning rate 0?" : "";
}

void SideBySide::judge(Verdict& verdict) {
  State& s = *state_;
  if (verdict.finding.found) {
    const Finding& finding = verdict.finding;
    verdict.kind.worsen(compare::Verdict::different);
    if (!std::isfinite(finding.target) || !std::isfinite(finding.reference))
      verdict.reason = std::string("the ") + name(finding.what) + " is not finite";
    return;
  }
  // Until a ledger settles it, the verdict is FAILED.
  if (verdict.steps == 0) {
    verdict.reason =
        "no step was compared: all " + std::to_string(s.skipped) + " were skipped, their gradients being not finite";
    return;
  }
  std::vector<Covered> covered;
  verdict.reason = sum_coverage(verdict, covered);
  if (!verdict.reason.empty()) return;
  const std::int64_t all_steps = verdict.steps + s.skipped;
  if (all_steps > 1 && (s.lowest_loss == s.highest_loss || s.lowest_target == s.highest_target)) {
    verdict.reason = "the loss does not move: it is " + decimal(s.lowest_loss) + " in every step";
    return;
  }
  compare::Holdings held;  // by the reference and by the target alike
  held.add("loss", all_steps), held.add("norm", all_steps);
  for (const Covered& each : covered) {
    if (each.parameter->trained) held.add("gradient of " + each.parameter->name, each.gradients);
    held.add("parameter " + each.parameter->name, each.parameters);
  }
  const StepRow& largest = verdict.largest;
  compare::Ledger ledger(held, held);
  const auto compared = [&](const std::string& what, const Difference& difference, std::int64_t count) {
    ledger.compared(what, difference.none() ? compare::Verdict::exact : compare::Verdict::within, count);
  };
  compared("loss", largest.losses, all_steps);
  compared("norm", largest.norms, all_steps);
  for (const Covered& each : covered) {
    if (each.parameter->trained) compared("gradient of " + each.parameter->name, largest.gradient, each.sum.gradients);
    compared("parameter " + each.parameter->name, largest.parameter, each.sum.parameters);
  }
  verdict.kind = ledger.settle();
}

}  // namespace zs::verify
