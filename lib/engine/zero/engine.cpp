// SPDX-License-Identifier: Apache-2.0
#include "zero/engine.hpp"

#include <algorithm>
#include <deque>
#include <future>

#include "base/error.hpp"
#include "comm/agree.hpp"
#include "comm/pack.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "device/tree.hpp"

namespace zs::zero {
namespace {

/// Initial values of this rank's part of each unit, unit by unit, in the host's memory. Some are drawn before the GPU
/// needs them, into memory that is reused: new pages take as long as the numbers.
class Beginnings {
 public:
  /// Sets values[layout.kept_numel()] of a unit; several at once, `ahead` of next().
  using Draw = std::function<void(std::size_t unit, const at::Tensor& values)>;
  Beginnings(std::vector<std::int64_t> sizes, std::size_t ahead, Draw draw)
      : sizes_(std::move(sizes)), ahead_(ahead), draw_(std::move(draw)) {}
  /// For the next unit; valid until the next call.
  at::Tensor next() {
    if (last_.defined()) free_.push_back(std::move(last_));
    for (; drawn_.size() < std::max<std::size_t>(ahead_, 1) && begun_ < sizes_.size(); ++begun_) {
      at::Tensor room = taken(sizes_[begun_]);
      const at::Tensor values = room.narrow(0, 0, sizes_[begun_]);
      drawn_.push_back({std::move(room), sizes_[begun_],
                        std::async(ahead_ > 0 ? std::launch::async : std::launch::deferred,
                                   [this, values, unit = begun_] { draw_(unit, values); })});
    }
    Drawn drawn = std::move(drawn_.front());
    drawn_.pop_front();
    drawn.done.get();
    last_ = std::move(drawn.room);
    return last_.narrow(0, 0, drawn.size);
  }

 private:
  struct Drawn {
    at::Tensor room;
    std::int64_t size;
    std::future<void> done;
  };
  std::vector<std::int64_t> sizes_;
  std::size_t ahead_, begun_ = 0;
  Draw draw_;
  std::vector<at::Tensor> free_;
  at::Tensor last_;
  std::deque<Drawn> drawn_;

  at::Tensor taken(std::int64_t size) {
    const auto found = std::ranges::find_if(free_, [size](const at::Tensor& room) { return room.numel() >= size; });
    if (found == free_.end()) return at::empty({size});
    at::Tensor room = std::move(*found);
    free_.erase(found);
    return room;
  }
};

}  // namespace

Engine::Engine(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings)
    : group_(group),
      units_(units),
      settings_(settings),
      plans_(group, units, strategy, settings),
      memory_(group, plans_, settings),
      scaler_(settings.scales(), settings.loss_scaling),
      clock_(group.device()) {
  const device::Device device = group.device();
  if (strategy.chunks > 1) {
    sharing_ = strategy.sequence > 1 ? group.split(group.rank() / strategy.sequence, "ranks that share sequences")
                                     : comm::single();
    sequence_.emplace(*sharing_, strategy.chunks_of_rank());
  }
  if (strategy.experts > 1) {
    sharing_ = group.split(group.rank() / strategy.experts, "ranks that divide experts");
    experts_.emplace(*sharing_);
  }
  if (memory_.optimizer && settings.offload.optimizer == Place::host && device.kind != device::Device::Kind::cpu)
    prefetcher_.emplace(*memory_.optimizer, [device] { return device::statistics(device).allocated; });
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < units.size(); ++i) {
    divide(i);
    sizes.push_back(layout(i).kept_numel());
  }
  // Other beginnings are read, from files that one thread reads.
  const unit::Beginning begin =
      settings.begin ? settings.begin : [&](std::size_t unit, std::int64_t from, std::span<float> values) {
        unit::initialise(*units[unit], settings.seed, from, values);
      };
  const bool ahead = !settings.begin && device.kind != device::Device::Kind::cpu;
  Beginnings beginnings(std::move(sizes), ahead ? 4 : 0, [&](std::size_t unit, const at::Tensor& values) {
    fill_kept(layout(unit), first(unit), values,
              [&](std::int64_t from, std::span<float> values) { begin(unit, from, values); });
  });
  states_.reserve(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    add_state(i);
    states_.back().set_kept(beginnings.next());
    // Initial values come from a generator for each parameter: several are drawn at once.
    states_.back().parameters.packed().set([&](std::int64_t from, std::span<float> values) { begin(i, from, values); },
                                           [&](std::size_t parameter, std::span<std::byte> bytes) {
                                             return settings.packed && settings.packed(i, parameter, bytes);
                                           },
                                           /*at_once=*/!settings.begin);
  }
}

