// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <cudnn_frontend.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "kernel/attention.hpp"
#include "kernel/cuda_capped.hpp"
#include "kernel/cuda_flash.hpp"
#include "kernel/cuda_hopper.hpp"
#include "kernel/matmul.hpp"
#include "unit/kept.hpp"

namespace zs::kernel::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;

enum Name : std::int64_t { kQ = 1, kK, kV, kOut, kStats, kDout, kDq, kDk, kDv, kSinks };

/// Where numbers of [B, T, heads * D] lie: from one sample to the next, and from one token to the next.
struct Strides {
  std::int64_t sample = 0, token = 0;
  Strides() = default;
  explicit Strides(const at::Tensor& x_BTE) : sample(x_BTE.stride(0)), token(x_BTE.stride(1)) {}
  auto operator<=>(const Strides&) const = default;
};

/// The problem of one graph: `of.T` queries of each head see `keys`. If it is causal, a query sees keys up to its
/// position.
struct Tile {
  AttentionShape shape;
  std::int64_t keys;
  bool causal, sinks;
  float scale = 0;
  std::int64_t window = 0;
  Strides q = {}, k = {}, out = {}, dq = {}, dk = {};  ///< v as k, dout as out, dv as dk
  auto operator<=>(const Tile&) const = default;

  std::vector<std::int64_t> queries_BHTD() const { return {shape.B, shape.H, shape.T, shape.D}; }
  std::vector<std::int64_t> keys_BKTD() const { return {shape.B, shape.K, keys, shape.D}; }
  std::vector<std::int64_t> lying(Strides by) const { return {by.sample, shape.D, by.token, 1}; }
  /// "attention.bfloat16.4x2048x32.8x64 causal": samples, queries, their heads, heads of keys, width.
  std::string text() const {
    return std::string("attention.") + (shape.type == at::kHalf ? "float16." : "bfloat16.") + std::to_string(shape.B) +
           "x" + std::to_string(shape.T) + "x" + std::to_string(shape.H) + "." + std::to_string(shape.K) + "x" +
           std::to_string(shape.D) + (keys == shape.T ? "" : " keys " + std::to_string(keys)) +
           (causal ? " causal" : "") + (window > 0 ? " window " + std::to_string(window) : "") +
           (sinks ? " sinks" : "");
  }
  /// Two products forward, five backward; a causal one counts half of each.
  double operations(bool backward) const {
    const auto every = static_cast<double>(keys), near = window > 0 ? static_cast<double>(window) : every;
    const double seen = static_cast<double>(shape.T) * (causal ? near * (1 - near / every / 2) : every);
    return (backward ? 10 : 4) * seen * static_cast<double>(shape.B * shape.H * shape.D);
  }
  /// Sets what forward and backward have in common.
  template <typename Options>
  void set(Options& options, fe::graph::Graph& graph) const {
    options.set_causal_mask(causal).set_attn_scale(scale);
    if (window > 0) options.set_diagonal_band_left_bound(static_cast<int>(window));
    if (sinks)
      options.set_sink_token(graph.tensor(Tensor_attributes()
                                              .set_uid(kSinks)
                                              .set_dim({1, shape.H, 1, 1})
                                              .set_stride({shape.H, 1, 1, 1})
                                              .set_data_type(fe::DataType_t::FLOAT)));
  }
};

struct Graph {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace = 0;
};

std::string noun(bool backward) { return backward ? "backward of attention" : "attention"; }

void check(fe::error_t status, const std::string& what) {
  if (status.is_bad()) throw Error("cuDNN, " + what + ": " + status.get_message());
}

std::shared_ptr<fe::graph::Graph> begin(const Tile& tile) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(tile.shape.type == at::kHalf ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

auto tensor(Name name, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return Tensor_attributes().set_uid(name).set_dim(std::move(sizes)).set_stride(std::move(strides));
}

Tensor_attributes stats(const AttentionShape& s) {
  return tensor(kStats, {s.B, s.H, s.T, 1}, {s.H * s.T, s.T, 1, 1}).set_data_type(fe::DataType_t::FLOAT);
}

Graph finish(std::shared_ptr<fe::graph::Graph> graph, const std::string& what) {
  cudnnHandle_t handle = at::native::getCudnnHandle();
  check(graph->validate(), what);
  check(graph->build_operation_graph(handle), what);
  check(graph->create_execution_plans({fe::HeurMode_t::A}), what);
  check(graph->check_support(), what);
  check(graph->build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), what);
  Graph made{std::move(graph), 0};
  check(made.graph->get_workspace_size(made.workspace), what);
  return made;
}

