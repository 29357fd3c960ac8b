// SPDX-License-Identifier: Apache-2.0
#include "verify/repeat.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/number.hpp"
#include "compare/ledger.hpp"
#include "setup/agreement.hpp"
#include "setup/beginning.hpp"
#include "setup/schedule.hpp"
#include "unit/random.hpp"
#include "verify/fault.hpp"

namespace zs::verify {
namespace {

/// The result of one operation on this rank. The list of them follows from the plan: only digests may differ between
/// ranks and repetitions.
struct Result {
  std::uint64_t digest = 0;
  std::int64_t step = 0, leaf = -1;
  Phase phase{};
  What what{};
  std::int32_t unit = -1, parameter = -1;
};

std::uint64_t digest(const at::Tensor& values) {
  const at::Tensor host = values.detach().to(at::kCPU).contiguous();
  return XXH3_64bits(host.data_ptr(), host.nbytes());
}

std::uint64_t digest(double value) { return XXH3_64bits(&value, sizeof value); }

/// A unit whose forward is seen: the parameters that it is given, and what it gives.
class Watched : public unit::Unit {
 public:
  /// May put another output in its place.
  using Seen = std::function<void(std::span<const at::Tensor> owned, at::Tensor& output, std::uint64_t stream)>;
  Watched(const unit::Unit& unit, Seen seen)
      : Unit(unit.name(), unit.parameters(), unit.tied_to(), unit.extras()), its_(unit), seen_(std::move(seen)) {}

  at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> owned, std::span<const at::Tensor> borrowed,
                     const unit::ForwardContext& context) const override {
    at::Tensor output = its_.forward(x, owned, borrowed, context);
    seen_(owned, output, context.stream);
    return output;
  }
  std::int64_t experts() const override { return its_.experts(); }
  std::unique_ptr<Unit> part(std::int64_t begin, std::int64_t end) const override {
    std::unique_ptr<Unit> part = its_.part(begin, end);
    auto watched = std::make_unique<Watched>(*part, seen_);
    watched->kept_ = std::move(part);
    return watched;
  }

 private:
  const unit::Unit& its_;
  Seen seen_;
  std::unique_ptr<Unit> kept_;  // of a part
};

/// A training that is created again for each repetition.
class Training {
 public:
  Training(comm::Group& group, const Request& request)
      : group_(group),
        settings_(request.train),
        model_(model::make(request.train.model)),
        batches_(setup::read_batches(group, request.train, model_)) {
    settings_.engine.begin = setup::beginning_of(group, settings_, model_);
    if (!request.fault.empty())
      fault_ = read_fault(request.fault, model_.units, settings_.max_steps, group.size(), settings_);
    for (std::size_t u = 0; u < model_.units.size(); ++u) {
      watched_.push_back(std::make_unique<Watched>(
          *model_.units[u], [this, u](std::span<const at::Tensor> owned, at::Tensor& output, std::uint64_t stream) {
            forward(static_cast<int>(u), owned, output, stream);
          }));
    }
  }

  /// The results of all steps, in order; with the fault, if there is one.
  std::vector<Result> run(bool faulty) {
    results_.clear();
    faulty_ = faulty && fault_;
    engine_ = std::make_unique<zero::Engine>(group_, watched_, settings_.strategy(), settings_.engine);
    engine_->observe(
        {[this](int unit, int micro) { gradient(unit, Phase::backward, engine_->leaf(micro), whole(unit)); },
         [this](int unit) { gradient(unit, Phase::accumulation, -1, whole(unit)); },
         [this](int unit, int micro) {
           // A micro-step's sum is of the leaves of all ranks: its first leaf names it.
           gradient(unit, Phase::reduction, engine_->leaf(micro), owned(unit));
         },
         [this] { reduced(); }});
    for (step_ = 1; step_ <= settings_.max_steps; ++step_) one_step();
    engine_.reset();
    return std::move(results_);
  }

  double loss() const { return loss_; }
  double largest_norm() const { return norm_; }
  const std::string& unit_name(const Result& result) const { return owner(result).name(); }
  std::string parameter_name(const Result& result) const {
    return result.parameter < 0 ? "" : owner(result).parameters()[static_cast<std::size_t>(result.parameter)].name;
  }

 private:
  comm::Group& group_;
  setup::Settings settings_;
  model::Model model_;
  setup::Batches batches_;
  std::optional<InjectedFault> fault_;
  unit::Units watched_;
  std::unique_ptr<zero::Engine> engine_;
  std::vector<Result> results_;
  std::map<std::uint64_t, std::int64_t> leaves_;  // of this step, by their random streams
  std::int64_t step_ = 0;
  bool faulty_ = false;
  double loss_ = 0, norm_ = 0;

