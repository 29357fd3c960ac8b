// SPDX-License-Identifier: Apache-2.0
// The parts of experts' networks on a GPU. Shapes as in kernel/experts.hpp and kernel/gated_experts.hpp.
#include "kernel/cuda_experts.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include "kernel/cuda_layers.hpp"
#include "kernel/cuda_llama.hpp"
#include "kernel/gated_experts.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

bool whole_packs(const Tensor& x_RC) { return x_RC.size(1) * x_RC.element_size() % 32 == 0; }  // also of half of them

Alternating alternating_of(const Tensor& pre_RX, const Tensor& expert_R, const Gating& how) {
  return {expert_R.data_ptr<std::int32_t>(), pre_RX.size(0), pre_RX.size(1) / 2, static_cast<float>(how.alpha),
          static_cast<float>(how.limit)};
}

Tensor activate(const Tensor& pre_RX, const Tensor& bias_EX, const Tensor& expert_R, const Gating& how) {
  if (!whole_packs(pre_RX)) return plain_parts().activate(pre_RX, bias_EX, expert_R, how);
  const std::int64_t R = pre_RX.size(0), I = pre_RX.size(1) / 2;
  const Tensor inner_RI = at::empty({R, I}, pre_RX.options());
  with_type(pre_RX, [&](auto type) {
    using T = decltype(type);
    if (how.alternates)
      alternating(data<T>(pre_RX), data<T>(bias_EX), data<T>(inner_RI), alternating_of(pre_RX, expert_R, how),
                  stream());
    else if (R > 0)
      gated(/*gelu=*/false, data<T>(pre_RX), data<T>(inner_RI), R, I, stream());
  });
  return inner_RI;
}

std::pair<Tensor, Tensor> activate_backward(const Tensor& pre_RX, const Tensor& bias_EX, const Tensor& expert_R,
                                            const Gating& how, const Tensor& dinner_RI) {
  if (!whole_packs(pre_RX)) return plain_parts().activate_backward(pre_RX, bias_EX, expert_R, how, dinner_RI);
  // In place: these are the largest tensors of a step with experts. A thread reads what it writes over.
  with_type(pre_RX, [&](auto type) {
    using T = decltype(type);
    if (how.alternates)
      alternating_backward(data<T>(pre_RX), data<T>(bias_EX), data<T>(dinner_RI), data<T>(pre_RX), data<T>(dinner_RI),
                           alternating_of(pre_RX, expert_R, how), stream());
    else if (pre_RX.size(0) > 0)
      gated_backward(/*gelu=*/false, data<T>(pre_RX), data<T>(dinner_RI), data<T>(pre_RX), data<T>(dinner_RI),
                     pre_RX.size(0), pre_RX.size(1) / 2, stream());
  });
  return {pre_RX, dinner_RI};
}

void add_biases(const Tensor& made_RC, const Tensor& bias_EC, const Tensor& expert_R) {
  if (!whole_packs(made_RC)) return plain_parts().add_bias(made_RC, bias_EC, expert_R);
  with_type(made_RC, [&](auto type) {
    using T = decltype(type);
    add_bias(data<T>(made_RC), data<T>(bias_EC), expert_R.data_ptr<std::int32_t>(), made_RC.size(0), made_RC.size(1),
             stream());
  });
}

struct Combined : torch::autograd::Function<Combined> {
  static Tensor forward(AutogradContext* ctx, const Tensor& given_NC, const Tensor& made_RC, const Tensor& place_R,
                        const Tensor& given_NK) {
    const Tensor x_NC = given_NC.contiguous(), weights_NK = given_NK.contiguous(), y_NC = at::empty_like(x_NC);
    with_type(x_NC, [&](auto type) {
      using T = decltype(type);
      combine(data<T>(x_NC), data<T>(made_RC), place_R.data_ptr<std::int64_t>(), data<float>(weights_NK), data<T>(y_NC),
              x_NC.size(0), weights_NK.size(1), x_NC.size(1), stream());
    });
    ctx->save_for_backward({made_RC, place_R, weights_NK});
    return y_NC;
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const Tensor &made_RC = saved[0], &weights_NK = saved[2], dy_NC = gradients[0].contiguous(),
                 dmade_RC = at::empty_like(made_RC), dweights_NK = at::empty_like(weights_NK);
    with_type(dy_NC, [&](auto type) {
      using T = decltype(type);
      combine_backward(data<T>(dy_NC), data<T>(made_RC), saved[1].data_ptr<std::int64_t>(), data<float>(weights_NK),
                       data<T>(dmade_RC), data<float>(dweights_NK), dy_NC.size(0), weights_NK.size(1), dy_NC.size(1),
                       stream());
    });
    return {dy_NC, dmade_RC, Tensor(), dweights_NK};
  }
};

Tensor combined(const Tensor& x_NC, const Tensor& made_RC, const Tensor& place_R, const Tensor& weights_NK) {
  return Combined::apply(x_NC, made_RC.contiguous(), place_R, weights_NK);
}

}  // namespace

const ExpertParts& expert_parts() {
  static const ExpertParts parts = {activate, activate_backward, add_biases, combined};
  return parts;
}

}  // namespace zs::kernel::cuda