Graph forward_graph(const Tile& t) {
  auto graph = begin(t);
  const auto q = graph->tensor(tensor(kQ, t.queries_BHTD(), t.lying(t.q))),
             k = graph->tensor(tensor(kK, t.keys_BKTD(), t.lying(t.k))),
             v = graph->tensor(tensor(kV, t.keys_BKTD(), t.lying(t.k)));
  auto options = fe::graph::SDPA_attributes().set_generate_stats(true);
  t.set(options, *graph);
  auto [out, row_stats] = graph->sdpa(q, k, v, options);
  out->set_output(true).set_uid(kOut).set_dim(t.queries_BHTD()).set_stride(t.lying(t.out));
  const Tensor_attributes form = stats(t.shape);
  row_stats->set_output(true)
      .set_uid(kStats)
      .set_dim(form.get_dim())
      .set_stride(form.get_stride())
      .set_data_type(fe::DataType_t::FLOAT);
  return finish(std::move(graph), noun(/*backward=*/false));
}

Graph backward_graph(const Tile& t) {
  auto graph = begin(t);
  const auto q = graph->tensor(tensor(kQ, t.queries_BHTD(), t.lying(t.q))),
             k = graph->tensor(tensor(kK, t.keys_BKTD(), t.lying(t.k))),
             v = graph->tensor(tensor(kV, t.keys_BKTD(), t.lying(t.k))),
             out = graph->tensor(tensor(kOut, t.queries_BHTD(), t.lying(t.out))),
             dout = graph->tensor(tensor(kDout, t.queries_BHTD(), t.lying(t.out))),
             row_stats = graph->tensor(stats(t.shape));
  auto options = fe::graph::SDPA_backward_attributes().set_deterministic_algorithm(bits_repeat());
  t.set(options, *graph);
  auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, out, dout, row_stats, options);
  dq->set_output(true).set_uid(kDq).set_dim(t.queries_BHTD()).set_stride(t.lying(t.dq));
  dk->set_output(true).set_uid(kDk).set_dim(t.keys_BKTD()).set_stride(t.lying(t.dk));
  dv->set_output(true).set_uid(kDv).set_dim(t.keys_BKTD()).set_stride(t.lying(t.dk));
  return finish(std::move(graph), noun(/*backward=*/true));
}

/// The graph of a tile, made once in the process for a device.
const Graph& graph_of(const Tile& tile, bool backward) {
  static std::map<std::tuple<int, Tile, bool>, Graph> graphs;
  const auto key = std::tuple(static_cast<int>(at::cuda::current_device()), tile, backward);
  const auto found = graphs.find(key);
  if (found != graphs.end()) return found->second;
  return graphs.emplace(key, backward ? backward_graph(tile) : forward_graph(tile)).first->second;
}

void run_measured(const Tile& tile, bool backward, const std::function<void()>& execute) {
  if (measuring()) measure(tile.text() + (backward ? " backward" : " forward"), tile.operations(backward), execute);
  execute();
}

/// Runs the graph of a tile on the tensors at these places.
void run(const Tile& tile, bool backward, std::unordered_map<std::int64_t, void*> places) {
  const Graph& graph = graph_of(tile, backward);
  if (!tile.sinks) places.erase(kSinks);
  const at::Tensor workspace =
      at::empty({std::max<std::int64_t>(graph.workspace, 1)}, at::TensorOptions(at::kByte).device(at::kCUDA));
  run_measured(tile, backward, [&] {
    check(graph.graph->execute(at::native::getCudnnHandle(), places, workspace.data_ptr()), noun(backward));
  });
}

bool is_float(const at::Tensor& qkv_BTE) { return qkv_BTE.scalar_type() == at::kFloat; }
FlashShape flash_shape(const AttentionShape& s) { return {s.B, s.T, s.H, s.D}; }