void Engine::divide(std::size_t unit) {
  const unit::Unit& whole = *units_[unit];
  const std::int64_t count = whole.experts() / among(unit);
  parts_.push_back(among(unit) > 1 ? whole.part(sharing_->rank() * count, (sharing_->rank() + 1) * count) : nullptr);
}

Layout Engine::layout(std::size_t unit) const {
  const comm::Group& group = among(unit) > 1 ? *memory_.replicas : group_;
  return zero::layout(computed(unit), group, shape_of(static_cast<int>(unit)), device::type_of(settings_.dtype),
                      memory_.parameters != nullptr);
}

std::int64_t Engine::first(std::size_t unit) const {
  return among(unit) > 1 ? sharing_->rank() * computed(unit).numel() : 0;
}

void Engine::add_state(std::size_t unit) {
  const unit::Unit& whole = *units_[unit];
  const bool shared = among(unit) > 1;
  comm::Group& group = shared ? *memory_.replicas : group_;
  Pool& pool = shared ? *memory_.replica_pool : memory_.pool;
  // A state that no plan moves has no place in the store.
  Store* const store = plans_.have(plan::Kind::store, static_cast<int>(unit)) ? memory_.optimizer.get() : nullptr;
  const Residency state_residency{store, !store || !plan().shape.offloads(plan().shape.units[unit])},
      shard_residency{memory_.parameters.get(), settings_.offload.parameters == Place::device};
  const auto optimizer = [&](const Layout& layout, const device::View& parameters) {
    Recipe made =
        recipe(settings_.optimizer, computed(unit), is_block(units_, unit), layout.owned, settings_.decay_all);
    made.updates = settings_.trains;
    const bool coded = settings_.optimizer.kind == optimizer::Kind::adamw_8bit;
    return (settings_.use_torch_adam ? torch_adamw
            : coded                  ? coded_adamw
                    : fused_optimizer)({whole.name(), std::move(made), parameters, layout, &pool, state_residency});
  };
  const Places places{shard_residency, memory_.secondary_pool ? &*memory_.secondary_pool : nullptr, &memory_.workspace};
  states_.emplace_back(computed(unit), group, pool, layout(unit), optimizer, places);
  if (shared) states_.back().is_part_of(whole, first(unit), *sharing_);
}

StepResult Engine::step(std::int64_t step, double learning_rate, const BatchOf& batch) {
  clock_.begin();
  plans_.prepare(step);
  StepResult result;
  std::vector<float> losses;
  {
    Run run;
    run.step = step;
    run.learning_rate = learning_rate;
    run.batch = &batch;
    run.leaf = [this](int micro) { return leaf(micro); };
    const std::int64_t every = settings_.zeropp.self_test_every;
    run.self_test = !self_tested_ || (every > 0 && step % every == 0);
    self_tested_ = true;
    const Sent before = sent();
    execute(plan(), run);
    if (timed_) clock_.reached();  // it has waited for each operation
    add(run.result, before, sent(), 1);
    result = std::move(run.result), losses = std::move(run.losses);
  }  // what the run held is not counted as memory
  exchange(result, losses);
  result.seconds = clock_.end();
  return result;
}

