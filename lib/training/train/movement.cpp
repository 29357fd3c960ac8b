// SPDX-License-Identifier: Apache-2.0
#include "train/movement.hpp"

#include <algorithm>
#include <iterator>

#include "base/words.hpp"
#include "device/operations.hpp"

namespace zs::train {
namespace {

constexpr int kUpdates = 2;  // an adapter's lora_A has a gradient from the second one on
constexpr std::size_t kNamed = 3;

/// The fingerprint of this rank's part of each trained parameter, in the unit's order; `owned` is of all its parts.
std::vector<std::uint64_t> fingerprints(const zero::UnitState& state, const device::View& owned) {
  const comm::Slice slice = state.owned();
  std::vector<device::View> parts;
  for (const unit::Parameter& parameter : state.unit().parameters()) {
    if (!parameter.trained) continue;
    const unit::Range part = parameter.place().within(slice.begin, slice.end);
    parts.push_back(part.size() > 0 ? owned.part(part.begin - slice.begin, part.end - slice.begin) : owned.part(0, 0));
  }
  return device::operations(owned.device).fingerprints(parts);
}

}  // namespace

std::vector<std::uint64_t> Movement::masters() {
  std::vector<std::uint64_t> prints;
  for (zero::UnitState& state : engine_.states()) {
    if (state.trained() == 0) continue;
    state.see_masters(
        [&](const device::View& owned) { std::ranges::copy(fingerprints(state, owned), std::back_inserter(prints)); });
  }
  return prints;
}

Movement::Movement(comm::Group& group, zero::Engine& engine, bool adapters)
    : group_(group), engine_(engine), adapters_(adapters), updates_before_(engine.updates()) {
  for (const std::uint64_t begun : masters()) seen_.push_back({.begun = begun});
}

void Movement::gradients() {
  if (told_) return;
  std::size_t first = 0;  // of the unit's
  for (const zero::UnitState& state : engine_.states()) {
    if (state.trained() == 0) continue;
    std::size_t count = 0;
    for (const device::View& sum : state.gradient.parts()) {
      const std::vector<std::uint64_t> prints = fingerprints(state, sum);
      count = prints.size();
      for (std::size_t i = 0; i < count; ++i) seen_[first + i].gradient = seen_[first + i].gradient || prints[i] != 0;
    }
    first += count;
  }
}

std::string Movement::after(double learning_rate, bool last) {
  if (told_) return "";
  const bool updated = engine_.updates() > updates_before_;
  updates_before_ = engine_.updates();
  if (updated && learning_rate > 0) ++counted_;
  if (counted_ < kUpdates && !last) return "";
  told_ = true;
  if (counted_ == 0) return "";  // nothing could move
  const std::vector<std::uint64_t> now = masters();
  for (std::size_t i = 0; i < seen_.size(); ++i) seen_[i].moved = now[i] != seen_[i].begun;
  return said();
}

std::string Movement::said() {
  std::string mine;
  for (const Seen& seen : seen_) mine += static_cast<char>(seen.gradient * 2 + seen.moved);
  std::vector<int> joined(seen_.size());
  for (const std::string& flags : group_.all_gather_object(mine, "exchange of what has moved")) {
    for (std::size_t i = 0; i < joined.size(); ++i) joined[i] |= flags[i];
  }
  std::vector<std::string> still;
  std::size_t at = 0;
  for (const auto& unit : engine_.units()) {
    for (const unit::Parameter& parameter : unit->parameters()) {
      if (!parameter.trained) continue;
      const bool gradient = (joined[at] & 2) != 0, moved = (joined[at] & 1) != 0;
      ++at;
      const bool late = adapters_ && counted_ < kUpdates && parameter.name.ends_with(".lora_A.weight");
      if ((gradient && moved) || late) continue;
      still.push_back(parameter.name +
                      (!gradient
                           ? moved ? " (its gradient is zero: only weight decay moves it)" : " (its gradient is zero)"
                           : " (its updates change no bit: the learning rate is small for its values)"));
    }
  }
  if (still.empty()) return "";
  return "after " + counted(static_cast<std::size_t>(counted_), "update") + " " + std::to_string(still.size()) +
         " of " + std::to_string(seen_.size()) + " trained parameters are not trained: " + some_of(still, kNamed);
}

}  // namespace zs::train