/// Views of the queries, keys and values in one tensor.
QueriesKeysValues parts(const at::Tensor& qkv_BTE, const Heads& heads) {
  const std::int64_t D = qkv_BTE.size(2) / (heads.H + 2 * heads.K), E = heads.H * D, F = heads.K * D;
  return {qkv_BTE.narrow(2, 0, E), qkv_BTE.narrow(2, E, F), qkv_BTE.narrow(2, E + F, F)};
}
float scale_of(const Heads& heads, std::int64_t D) {
  return static_cast<float>(heads.scale > 0 ? heads.scale : 1 / std::sqrt(static_cast<double>(D)));
}
/// The sinks as cuDNN takes them; undefined if there are none.
at::Tensor sinks_of(const Heads& heads) {
  return heads.sinks_H.defined() ? heads.sinks_H.detach().to(at::kFloat).contiguous() : at::Tensor();
}
QueriesKeysValues empty_like(const QueriesKeysValues& qkv) {
  const auto empty = [](const at::Tensor& x) { return at::empty_like(x, at::MemoryFormat::Contiguous); };
  return {empty(qkv.q_BTE), empty(qkv.k_BTF), empty(qkv.v_BTF)};
}

/// The problem of these queries and keys, of results that lie as `out_BTC`.
Tile tile_of(const QueriesKeysValues& qkv, const Heads& heads, bool causal, const at::Tensor& out_BTC) {
  Tile tile{AttentionShape::of(qkv.q_BTE, heads, heads.H), qkv.k_BTF.size(1), causal, heads.sinks_H.defined()};
  tile.scale = scale_of(heads, tile.shape.D), tile.window = heads.window;
  tile.q = Strides(qkv.q_BTE), tile.k = Strides(qkv.k_BTF), tile.out = Strides(out_BTC);
  return tile;
}

Attended attend(const QueriesKeysValues& qkv, const Heads& heads) {
  if (heads.cap > 0) return capped_forward(qkv, heads);
  const AttentionShape s = AttentionShape::of(qkv.q_BTE, heads, heads.H);
  const Attended made{at::empty({s.B, s.T, s.H * s.D}, qkv.q_BTE.options()),
                      at::empty({s.B, s.H, s.T, 1}, qkv.q_BTE.options().dtype(at::kFloat))};
  const at::Tensor sinks_H = sinks_of(heads);
  run(tile_of(qkv, heads, /*causal=*/true, made.out_BTC), /*backward=*/false,
      {{kQ, qkv.q_BTE.data_ptr()},
       {kK, qkv.k_BTF.data_ptr()},
       {kV, qkv.v_BTF.data_ptr()},
       {kOut, made.out_BTC.data_ptr()},
       {kStats, made.stats_BHT1.data_ptr()},
       {kSinks, sinks_H.defined() ? sinks_H.data_ptr() : nullptr}});
  return made;
}

Attended attend_in_float(const at::Tensor& qkv_BTE, const Heads& heads) {
  const AttentionShape s = AttentionShape::of(qkv_BTE, heads);
  const Attended made{at::empty({s.B, s.T, s.H * s.D}, qkv_BTE.options()),
                      at::empty({s.B, s.H, s.T, 1}, qkv_BTE.options())};
  flash_forward(qkv_BTE.data_ptr<float>(), made.out_BTC.data_ptr<float>(), made.stats_BHT1.data_ptr<float>(),
                flash_shape(s), tf32_allowed(), at::cuda::getCurrentCUDAStream());
  return made;
}

/// The result of `compute`; in a second forward of the unit, the recorded result of the first.
template <typename Compute>
Attended attended_or_kept(const Compute& compute) {
  const unit::Results results = unit::kept([&] {
    const Attended made = compute();
    return unit::Results{made.out_BTC, made.stats_BHT1};
  });
  return {results[0], results[1]};
}

