// SPDX-License-Identifier: Apache-2.0
// What optimizers there are: one row each. The settings that one reads, its defaults, the numbers that it keeps, their
// names in checkpoints and DeepSpeed's name for it are filters over this table; nothing computes here.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::optimizer {

enum class Kind { adamw, adam, sgd, lion, muon };

/// How one element is updated. Muon has two: matrices of blocks by `muon`, all else by `adamw`.
enum class Rule { adamw, adam, sgd, sgd_momentum, lion, muon };

/// A setting's default where it is not the table of settings' own: the last word of its key, and the value.
struct Usual {
  std::string_view setting, value;
};

struct Description {
  Kind kind;
  std::string_view name;       ///< as --optimizer has it
  std::string_view title;      ///< "AdamW"
  std::string_view torch;      ///< PyTorch's class of the same arithmetic; "" where it has none
  std::string_view deepspeed;  ///< "optimizer": {"type"} in DeepSpeed's file, which takes it in any case
  std::string_view keeps;      ///< by PyTorch's names: what a checkpoint has for each parameter, or for some
  std::string_view reads;      ///< settings of training, the last words of their keys, in order
  std::span<const Usual> usual;
};

/// All, in the order of Kind.
std::span<const Description> all();
const Description& description(Kind kind);
/// The row of a name, or null.
const Description* named(std::string_view name);
/// The row of DeepSpeed's name, in any case, or null.
const Description* named_by_deepspeed(std::string_view type);

/// Whether an optimizer reads a setting of training ("beta2").
bool reads(const Description& one, std::string_view setting);
/// The optimizers that read it: "AdamW, Lion".
std::string readers(std::string_view setting);
/// Its default of a setting by the whole key, "training.beta2", or "" where it is the table of settings' own.
std::string_view usual(std::string_view name, std::string_view key);

/// What an optimizer is made with. Each reads what its row says.
struct Settings {
  Kind kind = Kind::adamw;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  bool correct_bias = true;  ///< false: the moments are used as they are, also in the first steps
  double momentum = 0;
  bool nesterov = false;
  int ns_steps = 5;             ///< Newton-Schulz iterations
  bool match_rms = false;       ///< Muon's step of the size of AdamW's (0.2 sqrt(max(rows, columns))), not the original
  double adamw_rate_ratio = 1;  ///< learning rate of what Muon leaves to AdamW, over that of matrices
};

/// How a parameter is updated; `of_block`: it is a matrix of a block, neither of the first nor of the last unit.
Rule rule(const Settings& settings, bool matrix_of_block);
/// What is kept for each element beside the parameter, by PyTorch's names: none to two.
std::span<const std::string_view> states(Rule rule);
inline constexpr int kMostStates = 2;
/// The names of what an optimizer keeps of one parameter or another, in the order of checkpoints.
std::vector<std::string_view> kept_names(const Description& one);

}  // namespace zs::optimizer
