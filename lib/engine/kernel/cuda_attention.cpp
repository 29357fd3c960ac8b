// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <cudnn_frontend.h>

#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "kernel/attention.hpp"
#include "kernel/cuda_flash.hpp"
#include "kernel/matmul.hpp"

namespace zs::kernel::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;

enum Name : std::int64_t { kQ = 1, kK, kV, kOut, kStats, kDout, kDq, kDk, kDv };

/// How cuDNN is told where numbers lie.
struct Shape : AttentionShape {
  Shape(const at::Tensor& qkv_BTE, HeadCounts heads) : AttentionShape(of(qkv_BTE, heads)) {}
  std::vector<std::int64_t> queries() const { return {B, H, T, D}; }
  std::vector<std::int64_t> keys() const { return {B, K, T, D}; }
  /// Strides of queries, keys and values inside qkv_BTE, and of the output inside out_BTC.
  std::vector<std::int64_t> packed() const {
    const std::int64_t E = (H + 2 * K) * D;
    return {T * E, D, E, 1};
  }
  std::vector<std::int64_t> plain() const { return {T * H * D, D, H * D, 1}; }
};

struct Graph {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace = 0;
};

void check(fe::error_t status, const std::string& what) {
  if (status.is_bad()) throw Error("cuDNN, " + what + ": " + status.get_message());
}

std::shared_ptr<fe::graph::Graph> begin(const Shape& shape) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(shape.type == at::kHalf ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

auto tensor(Name name, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return Tensor_attributes().set_uid(name).set_dim(std::move(sizes)).set_stride(std::move(strides));
}

Tensor_attributes stats(const Shape& s) {
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

Graph forward_graph(const Shape& s) {
  auto graph = begin(s);
  const auto q = graph->tensor(tensor(kQ, s.queries(), s.packed())),
             k = graph->tensor(tensor(kK, s.keys(), s.packed())), v = graph->tensor(tensor(kV, s.keys(), s.packed()));
  auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_causal_mask(true).set_attn_scale(
      static_cast<float>(1 / std::sqrt(static_cast<double>(s.D))));
  auto [out, row_stats] = graph->sdpa(q, k, v, options);
  out->set_output(true).set_uid(kOut).set_dim(s.queries()).set_stride(s.plain());
  const Tensor_attributes form = stats(s);
  row_stats->set_output(true)
      .set_uid(kStats)
      .set_dim(form.get_dim())
      .set_stride(form.get_stride())
      .set_data_type(fe::DataType_t::FLOAT);
  return finish(std::move(graph), "attention");
}

Graph backward_graph(const Shape& s) {
  auto graph = begin(s);
  const auto q = graph->tensor(tensor(kQ, s.queries(), s.packed())),
             k = graph->tensor(tensor(kK, s.keys(), s.packed())), v = graph->tensor(tensor(kV, s.keys(), s.packed())),
             out = graph->tensor(tensor(kOut, s.queries(), s.plain())),
             dout = graph->tensor(tensor(kDout, s.queries(), s.plain())), row_stats = graph->tensor(stats(s));
  auto options = fe::graph::SDPA_backward_attributes()
                     .set_causal_mask(true)
                     .set_deterministic_algorithm(bits_repeat())
                     .set_attn_scale(static_cast<float>(1 / std::sqrt(static_cast<double>(s.D))));
  auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, out, dout, row_stats, options);
  dq->set_output(true).set_uid(kDq).set_dim(s.queries()).set_stride(s.packed());
  dk->set_output(true).set_uid(kDk).set_dim(s.keys()).set_stride(s.packed());
  dv->set_output(true).set_uid(kDv).set_dim(s.keys()).set_stride(s.packed());
  return finish(std::move(graph), "backward of attention");
}

/// The graph of a shape, made once in the process for a device.
const Graph& graph_of(const Shape& shape, bool backward) {
  static std::map<std::tuple<int, Shape, bool>, Graph> graphs;
  const auto key = std::tuple(static_cast<int>(at::cuda::current_device()), shape, backward);
  const auto found = graphs.find(key);
  if (found != graphs.end()) return found->second;
  return graphs.emplace(key, backward ? backward_graph(shape) : forward_graph(shape)).first->second;
}

void run(const Graph& graph, std::unordered_map<std::int64_t, void*> places, const std::string& what) {
  const at::Tensor workspace =
      at::empty({std::max<std::int64_t>(graph.workspace, 1)}, at::TensorOptions(at::kByte).device(at::kCUDA));
  check(graph.graph->execute(at::native::getCudnnHandle(), places, workspace.data_ptr()), what);
}

bool is_float(const at::Tensor& qkv_BTE) { return qkv_BTE.scalar_type() == at::kFloat; }
FlashShape flash_shape(const Shape& s) { return {s.B, s.T, s.H, s.D}; }

/// The address of queries (0), keys (1) or values (2).
void* part(const at::Tensor& qkv_BTE, const Shape& s, std::int64_t which) {
  const std::int64_t heads = which == 0 ? 0 : s.H + (which - 1) * s.K;
  return static_cast<std::byte*>(qkv_BTE.data_ptr()) + heads * s.D * static_cast<std::int64_t>(qkv_BTE.element_size());
}

}  // namespace

