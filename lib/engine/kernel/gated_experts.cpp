// SPDX-License-Identifier: Apache-2.0
// Shapes as in kernel/experts.hpp; n rows of one expert; X columns: 2I, or C.
#include "kernel/gated_experts.hpp"

#include <ATen/MethodOperators.h>
#include <ATen/ops/_foreach_add.h>
#if __has_include(<ATen/ops/_grouped_mm.h>)
#include <ATen/ops/_grouped_mm.h>
#endif
#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "kernel/gradient.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

constexpr std::int64_t kAligned = 8;  // numbers of bfloat16 in the 16 bytes to which grouped products are aligned

/// Products of rows, or of columns, of which each expert has those up to its end: of a and b[e], or of both. REQUIRES:
/// kGrouped.
#if __has_include(<ATen/ops/_grouped_mm.h>)
constexpr bool kGrouped = true;
Tensor grouped_product(const Tensor& a, const Tensor& b, const Tensor& ends_E) { return at::_grouped_mm(a, b, ends_E); }
#else
constexpr bool kGrouped = false;
Tensor grouped_product(const Tensor&, const Tensor&, const Tensor&) { return {}; }
#endif

/// The rows of experts, of which each has its own behind another's.
class ExpertRows {
 public:
  ExpertRows(const std::vector<std::int64_t>& counts, const Tensor& beside) : counts_(&counts) {
    const Tensor here = at::empty({std::ssize(counts)}, at::TensorOptions(at::kInt));
    std::partial_sum(counts.begin(), counts.end(), here.data_ptr<std::int32_t>());
    ends_E_ = here.to(beside.device(), /*non_blocking=*/true);
  }

  std::int64_t experts() const { return std::ssize(*counts_); }
  /// Behind the last row of each expert, int32.
  const Tensor& ends() const { return ends_E_; }
  /// The expert of each row, int32.
  Tensor experts_of(std::int64_t R) const {
    return at::bucketize(at::arange(R, ends_E_.options()), ends_E_, /*out_int32=*/true, /*right=*/true);
  }
  /// Calls `see` with each expert that has rows, the first of them, and how many.
  template <typename See>
  void each(See see) const {
    std::int64_t begin = 0;
    for (std::size_t e = 0; e < counts_->size(); begin += (*counts_)[e++]) {
      if ((*counts_)[e] > 0) see(e, begin, (*counts_)[e]);
    }
  }

 private:
  const std::vector<std::int64_t>* counts_;
  Tensor ends_E_;
};

/// Bytes of a matrix that keeps a whole GPU busy. Gradients of larger ones are added one by one and never held
/// together.
constexpr std::size_t kLarge = std::size_t{32} << 20;

/// Adds the sums that `compute` makes of an expert's rows to the gradient of its parameter. If an expert has several
/// parameters, the sums have their gradients one below the other.
using Sums = std::vector<std::vector<Gradient*>>;
template <typename Compute>
void add_all(const ExpertRows& rows, const Sums& sums, Compute compute) {
  std::vector<Tensor> into, terms;
  const auto put = [&] {
    if (!into.empty()) at::_foreach_add_(into, terms);
    into.clear(), terms.clear();
  };
  rows.each([&](std::size_t e, std::int64_t begin, std::int64_t n) {
    const std::vector<Tensor> parts = compute(e, begin, n).chunk(std::ssize(sums[e]), 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (sums[e][i]->wanted()) into.push_back(sums[e][i]->sum()), terms.push_back(parts[i]);
    }
    if (parts[0].nbytes() > kLarge) put();
  });
  put();
}
bool wanted(const Sums& sums) {
  return std::ranges::any_of(sums, [](const std::vector<Gradient*>& parts) {
    return std::ranges::any_of(parts, [](const Gradient* one) { return one->wanted(); });
  });
}

/// Products with a matrix of each expert, of [out, in], or of [in, out].
class Products {
 public:
  Products(const ExpertRows& rows, std::vector<Tensor> matrices, bool in_out)
      : rows_(&rows), matrices_(std::move(matrices)), in_out_(in_out) {}

