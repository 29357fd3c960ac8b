// SPDX-License-Identifier: Apache-2.0
// Internal to the reader of DeepSpeed's checkpoints, shared by its sources.
#pragma once
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoints/flat.hpp"
#include "checkpoints/state.hpp"
#include "stage/stage.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints::deepspeed {

using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Value;

/// The content read from one file.
struct Opened {
  std::string name;
  int dp = 0;
  Value root{};
};

using Texts = std::map<std::string, std::string>;

/// A parameter of a group, as in param_shapes.
struct Listed {
  std::string name;
  Shape shape;
  std::int64_t count = 0;
  std::size_t group = 0;
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
  std::vector<std::string> experts_;     // files
  std::set<std::string> shared_;         // names that are aliases
  std::map<std::string, int> said_;      // the rank whose settings a parameter has
  std::map<std::string, bool> stepped_;  // whether the first rank has the step of a group

  void fault(const std::string& file, const std::string& what);
  bool universal() const;
  stage::Division divided() const;
  void finish();

  // ---- files
  void scan();
  /// An unreadable file is a fault.
  bool open(const std::string& name, int dp, std::vector<Opened>& into);
  const Opened* open_models();
  void open_optimizers();
  void version(const Opened& file);
  void missing(const std::map<int, std::string>& files, const char* kind);
  /// The files of ranks must repeat the value under the keys `part`, except what is `skipped`.
  void repeated(const std::vector<Opened>& files, std::initializer_list<std::string_view> part,
                const std::function<bool(const std::string& key)>& skipped);
  /// Values that differ between two ranks: "rank 0 has lr 0.1, rank 1 0.2".
  static std::vector<std::string> unlike(int rank, const Texts& texts, int other, const Texts& others);

  // ---- the model
  void header(const Value& root, const std::string& name);
  /// The model's weights, in their computation type.
  void weights(const Opened& file);
  void layers();
  /// The weights of experts, one file each, and their optimizer state.
  void experts();
  /// The parameters of one model-parallel rank, by group.
  std::vector<std::vector<Listed>> listed(int mp);
  /// Parameters that are not trained: in the module, and if that is divided, in fragments.
  void frozen(const std::vector<Opened>& files);

  // ---- the optimizer, in ranks' parts
  void partitions();
  void scaler(const Opened& file, const Value& held);
  /// Takes the facts of a rank's file that `said` has. If a lower rank has another value, it is a fault; a kind
  /// that may differ between ranks becomes a separate fact.
  void repeat(const Opened& file, const State& said, const Opened& first);
  /// The tensor of one kind: "master", "exp_avg".
  Whole& place(const Listed& one, const std::string& kind, tensorfile::Dtype dtype);
  /// Records the step of a file; in a mixed folder they differ.
  void step(const Opened& file, std::optional<double> number, const std::vector<Listed>& group);
  /// ZeRO-1 and 2: the parameters of a group are concatenated, and each rank has an equal share of that, each of
  /// `divided` neighbouring ranks of other parameters: its elements with the padding, or nothing where files and
  /// param_shapes do not agree.
  std::optional<std::int64_t> share_of_group(std::size_t group, std::int64_t listed, const std::vector<Opened>& files,
                                             int divided);
  void stage_1(std::size_t group, const std::vector<Listed>& list, const std::vector<Opened>& files, int divided = 1);
  /// The same for a group of experts: each of `divided` neighbouring ranks has other ones, which all count from 0.
  void stage_1_experts(std::size_t group, const std::vector<Listed>& list, const std::vector<Opened>& files);
  /// State of a group that is not cut into ranks' parts: one number for the parameters that rank has parts of, as
  /// NAdam's mu_product, else a fact of the rank.
  void of_group(const Opened& file, std::size_t group, const std::string& key, const Value& value,
                const std::vector<Listed>& list);
  /// The file has this number of groups of each kind.
  void counts(const Opened& file, std::size_t groups);
  /// Compares the place of a parameter's elements with the file's own mapping.
  void mapping(const Opened& file, const Listed& one, std::int64_t begin, std::int64_t count);
  /// The settings of a group in a rank's file; lower ranks have the same.
  void hyper(const Opened& file, const Value& group, const std::vector<Listed>& list);
  /// ZeRO-3: each parameter is divided into equal parts, one per rank. A rank concatenates its parts.
  void stage_3(const std::vector<std::vector<Listed>>& groups, const std::vector<Opened>& files);

  void spread(const Opened& file, const std::vector<Listed>& list, const Flat& flat, const std::string& kind,
              std::int64_t ranks);
  void settings(const Opened& file, const std::vector<Value>& param_groups,
                const std::vector<std::vector<Listed>>& groups);
  /// Gives the parameters of `groups` the settings of `param_groups`, whose ids are their numbers; returns their names.
  std::vector<std::string> set_groups(const Opened& file, const std::vector<Value>& param_groups,
                                      const std::vector<std::vector<Listed>>& groups);

  // ---- the optimizer, whole
  /// ZeRO-0: the whole optimizer state is in the model file, by number.
  void unpartitioned(const Opened& file);
  /// A universal checkpoint: a folder for each parameter.
  void read_universal();
  /// The settings of its groups; returns the step of its optimizer, if it has one.
  std::optional<double> universal_groups(const std::vector<std::vector<Listed>>& lists);
  /// The parameter of a folder, by the shapes of the model; returns whether it counts its own steps.
  bool universal_parameter(const std::filesystem::path& folder, const std::map<std::string, Listed>& shapes);
  /// All parameters have the same kinds of state.
  void require_alike(const std::map<std::string, Listed>& shapes, bool stepped);
};

}  // namespace zs::checkpoints::deepspeed
