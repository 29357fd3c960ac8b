// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda_joint.hpp"

#include <algorithm>

#include "kernel/cuda_layers.hpp"
#include "kernel/cuda_rows.hpp"

namespace zs::kernel::cuda {

using at::Tensor;
using Role = Factor::Role;
using Wants = Factor::Wants;

namespace {

/// Matrices with equal numbers of columns, one below the other. Where they lie so in memory it is a view: in a unit's
/// flat buffer they do. The product with it has the same shape, and so the same bits, either way.
class Joined {
 public:
  explicit Joined(std::vector<Tensor> parts) : parts_(std::move(parts)) {
    std::int64_t rows = 0;
    for (const Tensor& part : parts_) {
      const auto* const end = static_cast<const std::byte*>(parts_[0].data_ptr()) +
                              rows * part.size(1) * static_cast<std::int64_t>(part.element_size());
      adjacent_ = adjacent_ && part.data_ptr() == end && part.storage().is_alias_of(parts_[0].storage());
      rows += part.size(0);
    }
    const std::int64_t columns = parts_[0].size(1);
    whole_ = adjacent_ ? parts_[0].detach().as_strided({rows, columns}, {columns, 1}) : at::cat(parts_);
  }
  const Tensor& whole() const { return whole_; }
  /// Gives the parts what is in whole().
  void put_back() const {
    if (adjacent_) return;
    std::int64_t row = 0;
    for (const Tensor& part : parts_) {
      part.copy_(whole_.narrow(0, row, part.size(0)));
      row += part.size(0);
    }
  }

