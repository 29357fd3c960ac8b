// SPDX-License-Identifier: Apache-2.0
// Within the reader of DeepSpeed's checkpoints: what its sources share.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/stage.hpp"
#include "state/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::state::deepspeed {

using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Value;

/// Of one file, what was read.
struct Opened {
  std::string name;
  int dp = 0;
  Value root{};
};

/// A parameter of a group, as param_shapes lists it.
struct Listed {
  std::string name;
  Shape shape;
  std::int64_t count = 0;
};

class Reader {
 public:
  Reader(const std::string& path, const std::string& folder) : folder_(folder) {
    state_.path = path;
    state_.folder = folder;
    state_.framework = "DeepSpeed";
  }

  State read();

 private:
  std::string folder_;
  State state_;
  std::map<int, std::map<int, std::string>> models_, optimizers_;  // mp -> dp -> file; dp is -1 for the one model file
  std::map<int, std::vector<std::string>> layers_;                 // layer -> files
  std::map<int, std::vector<Opened>> model_files_, optimizer_files_;
  std::set<std::string> shared_;  // names that are aliases

  void fault(const std::string& file, const std::string& what);
  bool universal() const;
  plan::Division divided() const;

  void scan();

  /// A file that cannot be read is a fault.
  bool open(const std::string& name, int dp, std::vector<Opened>& into);

  const Opened* open_models();

  void open_optimizers();

  void version(const Opened& file);

  void missing(const std::map<int, std::string>& files, const char* kind);

  void header(const Value& root, const std::string& name);

  /// The model's own tensors, as it computes with them.
  void weights(const Opened& file);

  void layers();

  /// The parameters of one model-parallel rank by groups.
  std::vector<std::vector<Listed>> listed(int mp);

  void partitions();

  void scaler(const Value& held);

  /// Names the tensors of one kind: "master", "exp_avg".
  Whole& place(const Listed& one, const std::string& kind, tensorfile::Dtype dtype, std::size_t group);

  /// Every file says what step it has taken; of a mixed folder they differ.
  void step(const Opened& file, std::optional<double> number, const std::vector<Listed>& group);

  /// ZeRO-1 and 2: the parameters of a group behind each other, and of that each rank an equal share.
  void stage_1(std::size_t group, const std::vector<Listed>& list, const std::vector<Opened>& files);

  /// What the file says itself of where each parameter lies.
  void mapping(const Opened& file, std::size_t group, const std::vector<Listed>& list, std::int64_t first,
               std::int64_t held);

  static const Value* entry(const Value* dict, std::size_t number);

  void hyper(const Value& group, const std::vector<Listed>& list);

  /// ZeRO-3: each parameter by itself is cut into equal parts, one a rank. A rank has its parts behind each other.
  void stage_3(const std::vector<std::vector<Listed>>& groups, const std::vector<Opened>& files);

  /// ZeRO-0: the optimizer's whole state in the model file, by number.
  void unpartitioned(const Opened& file);

  /// The i-th parameter of a group, in the order in which add_optimizer() named them.
  std::string numbered(std::size_t group, std::size_t i, const std::string& id) const;

  /// Parameters that are not trained: in the module, and where that is cut, in fragments.
  void frozen(const std::vector<Opened>& files);

  void read_universal(const Value& root);

  void finish();
};

}  // namespace zs::state::deepspeed
