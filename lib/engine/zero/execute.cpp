// SPDX-License-Identifier: Apache-2.0
// Runs the operations of a plan.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>

#include <chrono>
#include <cmath>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "plan/memory.hpp"
#include "unit/arithmetic.hpp"
#include "unit/autocast.hpp"
#include "unit/random.hpp"
#include "zero/annotation.hpp"
#include "zero/engine.hpp"
#include "zero/norm.hpp"

namespace zs::zero {

using plan::Kind;

namespace {

/// The leaves with which a unit computes a chunk: its own parameters, or the parameters of the unit that it is tied to.
using Leaves = const std::vector<at::Tensor>& (Parameters::*)(int chunk) const;

/// Has autograd add the gradients of the leaves of each chunk into the unit's.
void expect_gradient(UnitState& state, Leaves leaves, int chunks) {
  const std::vector<std::vector<at::Tensor>> into = state.gradient.leaf(chunks);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::vector<at::Tensor>& tensors = (state.parameters.*leaves)(chunk);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i].mutable_grad() = into[static_cast<std::size_t>(chunk)][i];
  }
}
double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void forget_gradient(const UnitState& state, Leaves leaves, int chunks) {
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (const at::Tensor& leaf : (state.parameters.*leaves)(chunk)) leaf.mutable_grad() = at::Tensor();
  }
}

/// Splits a tensor of all chunks into the chunks: the samples, or rows, of a chunk follow the chunk before.
std::vector<at::Tensor> parts(const at::Tensor& of_all, int chunks) {
  const bool several = chunks > 1 && of_all.defined();
  return several ? of_all.chunk(chunks, 0) : std::vector(static_cast<std::size_t>(chunks), of_all);
}
at::Tensor joined(const std::vector<at::Tensor>& parts) {
  const bool one = parts.size() == 1 || !parts[0].defined();
  return one ? parts[0] : parts[0].dim() == 0 ? at::stack(parts) : at::cat(parts, 0);
}

/// Whether an operation works on this rank's own micro-batch: it does nothing if the rank has none.
bool is_of_leaf(Kind kind, const plan::Shape& shape) {
  return plan::computes(kind) || kind == Kind::load_input || kind == Kind::store_input ||
         (kind == Kind::accumulate && !shape.divided().gradients);
}

/// Losses on their way to the host: there when the GPU has done what it was given before.
std::vector<at::Tensor> start_to_host(const std::vector<at::Tensor>& losses) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& loss : losses) {
    if (!loss.defined()) continue;
    if (loss.is_cpu()) return losses;
    copies.push_back(at::empty(loss.sizes(), at::TensorOptions(loss.scalar_type()).pinned_memory(true)));
    copies.back().copy_(loss, /*non_blocking=*/true);
  }
  return copies;
}

/// Until a GPU has done what LibTorch gave it. Transfers of offloaded state continue.
void settle(const device::Device& device) {
  if (device.kind == device::Device::Kind::cpu) return;
  const at::Device gpu = device::torch_device(device);
  c10::impl::VirtualGuardImpl(gpu.type()).getStream(gpu).synchronize();
}

}  // namespace

void Engine::execute(const plan::Plan& plan, Run& run) {
  run.batches.resize(static_cast<std::size_t>(plan.shape.micro_steps * chunks()));
  run.device_losses.resize(static_cast<std::size_t>(plan.shape.micro_steps));
  for (std::size_t at = 0; at < plan.ops.size(); ++at) {
    const plan::Op& op = plan.ops[at];
    if (prefetcher_) {
      prefetcher_->before(plan, at, [this](int unit) -> OffloadableBuffer& {
        return states_[static_cast<std::size_t>(unit)].optimizer->state();
      });
    }
    if (run.training && !settings_.use_torch_adam &&
        plan::shard_gives_way(plan, at, static_cast<int>(at::elementSize(settings_.dtype))))
      states_[static_cast<std::size_t>(op.unit)].parameters.drop_shard();
    if (run.training && plan::computes(op.kind)) run.result.held = std::max(run.result.held, held());
    if (timed_ && run.training)
      execute_timed(op, run);
    else
      execute(op, run);
  }
  read_losses(run);
  if (!run.kept.value_or(true))
    throw Error(
        "--activation_checkpointing selective has no effect here: LibTorch computes this attention (for dropout, caps, "
        "sinks; on a GPU also for images, and in float32 for keys that heads share), and keeps nothing of it: leave "
        "selective out");
  // Waits for shards of frozen units: no update has.
  for (UnitState& state : states_) {
    OffloadableBuffer* const shard = state.parameters.shard();
    if (shard && state.trained() == 0 && settings_.offload.parameters == Place::device) shard->load();
  }
  // A GPU may still update while the host begins the next step: this function does not wait for it.
}