  const unit::Unit& owner(const Result& result) const { return *model_.units[static_cast<std::size_t>(result.unit)]; }
  /// The trained elements that this rank computes with.
  comm::Slice whole(int unit) {
    const zero::UnitState& state = engine_->states()[static_cast<std::size_t>(unit)];
    return {state.part().begin, state.part().begin + state.layout().trained};
  }
  comm::Slice owned(int unit) { return engine_->states()[static_cast<std::size_t>(unit)].owned(); }

  void one_step() {
    leaves_.clear();
    const double learning_rate =
        setup::learning_rate(settings_.schedule, step_ - 1 - engine_->scaler().skipped(), settings_.max_steps);
    const auto batch = [&](std::int64_t leaf) {
      leaves_[unit::leaf_key(settings_.engine.seed, step_, leaf)] = leaf;
      return batches_.training(step_, leaf);
    };
    if (strikes() && fault_->kind != InjectedFault::Kind::bit) fault_->apply(*engine_, group_.rank());
    const zero::StepResult result = engine_->step(step_, learning_rate, batch);
    loss_ = result.loss;
    norm_ = std::max(norm_, std::isfinite(result.grad_norm) ? result.grad_norm : 0);
    keep({.digest = digest(result.loss), .phase = Phase::reduction, .what = What::loss});
    keep({.digest = digest(result.grad_norm), .phase = Phase::clipping, .what = What::norm});
    keep({.digest = digest(result.clipped_norm), .phase = Phase::clipping, .what = What::clipped_norm});
    for (std::size_t u = 0; u < watched_.size(); ++u) {
      zero::UnitState& state = engine_->states()[u];
      values(static_cast<int>(u), state.masters(), state.owned(), {.phase = Phase::optimizer, .what = What::parameter});
    }
    for (std::size_t u = 0; u < watched_.size(); ++u) {
      const at::Tensor copy = engine_->states()[u].computed_with();
      values(static_cast<int>(u), copy, {0, copy.numel()}, {.phase = Phase::gather, .what = What::parameter});
    }
  }

  void keep(Result result) {
    result.step = step_;
    results_.push_back(result);
  }

  /// Whether the fault is due in this step, on this rank.
  bool strikes() const {
    return faulty_ && fault_->step == step_ && (fault_->rank < 0 || fault_->rank == group_.rank());
  }

  void forward(int unit, std::span<const at::Tensor> owned, at::Tensor& output, std::uint64_t stream) {
    if (strikes() && fault_->kind == InjectedFault::Kind::output && fault_->unit == unit)
      output = InjectedFault::changed(output);
    const auto known = leaves_.find(stream);
    const std::int64_t leaf = known == leaves_.end() ? -1 : known->second;
    for (std::size_t i = 0; i < owned.size(); ++i) {
      keep({.digest = digest(owned[i]),
            .leaf = leaf,
            .phase = Phase::gathered,
            .what = What::parameter,
            .unit = unit,
            .parameter = static_cast<int>(i)});
    }
    const bool last = static_cast<std::size_t>(unit) + 1 == watched_.size();
    keep({.digest = digest(output),
          .leaf = leaf,
          .phase = Phase::forward,
          .what = last ? What::loss : What::output,
          .unit = unit});
  }

  void gradient(int unit, Phase phase, std::int64_t leaf, comm::Slice slice) {
    values(unit, engine_->states()[static_cast<std::size_t>(unit)].gradient.on_host(), slice,
           {.leaf = leaf, .phase = phase, .what = What::gradient});
  }

  void reduced() {
    if (strikes() && fault_->kind == InjectedFault::Kind::bit) fault_->apply(*engine_, group_.rank());
    const Phase last = last_of_gradient(engine_->plan().shape);
    for (int unit = 0; unit < static_cast<int>(watched_.size()); ++unit) gradient(unit, last, -1, owned(unit));
  }

  /// One result for each parameter: of values[slice.size()], the elements of a unit's flat buffer that `slice` names.
  void values(int unit, const at::Tensor& values, comm::Slice slice, Result kind) {
    kind.unit = unit;
    const auto& parameters = watched_[static_cast<std::size_t>(unit)]->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto [begin, end] = parameters[i].place().within(slice.begin, slice.end);
      kind.parameter = static_cast<int>(i);
      kind.digest = begin < end ? digest(values.slice(0, begin - slice.begin, end - slice.begin)) : 0;
      keep(kind);
    }
  }
};

/// The first result of a list that differs from the first repetition's, and how many do.
struct Found {
  std::int64_t at = -1, differing = 0;
};

Found compare_lists(const std::vector<Result>& first, const std::vector<Result>& again) {
  if (first.size() != again.size()) throw Error("a repetition has another number of operations: this is a fault of zs");
  Found found;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].digest == again[i].digest) continue;
    if (found.differing++ == 0) found.at = static_cast<std::int64_t>(i);
  }
  return found;
}

}  // namespace

