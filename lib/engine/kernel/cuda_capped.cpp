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
using Number = __nv_bfloat16;

constexpr std::int64_t kBlock = 512;  ///< queries, or keys, that are computed at once

/// Some pairs of a sample and a head of keys, whose scores exist at one time. The G heads of queries that share keys
/// are rows of one product: row t G + g.
class Pairs {
 public:
  /// `matrices` of scores exist for each pair.
  Pairs(const QueriesKeysValues& qkv, const Heads& heads, std::int64_t begin, std::int64_t matrices)
      : heads_(heads),
        begin_(begin),
        T_(qkv.q_BTE.size(1)),
        D_(qkv.q_BTE.size(2) / heads.H),
        G_(heads.H / heads.K),
        S_((T_ + 7) / 8 * 8),
        options_(qkv.q_BTE.options()) {
    constexpr std::int64_t kBytes = std::int64_t{512} << 20;
    const std::int64_t pairs = qkv.q_BTE.size(0) * heads.K;
    count_ = std::clamp<std::int64_t>(kBytes / (matrices * T_ * G_ * S_ * 2), 1, pairs - begin);
  }
  std::int64_t count() const { return count_; }
  std::int64_t G() const { return G_; }
  /// `n` tensors of each pair's queries, keys or scores, one after another.
  Tensor queries(std::int64_t n) const { return at::empty({n * count_, T_ * G_, D_}, options_); }
  Tensor keys(std::int64_t n) const { return at::empty({n * count_, S_, D_}, options_); }
  Tensor scores(std::int64_t n) const { return at::empty({n * count_, T_ * G_, S_}, options_); }
  /// Tensor number `at` of those.
  Tensor part(const Tensor& pairs, std::int64_t at) const { return pairs.narrow(0, at * count_, count_); }
  void pack(const Tensor& x_BTE, const Tensor& into) const {
    pack_heads(data<Number>(x_BTE), data<Number>(into), lying(x_BTE, into), stream());
  }
  void unpack(const Tensor& from, const Tensor& x_BTE) const {
    unpack_heads(data<Number>(from), data<Number>(x_BTE), lying(x_BTE, from), stream());
  }
  /// The first key that a block of queries computes: its block has one that they see.
  std::int64_t first(std::int64_t query) const {
    return heads_.window > 0 ? std::max<std::int64_t>(0, query - heads_.window + 1) / kBlock * kBlock : 0;
  }
  /// Calls `see` with the results of the kernels for each block of queries.
  template <typename See>
  void each_queries(See see) const {
    const double scale = heads_.scale > 0 ? heads_.scale : 1 / std::sqrt(static_cast<double>(D_));
    for (std::int64_t begin = 0; begin < T_; begin += kBlock) {
      const std::int64_t key = first(begin), queries = std::min(kBlock, T_ - begin);
      see(CappedRows{begin_, count_, heads_.K, G_, T_, D_, begin, queries, key, std::min(S_, begin + kBlock) - key, S_,
                     heads_.window, static_cast<float>(scale), static_cast<float>(heads_.cap)});
    }
  }
  /// Calls `see` with each block of keys: the first and their number, and the end of the queries that compute them,
  /// which begin with the query of the first key.
  template <typename See>
  void each_keys(See see) const {
    for (std::int64_t key = 0; key < T_; key += kBlock) {
      std::int64_t end = key;
      while (end < T_ && first(end) <= key) end += kBlock;
      see(key, std::min(kBlock, S_ - key), std::min(end, T_));
    }
  }

 private:
  Heads heads_;
  std::int64_t begin_, count_ = 0, T_, D_, G_, S_;
  at::TensorOptions options_;

  PackedHeads lying(const Tensor& x_BTE, const Tensor& packed) const {
    const std::int64_t group = x_BTE.size(2) / (heads_.K * D_);
    return {begin_, count_, heads_.K, group, T_, packed.size(1) / group, D_, x_BTE.stride(0), x_BTE.stride(1)};
  }
};

template <typename Compute>
void each_pairs(const QueriesKeysValues& qkv, const Heads& heads, std::int64_t matrices, Compute compute) {
  const std::int64_t last = qkv.q_BTE.size(0) * heads.K;
  for (std::int64_t begin = 0; begin < last;) {
    const Pairs pairs(qkv, heads, begin, matrices);
    compute(pairs);
    begin += pairs.count();
  }
}

