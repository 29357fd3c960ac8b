// SPDX-License-Identifier: Apache-2.0
// The state of a training as a checkpoint of any framework holds it, in one form: parameters by name, each with its
// weight, its float32 master, the optimizer's moments and step, and where in which file each part lies.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorfile/tensor.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

/// A part of a tensor in one file. It is a run of elements in row-major order, or a box.
struct Piece {
  tensorfile::Tensor tensor{};  ///< mapped
  std::int64_t begin = 0;       ///< of a run: its first element in the whole
  tensorfile::Shape at{};       ///< of a box: its first index in each dimension; empty for a run
  int rank = -1;                ///< whose file it is; -1: of no rank
  std::string file{};           ///< relative to the checkpoint's folder
};

/// A tensor over files.
struct Whole {
  tensorfile::Dtype dtype = tensorfile::Dtype::f32;
  tensorfile::Shape shape{};
  std::vector<Piece> pieces{};

  std::int64_t count() const;
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(count()) * tensorfile::size_of(dtype); }
};

/// All of one file's tensor.
Whole whole(const tensorfile::Tensor& tensor, const std::string& file, int rank = -1);
/// Adds a box at these indices; a box that is a run of elements becomes one.
void add_box(Whole& into, Piece piece);

/// What keeps the pieces from being the whole: "no file has elements 12 to 23", "two files have elements 0 to 5: a, b",
/// "is of f32 in a, of bf16 in b"; "" where there is nothing.
std::string defect(const Whole& whole);
/// The tensor: mapped where it is one piece, else in memory. Throws Error, led by `name`, at a defect.
tensorfile::Tensor joined(const Whole& whole, std::string_view name);
/// Its bytes, row-major.
std::string joined_bytes(const Whole& whole, std::string_view name);
/// A tensor whose bytes are read while it is written. Throws as joined().
tensorfile::Tensor streamed(const Whole& whole, std::string_view name);

/// What a checkpoint has of one parameter or buffer.
struct Parameter {
  std::string name{};
  std::optional<Whole> weight{};               ///< as the model computes with it
  std::optional<Whole> master{};               ///< the optimizer's float32 copy
  std::map<std::string, Whole> moments{};      ///< "exp_avg", "exp_avg_sq", "momentum_buffer"
  std::optional<double> step{};                ///< of the optimizer, for this parameter
  std::map<std::string, std::string> hyper{};  ///< of its group: "lr", "weight_decay", "betas"
  int group = -1;                              ///< of the optimizer
  std::string tied{};                          ///< the parameter that it is another name of
  bool buffer = false, frozen = false;
};

struct File {
  std::string name;  ///< relative to the folder
  std::uint64_t bytes = 0;
  int rank = -1;
};

struct State {
  std::string path{};       ///< as the user named it
  std::string folder{};     ///< where the files lie
  std::string framework{};  ///< "DeepSpeed", "PyTorch distributed checkpoint", "zs"
  std::string version{};    ///< of the program that wrote it, or of its format
  std::string layout{};     ///< "ZeRO-2", "sharded", "one file"
  std::optional<std::int64_t> stage{}, step{}, skipped{}, ranks{};
  std::vector<Parameter> parameters{};
  bool ordered = true;                                    ///< the parameters are in the order of the model's modules
  std::map<std::string, std::string> facts{};             ///< "schedule.last_epoch", "scaler.scale", "random.0.torch"
  std::map<std::string, tensorfile::Value> values{};      ///< of these, what a file of Python's has, as it is
  std::vector<std::string> objects{};                     ///< classes of Python's that a file names; none was made
  std::vector<std::pair<std::string, Piece>> paddings{};  ///< elements that belong to no parameter, and should be 0
  std::vector<File> files{};
  std::vector<std::string> unread{};  ///< files that hold no state, or none that zs knows
  std::vector<std::string> notes{};   ///< what a user should know: a trap of the format
  std::vector<std::string> faults{};  ///< located: a rank's file is missing, steps are mixed

  Parameter& parameter(const std::string& name);  ///< that of the name, made where there is none
  const Parameter* find(std::string_view name) const;
  /// Puts the parameters in the order of these names. REQUIRES: it is all of them.
  void sort(const std::vector<std::string>& names);

 private:
  std::map<std::string, std::size_t, std::less<>> places_{};
};

/// Of what kind the value of a fact is: its first word, "schedule".
std::string_view kind_of(std::string_view fact);

}  // namespace zs::state
