// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda_capped.hpp"

#include <ATen/ops/bmm.h>

#include <algorithm>
#include <cmath>

#include "kernel/attention.hpp"
#include "kernel/cuda_layers.hpp"

namespace zs::kernel::cuda {
namespace {

using at::Tensor;

/// [B H, T, D]: one head after another. Keys and values are repeated for each head of queries that shares them.
Tensor heads_of(const Tensor& x_BTE, std::int64_t heads, std::int64_t times) {
  const std::int64_t B = x_BTE.size(0), T = x_BTE.size(1), D = x_BTE.size(2) / heads;
  const Tensor x_BKGTD = x_BTE.view({B, T, heads, 1, D}).permute({0, 2, 3, 1, 4});
  return x_BKGTD.expand({B, heads, times, T, D}).reshape({B * heads * times, T, D});
}

/// The blocks of queries of attention, and the keys that each sees.
class Blocks {
 public:
  Blocks(const QueriesKeysValues& of, const Heads& heads)
      : heads_(heads),
        T_(of.q_BTE.size(1)),
        N_(of.q_BTE.size(0) * heads.H),
        q_(heads_of(of.q_BTE, heads.H, 1)),
        k_(heads_of(of.k_BTF, heads.K, heads.H / heads.K)),
        v_(heads_of(of.v_BTF, heads.K, heads.H / heads.K)) {}

  /// Calls `see` with the first query of each block and their number, and with keys' number: whole packs.
  template <typename See>
  void each(See see) const {
    constexpr std::int64_t kQueries = 512, kGroup = 8;
    for (std::int64_t begin = 0; begin < T_; begin += kQueries) {
      const std::int64_t count = std::min(kQueries, T_ - begin);
      see(begin, count, (begin + count + kGroup - 1) / kGroup * kGroup);
    }
  }
  CappedRows rows(std::int64_t begin, std::int64_t count, std::int64_t keys) const {
    const double scale = heads_.scale > 0 ? heads_.scale : 1 / std::sqrt(static_cast<double>(q_.size(2)));
    return {N_ * count, count, keys, begin, heads_.window, static_cast<float>(scale), static_cast<float>(heads_.cap)};
  }
  Tensor queries(const Tensor& of_NTD, std::int64_t begin, std::int64_t count) const {
    return of_NTD.narrow(1, begin, count);
  }
  /// The first `keys` rows, of zeros where there are no more.
  Tensor keys(const Tensor& of_NTD, std::int64_t number) const {
    if (number <= T_) return of_NTD.narrow(1, 0, number);
    return at::cat({of_NTD, at::zeros({N_, number - T_, of_NTD.size(2)}, of_NTD.options())}, 1);
  }
  Tensor scores(std::int64_t begin, std::int64_t count, std::int64_t number) const {
    return at::bmm(queries(q_, begin, count), keys(k_, number).transpose(1, 2));
  }
  const Tensor& q() const { return q_; }
  const Tensor& k() const { return k_; }
  const Tensor& v() const { return v_; }

 private:
  Heads heads_;
  std::int64_t T_, N_;
  Tensor q_, k_, v_;
};

Tensor floats_like(const Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); }

}  // namespace

Attended capped_forward(const QueriesKeysValues& of, const Heads& heads) {
  const std::int64_t B = of.q_BTE.size(0), T = of.q_BTE.size(1), H = heads.H;
  const Blocks blocks(of, heads);
  const Tensor out_NTD = at::empty_like(blocks.q()), stats_NT = at::empty({B * H, T}, floats(0).options());
  blocks.each([&](std::int64_t begin, std::int64_t count, std::int64_t keys) {
    const Tensor weights = blocks.scores(begin, count, keys), stats = floats(B * H * count);
    capped_softmax(data<__nv_bfloat16>(weights), data<float>(stats), blocks.rows(begin, count, keys), stream());
    stats_NT.narrow(1, begin, count).copy_(stats.view({B * H, count}));
    out_NTD.narrow(1, begin, count).copy_(at::bmm(weights, blocks.keys(blocks.v(), keys)));
  });
  return {out_NTD.view({B, H, T, -1}).transpose(1, 2).reshape({B, T, -1}), stats_NT.view({B, H, T, 1})};
}

void capped_backward(const QueriesKeysValues& of, const Attended& attended, const Tensor& dout_BTC, const Heads& heads,
                     const QueriesKeysValues& made) {
  const std::int64_t B = of.q_BTE.size(0), T = of.q_BTE.size(1), H = heads.H, K = heads.K;
  const Blocks blocks(of, heads);
  const Tensor dout_NTD = heads_of(dout_BTC, H, 1), stats_NT = attended.stats_BHT1.view({B * H, T});
  const Tensor dots_NT = (heads_of(attended.out_BTC, H, 1).to(at::kFloat) * dout_NTD).sum(-1);
  const Tensor dq_NTD = at::empty_like(blocks.q()), dk_NTD = floats_like(blocks.k()), dv_NTD = floats_like(blocks.v());
  blocks.each([&](std::int64_t begin, std::int64_t count, std::int64_t keys) {
    const Tensor dout = blocks.queries(dout_NTD, begin, count), weights = blocks.scores(begin, count, keys);
    const Tensor dscores = at::bmm(dout, blocks.keys(blocks.v(), keys).transpose(1, 2));
    const Tensor stats = stats_NT.narrow(1, begin, count).contiguous(),
                 dots = dots_NT.narrow(1, begin, count).contiguous();
    capped_softmax_backward(data<__nv_bfloat16>(weights), data<__nv_bfloat16>(dscores), data<float>(stats),
                            data<float>(dots), blocks.rows(begin, count, keys), stream());
    dq_NTD.narrow(1, begin, count).copy_(at::bmm(dscores, blocks.keys(blocks.k(), keys)));
    const std::int64_t seen = std::min(keys, T);
    const auto add = [&](const Tensor& sum_NTD, const Tensor& by, const Tensor& of_queries) {
      sum_NTD.narrow(1, 0, seen).add_(at::bmm(by.transpose(1, 2), of_queries).narrow(1, 0, seen));
    };
    add(dv_NTD, weights, dout), add(dk_NTD, dscores, blocks.queries(blocks.q(), begin, count));
  });
  const auto put = [&](const Tensor& into_BTE, const Tensor& of_NTD, std::int64_t count) {
    const Tensor of_BKTD = of_NTD.view({B, count, H / count, T, -1}).sum(2);
    into_BTE.view({B, T, count, -1}).copy_(of_BKTD.transpose(1, 2));
  };
  put(made.q_BTE, dq_NTD, H), put(made.k_BTF, dk_NTD, K), put(made.v_BTF, dv_NTD, K);
}

}  // namespace zs::kernel::cuda
