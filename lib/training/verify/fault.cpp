// SPDX-License-Identifier: Apache-2.0
#include "verify/fault.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::verify {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw UsageError("--inject_fault: " + why); }

std::int64_t number(const std::string& text, const std::string& what, std::int64_t lowest, std::int64_t highest) {
  const auto value = parse_int(text);
  if (!value || *value < lowest || *value > highest) {
    refuse(what + " '" + text + "' is not in " + std::to_string(lowest) + ".." + std::to_string(highest));
  }
  return *value;
}

[[noreturn]] void refuse_name(const std::string& what, const std::string& name, const std::vector<std::string>& names) {
  std::string near;
  for (const std::string& candidate : nearest(name, names, 3))
    near += (near.empty() ? ", did you mean " : " or ") + candidate;
  if (near.empty()) {
    near = " (there are " + std::to_string(names.size()) + ": " + names.front() + " ... " + names.back() + ")";
  } else {
    near += '?';
  }
  refuse("no " + what + " '" + name + "'" + near);
}

constexpr std::array kKinds = {
    std::pair{"stale", InjectedFault::Kind::stale},   std::pair{"swapped", InjectedFault::Kind::swapped},
    std::pair{"torn", InjectedFault::Kind::torn},     std::pair{"scale", InjectedFault::Kind::scale},
    std::pair{"output", InjectedFault::Kind::output}, std::pair{"heads", InjectedFault::Kind::heads}};

/// Sets which unit it is, and refuses what the settings have not.
void read_unit(InjectedFault& fault, const std::string& kind, const std::string& name, const unit::Units& units,
               const setup::Settings& training) {
  const zero::Settings& settings = training.engine;
  std::vector<std::string> names;
  for (const auto& unit : units) names.push_back(unit->name());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) refuse_name("unit", name, names);
  fault.unit = static_cast<int>(found - names.begin());
  if (fault.kind == InjectedFault::Kind::output) return;
  if (fault.kind == InjectedFault::Kind::heads) {
    if (training.chunks == 1) refuse("sequences are whole and have no blocks of heads: set --sequence_chunks");
    if (units[static_cast<std::size_t>(fault.unit)]->exchanged(training.chunks) == 0) refuse(name + " has no heads");
    return;
  }
  if (fault.kind == InjectedFault::Kind::scale) {
    if (!settings.zeropp.quantized_weights)
      refuse("nothing is sent as integers, so there is no scale: set --zero_quantized_weights");
    return;
  }
  const zero::Offload& offload = settings.offload;
  if (offload.optimizer != zero::Place::disk && offload.parameters != zero::Place::disk)
    refuse("'" + kind + "' is a fault of a disk, and no state is on a disk: set --offload_device nvme");
}

}  // namespace

InjectedFault read_fault(const std::string& text, const unit::Units& units, std::int64_t steps, int ranks,
                         const setup::Settings& settings) {
  const int stage = settings.stage;
  const auto parts = split(text, ":");
  if (parts.size() < 3 || parts.size() > 4)
    refuse("'" + text + "' is not STEP:PARAMETER:INDEX[:RANK] or STEP:KIND:UNIT[:RANK]");
  InjectedFault fault;
  fault.step = number(parts[0], "step", 1, steps);
  for (const auto& [name, kind] : kKinds) {
    if (parts[1] != name) continue;
    fault.kind = kind;
    read_unit(fault, name, parts[2], units, settings);
    if (parts.size() == 4) fault.rank = static_cast<int>(number(parts[3], "rank", 0, ranks - 1));
    return fault;
  }
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const auto& parameter : units[unit]->parameters()) {
      if (parameter.name != parts[1]) continue;
      if (!parameter.trained) refuse(parameter.name + " is frozen: it has no gradient");
      fault.unit = static_cast<int>(unit);
      fault.element = parameter.offset + number(parts[2], "index in " + parameter.name, 0, parameter.numel() - 1);
    }
  }
  if (fault.unit < 0) {
    std::vector<std::string> names;
    for (const auto& unit : units) {
      for (const auto& parameter : unit->parameters()) names.push_back(parameter.name);
    }
    refuse_name("parameter", parts[1], names);
  }
  if (parts.size() < 4) return fault;
  fault.rank = static_cast<int>(number(parts[3], "rank", 0, ranks - 1));
  if (!plan::divided_by(stage).optimizer_state) return fault;
  const unit::Unit& unit = *units[static_cast<std::size_t>(fault.unit)];
  const int among = unit.experts() > 0 ? settings.experts : 1;
  for (int rank = 0; rank < ranks; ++rank) {
    const comm::Slice slice = comm::slice(unit.trained(), comm::place_of(rank, ranks, among), ranks);
    const bool owns = slice.begin <= fault.element && fault.element < slice.end;
    if (owns && rank != fault.rank) {
      refuse("rank " + parts[3] + " does not hold that element under stage " + std::to_string(stage) + ", rank " +
             std::to_string(rank) + " does");
    }
  }
  return fault;
}

void InjectedFault::apply(zero::Engine& engine, int its_rank) const {
  if (rank >= 0 && rank != its_rank) return;
  zero::UnitState& state = engine.states()[static_cast<std::size_t>(unit)];
  const auto plant = [&](zero::DiskFault fault) {
    // Optimizer state in front of parameters, where both are on the disk.
    const bool of_state = engine.on_disk() && state.optimizer->state().moves();
    zero::OffloadableBuffer* const buffer = of_state ? &state.optimizer->state() : state.parameters.shard();
    if (!buffer)
      refuse("the optimizer state of " + state.unit().name() +
             " is not on the disk: --offload_ratio leaves it on the device; name another unit");
    buffer->plant(fault);
  };
  switch (kind) {
    case Kind::bit:
      return state.gradient.flip_bit(element - state.part().begin);
    case Kind::stale:
      return plant(zero::DiskFault::stale);
    case Kind::swapped:
      return plant(zero::DiskFault::swapped);
    case Kind::torn:
      return plant(zero::DiskFault::torn);
    case Kind::scale:
      return state.parameters.plant_scale();
    case Kind::heads: {
      const auto& units = engine.units();
      const auto attends = [](const auto& each) { return each->exchanged(1) > 0; };
      return engine.sequence()->plant_swap(
          static_cast<int>(std::count_if(units.begin(), units.begin() + unit, attends)));
    }
    case Kind::output:
      return;
  }
}

at::Tensor InjectedFault::changed(const at::Tensor& output) {
  at::Tensor more = at::zeros_like(output.detach()).contiguous();
  const at::Tensor first = output.detach().reshape({-1})[0];
  more.view({-1})[0] = first.item<double>() == 0 ? 0.01 : first.item<double>() / 100;
  return output + more;
}

}  // namespace zs::verify