/// Once in a run, at its end: in a training they are on the host by then.
void Engine::read_losses(Run& run) {
  for (const at::Tensor& loss : run.device_losses) {
    if (!loss.defined()) continue;
    const at::Tensor host = loss.to(at::kCPU, at::kFloat).contiguous();
    run.losses.insert(run.losses.end(), host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
  }
}

void Engine::execute_timed(const plan::Op& op, Run& run) {
  const device::Device device = group_.device();
  settle(device);
  const auto begin = std::chrono::steady_clock::now();
  execute(op, run);
  settle(device);
  timed_(op, seconds_since(begin), device::statistics(device).allocated);
}

void Engine::execute(const plan::Op& op, Run& run) {
  const Annotation annotation(plan(), op, group_, device::type_of(settings_.dtype));
  if (op.kind == Kind::norm) return norm(run);
  if (op.micro >= 0 && is_of_leaf(op.kind, plan().shape) && run.leaf(op.micro) < 0) return;
  UnitState& state = states_[static_cast<std::size_t>(op.unit)];
  switch (op.kind) {
    case Kind::gather:
      return start_gather(op, run);
    case Kind::gather_secondary:
      return state.parameters.start_gather_secondary();
    case Kind::partition:
      return state.parameters.partition();
    case Kind::gather_wait:
      state.parameters.finish_gather();
      // Once in a step: what is gathered later in it is the same.
      if (run.self_test && run.tested.insert(op.unit).second) uncounted(run, [&] { state.parameters.self_test(); });
      return;
    case Kind::release:
      return state.parameters.release();
    case Kind::forward:
      return forward(op.unit, op.micro, run.training, run);
    case Kind::forward_no_grad:
      return forward(op.unit, op.micro, false, run);
    case Kind::recompute:
      return recompute(op.unit, op.micro, run);
    case Kind::backward:
      return backward(op.unit, op.micro, run);
    case Kind::accumulate:
      return state.gradient.accumulate(shape_of(op.unit), op.micro);
    case Kind::reduce:
      if (op.micro < 0 && observer_.local_sum && state.gradient.state() == Gradient::State::leaf)
        observer_.local_sum(op.unit);
      return state.gradient.start_reduce(shape_of(op.unit), op.micro);
    case Kind::reduce_wait:
      return finish_reduce(op, run);
    case Kind::gather_grad:
      return state.gradient.start_gather();
    case Kind::gather_grad_wait:
      return state.gradient.finish_gather();
    case Kind::step:
      return update(op.unit, run);
    case Kind::load:
      return state.optimizer->state().start_load();
    case Kind::store:
      return state.optimizer->state().move_out();
    case Kind::load_shard:
      return state.parameters.shard()->start_load();
    case Kind::store_shard:
      return state.parameters.shard()->move_out();
    case Kind::load_input:
      return state.stored_input.start_load();
    case Kind::store_input:
      return state.stored_input.move_out(*memory_.inputs,
                                         "input of " + units_[static_cast<std::size_t>(op.unit)]->name(), state.input);
    case Kind::norm:
      return;
  }
}

void Engine::finish_reduce(const plan::Op& op, Run& run) {
  Gradient& gradient = states_[static_cast<std::size_t>(op.unit)].gradient;
  if (run.self_test && plan().shape.quantized_gradients)
    uncounted(run, [&] { gradient.finish_reduce(/*self_test=*/true); });
  else
    gradient.finish_reduce();
  if (op.micro >= 0 && observer_.shard) observer_.shard(op.unit, op.micro);
}

void Engine::start_gather(const plan::Op& op, Run& run) {
  run.together.push_back(op.unit);
  if (op.with_next) return;
  std::vector<comm::Gathered> operands;
  std::vector<Parameters*> gathered;
  std::string what;
  for (const int unit : std::exchange(run.together, {})) {
    UnitState& state = states_[static_cast<std::size_t>(unit)];
    if (state.is_part()) {  // of other ranks
      state.parameters.start_gather();
      continue;
    }
    const std::vector<comm::Gathered> ready = state.parameters.ready_to_gather();
    if (ready.empty()) continue;
    operands.insert(operands.end(), ready.begin(), ready.end());
    gathered.push_back(&state.parameters);
    what += (what.empty() ? "all-gather of " : ", ") + state.unit().name();
  }
  if (operands.empty()) return;
  const std::shared_ptr<comm::Pending> work = group_.all_gather_coalesced(operands, what);
  for (Parameters* const parameters : gathered) parameters->is_gathered_by(work);
}

at::Tensor Engine::compute(int unit, int micro, Run& run) {
  const auto index = static_cast<std::size_t>(unit);
  UnitState& state = states_[index];
  state.parameters.packed().widen();
  const int tied_to = units_[index]->tied_to();
  const at::DeviceType device = device::torch_device(group_.device()).type();
  const bool widens = unit::computed_in(settings_.dtype, device) != settings_.dtype;
  const auto used = [&](std::vector<at::Tensor> tensors) {
    for (at::Tensor& tensor : tensors) tensor = widens ? tensor.to(at::kFloat) : tensor;
    return tensors;
  };
  std::vector<std::vector<at::Tensor>> leaves, borrowed;
  std::vector<unit::Chunk> pieces;
  const std::vector<at::Tensor> inputs = parts(state.input, chunks());
  std::vector<at::Tensor> beside = parts(state.beside, chunks());
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    leaves.push_back(used(state.parameters.leaves(chunk)));
    borrowed.emplace_back();
    if (tied_to >= 0) borrowed.back() = used(states_[static_cast<std::size_t>(tied_to)].parameters.tied(chunk));
    const std::uint64_t stream = unit::leaf_key(settings_.seed, run.step, run.leaf(micro) + chunk);
    pieces.push_back({inputs[static_cast<std::size_t>(chunk)],
                      leaves.back(),
                      borrowed.back(),
                      {run.batches[static_cast<std::size_t>(micro * chunks() + chunk)], stream, run.training,
                       run.logits, &beside[static_cast<std::size_t>(chunk)]}});
  }
  if (state.is_part()) {
    for (int leaf = 1; leaf < experts_->size(); ++leaf) {
      const std::vector<at::Tensor> further = used(state.parameters.leaves(leaf));
      leaves[0].insert(leaves[0].end(), further.begin(), further.end());
    }
    pieces[0].owned = leaves[0], pieces[0].context.experts = &*experts_;
  }
  const unit::Autocast autocast(device, settings_.autocast);
  const at::Tensor output =
      sequence_ ? joined(units_[index]->forward_chunks(pieces, *sequence_))
                : computed(index).forward(pieces[0].x, pieces[0].owned, pieces[0].borrowed, pieces[0].context);
  state.beside_output = joined(beside);
  return output;
}

