// SPDX-License-Identifier: Apache-2.0
// Shapes as in kernels.hpp; S keys seen by a block of queries. Computes in float32 for tensors of every type.
#include "kernel/fused_attention.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "device/operations.hpp"
#include "kernel/product.hpp"
#include "kernel/vector.hpp"
#include "unit/kept.hpp"
#include "unit/random.hpp"

namespace zs::kernel {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

/// Queries [begin, end) of one head see the keys [first, end); `first` is 0 without a window. Blocks of queries leave
/// out most of the part that causality and the window mask.
constexpr std::int64_t kQueries = 64;

/// Queries, keys and values (or gradients by them) of all heads: views [B, T, H*D] and [B, T, K*D]; float32.
struct FusedHeads {
  Tensor q_BTE, k_BTF, v_BTF;
  Attending how;
  bool causal = true;

  std::int64_t width() const { return q_BTE.size(2) / how.heads; }
  double scale() const { return how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(width())); }
  /// Queries that are computed at once, and the keys that a query sees.
  std::int64_t block() const { return causal ? std::min(kQueries, q_BTE.size(1)) : q_BTE.size(1); }
  /// The keys that a query sees: from first(query) on, up to seen(query).
  std::int64_t first(std::int64_t query) const {
    return how.window > 0 ? std::max<std::int64_t>(0, query + 1 - how.window) : 0;
  }
  std::int64_t seen(std::int64_t query) const { return causal ? query + 1 : q_BTE.size(1); }
  /// Heads that share keys and values.
  std::int64_t sharing() const { return q_BTE.size(2) / k_BTF.size(2); }
  static FusedHeads of(const Variables& given, const Attending& how, bool causal) {
    if (given.size() == 3) return {given[0], given[1], given[2], how, causal};
    const std::int64_t C = given[0].size(2) / 3;
    return {given[0].narrow(2, 0, C), given[0].narrow(2, C, C), given[0].narrow(2, 2 * C, C), how, causal};
  }
};

/// The matrix of one head of one sample: [T, D].
struct Head {
  Head(const FusedHeads& heads, std::int64_t sample, std::int64_t head) {
    const std::int64_t D = heads.width(), shared = head / heads.sharing();
    q_TD = heads.q_BTE.select(0, sample).narrow(1, head * D, D);
    k_TD = heads.k_BTF.select(0, sample).narrow(1, shared * D, D);
    v_TD = heads.v_BTF.select(0, sample).narrow(1, shared * D, D);
  }
  Tensor q_TD, k_TD, v_TD;
};

Tensor mask_of(const Tensor& mask_BHTT, std::int64_t b, std::int64_t h, std::int64_t begin, std::int64_t first,
               std::int64_t end) {
  return mask_BHTT.select(0, b).select(0, h).narrow(0, begin, end - begin).narrow(1, first, end - first);
}
Tensor dropped(const Tensor& seen_QS, const Tensor& mask_BHTT, std::int64_t b, std::int64_t h, std::int64_t begin,
               std::int64_t first, std::int64_t end) {
  return mask_BHTT.defined() ? seen_QS * mask_of(mask_BHTT, b, h, begin, first, end) : seen_QS;
}

/// Calls compute(i) for each of the heads, on all threads if there are as many sets of `together`, which are computed
/// in order. With fewer, all threads compute each product.
template <typename Compute>
void each_head(std::int64_t heads, std::int64_t together, const Compute& compute) {
  const std::int64_t sets = heads / together, least = sets < at::get_num_threads() ? sets : 1;
  device::in_parts(sets, least, [&](std::int64_t begin, std::int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView guard;  // of this thread: nothing here is differentiated
    for (std::int64_t i = begin * together; i < end * together; ++i) compute(i);
  });
}

/// The output of attention, and the tensors that it keeps for backward.
struct FusedAttended {
  Tensor out_BTE, weights_BHTT, mask_BHTT;
};

