// SPDX-License-Identifier: Apache-2.0
// The bytes of a plan: what collectives send, and what ranks keep.
#include <algorithm>
#include <bit>

#include "plan/plan.hpp"

namespace zs::plan {

std::span<const Matrix> sent_matrices(const Op& op, const Shape& shape) {
  if (op.kind != Kind::step || ranks_of(op, shape) == 1) return {};
  return unit_of(op, shape).matrices;
}

double codec_bytes(std::int64_t numel, int bits) {
  constexpr std::int64_t kTiles = 256, kBlock = 128, kWord = 4;
  const auto parts = [](std::int64_t n, std::int64_t part) { return (n + part - 1) / part; };
  const std::int64_t widest = parts(numel, kTiles);
  return static_cast<double>(kTiles * kWord * (parts(widest, kBlock) + parts(widest * bits, 8 * kWord)));
}

std::int64_t float8_bytes(std::int64_t numel, std::int64_t float8, int ranks) {
  const std::int64_t slice = (numel + ranks - 1) / ranks;
  return ranks * (slice + std::min(numel - float8, slice));
}

double encoded_bytes(const Unit& unit, const Shape& shape) {
  if (shape.quantized_weights) return codec_bytes(unit.numel, 8);
  const int ranks = shape.ranks / unit.among;
  return shape.float8_gathers && unit.float8 > 0 && ranks > 1
             ? static_cast<double>(float8_bytes(unit.numel, unit.float8, ranks))
             : 0;
}

std::int64_t operand(const Op& op, const Shape& shape) {
  const Unit& unit = unit_of(op, shape);
  return gathers(op.kind) && shape.divided().parameters ? unit.numel : unit.trained();
}

namespace {

/// On average: one where each rank has one leaf, or a whole subtree of them.
double terms_of_a_rank(const Shape& shape, int micro) {
  const bool whole = std::has_single_bit(static_cast<unsigned>(shape.micro_steps)) || micro >= 0;
  if (shape.short_ranks == 0 && whole && std::has_single_bit(static_cast<unsigned>(shape.chunks_of_rank()))) return 1;
  return static_cast<double>(addends(shape, micro).count()) / shape.ranks;
}

}  // namespace

double operand_bytes(const Op& op, const Shape& shape, int bytes_per_parameter) {
  constexpr int kSum = 4;
  const bool reduces = op.kind == Kind::reduce;
  if (!gathers(op.kind) && !reduces && op.kind != Kind::gather_grad) return 0;
  const std::int64_t numel = operand(op, shape);
  if (op.kind == Kind::gather && encoded_bytes(unit_of(op, shape), shape) > 0)
    return encoded_bytes(unit_of(op, shape), shape);
  if (reduces && shape.quantized_gradients) return codec_bytes(numel, 4);
  if (gathers(op.kind) && shape.divided().parameters) return held_bytes(unit_of(op, shape), bytes_per_parameter);
  return static_cast<double>(numel) * (moves_sums(op, shape) ? kSum : bytes_per_parameter) *
         (reduces ? terms_of_a_rank(shape.of(unit_of(op, shape)), op.micro) : 1);
}

int ranks_of(const Op& op, const Shape& shape) {
  return op.kind == Kind::gather_secondary ? shape.secondary : shape.ranks / unit_of(op, shape).among;
}

bool moves_sums(const Op& op, const Shape& shape) {
  // A reduction of one micro-step, or of a step of one, moves a gradient as backward left it.
  return op.kind == Kind::gather_grad ||
         (op.kind == Kind::reduce &&
          ((op.micro < 0 && shape.micro_steps > 1) || shape.chunks_of_rank() * unit_of(op, shape).among > 1));
}

double sent_between_nodes(const Op& op, const Shape& shape, int bytes_per_parameter, int node) {
  const Unit& unit = unit_of(op, shape);
  if (computes(op.kind)) {
    const double sharing = std::max(shape.sequence, unit.among);
    return static_cast<double>(unit.exchanged) / sharing * std::max(0.0, sharing - node) / sharing;
  }
  const double ranks = ranks_of(op, shape);
  const int near = std::max(1, node / unit.among);  // those with the same experts stand so far apart
  if (const auto matrices = sent_matrices(op, shape); !matrices.empty()) {
    const auto numbers =
        sent_numbers(matrices, operand(op, shape), shape.divided().optimizer_state, ranks_of(op, shape), near);
    return kDirectionBytes * static_cast<double>(numbers) / ranks;
  }
  // Each rank sends each of the others as much.
  return operand_bytes(op, shape, bytes_per_parameter) * std::max(0.0, ranks - near) / ranks;
}

double sent_bytes(const Op& op, const Shape& shape, int bytes_per_parameter) {
  return sent_between_nodes(op, shape, bytes_per_parameter, 1);
}

double sent_bytes(const Plan& plan, int bytes_per_parameter) {
  return sent_between_nodes(plan, bytes_per_parameter, 1);
}

double sent_between_nodes(const Plan& plan, int bytes_per_parameter, int node) {
  constexpr int kScale = 4;
  double bytes = 0;
  for (const Op& op : plan.ops) bytes += sent_between_nodes(op, plan.shape, bytes_per_parameter, node);
  for (const Unit& unit : plan.shape.units) {
    if (plan.shape.quantized_weights || encoded_bytes(unit, plan.shape) == 0) continue;
    bytes += kScale * unit.float8_scales * std::max(0, plan.shape.ranks / unit.among - std::max(1, node / unit.among));
  }
  return bytes;
}

double state_bytes(double parameters, int stage, double ranks, int bytes_per_parameter, bool offload_optimizer,
                   bool offload_parameters, int secondary, double kept, double frozen) {
  const double trained = parameters - frozen;
  const Division divided = divided_by(stage);
  const double again = secondary > 0 ? parameters / secondary * bytes_per_parameter : 0;
  const double local = share(parameters, divided.parameters, ranks) * bytes_per_parameter;
  return again + (offload_parameters && divided.parameters ? 0 : local) +
         share(trained, divided.gradients, ranks) * bytes_per_parameter +
         (offload_optimizer ? 0
                            : share((kept < 0 ? 2 * trained : kept) + (bytes_per_parameter < 4 ? trained : 0),
                                    divided.optimizer_state, ranks) *
                                  4);
}

namespace {

/// The sum of a number of each unit, of all ranks that divide it.
template <typename Number>
double sum(const Shape& shape, Number number) {
  double sum = 0;
  for (const Unit& unit : shape.units) sum += static_cast<double>(number(unit)) * unit.among;
  return sum;
}

}  // namespace

double numel(const Shape& shape) {
  return sum(shape, [](const Unit& unit) { return unit.numel; });
}
double frozen(const Shape& shape) {
  return sum(shape, [](const Unit& unit) { return unit.frozen; });
}
double trained(const Shape& shape) { return numel(shape) - frozen(shape); }

double kept_numbers(const Shape& shape) {
  return sum(shape, [](const Unit& unit) { return unit.kept_numbers(); });
}

double held_bytes(const Unit& unit, int bytes_per_parameter) {
  return static_cast<double>((unit.numel - unit.packed) * bytes_per_parameter + unit.packed_bytes);
}

double workspace_bytes(const Shape& shape, int bytes_per_parameter) {
  std::int64_t most = 0;
  for (const Unit& unit : shape.units) most = std::max(most, unit.packed);
  return static_cast<double>(most * bytes_per_parameter);
}

double state_bytes(const Shape& shape, int bytes_per_parameter) {
  double bytes = workspace_bytes(shape, bytes_per_parameter);
  for (const Unit& unit : shape.units) {
    bytes += state_bytes(static_cast<double>(unit.numel), shape.stage, shape.ranks / unit.among, bytes_per_parameter,
                         shape.offloads(unit), shape.offload_parameters, shape.secondary, unit.kept_numbers(),
                         static_cast<double>(unit.frozen));
    bytes -= share(static_cast<double>(unit.packed * bytes_per_parameter - unit.packed_bytes),
                   shape.divided().parameters, shape.ranks / unit.among);
  }
  return bytes;
}

std::int64_t peak_gathered(const Plan& plan) {
  if (!plan.shape.divided().parameters) return 0;
  std::int64_t now = 0, peak = 0;
  for (const Op& op : plan.ops) {
    if (gathers(op.kind)) peak = std::max(peak, now += unit_of(op, plan.shape).numel);
    if (op.kind == Kind::release) now -= unit_of(op, plan.shape).numel;
  }
  return peak;
}

}  // namespace zs::plan