/// into = a times b; rows of each may lie apart.
void product(Tensor into, const Tensor& a, const Tensor& b) { at::bmm_out(into, a, b); }

Tensor scores_of(const Tensor& packed, const CappedRows& rows) {
  return packed.narrow(1, rows.query * rows.G, rows.queries * rows.G).narrow(2, rows.key, rows.keys);
}
Tensor queries_of(const Tensor& packed, const CappedRows& rows) {
  return packed.narrow(1, rows.query * rows.G, rows.queries * rows.G);
}
Tensor keys_of(const Tensor& packed, const CappedRows& rows) { return packed.narrow(1, rows.key, rows.keys); }

}  // namespace

Attended capped_forward(const QueriesKeysValues& qkv, const Heads& heads) {
  const std::int64_t B = qkv.q_BTE.size(0), T = qkv.q_BTE.size(1);
  const Tensor out_BTC = at::empty({B, T, qkv.q_BTE.size(2)}, qkv.q_BTE.options()),
               stats_BHT1 = at::empty({B, heads.H, T, 1}, qkv.q_BTE.options().dtype(at::kFloat));
  each_pairs(qkv, heads, 1, [&](const Pairs& pairs) {
    const Tensor q = pairs.queries(1), out = pairs.queries(1), k = pairs.keys(1), v = pairs.keys(1),
                 scores = pairs.scores(1);
    pairs.pack(qkv.q_BTE, q), pairs.pack(qkv.k_BTF, k), pairs.pack(qkv.v_BTF, v);
    pairs.each_queries([&](const CappedRows& rows) {
      const Tensor here = scores_of(scores, rows);
      product(here, queries_of(q, rows), keys_of(k, rows).transpose(1, 2));
      capped_softmax(data<Number>(scores), data<float>(stats_BHT1), rows, stream());
      product(queries_of(out, rows), here, keys_of(v, rows));
    });
    pairs.unpack(out, out_BTC);
  });
  return {out_BTC, stats_BHT1};
}

void capped_backward(const QueriesKeysValues& qkv, const Attended& attended, const Tensor& dout_BTC, const Heads& heads,
                     const QueriesKeysValues& made) {
  each_pairs(qkv, heads, 2, [&](const Pairs& pairs) {
    // Scores and the gradient of weights are one product, of queries and the gradient of the output with keys and
    // values; so are, after them, the gradients of keys and values.
    const Tensor rows_of_two = pairs.queries(2), keys_of_two = pairs.keys(2), both = pairs.scores(2);
    const Tensor dq = pairs.queries(1), dkeys = pairs.keys(2), dout = pairs.part(rows_of_two, 1),
                 k = pairs.part(keys_of_two, 0), scores = pairs.part(both, 0), dweights = pairs.part(both, 1);
    pairs.pack(qkv.q_BTE, pairs.part(rows_of_two, 0)), pairs.pack(dout_BTC, dout);
    pairs.pack(qkv.k_BTF, k), pairs.pack(qkv.v_BTF, pairs.part(keys_of_two, 1));
    pairs.each_queries([&](const CappedRows& rows) {
      product(scores_of(both, rows), queries_of(rows_of_two, rows), keys_of(keys_of_two, rows).transpose(1, 2));
      capped_softmax_backward(data<Number>(scores), data<Number>(dweights), data<float>(attended.stats_BHT1),
                              data<Number>(attended.out_BTC), data<Number>(dout), rows, stream());
      product(queries_of(dq, rows), scores_of(scores, rows), keys_of(k, rows));
    });
    pairs.each_keys([&](std::int64_t key, std::int64_t keys, std::int64_t end) {
      const std::int64_t G = pairs.G();
      const auto seen = [&](const Tensor& rows_of_key) { return rows_of_key.narrow(1, key * G, (end - key) * G); };
      product(dkeys.narrow(1, key, keys), seen(both).narrow(2, key, keys).transpose(1, 2), seen(rows_of_two));
    });
    pairs.unpack(dq, made.q_BTE);
    pairs.unpack(pairs.part(dkeys, 0), made.k_BTF), pairs.unpack(pairs.part(dkeys, 1), made.v_BTF);
  });
}

}  // namespace zs::kernel::cuda