 private:
  std::vector<Tensor> parts_;
  bool adjacent_ = true;
  Tensor whole_;
};

/// Adds a^T b to the gradients of parameters, one below the other. The part of a frozen one is dropped.
void add_product(const std::vector<Tensor>& parameters, Gradients& sums, const Side& a_OM, const Side& b_IM) {
  std::vector<Tensor> all;
  for (const Tensor& parameter : parameters) all.push_back(sums.of(parameter).sum());
  const Joined sum(std::move(all));
  multiply(sum.whole(), a_OM, b_IM, {.addend_MN = sum.whole()});
  sum.put_back();
}

}  // namespace

void Listed::add(const Tensor& parameter) {
  if (parameter.defined() && std::ranges::none_of(all_, [&](const Tensor& one) { return one.is_same(parameter); }))
    all_.push_back(parameter);
}

Gradients::Gradients(const Listed& parameters)
    : parameters_(parameters.all()), all_(parameters_.begin(), parameters_.end()) {}

Gradient& Gradients::of(const Tensor& parameter) {
  const auto found = std::ranges::find_if(parameters_, [&](const Tensor& one) { return one.is_same(parameter); });
  return all_.at(static_cast<std::size_t>(found - parameters_.begin()));
}

std::vector<Tensor> Gradients::after(const Tensor& dx) const {
  std::vector<Tensor> made = {dx};
  for (const Gradient& its : all_) made.push_back(its.returned());
  made.emplace_back();
  return made;
}

template <typename See>
void Joint::each_adapter(const Tensor& of_NO, See see) const {
  std::int64_t begin = 0;
  std::size_t number = 0;
  for (const Projection& part : parts_) {
    const std::int64_t O = part.weight_OI.size(0);
    if (part.adapter.defined()) see(part.adapter, number++, of_NO.narrow(1, begin, O));
    begin += O;
  }
}

void Joint::list(Listed& all) const {
  for (const Projection& part : parts_)
    all.add(part.weight_OI), all.add(part.bias_O), all.add(part.adapter.a_RI), all.add(part.adapter.b_OR);
}

std::int64_t Joint::columns() const {
  std::int64_t all = 0;
  for (const Projection& part : parts_) all += part.weight_OI.size(0);
  return all;
}

std::vector<Tensor> Joint::weights() const {
  std::vector<Tensor> all;
  for (const Projection& part : parts_) all.push_back(part.weight_OI);
  return all;
}

Tensor Joint::bias() const {
  if (std::ranges::none_of(parts_, [](const Projection& part) { return part.bias_O.defined(); })) return {};
  std::vector<Tensor> all;
  for (const Projection& part : parts_)
    all.push_back(part.bias_O.defined() ? part.bias_O : at::zeros({part.weight_OI.size(0)}, part.weight_OI.options()));
  return at::cat(all);
}

bool Joint::adapts() const {
  return std::ranges::any_of(parts_, [](const Projection& part) { return part.adapter.defined(); });
}

Tensor Joint::low(const Adapter& adapter, const Tensor& x_NI) {
  const Tensor made_NR = at::empty({x_NI.size(0), adapter.a_RI.size(0)}, x_NI.options());
  multiply(made_NR, x_NI, adapter.a_RI.t());
  return made_NR.mul_(adapter.scale);
}

void Joint::forward_again(const Tensor& x_NI) {
  low_.clear();
  for (const Projection& part : parts_) {
    if (part.adapter.defined()) low_.push_back(low(part.adapter, x_NI));
  }
}

void Joint::forward(const Tensor& y_NO, const Tensor& x_NI, const Tensor& addend_NO) {
  const Joined all(weights());
  const Factor x(x_NI, Role::value, Wants::rows), weight(all.whole(), Role::value, Wants::rows);
  multiply(y_NO, x.rows(), weight.rows(), {.bias_N = bias(), .addend_MN = addend_NO});
  most_x_ = x.largest(), most_weight_ = weight.largest();
  low_.clear();
  each_adapter(y_NO, [&](const Adapter& adapter, std::size_t, const Tensor& own_NO) {
    low_.push_back(low(adapter, x_NI));
    multiply(own_NO, low_.back(), adapter.b_OR.t(), {.addend_MN = own_NO});
  });
}

void Joint::backward(const Tensor& dx_NI, const Tensor& dy_NO, const Tensor& addend_NI) {
  const Joined all(weights());
  const bool trained =
      std::ranges::any_of(parts_, [](const Projection& part) { return part.weight_OI.requires_grad(); });
  dy_NO_ = dy_NO;
  dy_.emplace(dy_NO, Role::gradient, trained ? Wants::both : Wants::rows);
  multiply(dx_NI, dy_->rows(), Factor(all.whole(), Role::value, Wants::columns, most_weight_).columns(),
           {.addend_MN = addend_NI});
  each_adapter(dy_NO, [&](const Adapter& adapter, std::size_t, const Tensor& own_NO) {
    const Tensor dlow_NR = at::empty({dy_NO.size(0), adapter.a_RI.size(0)}, dy_NO.options());
    multiply(dlow_NR, own_NO, adapter.b_OR);
    dlow_.push_back(dlow_NR.mul_(adapter.scale));
    multiply(dx_NI, dlow_NR, adapter.a_RI, {.addend_MN = dx_NI});
  });
}

void Joint::add(const Tensor& x_NI, Gradients& sums) {
  if (std::ranges::any_of(parts_, [](const Projection& part) { return part.weight_OI.requires_grad(); }))
    add_product(weights(), sums, dy_->columns(), Factor(x_NI, Role::value, Wants::columns, most_x_).columns());
  each_adapter(dy_NO_, [&](const Adapter& adapter, std::size_t i, const Tensor& own_NO) {
    Gradient &a = sums.of(adapter.a_RI), &b = sums.of(adapter.b_OR);
    if (a.wanted()) multiply(a.sum(), dlow_[i].t(), x_NI, {.addend_MN = a.sum()});
    if (b.wanted()) multiply(b.sum(), own_NO.t(), low_[i], {.addend_MN = b.sum()});
  });
  std::int64_t begin = 0;
  Tensor columns_O;
  for (const Projection& part : parts_) {
    const std::int64_t O = part.weight_OI.size(0);
    if (part.bias_O.defined() && part.bias_O.requires_grad()) {
      if (!columns_O.defined()) {  // sums of all columns at once
        const std::int64_t N = dy_NO_.size(0), all = dy_NO_.size(1);
        columns_O = at::zeros({all}, dy_NO_.options());
        const Tensor scratch = floats(column_sum_scratch(N, all));
        with_type(dy_NO_, [&](auto type) {
          using T = decltype(type);
          column_sum(data<T>(dy_NO_), data<T>(columns_O), data<float>(scratch), N, all, stream());
        });
      }
      sums.of(part.bias_O).sum().add_(columns_O.narrow(0, begin, O));
    }
    begin += O;
  }
  low_.clear(), dlow_.clear();
  dy_.reset(), dy_NO_ = Tensor();
}

}  // namespace zs::kernel::cuda
