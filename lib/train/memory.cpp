// SPDX-License-Identifier: Apache-2.0
#include "train/memory.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "plan/plan.hpp"

namespace zs::train {

double least_memory(const model::Model& model, const Settings& settings, int ranks) {
  const auto real = [](auto size) { return static_cast<double>(size); };
  const double state = plan::state_bytes(real(unit::numel(model.units)), settings.stage, ranks,
                                         static_cast<int>(at::elementSize(settings.engine.dtype)));
  // Two indices of 8 bytes for each token, and what one unit hands to the next, in no less than 16 bits.
  const double batch = real(settings.batch_size) * real(model.seq_length) * (2 * 8 + 2 * real(model.width));
  constexpr int kOperations = 4;  // forward, backward and the sum of the gradient, at least
  const double plan = real(model.units.size()) * real(settings.micro_steps) * kOperations * sizeof(plan::Op);
  return state + batch + plan;
}

void require_memory(const comm::Group& group, const model::Model& model, const Settings& settings,
                    std::int64_t memory) {
  const std::string& host = group.host(group.rank());
  int here = 0;
  for (int rank = 0; rank < group.size(); ++rank) here += group.host(rank) == host;
  const double rank = least_memory(model, settings, group.size());
  if (rank * here <= static_cast<double>(memory)) return;
  throw Error(model.name + " with " + to_text(model.num_layers) + " layers, stage " + std::to_string(settings.stage) +
              " and batches of " + to_text(settings.batch_size) + " x " + to_text(model.seq_length) +
              " tokens needs at least " + to_bytes_text(rank) + " for each rank; " + host + " has " +
              to_bytes_text(static_cast<double>(memory)) + " for " + std::to_string(here) +
              ": use fewer layers, smaller batches, or a higher --zero_stage on more machines");
}

}  // namespace zs::train
