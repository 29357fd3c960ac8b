// SPDX-License-Identifier: Apache-2.0
// Whether what is trained moves: a parameter without a gradient, or whose updates are lost, is otherwise found out by
// nobody.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::train {

class Movement {
 public:
  /// From the parameters as they are now. `adapters`: of some the first half begins to move behind the first update.
  Movement(comm::Group& group, zero::Engine& engine, bool adapters);

  /// Between reduction and update of a step.
  void gradients();
  /// After a step with this learning rate. Behind two updates of a rate above 0, or behind the last step, it says once
  /// which trained parameters have had no gradient or have not changed a bit, and why; "" else. COLLECTIVE.
  std::string after(double learning_rate, bool last);

 private:
  struct Seen {
    std::uint64_t begun = 0;  ///< hash of this rank's part
    bool gradient = false, moved = false;
  };
  comm::Group& group_;
  zero::Engine& engine_;
  bool adapters_;
  std::vector<Seen> seen_;  // of each trained parameter, in the units' order
  std::int64_t updates_before_;
  int counted_ = 0;  // updates that could move something
  bool told_ = false;

  /// Calls `see` with what is noted of each trained parameter and this rank's part of it in `values`, which gives that
  /// of a unit.
  template <typename Values, typename See>
  void each(Values values, See see);
  std::string said();
};

}  // namespace zs::train
