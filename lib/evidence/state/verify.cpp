// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "compare/elements.hpp"
#include "state/describe.hpp"
#include "tensorfile/dtype.hpp"

namespace zs::state {
namespace {

using tensorfile::Dtype;
using tensorfile::Tensor;

bool is_real(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16 || dtype == Dtype::f64;
}

/// The moments of torch.optim that have a number for each element of the weight. Others are single numbers (NAdam's
/// mu_product), or sums of rows and columns (Adafactor).
const std::set<std::string_view> kElementwise = {"exp_avg",         "exp_avg_sq", "max_exp_avg_sq", "exp_inf",
                                                 "momentum_buffer", "square_avg", "grad_avg",       "sum",
                                                 "acc_delta",       "prev",       "step_size",      "ax"};

constexpr std::int64_t kBlock = 1 << 16;

/// Gives the values of a tensor in blocks, with the number of the first.
template <class Take>
void in_blocks(const Tensor& tensor, Take take) {
  std::vector<float> values;
  const std::int64_t count = tensor.count();
  for (std::int64_t at = 0; at < count; at += kBlock) {
    values.resize(static_cast<std::size_t>(std::min(kBlock, count - at)));
    read_f32(tensor, at, values);
    if (!take(at, values)) return;
  }
}

class Verifier {
 public:
  explicit Verifier(State& state) : state_(state) {}

  Checked run() {
    for (const Parameter& parameter : state_.parameters) {
      for (const auto& [kind, whole] : tensors_of(parameter)) tensor(parameter, kind, *whole);
      const Parameter* const owner = parameter.tied.empty() ? nullptr : state_.find(parameter.tied);
      if (owner && owner->weight && parameter.weight) tied(parameter, *owner);
      const Whole* const master = parameter.master         ? &*parameter.master
                                  : owner && owner->master ? &*owner->master
                                                           : nullptr;
      if (parameter.weight && master) rounded(parameter, *master);
    }
    // Steps, random states, learning rates: what was read as a value.
    for (const tensorfile::StoragePtr& storage : state_.storages) checksum(storage);
    steps();
    for (const auto& padding : state_.paddings) {
      ++checked_.paddings;
      in_blocks(padding.second.tensor, [&](std::int64_t, const std::vector<float>& values) {
        const bool zero = std::ranges::all_of(values, [](float value) { return value == 0; });
        if (!zero)
          fault(padding.second.file,
                "the padding behind " + padding.first + " is not zero: elements of a parameter lie where none should");
        return zero;
      });
    }
    return checked_;
  }

 private:
  State& state_;
  Checked checked_;
  std::set<tensorfile::StoragePtr> seen_;

  void fault(const std::string& file, const std::string& what) {
    state_.faults.push_back(located(state_.folder + "/" + file, 0, what));
  }

  static std::string file_of(const Whole& whole, std::int64_t index) {
    for (const Piece& piece : whole.pieces) {
      if (piece.at.empty() && index >= piece.begin && index < piece.begin + piece.tensor.count()) return piece.file;
    }
    return whole.pieces.empty() ? "" : whole.pieces.front().file;
  }

  void checksum(const tensorfile::StoragePtr& storage) {
    if (!seen_.insert(storage).second) return;
    state_.attempt([&] { checked_.checksums += storage->verify() ? 1 : 0; });
  }

  void tensor(const Parameter& parameter, const std::string& kind, const Whole& whole) {
    const std::string name = parameter.name + ": " + kind + " ";
    if (const std::string what = defect(whole); !what.empty()) return fault("", name + what);
    const bool alike = !parameter.moments.contains(kind) || kElementwise.contains(kind);
    if (alike && parameter.weight && &whole != &*parameter.weight && whole.shape != parameter.weight->shape)
      fault(whole.pieces.empty() ? "" : whole.pieces.front().file,
            name + "has the shape " + tensorfile::to_text(whole.shape) + ", the weight " +
                tensorfile::to_text(parameter.weight->shape));
    for (const Piece& piece : whole.pieces) checksum(piece.tensor.storage);
    ++checked_.tensors, checked_.elements += whole.count();
    if (!is_real(whole.dtype)) return;
    const Tensor tensor = joined(whole, parameter.name);
    const bool square = kind == "exp_avg_sq", skipped = kind.starts_with("gradient") && state_.skipped.value_or(0) > 0;
    in_blocks(tensor, [&](std::int64_t first, const std::vector<float>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto index = first + static_cast<std::int64_t>(i);
        if (!std::isfinite(values[i]) && !skipped) {
          fault(file_of(whole, index), name + "is " + to_text(values[i]) + " in element " + to_text(index));
          return false;
        }
        if (square && values[i] < 0) {
          fault(file_of(whole, index), name + "is " + to_text(values[i]) + " in element " + to_text(index) +
                                           ", but a mean of squares is not negative");
          return false;
        }
      }
      return true;
    });
    tensor.storage->forget();
  }