/// The gradients that one tile of queries and keys contributes, in `made`.
void backward_of_tile(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC,
                      const Heads& heads, bool causal, const QueriesKeysValues& made) {
  const at::Tensor sinks_H = sinks_of(heads);
  Tile tile = tile_of(qkv, heads, causal, dout_BTC);
  tile.dq = Strides(made.q_BTE), tile.dk = Strides(made.k_BTF);
  run(tile, /*backward=*/true,
      {{kQ, qkv.q_BTE.data_ptr()},
       {kK, qkv.k_BTF.data_ptr()},
       {kV, qkv.v_BTF.data_ptr()},
       {kOut, attended.out_BTC.data_ptr()},
       {kStats, attended.stats_BHT1.data_ptr()},
       {kDout, dout_BTC.data_ptr()},
       {kDq, made.q_BTE.data_ptr()},
       {kDk, made.k_BTF.data_ptr()},
       {kDv, made.v_BTF.data_ptr()},
       {kSinks, sinks_H.defined() ? sinks_H.data_ptr() : nullptr}});
}

/// True if FlashAttention-3 computes backward. This depends on the shape, the type and the GPU alone, so that all ranks
/// and stages agree. Sinks are in the log-sum-exp already.
bool is_for_hopper(const AttentionShape& s, const Heads& heads) {
  return s.type == at::kBFloat16 && heads.window == 0 && at::cuda::getCurrentDeviceProperties()->major == 9 &&
         hopper_fits(s.B, s.T, s.H, s.K, s.D);
}

void backward_on_hopper(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC,
                        const Heads& heads, const QueriesKeysValues& made) {
  const Tile tile = tile_of(qkv, heads, /*causal=*/true, dout_BTC);
  const AttentionShape& s = tile.shape;
  const auto at = [](const at::Tensor& x) { return HopperPlace{x.data_ptr(), x.stride(0), x.stride(1)}; };
  const HopperBackward problem{s.B,
                               s.T,
                               s.H,
                               s.K,
                               s.D,
                               tile.scale,
                               at(qkv.q_BTE),
                               at(qkv.k_BTF),
                               at(qkv.v_BTF),
                               at(attended.out_BTC),
                               at(dout_BTC),
                               attended.stats_BHT1.data_ptr<float>(),
                               at(made.q_BTE),
                               at(made.k_BTF),
                               at(made.v_BTF)};
  const at::Tensor workspace = at::empty({hopper_workspace(problem)}, qkv.q_BTE.options().dtype(at::kByte));
  run_measured(tile, /*backward=*/true,
               [&] { hopper_backward(problem, workspace.data_ptr(), at::cuda::getCurrentCUDAStream()); });
}

/// Queries, and keys, of a tile of backward: all of them where the workspace that the order of sums needs is at most 4
/// GiB, else as many as make it 2 GiB.
std::int64_t tile_tokens(const AttentionShape& s) {
  constexpr std::int64_t kWhole = std::int64_t{4} << 30, kTile = std::int64_t{2} << 30, kGroup = 128;
  const auto bytes = [&](std::int64_t tokens) { return 2 * s.B * s.H * tokens * tokens; };
  if (!bits_repeat() || bytes(s.T) <= kWhole) return s.T;
  std::int64_t tokens = s.T;
  while (bytes(tokens) > kTile && tokens > kGroup) tokens = (tokens / 2 + kGroup - 1) / kGroup * kGroup;
  return tokens;
}

