// SPDX-License-Identifier: Apache-2.0
// Checks that trained parameters move: otherwise a parameter
// without a gradient, or with lost updates, goes unnoticed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::train {

class Movement {
 public:
  /// Starts from the current parameters. `adapters`: half of them only move after the first update.
  Movement(comm::Group& group, zero::Engine& engine, bool adapters);

  /// Call it between reduction and update of a step.
  void gradients();
  /// Call it after a step with this learning rate. After two updates with a rate above 0, or after the last step,
  /// returns once which trained parameters had no gradient or did not change, and why; else "". COLLECTIVE.
  std::string after(double learning_rate, bool last);

 private:
  struct Seen {
    std::uint64_t begun = 0;  ///< fingerprint of this rank's part
    bool gradient = false, moved = false;
  };
  comm::Group& group_;
  zero::Engine& engine_;
  bool adapters_;
  std::vector<Seen> seen_;  // of each trained parameter, in the units' order
  std::int64_t updates_before_;
  int counted_ = 0;  // updates with a rate above 0
  bool told_ = false;

  /// The fingerprint of this rank's part of each, where it is: a GPU's numbers do not come to the host for it.
  std::vector<std::uint64_t> masters();
  std::string said();
};

}  // namespace zs::train