Repeated repeat(comm::Group& group, const Request& request, std::int64_t times,
                const std::function<void(const Repetition&)>& seen) {
  Training training(group, request);
  Repeated result;
  result.repetitions = times;
  result.steps = request.train.max_steps;
  std::int64_t earliest = -1;
  std::vector<Result> first;
  std::string wild;
  compare::Holdings held_first, held_again;
  std::vector<std::pair<std::string, std::int64_t>> compared;  // by repetition
  for (std::int64_t number = 1; number <= times; ++number) {
    std::vector<Result> results = training.run(number == times);
    if (number == 1) first = results;
    const Found found = compare_lists(first, results);
    Repetition repetition{number, training.loss(), 0, 0};
    int rank = 0;
    for (const Found& one : comm::exchange_values(group, found, "exchange of what was repeated")) {
      repetition.results += static_cast<std::int64_t>(first.size());
      repetition.differing += one.differing;
      if (one.at >= 0 && (earliest < 0 || one.at < earliest)) {
        earliest = one.at;
        const Result& at = first[static_cast<std::size_t>(earliest)];
        result.first = {number, at.step, at.phase, at.what, "", "", at.leaf, rank};
        if (at.unit >= 0)
          result.first.unit = training.unit_name(at), result.first.parameter = training.parameter_name(at);
      }
      ++rank;
    }
    result.results = repetition.results;
    if (number > 1) {
      compared.emplace_back("results of repetition " + to_text(number), repetition.results);
      held_first.add(compared.back().first, repetition.results);
      held_again.add(compared.back().first, repetition.results);
    }
    result.differing += repetition.differing > 0;
    if (!std::isfinite(training.loss()) && wild.empty())
      wild = "the loss is " + decimal(training.loss()) + " in repetition " + to_text(number);
    if (seen) seen(repetition);
  }
  if (earliest >= 0) {
    result.kind.worsen(compare::Verdict::different);
    // The rank that differs knows which of its micro-batches it is.
    const std::int64_t leaf = first[static_cast<std::size_t>(earliest)].leaf;
    result.first.leaf =
        comm::exchange_values(group, leaf, "place of the difference")[static_cast<std::size_t>(result.first.rank)];
    return result;
  }
  if (training.largest_norm() == 0) wild = "the gradient is zero in every step: nothing was proved";
  result.reason = wild;
  if (!wild.empty()) return result;  // FAILED, as it is until a ledger settles it
  compare::Ledger ledger(held_first, held_again);
  for (const auto& [results, count] : compared) ledger.compared(results, compare::Verdict::exact, count);
  result.kind = ledger.settle();
  return result;
}

Lines lines(const Repeated& repeated, const comm::Group& group) {
  Lines lines;
  const auto add = [&](const char* key, const std::string& value) { lines.emplace_back(key, value); };
  add("verdict", std::string(compare::name(repeated.kind)));
  if (!repeated.reason.empty()) add("reason", repeated.reason);
  if (repeated.kind == compare::Verdict::different) {
    const Repeated::Place& place = repeated.first;
    add("step", to_text(place.step));
    add("what", name(place.what));
    add("stage", name(place.phase));
    if (!place.unit.empty()) add("unit", place.unit);
    if (!place.parameter.empty()) add("parameter", place.parameter);
    if (place.leaf >= 0) add("micro-batch", to_text(place.leaf));
    add("rank", to_text(std::int64_t{place.rank}));
    add("host", group.host(place.rank));
    add("repetition", to_text(place.repetition));
    add("repetitions_differing", to_text(repeated.differing));
  }
  add("repetitions", to_text(repeated.repetitions));
  add("steps", to_text(repeated.steps));
  add("results_compared", to_text(repeated.results));
  return lines;
}

std::string repetitions_header() {
  return fmt::format("{:>10} {:>12} {:>9} {:>9}\n", "repetition", "loss", "results", "differing");
}

std::string to_text(const Repetition& repetition) {
  return fmt::format("{:>10} {:>12} {:>9} {:>9}\n", repetition.number, to_rounded_text(repetition.loss, 9),
                     repetition.results, repetition.differing);
}

void add(metric::Table& records, const Repetition& repetition, const std::string& loss_unit) {
  using metric::Type;
  records.column("repetition", Type::integer).integers().push_back(repetition.number);
  records.column("loss", Type::real, loss_unit).reals().push_back(repetition.loss);
  records.find("loss")->unit = loss_unit;  // not as usual
  records.column("results", Type::integer).integers().push_back(repetition.results);
  records.column("differing", Type::integer).integers().push_back(repetition.differing);
}

}  // namespace zs::verify
