// SPDX-License-Identifier: Apache-2.0
#include "train/movement.hpp"

#include <xxhash.h>

#include <algorithm>
#include <span>

#include "base/words.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"

namespace zs::train {
namespace {

constexpr int kUpdates = 2;  // an adapter's lora_A has a gradient from the second one on
constexpr std::size_t kNamed = 3;

std::uint64_t hash(std::span<const float> values) { return XXH3_64bits(values.data(), values.size_bytes()); }

}  // namespace

template <typename Values, typename See>
void Movement::each(Values values, See see) {
  auto seen = seen_.begin();
  for (zero::UnitState& state : engine_.states()) {
    if (state.trained() == 0) continue;
    const at::Tensor owned = values(state);
    const std::span<const float> all = device::floats(owned);
    const comm::Slice slice = state.owned();
    for (const unit::Parameter& parameter : state.unit().parameters()) {
      if (!parameter.trained) continue;
      const std::int64_t begin = std::max(parameter.offset, slice.begin),
                         end = std::max(begin, std::min(parameter.offset + parameter.numel(), slice.end));
      see(*seen++, all.subspan(begin < end ? static_cast<std::size_t>(begin - slice.begin) : 0,
                               static_cast<std::size_t>(end - begin)));
    }
  }
}

Movement::Movement(comm::Group& group, zero::Engine& engine, bool adapters)
    : group_(group), engine_(engine), adapters_(adapters), updates_before_(engine.updates()) {
  for (const auto& unit : engine.units()) {
    for (const unit::Parameter& parameter : unit->parameters()) {
      if (parameter.trained) seen_.emplace_back();
    }
  }
  each([](zero::UnitState& state) { return state.masters(); },
       [](Seen& seen, std::span<const float> part) { seen.begun = hash(part); });
}

void Movement::gradients() {
  if (told_) return;
  each([](zero::UnitState& state) { return state.gradient.on_host(); },
       [](Seen& seen, std::span<const float> part) {
         seen.gradient = seen.gradient || std::ranges::any_of(part, [](float value) { return value != 0; });
       });
}

std::string Movement::after(double learning_rate, bool last) {
  if (told_) return "";
  const bool updated = engine_.updates() > updates_before_;
  updates_before_ = engine_.updates();
  if (updated && learning_rate > 0) ++counted_;
  if (counted_ < kUpdates && !last) return "";
  told_ = true;
  if (counted_ == 0) return "";  // nothing could move
  each([](zero::UnitState& state) { return state.masters(); },
       [](Seen& seen, std::span<const float> part) { seen.moved = hash(part) != seen.begun; });
  return said();
}

std::string Movement::said() {
  std::string own;
  for (const Seen& seen : seen_) own += static_cast<char>(seen.gradient * 2 + seen.moved);
  std::vector<int> all(seen_.size());
  for (const std::string& its : group_.all_gather_object(own, "exchange of what has moved")) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] |= its[i];
  }
  std::vector<std::string> still;
  std::size_t at = 0;
  for (const auto& unit : engine_.units()) {
    for (const unit::Parameter& parameter : unit->parameters()) {
      if (!parameter.trained) continue;
      const bool gradient = (all[at] & 2) != 0, moved = (all[at] & 1) != 0;
      ++at;
      const bool late = adapters_ && counted_ < kUpdates && parameter.name.ends_with(".lora_A.weight");
      if ((gradient && moved) || late) continue;
      still.push_back(parameter.name +
                      (!gradient
                           ? moved ? " (its gradient is zero: weight decay alone moves it)" : " (its gradient is zero)"
                           : " (its updates change no bit: the learning rate is small for its values)"));
    }
  }
  if (still.empty()) return "";
  return "after " + counted(static_cast<std::size_t>(counted_), "update") + " " + std::to_string(still.size()) +
         " of " + std::to_string(seen_.size()) + " trained parameters are not trained: " + some_of(still, kNamed);
}

}  // namespace zs::train