  /// The rows times their expert's matrix; `back`: times its transpose, as a gradient is.
  Tensor of(const Tensor& a_RX, bool back) const {
    const bool transposed = in_out_ == back;
    if (grouped(a_RX)) return grouped_product(a_RX, transposed ? joined().transpose(1, 2) : joined(), rows_->ends());
    const Tensor made = at::empty({a_RX.size(0), matrices_[0].size(transposed ? 0 : 1)}, a_RX.options());
    rows_->each([&](std::size_t e, std::int64_t begin, std::int64_t n) {
      const Tensor by = transposed ? matrices_[e].t() : matrices_[e];
      Tensor into = made.narrow(0, begin, n);
      if (n == 1)
        into.copy_(at::mm(rows_of(a_RX, begin, n), by).narrow(0, 0, n));
      else
        at::mm_out(into, rows_of(a_RX, begin, n), by);
    });
    return made;
  }

  /// Adds each expert's product of its rows of x and of dy, which came of them, to the gradient of its matrix.
  void add(const Sums& sums, const Tensor& dy_RX, const Tensor& x_RX) const {
    if (!wanted(sums)) return;
    const Tensor &left = in_out_ ? x_RX : dy_RX, &right = in_out_ ? dy_RX : x_RX;
    const bool at_once = matrices_[0].nbytes() <= 2 * kLarge && grouped(left);
    const Tensor products = at_once ? grouped_product(left.t(), right, rows_->ends()) : Tensor();
    add_all(*rows_, sums, [&](std::size_t e, std::int64_t begin, std::int64_t n) {
      return products.defined() ? products[static_cast<std::int64_t>(e)]
                                : at::mm(rows_of(left, begin, n).t(), rows_of(right, begin, n));
    });
  }

  /// Adds the sum of each expert's rows of dy to the gradient of its bias.
  void add_sums(const Sums& sums, const Tensor& dy_RX) const {
    if (!wanted(sums)) return;
    const Tensor products =
        grouped(dy_RX)  // a product with rows of ones
            ? grouped_product(at::ones({dy_RX.size(0), kAligned}, dy_RX.options()).t(), dy_RX, rows_->ends())
            : Tensor();
    add_all(*rows_, sums, [&](std::size_t e, std::int64_t begin, std::int64_t n) {
      if (products.defined()) return products[static_cast<std::int64_t>(e)][0];
      return dy_RX.narrow(0, begin, n).to(at::kFloat).sum(0).to(dy_RX.scalar_type());
    });
  }

 private:
  const ExpertRows* rows_;
  std::vector<Tensor> matrices_;
  bool in_out_;

  /// Rows of one expert; of one row two, the second of zeros.
  static Tensor rows_of(const Tensor& x_RX, std::int64_t begin, std::int64_t n) {
    const Tensor rows = x_RX.narrow(0, begin, n);
    return n == 1 ? at::constant_pad_nd(rows, {0, 0, 0, 1}) : rows;
  }

  /// Elements from one expert's matrix to the next one's.
  std::int64_t stride() const {
    if (matrices_.size() == 1) return matrices_[0].numel();
    return matrices_[1].storage_offset() - matrices_[0].storage_offset();
  }
  /// The matrices of all experts. REQUIRES: grouped().
  Tensor joined() const {
    const Tensor& first = matrices_[0];
    return first.as_strided({rows_->experts(), first.size(0), first.size(1)}, {stride(), first.size(1), 1});
  }
  /// Whether one call computes all products: for bfloat16 on a GPU, if the matrices have equal distances in one buffer.
  /// The bits are the same as with one product after another.
  bool grouped(const Tensor& rows) const {
    if (!kGrouped || !rows.is_cuda() || rows.scalar_type() != at::kBFloat16 || rows.size(0) == 0) return false;
    const Tensor& first = matrices_[0];
    for (std::size_t e = 0; e < matrices_.size(); ++e) {
      const Tensor& matrix = matrices_[e];
      const bool fits = matrix.size(0) % kAligned == 0 && matrix.size(1) % kAligned == 0 && matrix.is_contiguous() &&
                        matrix.storage_offset() % kAligned == 0 &&
                        matrix.storage().unsafeGetStorageImpl() == first.storage().unsafeGetStorageImpl() &&
                        matrix.storage_offset() == first.storage_offset() + static_cast<std::int64_t>(e) * stride();
      if (!fits) return false;
    }
    return stride() > 0;
  }
};

