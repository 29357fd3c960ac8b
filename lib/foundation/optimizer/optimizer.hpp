// SPDX-License-Identifier: Apache-2.0
// The table of optimizers: one row each. Their settings, defaults, state, names in checkpoints and names in DeepSpeed
// are filters over this table; nothing computes here.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::optimizer {

enum class Kind { adamw, adam, sgd, lion, muon, adamw_8bit };

/// The update of one element. Muon uses two: `muon` for matrices of blocks, `adamw` for everything else; so does 8-bit
/// AdamW: `adamw_8bit`, and `adamw` for small parameters.
enum class Rule { adamw, adam, sgd, sgd_momentum, lion, muon, adamw_8bit };

/// A default that differs from the table of settings: the last word of the key, and the value.
struct Usual {
  std::string_view setting, value;
};

struct Description {
  Kind kind;
  std::string_view name;       ///< as --optimizer has it
  std::string_view title;      ///< "AdamW"
  std::string_view torch;      ///< PyTorch's class with the same arithmetic; "" if it has none
  std::string_view deepspeed;  ///< "optimizer": {"type"} in DeepSpeed's file, case-insensitive; "" if it has none
  std::string_view keeps;      ///< its state by PyTorch's names: what a checkpoint has for some or all parameters
  std::string_view reads;      ///< the settings of training that it reads, by the last words of their keys, in order
  std::span<const Usual> usual;
};

/// All, in the order of Kind.
std::span<const Description> all();
const Description& description(Kind kind);
/// The row of a name, or null.
const Description* named(std::string_view name);
/// The row by DeepSpeed's name, case-insensitive, or null.
const Description* named_by_deepspeed(std::string_view type);

/// Whether an optimizer reads a setting of training ("beta2").
bool reads(const Description& one, std::string_view setting);
/// The optimizers that read it: "AdamW, Lion".
std::string readers(std::string_view setting);
/// Its default of a setting by the whole key, "training.beta2"; "" if the table of settings has the default.
std::string_view usual(std::string_view name, std::string_view key);

/// The settings of an optimizer. Each optimizer reads those that its row names.
struct Settings {
  Kind kind = Kind::adamw;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  bool correct_bias = true;  ///< false: the moments are used uncorrected, also in the first steps
  double momentum = 0;
  bool nesterov = false;
  int ns_steps = 5;             ///< Newton-Schulz iterations
  bool match_rms = false;       ///< give Muon's step the size of AdamW's (0.2 sqrt(max(rows, columns)))
  double adamw_rate_ratio = 1;  ///< learning rate of parameters left to AdamW / that of matrices
};

/// Elements from which on 8-bit AdamW keeps a parameter's state in 8 bits, as bitsandbytes does (min_8bit_size).
inline constexpr std::int64_t kLeastCoded = 4096;

/// The rule of a parameter with this number of elements; `matrix_of_block`: it is a matrix of a block, neither in the
/// first nor in the last unit.
Rule rule(const Settings& settings, bool matrix_of_block, std::int64_t numel);
/// The state per element besides the parameter, by PyTorch's names: none to two.
std::span<const std::string_view> states(Rule rule);
inline constexpr int kMostStates = 2;
/// The names of all state that an optimizer keeps for any parameter, in the order of checkpoints.
std::vector<std::string_view> kept_names(const Description& one);

}  // namespace zs::optimizer
