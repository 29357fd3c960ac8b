// SPDX-License-Identifier: Apache-2.0
// Internal to the writers of DeepSpeed's folders: builds the dicts of its files like its own release.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/outgoing.hpp"
#include "stage/stage.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

class DeepSpeedWriter {
 public:
  /// Throws Error if the state lacks what DeepSpeed's optimizers need to resume, or what ZeRO-3 needs.
  DeepSpeedWriter(const State& state, const std::string& folder, const Form& form);

  /// Writes the files of each rank for ZeRO-1 to 3.
  void partitioned();
  /// Writes a folder for each parameter.
  void universal();

 private:
  using Group = std::vector<const Parameter*>;

  const State& state_;
  std::string folder_, prefix_;
  std::int64_t ranks_;
  stage::Division divided_;
  std::vector<Group> groups_;
  std::vector<std::string> unknown_;
  std::set<std::string> single_;             // kinds of moments with one number for a parameter: NAdam's mu_product
  std::map<std::string, std::string> tied_;  // other names of parameters

  /// Handles tensors that are in no group: another name of a tensor, a buffer, a parameter that is not trained. PyTorch
  /// checkpoints do not distinguish these: another name has the same bits.
  void others();
  const Parameter& own_of(const Parameter& parameter) const;
  void write(const std::string& name, const tensorfile::Value& root);
  std::string release() const;

  // The model (write_deepspeed_model.cpp).
  tensorfile::Dict model(std::int64_t rank);
  /// The schedule, and the training's own saved values.
  void facts(tensorfile::Dict& root);

  // The optimizer (write_deepspeed_optimizer.cpp).
  std::optional<double> number(const std::string& fact) const;
  bool dynamic() const;
  tensorfile::Value scaler() const;
  tensorfile::Value stage() const;
  /// The parameters of each group in ZeRO-3's sub-groups: by the size of a rank's parts.
  std::vector<std::pair<std::size_t, Group>> sub_groups() const;
  /// The state of a group's flat tensor: the kinds of moments that its parameters have, and their step.
  tensorfile::Dict states_of(const Group& group,
                             const std::function<tensorfile::Tensor(const std::string& kind)>& moment) const;
  /// A group of the optimizer: its settings, and the indices of its tensors.
  tensorfile::Dict group_of(std::size_t number, tensorfile::List ids) const;
  /// ZeRO-1 and 2: the parameters of a group are concatenated, and each rank has an equal part.
  tensorfile::Dict by_group(std::int64_t rank) const;
  /// ZeRO-3: each parameter is divided into equal parts.
  tensorfile::Dict by_parameter(std::int64_t rank) const;
};

/// Elements per rank if `count` elements are divided into equal parts.
inline std::int64_t share(std::int64_t count, std::int64_t ranks) { return (count + ranks - 1) / ranks; }
inline bool has_key(const tensorfile::Dict& root, const std::string& key) {
  return tensorfile::Value(root).find(key) != nullptr;
}

}  // namespace zs::checkpoints