/// The same, in `made`: for each block of queries, all blocks of keys up to it. The 16-bit results of tiles are added
/// up in float32.
void backward(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC, const Heads& heads,
              const QueriesKeysValues& made) {
  if (heads.cap > 0) return capped_backward(qkv, attended, dout_BTC, heads, made);
  if (is_for_hopper(AttentionShape::of(qkv.q_BTE, heads, heads.H), heads))
    return backward_on_hopper(qkv, attended, dout_BTC, heads, made);
  const std::int64_t T = qkv.q_BTE.size(1), most = tile_tokens(AttentionShape::of(qkv.q_BTE, heads, heads.H));
  if (most >= T) return backward_of_tile(qkv, attended, dout_BTC, heads, /*causal=*/true, made);
  const auto sum = [](const at::Tensor& x) { return at::zeros(x.sizes(), x.options().dtype(at::kFloat)); };
  const at::Tensor dk_BTF = sum(made.k_BTF), dv_BTF = sum(made.v_BTF);
  for (std::int64_t begin = 0; begin < T; begin += most) {
    const auto queries = [&](const at::Tensor& x) { return x.narrow(1, begin, std::min(most, T - begin)); };
    const at::Tensor q_BTE = queries(qkv.q_BTE), dout = queries(dout_BTC), dq_BTE = sum(q_BTE);
    const Attended attended_by{queries(attended.out_BTC),
                               queries(attended.stats_BHT1.transpose(1, 2)).transpose(1, 2).contiguous()};
    for (std::int64_t key = 0; key <= begin; key += most) {
      const auto seen = [&](const at::Tensor& x) { return x.narrow(1, key, std::min(most, T - key)); };
      const QueriesKeysValues tile{q_BTE, seen(qkv.k_BTF), seen(qkv.v_BTF)}, made_by = empty_like(tile);
      backward_of_tile(tile, attended_by, dout, heads, /*causal=*/key == begin, made_by);
      dq_BTE.add_(made_by.q_BTE), seen(dk_BTF).add_(made_by.k_BTF), seen(dv_BTF).add_(made_by.v_BTF);
    }
    queries(made.q_BTE).copy_(dq_BTE);
  }
  made.k_BTF.copy_(dk_BTF), made.v_BTF.copy_(dv_BTF);
}

}  // namespace

bool attention_fits(const AttentionShape& s, const Heads& heads) {
  const bool whole = heads.window == 0 && !heads.sinks_H.defined();
  if (heads.cap > 0)
    return s.type == at::kBFloat16 && s.D % 8 == 0 && heads.cap <= kMostCap && !heads.sinks_H.defined();
  if (s.type == at::kFloat) return s.H == s.K && flash_fits(s.D) && whole && heads.scale == 0;
  const std::int64_t widest = at::cuda::getCurrentDeviceProperties()->major == 9 ? 256 : 128;
  return (s.type == at::kBFloat16 || s.type == at::kHalf) && s.D % 8 == 0 && s.D <= widest &&
         (whole || tile_tokens(s) >= s.T);
}

at::Tensor gradient_of_sinks(const Attended& attended, const at::Tensor& dout_BTC, const Heads& heads) {
  const std::int64_t B = dout_BTC.size(0), T = dout_BTC.size(1), H = heads.H;
  const at::Tensor shares_BHT = (sinks_of(heads).view({1, H, 1}) - attended.stats_BHT1.view({B, H, T})).exp_();
  const at::Tensor dots_BTH = (attended.out_BTC.to(at::kFloat) * dout_BTC).view({B, T, H, -1}).sum(-1);
  return -(shares_BHT * dots_BTH.transpose(1, 2)).sum(at::IntArrayRef({0, 2}));
}

Attended attention_forward(const QueriesKeysValues& qkv, const Heads& heads) {
  return attended_or_kept([&] { return attend(qkv, heads); });
}

QueriesKeysValues attention_backward(const QueriesKeysValues& qkv, const Attended& attended, const at::Tensor& dout_BTC,
                                     const Heads& heads) {
  const QueriesKeysValues made = empty_like(qkv);
  backward(qkv, attended, dout_BTC, heads, made);
  return made;
}

Attended attention_forward(const at::Tensor& qkv_BTE, const Heads& heads) {
  return attended_or_kept(
      [&] { return is_float(qkv_BTE) ? attend_in_float(qkv_BTE, heads) : attend(parts(qkv_BTE, heads), heads); });
}

at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              const Heads& heads) {
  const at::Tensor dqkv_BTE = at::empty_like(qkv_BTE);
  if (!is_float(qkv_BTE)) {
    backward(parts(qkv_BTE, heads), attended, dout_BTC, heads, parts(dqkv_BTE, heads));
    return dqkv_BTE;
  }
  const at::Tensor scratch = at::empty_like(attended.stats_BHT1);
  flash_backward(qkv_BTE.data_ptr<float>(), attended.out_BTC.data_ptr<float>(), attended.stats_BHT1.data_ptr<float>(),
                 dout_BTC.data_ptr<float>(), dqkv_BTE.data_ptr<float>(), scratch.data_ptr<float>(),
                 flash_shape(AttentionShape::of(qkv_BTE, heads)), tf32_allowed(), at::cuda::getCurrentCUDAStream());
  return dqkv_BTE;
}

}  // namespace zs::kernel::cuda
