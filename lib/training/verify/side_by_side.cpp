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
      .begin = s.engine.begin};
}

/// Amp, documents alone and merged adapters are of LibTorch's own kernels; experts are computed by a plain
/// loop.
model::Settings reference_kernels(const Request& request) {
  model::Settings settings = request.train.model;
  settings.fused = settings.fused && !request.amp && !request.apart && !request.merged;
  settings.experts_one_by_one = true;
  return settings;
}

}  // namespace

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
  std::vector<std::string> all;
  for (const plan::Plan& plan : state_->engine->plans().all())
    all.insert(all.end(), plan.effects.begin(), plan.effects.end());
  return all;
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
  for (const std::string& its : state_->group.all_gather_object(blob, "exchange of what was compared")) {
    std::size_t at = 0;
    if (const auto finding = comm::take<Finding>(its, at); finding.before(first)) first = finding;
    if (const auto finding = comm::take<Finding>(its, at); finding.before(suspect)) suspect = finding;
    row.losses.join(comm::take<Difference>(its, at));
    row.norms.join(comm::take<Difference>(its, at));
    for (std::size_t u = 0; u < units(); ++u) {
      row.gradients[u].join(comm::take<Difference>(its, at));
      row.parameters[u].join(comm::take<Difference>(its, at));
    }
  }
  for (const Difference& unit : row.gradients) row.gradient.join(unit);
  for (const Difference& unit : row.parameters) row.parameter.join(unit);
  // Within a tolerance, a leaf's gradient says where a difference of the sum began.
  const bool explains =
      first.what == What::gradient && suspect.unit == first.unit && suspect.parameter == first.parameter;
  return first.found && suspect.found && explains ? suspect : first;
}

bool SideBySide::one_step(std::int64_t step, const Sink& sink, Verdict& verdict) {
  State& s = *state_;
  const setup::Settings& settings = s.request.train;
  // The learning rate does not move on in steps that are skipped.
  const std::int64_t updates = step - 1 - s.reference.skipped();
  const double learning_rate = setup::learning_rate(settings.schedule, updates, settings.max_steps);
  const auto batch = [&](std::int64_t leaf) { return s.batches.training(step, leaf); };
  const auto whole = [&](std::int64_t number) { return s.batches.micro_batch(step, number); };
  const plan::Shape& shape = s.engine->plan().shape;

  std::vector<std::vector<Tensors>> own(static_cast<std::size_t>(settings.micro_steps));
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
        own[static_cast<std::size_t>(micro)].push_back(gradients);
    }
  });
  s.learned += learning_rate;
  s.probe.begin(step, reference, std::move(own), std::move(shards), s.reference.rounded(), s.learned);
  const zero::StepResult result = s.engine->step(step, learning_rate, batch);
  s.reference.update(reference, learning_rate);
  s.probe.end(result, s.reference.parameters(), s.reference.rounded());

  StepRow row{step,
              reference.loss,
              result.loss,
              reference.grad_norm,
              reference.loss_scale,
              reference.skipped && result.skipped,
              {},
              {},
              {},
              {},
              {},
              {}};
  verdict.finding = join(row);
  verdict.step = step;
  verdict.largest.losses.join(row.losses);
  verdict.largest.norms.join(row.norms);
  verdict.largest.gradient.join(row.gradient);
  verdict.largest.parameter.join(row.parameter);
  s.lowest_loss = std::min(s.lowest_loss, row.loss), s.highest_loss = std::max(s.highest_loss, row.loss);
  s.lowest_target = std::min(s.lowest_target, row.target_loss),
  s.highest_target = std::max(s.highest_target, row.target_loss);
  if (row.skipped)
    ++s.skipped;
  else
    ++verdict.steps;
  if (sink.step) sink.step(row);
  return !verdict.finding.found;
}

Verdict SideBySide::run(const Sink& sink) {
  State& s = *state_;
  Verdict verdict;
  s.probe.begin_run(s.reference.parameters(), s.reference.rounded());
  StepRow start;
  verdict.finding = join(start);
  bool same = !verdict.finding.found;
  for (std::int64_t step = 1; same && step <= s.request.train.max_steps; ++step) same = one_step(step, sink, verdict);
  judge(verdict);
  return verdict;
}