void Engine::forward(int unit, int micro, bool keep_graph, Run& run) {
  UnitState& state = states_[static_cast<std::size_t>(unit)];
  if (unit == 0) {
    for (int chunk = 0; chunk < chunks(); ++chunk)
      run.batches[static_cast<std::size_t>(micro * chunks() + chunk)] =
          (*run.batch)(run.leaf(micro) + chunk).to(device::torch_device(group_.device()));
    state.input = state.beside = at::Tensor();
  } else {
    UnitState& before = states_[static_cast<std::size_t>(unit) - 1];
    // If no earlier unit is trained, the input needs no gradient.
    const auto handed = [&](at::Tensor& output) {
      const at::Tensor input =
          output.defined() ? output.detach().requires_grad_(unit > plan::first_trained(plan().shape)) : at::Tensor();
      if (output.defined() && !output.requires_grad()) output = at::Tensor();
      return input;
    };
    state.input = handed(before.output);
    state.beside = handed(before.beside_output);
  }
  const at::AutoGradMode grad(keep_graph);
  std::optional<unit::Keeping> keeping;
  if (plan().shape.keeps_attention && run.training && !keep_graph && unit >= plan::first_trained(plan().shape))
    keeping.emplace(state.kept, unit::Keeping::Way::put);
  state.output = compute(unit, micro, run);
  if (unit < plan::first_trained(plan().shape)) state.input = state.beside = at::Tensor();  // no backward comes for it
  if (unit + 1 < static_cast<int>(states_.size())) return;
  run.device_losses[static_cast<std::size_t>(micro)] = state.output.detach();
  if (run.training) return;
  for (UnitState& each : states_) each.input = each.output = each.beside = each.beside_output = at::Tensor();
}

void Engine::recompute(int unit, int micro, Run& run) {
  UnitState& state = states_[static_cast<std::size_t>(unit)];
  state.stored_input.load(state.input);
  const unit::Again again;
  std::optional<unit::Keeping> keeping;
  if (plan().shape.keeps_attention) {
    run.kept = run.kept.value_or(false) || !state.kept.empty();
    keeping.emplace(state.kept, unit::Keeping::Way::take);
  }
  state.output = compute(unit, micro, run);
}