  void tied(const Parameter& parameter, const Parameter& owner) {
    const Whole &one = *parameter.weight, &other = *owner.weight;
    if (!defect(one).empty() || !defect(other).empty() || one.dtype != other.dtype) return;
    if (!tensorfile::same_bits(joined(one, parameter.name), joined(other, owner.name)))
      fault(one.pieces.front().file, parameter.name + ": is tied to " + owner.name + ", which has other numbers");
  }

  /// The optimizer has taken each step that was not skipped. Releases of DeepSpeed take one before the first, and where
  /// losses are scaled some trainers do not count the skipped ones.
  void steps() {
    if (!state_.step) return;
    if (state_.optimizers > 1) {  // Lightning counts the steps of all together, other trainers do not
      checked_.not_checked.push_back("the steps of " + to_text(static_cast<std::int64_t>(state_.optimizers)) +
                                     " optimizers, against those of the training");
      return;
    }
    const auto due = static_cast<double>(*state_.step - state_.skipped.value_or(0));
    const bool scaled = !state_.skipped && std::ranges::any_of(state_.facts, [](const auto& fact) {
      return checkpoints::kind_of(fact.first) == "scaler";
    });
    for (const Parameter& one : state_.parameters) {
      if (!one.step || *one.step == due || (*one.step == due + 1 && state_.framework == "DeepSpeed") ||
          (scaled && *one.step < due))
        continue;
      return fault("", "the optimizer has taken " + to_text(*one.step) + " steps of " + one.name + ", the training " +
                           to_text(*state_.step) +
                           (state_.skipped ? ", of which it skipped " + to_text(*state_.skipped) : ""));
    }
  }

  /// The model computes with the masters, rounded.
  void rounded(const Parameter& parameter, const Whole& master) {
    const Whole& weight = *parameter.weight;
    if (!defect(weight).empty() || !defect(master).empty() || weight.shape != master.shape ||
        master.dtype != Dtype::f32)
      return;
    if (weight.dtype != Dtype::bf16 && weight.dtype != Dtype::f16 && weight.dtype != Dtype::f32) return;
    const Tensor low = joined(weight, parameter.name), high = joined(master, parameter.name);
    std::vector<float> other;
    std::int64_t differing = 0, where = -1;
    in_blocks(high, [&](std::int64_t first, std::vector<float>& values) {
      other.resize(values.size());
      read_f32(low, first, other);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float narrow = weight.dtype == Dtype::bf16  ? tensorfile::bf16_to_f32(tensorfile::f32_to_bf16(values[i]))
                             : weight.dtype == Dtype::f16 ? tensorfile::f16_to_f32(tensorfile::f32_to_f16(values[i]))
                                                          : values[i];
        if (narrow == other[i] || (std::isnan(narrow) && std::isnan(other[i]))) continue;
        if (differing++ == 0) where = first + static_cast<std::int64_t>(i);
      }
      return true;
    });
    ++checked_.rounded;
    if (differing == 0) return;
    const compare::Spelt a = compare::spelt(low, where), b = compare::spelt(high, where);
    fault(file_of(weight, where), parameter.name + ": " + to_text(differing) + " of " + to_text(weight.count()) +
                                      " weights of " + std::string(name_of(weight.dtype)) +
                                      " are not their masters rounded, the first is element " + to_text(where) + ": " +
                                      a.decimal + ", its master " + b.decimal);
  }
};

}  // namespace

Checked verify(State& state) { return Verifier(state).run(); }

}  // namespace zs::state
