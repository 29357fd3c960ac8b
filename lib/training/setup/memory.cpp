// SPDX-License-Identifier: Apache-2.0
#include "setup/memory.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "base/number.hpp"
#include "device/memory.hpp"
#include "device/tensor.hpp"
#include "plan/offload.hpp"
#include "setup/describe.hpp"

namespace zs::setup {
namespace {

/// The sizes that a model's state in a stage depends on.
plan::Shape shape_of(const model::Model& model, const Settings& settings, int stage, int ranks) {
  plan::Shape shape{{stage, ranks}};
  shape.secondary = plan::divided_by(stage).parameters ? settings.engine.zeropp.secondary : 0;
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    const unit::Unit& unit = *model.units[i];
    const int among = unit.experts() > 0 ? settings.experts : 1;
    plan::Unit part{unit.name(), unit.numel() / among};
    part.kept = zero::kept(settings.engine.optimizer, unit, zero::is_block(model.units, i)) / among;
    part.frozen = (unit.numel() - unit.trained()) / among;
    part.among = among;
    part.packed = unit.packed(), part.packed_bytes = zero::packed_bytes(unit);
    shape.units.push_back(part);
  }
  plan::offload_share(shape, settings.engine.offload.ratio);
  return shape;
}

}  // namespace

double least_memory(const model::Model& model, const Settings& settings, int ranks) {
  const auto real = [](auto size) { return static_cast<double>(size); };
  // State that is offloaded to the host's memory counts there.
  const zero::Offload& offload = settings.engine.offload;
  const auto bytes = static_cast<int>(at::elementSize(settings.engine.dtype));
  plan::Shape shape = shape_of(model, settings, settings.stage, ranks);
  shape.offload_optimizer = offload.optimizer == zero::Place::disk;
  shape.offload_parameters = offload.parameters == zero::Place::disk;
  double held = 0;
  for (const plan::Unit& unit : shape.units) held += plan::held_bytes(unit, bytes) * unit.among;
  const double state = settings.engine.trains ? plan::state_bytes(shape, bytes)
                       : shape.offload_parameters
                           ? 0
                           : plan::share(held, plan::divided_by(settings.stage).parameters, ranks);
  // Two indices of 8 bytes for each token, and what one unit hands to the next, in no less than 16 bits.
  const double batch =
      real(settings.batch_size) * real(model.seq_length) / real(settings.sequence) * (2 * 8 + 2 * real(model.width));
  constexpr int kOperations = 4;  // forward, backward and the sum of the gradient, at least
  const double plan = real(model.units.size()) * real(settings.micro_steps) * kOperations * sizeof(plan::Op);
  return state + batch + plan;
}

double room_for_gathers(const model::Model& model, const Settings& settings, int ranks, double memory) {
  plan::Shape shape = shape_of(model, settings, settings.stage, ranks);
  shape.offload_optimizer = settings.engine.offload.optimizer != zero::Place::device;
  shape.offload_parameters = settings.engine.offload.parameters != zero::Place::device;
  const double state = plan::state_bytes(shape, static_cast<int>(at::elementSize(settings.engine.dtype)));
  return std::max(0.0, memory - state) / 4;
}

void place_on(Settings& s, const comm::Group& group) {
  const device::Device device = group.device();
  s.model.device = device::torch_device(device).type();
  if (device.kind == device::Device::Kind::cpu || s.has_budget) return;
  const std::int64_t capacity = device::capacity(device);
  s.memory = usual_memory(capacity);
  const double room = room_for_gathers(model::make(s.model), s, group.size(), static_cast<double>(capacity));
  s.gathered_elements = static_cast<std::int64_t>(room / static_cast<double>(at::elementSize(s.engine.dtype)));
}

namespace {

/// The ranks of this rank's machine.
int ranks_here(const comm::Group& group) {
  const std::string& host = group.host(group.rank());
  int here = 0;
  for (int rank = 0; rank < group.size(); ++rank) here += group.host(rank) == host;
  return here;
}

}  // namespace

