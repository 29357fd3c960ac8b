// SPDX-License-Identifier: Apache-2.0
// Collectives through shared memory. Each rank writes into a table which collective it has reached and where its data
// is; when all have, each reads what it needs in place, and none continues before all have read.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/collective_table.hpp"
#include "comm/progress.hpp"
#include "comm/shared_memory.hpp"

namespace zs::comm {

/// When all ranks have arrived, `work` reads their data in place (addresses by rank, and for each by part) and writes
/// this rank's result. If any rank's data is in ordinary memory, all ranks run `messages` instead.
class SharedCollective : public Collective {
 public:
  using Work = std::function<void(const std::vector<std::byte*>& data)>;
  SharedCollective(std::shared_ptr<SharedMemory> memory, std::shared_ptr<CollectiveTable> table, std::int64_t number,
                   const Entry& entry, Work work, std::unique_ptr<Collective> messages);

  bool advance() override;
  bool done() const override { return state_ == State::done; }
  std::vector<int> late() const override;

 private:
  enum class State { queueing, arriving, messages, leaving, done };
  bool step();
  void begin();
  bool all(bool (CollectiveTable::*reached)(int, std::int64_t) const) const;

  std::shared_ptr<SharedMemory> memory_;
  std::shared_ptr<CollectiveTable> table_;
  std::int64_t number_;
  Entry entry_;
  Work work_;
  std::unique_ptr<Collective> messages_;
  State state_ = State::queueing;
};

}  // namespace zs::comm
