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
  std::vector<Tensor> terms;
  for (const Tensor& parameter : parameters) terms.push_back(sums.of(parameter).sum());
  const Joined sum(std::move(terms));
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
  for (const Gradient& sum : all_) made.push_back(sum.returned());
  made.emplace_back();
  return made;
}

std::vector<Tensor> Joint::first_factors() const {
  std::vector<Tensor> factors;
  for (const Projection& part : parts_) {
    if (part.adapter.defined() && (factors.empty() || !factors.back().is_same(part.adapter.a_RI)))
      factors.push_back(part.adapter.a_RI);
  }
  return factors;
}

template <typename See>
void Joint::each_adapter(const Tensor& of_NO, const Tensor& low_NR, See see) const {
  std::int64_t begin = 0, end = 0;
  Tensor before;
  for (const Projection& part : parts_) {
    const std::int64_t O = part.weight_OI.size(0);
    if (part.adapter.defined()) {
      const std::int64_t R = part.adapter.a_RI.size(0);
      const bool first = !part.adapter.a_RI.is_same(before);
      if (first) end += R;
      see(part.adapter, of_NO.narrow(1, begin, O), low_NR.narrow(1, end - R, R), first);
      before = part.adapter.a_RI;
    }
    begin += O;
  }
}

void Joint::list(Listed& listed) const {
  for (const Projection& part : parts_)
    listed.add(part.weight_OI), listed.add(part.bias_O), listed.add(part.adapter.a_RI), listed.add(part.adapter.b_OR);
}

std::int64_t Joint::columns() const {
  std::int64_t rows = 0;
  for (const Projection& part : parts_) rows += part.weight_OI.size(0);
  return rows;
}

std::vector<Tensor> Joint::weights() const {
  std::vector<Tensor> matrices;
  for (const Projection& part : parts_) matrices.push_back(part.weight_OI);
  return matrices;
}

Tensor Joint::bias() const {
  if (std::ranges::none_of(parts_, [](const Projection& part) { return part.bias_O.defined(); })) return {};
  std::vector<Tensor> biases;
  for (const Projection& part : parts_)
    biases.push_back(part.bias_O.defined() ? part.bias_O
                                           : at::zeros({part.weight_OI.size(0)}, part.weight_OI.options()));
  return at::cat(biases);
}

bool Joint::adapts() const {
  return std::ranges::any_of(parts_, [](const Projection& part) { return part.adapter.defined(); });
}

double Joint::scale() const {
  return std::ranges::find_if(parts_, [](const Projection& part) { return part.adapter.defined(); })->adapter.scale;
}

Tensor Joint::low(const Tensor& x_NI) const {
  const Joined factors(first_factors());
  const Tensor made_NR = at::empty({x_NI.size(0), factors.whole().size(0)}, x_NI.options());
  multiply(made_NR, x_NI, factors.whole().t());
  return made_NR.mul_(scale());
}

void Joint::forward_again(const Tensor& x_NI) { low_NR_ = low(x_NI); }

void Joint::forward(const Tensor& y_NO, const Tensor& x_NI, const Tensor& addend_NO) {
  const Joined joined(weights());
  const Factor x(x_NI, Role::value, Wants::rows), weight(joined.whole(), Role::value, Wants::rows);
  const auto product = [&](const Tensor& addend) {
    multiply(y_NO, x.rows(), weight.rows(), {.bias_N = bias(), .addend_MN = addend});
  };
  most_x_ = x.largest(), most_weight_ = weight.largest();
  if (!adapts()) return product(addend_NO);
  low_NR_ = low(x_NI);
  // If adapters fill all columns, their sum comes first: the product reads it while it computes.
  const bool fills = std::ranges::all_of(parts_, [](const Projection& part) { return part.adapter.defined(); });
  if (!fills) product(addend_NO);
  std::int64_t begin = 0;
  each_adapter(y_NO, low_NR_, [&](const Adapter& adapter, const Tensor& own_NO, const Tensor& low_NR, bool) {
    const Tensor past = !fills ? own_NO : addend_NO.defined() ? addend_NO.narrow(1, begin, own_NO.size(1)) : Tensor();
    multiply(own_NO, low_NR, adapter.b_OR.t(), {.addend_MN = past});
    begin += own_NO.size(1);
  });
  if (fills) product(y_NO);
}

void Joint::backward(const Tensor& dx_NI, const Tensor& dy_NO, const Tensor& addend_NI) {
  const Joined joined(weights());
  const bool trained =
      std::ranges::any_of(parts_, [](const Projection& part) { return part.weight_OI.requires_grad(); });
  dy_NO_ = dy_NO;
  dy_.emplace(dy_NO, Role::gradient, trained ? Wants::both : Wants::rows);
  Tensor past_NI = addend_NI;
  if (adapts()) {
    const Joined factors(first_factors());
    dlow_NR_ = at::empty({dy_NO.size(0), factors.whole().size(0)}, dy_NO.options());
    each_adapter(dy_NO, dlow_NR_, [&](const Adapter& adapter, const Tensor& own_NO, const Tensor& dlow_NR, bool first) {
      multiply(dlow_NR, own_NO, adapter.b_OR, {.addend_MN = first ? Tensor() : dlow_NR});
    });
    multiply(dx_NI, dlow_NR_.mul_(scale()), factors.whole(), {.addend_MN = addend_NI});
    past_NI = dx_NI;
  }
  multiply(dx_NI, dy_->rows(), Factor(joined.whole(), Role::value, Wants::columns, most_weight_).columns(),
           {.addend_MN = past_NI});
}

void Joint::add(const Tensor& x_NI, Gradients& sums) {
  if (std::ranges::any_of(parts_, [](const Projection& part) { return part.weight_OI.requires_grad(); }))
    add_product(weights(), sums, dy_->columns(), Factor(x_NI, Role::value, Wants::columns, most_x_).columns());
  if (adapts()) {
    add_product(first_factors(), sums, {dlow_NR_.t(), {}, false}, {x_NI.t(), {}, false});
    each_adapter(dy_NO_, low_NR_, [&](const Adapter& adapter, const Tensor& own_NO, const Tensor& low_NR, bool) {
      Gradient& b = sums.of(adapter.b_OR);
      if (b.wanted()) multiply(b.sum(), own_NO.t(), low_NR, {.addend_MN = b.sum()});
    });
  }
  std::int64_t begin = 0;
  Tensor columns_O;
  for (const Projection& part : parts_) {
    const std::int64_t O = part.weight_OI.size(0);
    if (part.bias_O.defined() && part.bias_O.requires_grad()) {
      if (!columns_O.defined()) {  // sums of all columns at once
        const std::int64_t N = dy_NO_.size(0), columns = dy_NO_.size(1);
        columns_O = at::zeros({columns}, dy_NO_.options());
        const Tensor scratch = floats(column_sum_scratch(N, columns));
        with_type(dy_NO_, [&](auto type) {
          using T = decltype(type);
          column_sum(data<T>(dy_NO_), data<T>(columns_O), data<float>(scratch), N, columns, stream());
        });
      }
      sums.of(part.bias_O).sum().add_(columns_O.narrow(0, begin, O));
    }
    begin += O;
  }
  low_NR_ = dlow_NR_ = Tensor();
  dy_.reset(), dy_NO_ = Tensor();
}

}  // namespace zs::kernel::cuda