FusedAttended attend_forward(const FusedHeads& given) {
  RECORD_USER_SCOPE("zs::attention");
  const std::int64_t B = given.q_BTE.size(0), T = given.q_BTE.size(1), E = given.q_BTE.size(2), D = given.width(),
                     heads = given.how.heads;
  const double scale = given.scale();
  const auto cap = static_cast<float>(given.how.cap);
  Tensor out_BTE = at::empty({B, T, E}, given.q_BTE.options()),
         weights_BHTT = at::empty({B, heads, T, T}, given.q_BTE.options());
  Tensor mask_BHTT;
  if (given.how.dropout > 0) mask_BHTT = unit::dropout_mask(weights_BHTT, given.how.dropout, given.how.key);
  each_head(B * heads, 1, [&](std::int64_t i) {
    const std::int64_t b = i / heads, h = i % heads;
    const Head head(given, b, h);
    const Tensor out_TD = out_BTE.select(0, b).narrow(1, h * D, D);
    const Tensor weights_TT = weights_BHTT.select(0, b).select(0, h);
    for (std::int64_t begin = 0; begin < T; begin += given.block()) {
      const std::int64_t end = std::min(T, begin + given.block()), first = given.first(begin), keys = end - first;
      const Tensor seen_QS = weights_TT.narrow(0, begin, end - begin).narrow(1, first, keys);
      multiply(seen_QS, head.q_TD.narrow(0, begin, end - begin), head.k_TD.narrow(0, first, keys).t(), 0, scale);
      for (std::int64_t query = begin; query < end; ++query) {
        float* const row = weights_TT.data_ptr<float>() + query * T;
        const std::int64_t from = given.first(query), to = given.seen(query);
        if (cap > 0) kernel::cap(row + from, nullptr, to - from, cap);
        softmax(row + from, to - from);
        std::fill(row + first, row + from, 0.0F);
        std::fill(row + to, row + end, 0.0F);
      }
      const Tensor used_QS = dropped(seen_QS, mask_BHTT, b, h, begin, first, end);
      multiply(out_TD.narrow(0, begin, end - begin), used_QS, head.v_TD.narrow(0, first, keys), 0);
    }
  });
  return {out_BTE, weights_BHTT, mask_BHTT};
}

/// The same; in a second forward of the unit, the recorded result of the first.
FusedAttended attended_or_kept(const FusedHeads& given) {
  const unit::Results results = unit::kept([&] {
    const FusedAttended made = attend_forward(given);
    return unit::Results{made.out_BTE, made.weights_BHTT, made.mask_BHTT};
  });
  return {results[0], results[1], results[2]};
}

