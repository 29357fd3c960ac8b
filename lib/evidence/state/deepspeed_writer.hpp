// SPDX-License-Identifier: Apache-2.0
// Within the writers of DeepSpeed's folders: the dicts of its files, as its own release writes them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/stage.hpp"
#include "state/outgoing.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

class DeepSpeedWriter {
 public:
  /// Throws Error where the state lacks what DeepSpeed's optimizers go on from, or ZeRO-3 needs to know.
  DeepSpeedWriter(const State& state, const std::string& folder, const Form& form);

  /// The files of each rank at ZeRO-1 to 3.
  void partitioned();
  /// A folder for each parameter.
  void universal();

  /// Facts that the files could not take.
  const std::vector<std::string>& lost() const { return lost_; }

 private:
  using Group = std::vector<const Parameter*>;

  const State& state_;
  std::string folder_, prefix_;
  std::int64_t ranks_;
  plan::Division divided_;
  std::vector<Group> groups_;
  std::vector<std::string> lost_, unknown_;
  std::map<std::string, std::string> tied_;  // other names of parameters

  /// What no group has: another name of a tensor, a buffer, a parameter that is not trained. Checkpoints of PyTorch do
  /// not say which: another name has the same bits.
  void others();
  const Parameter& own_of(const Parameter& parameter) const;
  void write(const std::string& name, const tensorfile::Value& root);
  std::string release() const;

  // The model (write_deepspeed_model.cpp).
  tensorfile::Dict model(std::int64_t rank);
  /// The schedule, and what a training saved of its own.
  void facts(tensorfile::Dict& root);

  // The optimizer (write_deepspeed_optimizer.cpp).
  std::optional<double> number(const std::string& fact) const;
  bool dynamic() const;
  tensorfile::Value scaler() const;
  tensorfile::Value stage() const;
  /// The parameters of each group as ZeRO-3 cuts them: by what a rank has of them.
  std::vector<std::pair<std::size_t, Group>> sub_groups() const;
  /// A group of the optimizer: its settings, and the numbers of its tensors.
  tensorfile::Dict group_of(std::size_t number, tensorfile::List ids) const;
  /// ZeRO-1 and 2: the parameters of a group behind each other, of which each rank has an equal part.
  tensorfile::Dict by_group(std::int64_t rank) const;
  /// ZeRO-3: each parameter by itself is cut into equal parts.
  tensorfile::Dict by_parameter(std::int64_t rank) const;
};

/// Elements of a rank, of so many that are cut into equal parts.
inline std::int64_t share(std::int64_t count, std::int64_t ranks) { return (count + ranks - 1) / ranks; }
/// Whether a dict has a key.
inline bool has_key(const tensorfile::Dict& root, const std::string& key) {
  return tensorfile::Value(root).find(key) != nullptr;
}

}  // namespace zs::state
