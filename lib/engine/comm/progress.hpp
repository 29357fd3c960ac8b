// SPDX-License-Identifier: Apache-2.0
// Collectives as state machines, and the loop that advances them. A rank that waits for one collective advances all
// that it has started, so ranks may wait in different orders.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "comm/transport.hpp"

namespace zs::comm {

/// A collective in flight on this rank.
class Collective {
 public:
  explicit Collective(std::string what) : what_(std::move(what)) {}
  virtual ~Collective() = default;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  /// Does what is possible without blocking; true if anything advanced. Not called once done() is true.
  virtual bool advance() = 0;
  virtual bool done() const = 0;
  /// The ranks that this rank waits for.
  virtual std::vector<int> late() const = 0;
  const std::string& what() const { return what_; }

 private:
  std::string what_;
};

/// All collectives of one rank in flight.
class Progress {
 public:
  Progress(std::unique_ptr<Transport> transport, const Options& options);
  ~Progress() { std::erase(*family_, this); }

  Transport& transport() { return *transport_; }
  /// The progress of a split-off group: a wait for either advances the collectives of both.
  std::shared_ptr<Progress> split(const std::vector<int>& members);
  /// The tag of the next collective: the same on every rank, since all start the same collectives in the same order.
  int next_tag();
  /// Starts it: the returned work completes it. If the work is destroyed before that, the group fails.
  static Work start(const std::shared_ptr<Progress>& progress, std::unique_ptr<Collective> collective);
  /// Advances everything until the collective is done; throws zs::Error as Pending::wait does.
  void wait(Collective& collective);
  bool test(Collective& collective);
  void abandon(const std::shared_ptr<Collective>& collective) noexcept;
  /// True after an error: the ranks are no longer in step.
  bool failed() const { return !failure_.empty(); }

  /// Memory of at least `bytes`, reused by later collectives.
  device::Buffer scratch(std::int64_t bytes);

 private:
  bool advance();
  bool advance_family();
  [[noreturn]] void fail(const Collective& collective, const std::string& why);
  void check(const Collective& collective) const;
  int departed(const Collective& collective) const;  // a rank that it waits for and that has left, or -1
  std::string name(int rank) const;
  std::string late_text(const Collective& collective) const;

  std::unique_ptr<Transport> transport_;
  double timeout_;
  std::shared_ptr<std::vector<Progress*>> family_;  // including this one
  int tag_ = 0;
  std::string failure_;
  std::vector<std::shared_ptr<Collective>> active_;
  std::vector<device::Buffer> scratch_;
};

}  // namespace zs::comm