/// The parameters of an expert, in the order in which a node lists them.
struct Network : torch::CustomClassHolder {
  std::vector<std::int64_t> counts;
  Gating how;
  const ExpertParts* parts = nullptr;
  std::vector<std::vector<std::size_t>> first, second;  ///< those of a product, by number
  std::vector<std::vector<std::size_t>> first_bias, second_bias;

  /// One matrix for each expert's product. Matrices that follow each other in memory become one.
  static std::vector<Tensor> matrices(const std::vector<std::vector<std::size_t>>& lists, const Tensor* parameters) {
    std::vector<Tensor> made;
    for (const std::vector<std::size_t>& list : lists) {
      const Tensor& a = parameters[list[0]];
      if (list.size() == 1) {
        made.push_back(a);
        continue;
      }
      const Tensor& b = parameters[list[1]];
      const bool adjacent = a.is_contiguous() && b.is_contiguous() &&
                            a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
                            b.storage_offset() == a.storage_offset() + a.numel();
      made.push_back(adjacent ? a.as_strided({a.size(0) + b.size(0), a.size(1)}, {a.size(1), 1}) : at::cat({a, b}));
    }
    return made;
  }
  static Tensor stacked(const std::vector<std::vector<std::size_t>>& lists, const Tensor* parameters) {
    return lists.empty() ? Tensor() : at::stack(matrices(lists, parameters));
  }
  static Sums sums(const std::vector<std::vector<std::size_t>>& lists, std::vector<Gradient>& gradients) {
    Sums made;
    for (const std::vector<std::size_t>& list : lists) {
      made.emplace_back();
      for (const std::size_t number : list) made.back().push_back(&gradients[number]);
    }
    return made;
  }
};

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows_RC, const at::TensorList& parameters,
                        const c10::intrusive_ptr<Network>& net) {
    const ExpertRows rows(net->counts, rows_RC);
    const Tensor* const matrices = parameters.data();
    const bool biased = !net->first_bias.empty();
    const Tensor expert_R = biased ? rows.experts_of(rows_RC.size(0)) : Tensor();
    const Tensor pre_RX =
        Products(rows, net->matrices(net->first, matrices), net->how.alternates).of(rows_RC, /*back=*/false);
    const Tensor inner_RI = net->parts->activate(pre_RX, net->stacked(net->first_bias, matrices), expert_R, net->how);
    const Tensor made_RC =
        Products(rows, net->matrices(net->second, matrices), net->how.alternates).of(inner_RI, /*back=*/false);
    if (biased) net->parts->add_bias(made_RC, net->stacked(net->second_bias, matrices), expert_R);
    Variables saved = {rows_RC, pre_RX};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["network"] = c10::IValue::make_capsule(net);
    return made_RC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const auto net = c10::static_intrusive_pointer_cast<Network>(ctx->saved_data["network"].toCapsule());
    const Tensor &rows_RC = saved[0], &pre_RX = saved[1], dy_RC = gradients[0].contiguous();
    const Tensor* const matrices = saved.data() + 2;
    const ExpertRows rows(net->counts, rows_RC);
    const Products first(rows, net->matrices(net->first, matrices), net->how.alternates),
        second(rows, net->matrices(net->second, matrices), net->how.alternates);
    std::vector<Gradient> sums(saved.begin() + 2, saved.end());
    const Tensor expert_R = net->first_bias.empty() ? Tensor() : rows.experts_of(rows_RC.size(0));
    auto [dpre_RX, inner_RI] = net->parts->activate_backward(pre_RX, net->stacked(net->first_bias, matrices), expert_R,
                                                             net->how, second.of(dy_RC, /*back=*/true));
    second.add(net->sums(net->second, sums), dy_RC, inner_RI);
    inner_RI.reset();
    second.add_sums(net->sums(net->second_bias, sums), dy_RC);
    first.add(net->sums(net->first, sums), dpre_RX, rows_RC);
    first.add_sums(net->sums(net->first_bias, sums), dpre_RX);
    Variables made = {first.of(dpre_RX, /*back=*/true)};
    for (const Gradient& sum : sums) made.push_back(sum.returned());
    made.emplace_back();  // of the network
    return made;
  }
};