bool attention_fits(const AttentionShape& s) {
  if (s.type == at::kFloat) return s.H == s.K && flash_fits(s.D);
  constexpr std::int64_t kWorkspace = std::int64_t{4} << 30;
  return (s.type == at::kBFloat16 || s.type == at::kHalf) && s.D % 8 == 0 && s.D <= 128 &&
         2 * s.B * s.H * s.T * s.T <= kWorkspace;
}

Attended attention_forward(const at::Tensor& qkv_BTE, HeadCounts heads) {
  const Shape s(qkv_BTE, heads);
  Attended made{at::empty({s.B, s.T, s.H * s.D}, qkv_BTE.options()),
                at::empty({s.B, s.H, s.T, 1}, qkv_BTE.options().dtype(at::kFloat))};
  if (is_float(qkv_BTE)) {
    flash_forward(qkv_BTE.data_ptr<float>(), made.out_BTC.data_ptr<float>(), made.stats_BHT1.data_ptr<float>(),
                  flash_shape(s), tf32_allowed(), at::cuda::getCurrentCUDAStream());
    return made;
  }
  run(graph_of(s, false),
      {{kQ, part(qkv_BTE, s, 0)},
       {kK, part(qkv_BTE, s, 1)},
       {kV, part(qkv_BTE, s, 2)},
       {kOut, made.out_BTC.data_ptr()},
       {kStats, made.stats_BHT1.data_ptr()}},
      "attention");
  return made;
}

at::Tensor attention_backward(const at::Tensor& qkv_BTE, const Attended& attended, const at::Tensor& dout_BTC,
                              HeadCounts heads) {
  const at::Tensor dqkv_BTE = at::empty_like(qkv_BTE);
  const Shape s(qkv_BTE, heads);
  if (is_float(qkv_BTE)) {
    const at::Tensor scratch = at::empty_like(attended.stats_BHT1);
    flash_backward(qkv_BTE.data_ptr<float>(), attended.out_BTC.data_ptr<float>(), attended.stats_BHT1.data_ptr<float>(),
                   dout_BTC.data_ptr<float>(), dqkv_BTE.data_ptr<float>(), scratch.data_ptr<float>(), flash_shape(s),
                   tf32_allowed(), at::cuda::getCurrentCUDAStream());
    return dqkv_BTE;
  }
  run(graph_of(s, true),
      {{kQ, part(qkv_BTE, s, 0)},
       {kK, part(qkv_BTE, s, 1)},
       {kV, part(qkv_BTE, s, 2)},
       {kOut, attended.out_BTC.data_ptr()},
       {kStats, attended.stats_BHT1.data_ptr()},
       {kDout, dout_BTC.data_ptr()},
       {kDq, part(dqkv_BTE, s, 0)},
       {kDk, part(dqkv_BTE, s, 1)},
       {kDv, part(dqkv_BTE, s, 2)}},
      "backward of attention");
  return dqkv_BTE;
}

}  // namespace zs::kernel::cuda
