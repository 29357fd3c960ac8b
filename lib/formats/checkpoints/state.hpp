// SPDX-License-Identifier: Apache-2.0
// The state of a training from a checkpoint of any framework, in one form: parameters by name, each with its weight,
// its float32 master, the optimizer's moments and step, and the file and place of each part.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/whole.hpp"
#include "tensorfile/tensor.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// The state of one parameter or buffer.
struct Parameter {
  std::string name{};
  std::optional<Whole> weight{};                      ///< in the computation type
  std::optional<Whole> master{};                      ///< the optimizer's float32 copy
  std::map<std::string, Whole> moments{};             ///< "exp_avg", "momentum_buffer"; in dicts and lists "old_dirs/0"
  std::map<std::string, Whole> gradients{};           ///< of the checkpoint's step: "gradient", "gradient norms"
  std::optional<double> step{};                       ///< the optimizer's step counter for this parameter
  std::map<std::string, std::string> hyper{};         ///< of its group: "lr", "weight_decay", "betas"
  std::map<std::string, tensorfile::Value> values{};  ///< the optimizer's state of it that is no tensor: "func_evals"
  int group = -1;                                     ///< of the optimizer
  std::string tied{};                                 ///< the parameter of which it is another name
  bool buffer = false, frozen = false;
};

struct File {
  std::string name;  ///< relative to the folder
  std::uint64_t bytes = 0;
  int rank = -1;
};

struct State {
  std::string path{};       ///< as the user typed it
  std::string folder{};     ///< the folder of the files
  std::string framework{};  ///< "DeepSpeed", "PyTorch distributed checkpoint", "zs"
  std::string version{};    ///< of the program that wrote it, or of its format
  std::string layout{};     ///< "ZeRO-2", "sharded", "one file"
  std::optional<std::int64_t> stage{}, step{}, skipped{}, ranks{};
  std::size_t optimizers = 1;  ///< of the training; each counts its own steps
  std::vector<Parameter> parameters{};
  bool ordered = true;                                    ///< the parameters are in the order of the model's modules
  std::map<std::string, std::string> facts{};             ///< "schedule.last_epoch", "scaler.scale", "random.0.torch"
  std::map<std::string, tensorfile::Value> values{};      ///< the original Python values of these
  std::map<std::string, std::string> config{};            ///< of config.json: what the model computes
  std::vector<std::string> objects{};                     ///< Python classes that a file names; none was instantiated
  std::vector<tensorfile::StoragePtr> storages{};         ///< of all tensors that were read, also of facts and steps
  std::vector<std::pair<std::string, Piece>> paddings{};  ///< elements that belong to no parameter and should be 0
  std::vector<File> files{};
  std::vector<std::string> unread{};  ///< files without state, or in no form that zs knows
  std::vector<std::string> notes{};   ///< warnings for the user: a pitfall of the format
  std::vector<std::string> faults{};  ///< located: a rank's file is missing, steps are mixed

  Parameter& parameter(const std::string& name);  ///< the one with that name, created if missing
  const Parameter* find(std::string_view name) const;
  /// Adds a fault of a file or folder.
  void fault(const std::string& place, const std::string& what);
  /// Adds a fault if `part` throws Error; returns whether it did not.
  bool attempt(const std::function<void()>& part);
  /// Sorts the parameters into the order of these names. REQUIRES: the names are complete.
  void sort(const std::vector<std::string>& names);

 private:
  std::map<std::string, std::size_t, std::less<>> places_{};
};

/// A parameter's name without what module wrappers add.
std::string bare(std::string name);
/// The common first word of all names, with its dot; "" if there is none.
std::string common_word(const std::vector<std::string>& names);

/// The kind of a fact: its first word, "schedule".
std::string_view kind_of(std::string_view fact);

}  // namespace zs::checkpoints