std::string early_word(const comm::Group& group, const model::Model& model, const Settings& settings,
                       std::int64_t memory) {
  constexpr double kMuch = 0.25;  // of the memory
  const double rank = least_memory(model, settings, group.size());
  const double needed = rank * ranks_here(group), available = static_cast<double>(memory);
  if (needed < kMuch * available || needed > available) return "";  // what does not fit is refused next
  return model.name + " with " + to_text(model.num_layers) + " layers has " + to_text(unit::numel(model.units)) +
         " parameters, and each rank needs at least " + to_bytes_text(rank) + " of the " +
         to_bytes_text(static_cast<double>(memory)) + " here: to make it takes a while";
}

void require_memory(const comm::Group& group, const model::Model& model, const Settings& settings,
                    std::int64_t memory) {
  const std::string& host = group.host(group.rank());
  const int here = ranks_here(group);
  const double rank = least_memory(model, settings, group.size());
  if (rank * here <= static_cast<double>(memory)) return;
  throw Error(model.name + " with " + to_text(model.num_layers) + " layers, stage " + std::to_string(settings.stage) +
              " and batches of " + to_text(settings.batch_size) + " x " + to_text(model.seq_length) +
              " tokens needs at least " + to_bytes_text(rank) + " for each rank; " + host + " has " +
              to_bytes_text(static_cast<double>(memory)) + " for " + std::to_string(here) +
              ": use fewer layers, smaller batches, or a higher --zero_stage on more machines");
}

namespace {

/// For a message: the memory that these settings need, and settings that need less.
std::string remedies(const model::Model& model, const Settings& s, int ranks, bool on_host) {
  const bool offloads = s.engine.offload.optimizer != zero::Place::device;
  const auto state = [&](int stage, bool offload) {
    plan::Shape shape = shape_of(model, s, stage, ranks);
    shape.offload_optimizer = offload, shape.offload_parameters = s.engine.offload.parameters != zero::Place::device;
    return plan::state_bytes(shape, static_cast<int>(at::elementSize(s.engine.dtype)));
  };
  std::string text = "; parameters, gradients and optimizer state are " + to_bytes_text(state(s.stage, offloads)) +
                     " of a rank at stage " + std::to_string(s.stage);
  for (const int stage : plan::kStages) {
    if (stage <= s.stage || ranks == 1) continue;
    text += ", " + to_bytes_text(state(stage, offloads)) + " with --zero_stage " + std::to_string(stage);
  }
  const plan::Division divided = plan::divided_by(s.stage);
  if (ranks == 1) text += divided.parameters ? ", less on more ranks" : ", less with --zero_stage 3 on more ranks";
  if (!offloads && !on_host && !s.engine.use_torch_adam) {
    const int stage = divided.optimizer_state ? s.stage : 1;
    text += ", " + to_bytes_text(state(stage, true)) + " with --offload_device cpu" +
            (divided.optimizer_state ? "" : " --zero_stage 1");
  }
  const bool elsewhere = offloads && (!on_host || s.engine.offload.optimizer == zero::Place::disk);
  if (elsewhere && s.engine.offload.ratio < 1) text += "; --offload_ratio 1 leaves no optimizer state there";
  if (s.batch_size > 1)
    text += "; --max_gpu_batch_size " + to_text(s.batch_size / 2) + " keeps the activations of half of the sequences";
  if (!s.activation_checkpointing || s.keeps_attention)
    text += "; --activation_checkpointing keeps the activations of one layer";
  return text;
}

}  // namespace

void explain_memory(const comm::Group& group, const model::Model& model, const Settings& settings) {
  std::string what;
  const auto no_room = [&] {
    return "no room on " + device::to_text(group.device()) + ", where " +
           to_bytes_text(static_cast<double>(device::statistics(group.device()).allocated)) + " are held";
  };
  try {
    throw;
  } catch (const device::OutOfMemory& error) {
    what = error.what();
  } catch (const c10::OutOfMemoryError& error) {
    // LibTorch's own, of many sentences: "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."
    const std::string said = error.what_without_backtrace();
    const std::size_t at = said.find("Tried to allocate "), end = said.find(". ", at);
    what = no_room() + (at == std::string::npos ? "" : ": t" + said.substr(at + 1, end - at - 1));
  } catch (const std::bad_alloc&) {
    what = no_room();
  } catch (...) {
    return;
  }
  throw Error(what + remedies(model, settings, group.size(), group.device().kind == device::Device::Kind::cpu));
}

}  // namespace zs::setup