/// Gates and ups, with their biases, as they are and in their limits.
struct Pairs {
  Tensor gate, up, free_gate, free_up;
  Pairs(const Tensor& pre_RX, const Tensor& bias_EX, const Tensor& expert_R, const Gating& how) {
    const Tensor pre = bias_EX.defined() ? pre_RX + bias_EX.index_select(0, expert_R) : pre_RX;
    const std::int64_t I = pre.size(1) / 2;
    if (how.alternates) {
      const std::vector<Tensor> pair = pre.view({-1, I, 2}).unbind(2);
      free_gate = pair[0].le(how.limit), free_up = pair[1].abs().le(how.limit);
      gate = pair[0].clamp_max(how.limit), up = pair[1].clamp(-how.limit, how.limit);
    } else {
      gate = pre.narrow(1, 0, I), up = pre.narrow(1, I, I);
    }
  }
};

}  // namespace

const ExpertParts& plain_parts() {
  static const ExpertParts parts = {
      [](const Tensor& pre_RX, const Tensor& bias_EX, const Tensor& expert_R, const Gating& how) {
        const Pairs pairs(pre_RX, bias_EX, expert_R, how);
        if (!how.alternates) return at::silu(pairs.gate).mul_(pairs.up);
        return (pairs.up + 1) * (pairs.gate * (pairs.gate * how.alpha).sigmoid());
      },
      [](const Tensor& pre_RX, const Tensor& bias_EX, const Tensor& expert_R, const Gating& how,
         const Tensor& d_RI) -> std::pair<Tensor, Tensor> {
        const Pairs pairs(pre_RX, bias_EX, expert_R, how);
        if (!how.alternates) {
          const Tensor silu_RI = at::silu(pairs.gate);
          return {at::cat({at::silu_backward(d_RI * pairs.up, pairs.gate), silu_RI * d_RI}, 1), silu_RI * pairs.up};
        }
        const Tensor s = (pairs.gate * how.alpha).sigmoid(), glu = pairs.gate * s, up = pairs.up + 1;
        const Tensor dgate = d_RI * up * (s + glu * how.alpha * (1 - s)) * pairs.free_gate,
                     dup = d_RI * glu * pairs.free_up;
        return {at::stack({dgate, dup}, 2).view(pre_RX.sizes()), up * glu};
      },
      [](const Tensor& made_RC, const Tensor& bias_EC, const Tensor& expert_R) {
        made_RC.add_(bias_EC.index_select(0, expert_R));
      },
      nullptr,
  };
  return parts;
}

Tensor gated_experts(const Tensor& rows_RC, std::span<const std::int64_t> counts, std::span<const Expert> experts,
                     const Gating& how, const ExpertParts& parts) {
  const auto net = c10::make_intrusive<Network>();
  net->counts.assign(counts.begin(), counts.end());
  net->how = how, net->parts = &parts;
  std::vector<Tensor> parameters;
  const auto list = [&](std::vector<std::vector<std::size_t>>& into, std::initializer_list<Tensor> tensors) {
    into.emplace_back();
    for (const Tensor& each : tensors) into.back().push_back(parameters.size()), parameters.push_back(each);
  };
  for (const Expert& expert : experts) {
    if (how.alternates) {
      list(net->first, {expert.gate}), list(net->first_bias, {expert.gate_bias});
      list(net->second, {expert.down}), list(net->second_bias, {expert.down_bias});
    } else {
      list(net->first, {expert.gate, expert.up}), list(net->second, {expert.down});
    }
  }
  return Gated::apply(rows_RC, at::TensorList(parameters), net);
}

}  // namespace zs::kernel