void Engine::backward(int unit, int micro, Run& run) {
  const auto index = static_cast<std::size_t>(unit);
  UnitState& state = states_[index];
  const int tied_to = units_[index]->tied_to();
  UnitState* const owner = tied_to < 0 ? nullptr : &states_[static_cast<std::size_t>(tied_to)];
  const int leaves = state.layout().chunks;
  if (state.trained() > 0) expect_gradient(state, &Parameters::leaves, leaves);
  if (owner && owner->trained() > 0) expect_gradient(*owner, &Parameters::tied, chunks());

  const bool last = index + 1 == states_.size();
  std::vector<at::Tensor> outputs = {state.output}, seeds = {last ? at::full_like(state.output, scaler_.scale())
                                                                  : states_[index + 1].input.grad()};
  if (!last && state.beside_output.defined()) {
    outputs.push_back(state.beside_output);
    seeds.push_back(states_[index + 1].beside.grad());
  }
  state.parameters.packed().widen();  // another unit's may have taken their place
  torch::autograd::backward(outputs, seeds);

  forget_gradient(state, &Parameters::leaves, leaves);
  if (owner) forget_gradient(*owner, &Parameters::tied, chunks());
  state.output = state.beside_output = at::Tensor();
  if (!last) states_[index + 1].input = states_[index + 1].beside = at::Tensor();
  if (unit == 0) state.input = at::Tensor();
  const std::int64_t first = run.leaf(micro) - (state.is_part() ? sharing_->rank() : 0);
  if (state.trained() == 0) return;
  state.gradient.join(shape_of(unit), first);
  if (!observer_.leaf) return;
  const auto begin = std::chrono::steady_clock::now();
  observer_.leaf(unit, micro);
  run.result.observed += seconds_since(begin);
}

void Engine::norm(Run& run) {
  if (observer_.reduced) {
    const auto begin = std::chrono::steady_clock::now();
    uncounted(run, observer_.reduced);
    run.result.observed += seconds_since(begin);
  }
  run.device_losses = start_to_host(run.device_losses);
  run.result.loss_scale = scaler_.scale();
  run.scale = static_cast<float>(gradient_scale());
  run.result.grad_norm = std::sqrt(sum_of_squares()) * gradient_scale();
  // Now, before the updated state is stored: a copy to the host would wait for that. Losses are read when the GPU has
  // its updates to do.
  settle(group_.device());
  clock_.reached();
  // Like torch.nn.utils.clip_grad_norm_: applies a factor below 1, or NaN.
  const double factor = settings_.max_grad_norm / (run.result.grad_norm + 1e-6);
  run.result.clip = settings_.max_grad_norm > 0 && !(factor >= 1) ? static_cast<float>(factor) : 1.0F;
  run.result.clipped_norm = run.result.grad_norm * run.result.clip;
  // Without loss scaling a gradient that is not finite is applied: the training has diverged, and must show it.
  const bool finite = std::isfinite(run.result.grad_norm);
  run.result.skipped = settings_.scales() && !finite;
  if (!run.result.skipped) ++updates_;
  scaler_.update(finite);
}

/// First the whole units, then the units whose experts can be divided. The order is the same whether they are divided
/// or not.
double Engine::sum_of_squares() {
  std::vector<Shard> whole, experts;
  const UnitState* part = nullptr;
  for (const UnitState& state : states_) {
    if (state.is_part()) part = &state;
    if (state.trained() == 0) continue;
    auto& shards = state.unit().experts() > 0 ? experts : whole;
    shards.push_back({state.gradient.value(), state.owned(), state.trained()});
  }
  const bool replicated = !states_.front().layout().divided.optimizer_state;
  const double sum = zero::sum_of_squares(group_, whole, replicated);
  if (experts.empty()) return sum;
  if (!part) return sum + zero::sum_of_squares(group_, experts, replicated);
  // Where all that have an expert own it, those that share micro-batches have all experts.
  if (!part->layout().divided.optimizer_state) return sum + zero::sum_of_squares(*sharing_, experts, false);
  return sum + zero::sum_of_squares(group_, experts, false, sharing_->size());
}

void Engine::update(int unit, Run& run) {
  UnitState& state = states_[static_cast<std::size_t>(unit)];
  if (run.result.skipped)
    state.keep();
  else
    state.update({run.learning_rate, updates_, run.scale, run.result.clip});
  state.gradient.drop();
}

}  // namespace zs::zero
