// SPDX-License-Identifier: Apache-2.0
#include "zero/annotation.hpp"

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include <array>
#include <unordered_map>

#include "device/memory.hpp"

namespace zs::zero {
namespace {

using plan::Kind;

/// The name of an operation's part of a step in profiles (bench/step adds up the time of each).
const char* label(Kind kind) {
  static constexpr std::array kNames = {"zs::forward", "zs::backward", "zs::optimizer", "zs::offload",
                                        "zs::communication"};  // by plan::Part
  return kNames[static_cast<std::size_t>(plan::part_of(kind))];
}

#if TORCH_VERSION_MAJOR >= 2
const char* type_name(device::Type type) {
  constexpr const char* kNames[] = {"Byte", "BFloat16", "Half", "Float", "Double"};  // as PyTorch's profiler has them
  return kNames[static_cast<int>(type)];
}

/// The message of a collective, with the names that PyTorch's profiler uses; empty for other operations.
std::unordered_map<std::string, at::IValue> message(const plan::Plan& plan, const plan::Op& op, int ranks,
                                                    device::Type type) {
  const bool gathers = op.kind == Kind::gather || op.kind == Kind::gather_grad;
  if (!gathers && op.kind != Kind::reduce) return {};
  if (plan::moves_sums(op, plan.shape)) type = device::Type::float32;
  const std::int64_t whole = plan::operand(op, plan.shape), slice = whole / ranks;
  return {{"Collective name", gathers ? "all_gather" : "reduce_scatter"},
          {"In msg nelems", gathers ? slice : whole},
          {"Out msg nelems", gathers ? whole : slice},
          {"Group size", std::int64_t{ranks}},
          {"dtype", type_name(type)},
          {"bytes", whole * device::size(type)}};
}
#endif

}  // namespace

Annotation::Annotation(const plan::Plan& plan, const plan::Op& op, const comm::Group& group, device::Type type)
    : guard_(at::RecordScope::USER_SCOPE), group_(group) {
  if (guard_.isActive()) begin(plan, op, type);
}

void Annotation::begin(const plan::Plan& plan, const plan::Op& op, device::Type type) {
  name_ = std::string(label(op.kind)) + " " + plan::to_text(op, plan);
#if TORCH_VERSION_MAJOR >= 2
  if (const auto moved = message(plan, op, group_.size(), type); !moved.empty())
    return guard_.before(name_.c_str(), &moved);
#else
  static_cast<void>(type);
#endif
  guard_.before(name_.c_str());
}

Annotation::~Annotation() {
  if (!guard_.isActive() || !c10::memoryProfilingEnabled() || group_.device().kind != device::Device::Kind::cpu) return;
  // LibTorch's allocator of a GPU says so itself; the host's is zs's own.
  static thread_local std::int64_t before = 0;
  const std::int64_t now = device::statistics(group_.device()).allocated;
  if (now == before) return;
  c10::reportMemoryUsageToProfiler(&before, now - before, static_cast<std::size_t>(now), static_cast<std::size_t>(now),
                                   at::Device(at::DeviceType::CPU));
  before = now;
}

}  // namespace zs::zero