/// Sets `gradients` from that by the output.
void attend_backward(const FusedHeads& given, const FusedAttended& attended, const Tensor& dout_BTE,
                     const FusedHeads& gradients) {
  const Tensor &weights_BHTT = attended.weights_BHTT, &mask_BHTT = attended.mask_BHTT;
  const std::int64_t B = given.q_BTE.size(0), T = given.q_BTE.size(1), D = given.width(), heads = given.how.heads;
  const double scale = given.scale();
  const auto cap = static_cast<float>(given.how.cap);
  if (given.how.window > 0) gradients.k_BTF.zero_(), gradients.v_BTF.zero_();
  each_head(B * heads, given.sharing(), [&](std::int64_t i) {
    const std::int64_t b = i / heads, h = i % heads;
    const Tensor scratch = at::empty({given.block() * T}, given.q_BTE.options());
    const Tensor scores = cap > 0 ? at::empty_like(scratch) : Tensor();
    const Head head(given, b, h), d(gradients, b, h);
    const Tensor dout_TD = dout_BTE.select(0, b).narrow(1, h * D, D);
    const Tensor weights_TT = weights_BHTT.select(0, b).select(0, h);
    // Without a window the last block sees every key: with the first of the heads that share them it sets what the
    // others add to.
    for (std::int64_t begin = (T - 1) / given.block() * given.block(); begin >= 0; begin -= given.block()) {
      const std::int64_t end = std::min(T, begin + given.block()), count = end - begin, first = given.first(begin),
                         keys = end - first;
      const double beta = given.how.window == 0 && end == T && h % given.sharing() == 0 ? 0 : 1;
      const Tensor seen_QS = weights_TT.narrow(0, begin, count).narrow(1, first, keys),
                   dout_QD = dout_TD.narrow(0, begin, count), q_QD = head.q_TD.narrow(0, begin, count),
                   k_SD = head.k_TD.narrow(0, first, keys);
      multiply(d.v_TD.narrow(0, first, keys), dropped(seen_QS, mask_BHTT, b, h, begin, first, end).t(), dout_QD, beta);
      Tensor dseen_QS = scratch.narrow(0, 0, count * keys).view({count, keys});
      multiply(dseen_QS, dout_QD, head.v_TD.narrow(0, first, keys).t(), 0);
      if (mask_BHTT.defined()) dseen_QS.mul_(mask_of(mask_BHTT, b, h, begin, first, end));
      for (std::int64_t query = begin; query < end; ++query)
        softmax_backward(weights_TT.data_ptr<float>() + query * T + first,
                         dseen_QS.data_ptr<float>() + (query - begin) * keys, keys);
      if (cap > 0) {  // the scores again, whose place became slopes
        const Tensor scores_QS = scores.narrow(0, 0, count * keys).view({count, keys});
        multiply(scores_QS, q_QD, k_SD.t(), 0, scale);
        kernel::cap(scores_QS.data_ptr<float>(), scores_QS.data_ptr<float>(), count * keys, cap);
        kernel::multiply(scores_QS.data_ptr<float>(), dseen_QS.data_ptr<float>(), count * keys);
      }
      multiply(d.q_TD.narrow(0, begin, count), dseen_QS, k_SD, 0, scale);
      multiply(d.k_TD.narrow(0, first, keys), dseen_QS.t(), q_QD, beta, scale);
    }
  });
}

/// Attention of queries, keys and values, which are one tensor or three.
struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* ctx, const at::TensorList& given, const Attending& how, bool causal) {
    const FusedAttended attended = attended_or_kept(FusedHeads::of(in_float(given), how, causal));
    Variables kept(given.begin(), given.end());
    kept.insert(kept.end(), {attended.weights_BHTT, attended.mask_BHTT});
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["heads"] = how.heads;
    ctx->saved_data["scale"] = how.scale;
    ctx->saved_data["cap"] = how.cap;
    ctx->saved_data["window"] = how.window;
    ctx->saved_data["causal"] = causal;
    return attended.out_BTE.to(given[0].scalar_type());
  }

  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Variables saved = ctx->get_saved_variables();
    const std::size_t count = saved.size() - 2;
    const Attending how{.heads = ctx->saved_data["heads"].toInt(),
                        .scale = ctx->saved_data["scale"].toDouble(),
                        .cap = ctx->saved_data["cap"].toDouble(),
                        .window = ctx->saved_data["window"].toInt()};
    const bool causal = ctx->saved_data["causal"].toBool();
    const Variables given = in_float({saved.data(), count});
    Variables d;
    for (const Tensor& one : given) d.push_back(at::empty_like(one));
    attend_backward(FusedHeads::of(given, how, causal), {{}, saved[count], saved[count + 1]},
                    gradients[0].to(at::kFloat), FusedHeads::of(d, how, causal));
    for (Tensor& one : d) one = one.to(saved[0].scalar_type());
    d.resize(count + 2);  // the other arguments have no gradient
    return d;
  }

 private:
  static Variables in_float(at::TensorList given) {
    Variables made;
    for (const Tensor& one : given) made.push_back(one.to(at::kFloat));
    return made;
  }
};

}  // namespace

Tensor fused_attention(const Tensor& qkv_BTE, const Attending& how) {
  return Attention::apply(at::TensorList(qkv_BTE), how, /*causal=*/true);
}

Tensor fused_grouped_attention(const Tensor& q_BTE, const Tensor& k_BTF, const Tensor& v_BTF, const Attending& how,
                               bool causal) {
  return Attention::apply(at::TensorList({q_BTE, k_BTF, v_BTF}), how, causal);
}

}  // namespace zs::kernel