double Engine::evaluate(std::int64_t count, const BatchOf& batch, const LogitsSeen& seen) {
  const plan::Plan plan = evaluation_plan(this->plan());
  const int sharing = plan.shape.sequence, groups = group_.size() / sharing;
  // Ranks beyond the last micro-batch go along, since gathers need them; their loss is left out.
  const auto micro_batch = [&](std::int64_t first, int rank) { return first + rank / sharing; };
  struct Part {
    float loss;
    std::int64_t samples;
  };
  double sum = 0;
  std::int64_t samples = 0;
  for (std::int64_t first = 0; first < count; first += groups) {
    Run run;
    run.batch = &batch;
    run.training = false;
    const std::int64_t local = micro_batch(first, group_.rank());
    run.leaf = [&](int) { return (std::min(local, count - 1) * sharing + group_.rank() % sharing) * chunks(); };
    at::Tensor logits;
    if (seen) run.logits = &logits;
    const at::NoGradGuard no_grad;
    execute(plan, run);
    if (seen && local < count) seen(local, run.batches.at(0), logits);
    std::vector<Part> mine;
    for (const float loss : run.losses) mine.push_back({loss, run.batches.at(0).samples()});
    const auto parts = group_.all_gather(std::span<const Part>(mine), "all-gather of the validation losses");
    for (int rank = 0; rank < group_.size() && micro_batch(first, rank) < count; ++rank) {
      for (const Part& part : parts[static_cast<std::size_t>(rank)]) {
        sum += static_cast<double>(part.loss) * static_cast<double>(part.samples);
        samples += part.samples;
      }
    }
  }
  return sum / static_cast<double>(samples);
}

void Engine::exchange(StepResult& result, const std::vector<float>& losses) {
  const device::Statistics memory = device::statistics(group_.device());
  struct Own {
    Usage usage;
    bool stop;
  };
  std::string mine;
  comm::put(mine, Own{{memory.allocated, memory.peak, memory.reserved, memory.peak_reserved, result.sent,
                       result.sent_between_nodes},
                      observer_.stop && observer_.stop()});
  for (const float loss : losses) comm::put(mine, loss);
  const std::vector<std::string> messages = group_.all_gather_object(mine, "exchange at the end of the step");
  result.leaf_losses.resize(static_cast<std::size_t>(leaves()));
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::string& message = messages[static_cast<std::size_t>(rank)];
    std::size_t at = 0;
    const auto [usage, stop] = comm::take<Own>(message, at);
    result.most = result.most.or_more(usage);
    result.stop = result.stop || stop;
    for (int micro = 0; micro < plan().shape.micro_steps; ++micro) {
      const std::int64_t leaf = plan::leaf(plan().shape, rank, micro);
      for (int chunk = 0; leaf >= 0 && chunk < chunks(); ++chunk)
        result.leaf_losses[static_cast<std::size_t>(leaf + chunk)] = comm::take<float>(message, at);
    }
  }
  result.loss = device::tree_sum(std::span<const float>(result.leaf_losses)) / static_cast<float>(leaves());
}

std::string Engine::digest() {
  device::Hash hash;
  for (UnitState& state : states_) hash.add(device::view(state.whole_parameters()));
  const std::string text = hash.text();
  comm::require_same(group_, {{"the digest of the parameters", text}}, "end of the step");
  return text;
}

std::int64_t Engine::held() {
  std::int64_t bytes = 0;
  for (UnitState& state : states_) bytes += state.bytes_here();
  return bytes;
}

Engine::Sent Engine::sent() const {
  Sent sent{group_.bytes_sent(), group_.bytes_between_nodes(), group_.collectives()};
  for (const auto* const part : {&memory_.secondary_group, &memory_.replicas, &sharing_}) {
    if (!*part) continue;
    sent.total += (*part)->bytes_sent();
    sent.between_nodes += (*part)->bytes_between_nodes();
    sent.collectives += (*part)->collectives();
  }
  return sent;
}

void Engine::add(StepResult& result, const Sent& before, const Sent& after, int sign) {
  result.sent += sign * (after.total - before.total);
  result.sent_between_nodes += sign * (after.between_nodes - before.between_nodes);
  result.collectives += sign * (after.collectives - before.collectives);
}

}  // namespace zs::zero