void SideBySide::judge(Verdict& verdict) {
  State& s = *state_;
  std::vector<Coverage> mine;
  for (const auto& unit : s.probe.coverage()) mine.insert(mine.end(), unit.begin(), unit.end());
  const auto all = s.group.all_gather(std::span<const Coverage>(mine), "exchange of what was covered");
  const auto fail = [&](const std::string& reason) {  // as it is FAILED until a ledger settles it
    verdict.reason = reason;
  };
  if (verdict.finding.found) {
    const Finding& finding = verdict.finding;
    verdict.kind.worsen(compare::Verdict::different);
    if (!std::isfinite(finding.target) || !std::isfinite(finding.reference)) {
      verdict.reason = std::string("the ") + name(finding.what) + " is not finite";
    }
    return;
  }
  if (verdict.steps == 0)
    return fail("no step was compared: all " + std::to_string(s.skipped) +
                " were skipped, their gradients being not finite");
  const bool one_copy = plan::divided_by(s.request.train.stage).optimizer_state;
  const std::int64_t all_steps = verdict.steps + s.skipped;
  const StepRow& largest = verdict.largest;
  const auto outcome = [](const Difference& difference) {
    return difference.none() ? compare::Verdict::exact : compare::Verdict::within;
  };
  compare::Holdings held;  // by the reference and by the target alike
  std::vector<std::pair<const unit::Parameter*, Coverage>> covered;
  held.add("loss", all_steps), held.add("norm", all_steps);
  std::size_t at = 0;
  for (const auto& unit : s.model.units) {
    const int among = unit->experts() > 0 ? s.request.train.experts : 1;  // ranks that have a copy together
    const std::int64_t copies = one_copy ? 1 : s.group.size() / among;
    for (const unit::Parameter& parameter : unit->parameters()) {
      Coverage sum;
      for (const std::vector<Coverage>& its : all) {
        const Coverage& coverage = its.at(at);
        sum.gradients += coverage.gradients, sum.parameters += coverage.parameters;
        sum.gradient_seen += coverage.gradient_seen, sum.moved += coverage.moved;
      }
      ++at;
      // Every rank has, and compares, all frozen parameters.
      const std::int64_t gradients = parameter.trained ? parameter.numel() * copies * verdict.steps : 0,
                         parameters = parameter.numel() * (parameter.trained ? copies : s.group.size()) * all_steps;
      if (parameter.trained) held.add("gradient of " + parameter.name, gradients);
      held.add("parameter " + parameter.name, parameters);
      covered.emplace_back(&parameter, sum);
      if (sum.gradients != gradients || sum.parameters != parameters) {
        return fail("parameter " + parameter.name + " is missing in part: of its gradient " +
                    std::to_string(sum.gradients) + " elements were compared, of it " + std::to_string(sum.parameters) +
                    ", in " + std::to_string(all_steps) + " steps");
      }
      if (!parameter.trained) continue;
      if (sum.gradient_seen == 0)
        return fail("the gradient of " + parameter.name + " is zero in every step: nothing was proved of it" +
                    (parameter.expert ? "; no token went to this expert: take more --iterations" : ""));
      if (sum.moved == 0) return fail("parameter " + parameter.name + " does not move: is the learning rate 0?");
    }
  }
  if (all_steps > 1 && (s.lowest_loss == s.highest_loss || s.lowest_target == s.highest_target)) {
    return fail("the loss does not move: it is " + decimal(s.lowest_loss) + " in every step");
  }
  compare::Ledger ledger(held, held);
  ledger.compared("loss", outcome(largest.losses), all_steps);
  ledger.compared("norm", outcome(largest.norms), all_steps);
  for (const auto& [parameter, sum] : covered) {
    if (parameter->trained) ledger.compared("gradient of " + parameter->name, outcome(largest.gradient), sum.gradients);
    ledger.compared("parameter " + parameter->name, outcome(largest.parameter), sum.parameters);
  }
  verdict.kind = ledger.settle();
}

}  // namespace zs::verify
