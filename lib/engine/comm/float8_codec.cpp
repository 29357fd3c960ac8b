// SPDX-License-Identifier: Apache-2.0
#include "comm/float8_codec.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "device/operations.hpp"
#include "device/tensor.hpp"

namespace zs::comm {

using device::View;

Float8Codec::Float8Codec(std::vector<Weights> weights, std::int64_t n, int ranks) : n_(n), ranks_(ranks) {
  std::int64_t coded = 0;
  for (const Weights& matrix : weights) {
    coded += matrix.end - matrix.begin;
    scales_ = std::max(scales_, matrix.scale + 1);
  }
  const std::int64_t most = slice(n, ranks - 1, ranks).size();  // the last slice is a longest
  part_ = most + std::min(n - coded, most);
  for (int rank = 0; rank < ranks; ++rank) {
    const Slice local = slice(n, rank, ranks);
    std::vector<Run>& runs = runs_.emplace_back();
    std::int64_t from = local.begin, at = 0;
    const auto add = [&](std::int64_t end, int scale) {
      if (end <= from) return;
      if (!runs.empty() && runs.back().scale == scale)
        runs.back().end = end - local.begin;
      else
        runs.push_back({from - local.begin, end - local.begin, at, scale});
      at += (end - from) * (scale < 0 ? device::size(device::Type::bfloat16) : 1);
      from = end;
    };
    for (const Weights& matrix : weights) {
      add(std::min(matrix.begin, local.end), -1);
      if (matrix.end > from) add(std::min(matrix.end, local.end), matrix.scale);
    }
    add(local.end, -1);
  }
}

void Float8Codec::largest(const View& mine, int rank, const View& most) const {
  const at::NoGradGuard no_grad;
  const at::Tensor numbers = device::tensor(mine), scales = device::tensor(most).zero_();
  for (const Run& run : runs_[static_cast<std::size_t>(rank)]) {
    if (run.scale < 0) continue;
    const auto [low, high] = at::aminmax(numbers.narrow(0, run.begin, run.end - run.begin));
    const at::Tensor scale = scales.select(0, run.scale);
    scale.copy_(at::maximum(scale, at::maximum(low.neg(), high).to(at::kFloat)));  // NaN stays
  }
}

void Float8Codec::encode(const View& mine, int rank, const View& most, const View& part) const {
  for (const Run& run : runs_[static_cast<std::size_t>(rank)]) {
    const View numbers = mine.part(run.begin, run.end);
    if (run.scale < 0)
      device::copy({part.data + run.at, numbers.count, numbers.type, part.device}, numbers);
    else
      device::operations(mine.device)
          .to_e4m3(numbers, most.part(run.scale, run.scale + 1), part.part(run.at, run.at + numbers.count));
  }
}

void Float8Codec::decode(const View& bytes, const View& most, const View& numbers) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const Slice local = slice(n_, rank, ranks_);
    const View values = numbers.part(local.begin, local.end), from = bytes.part(part(rank).begin, part(rank).end);
    for (const Run& run : runs_[static_cast<std::size_t>(rank)]) {
      const View to = values.part(run.begin, run.end);
      if (run.scale < 0)
        device::copy(to, {from.data + run.at, to.count, to.type, from.device});
      else
        device::operations(values.device)
            .from_e4m3(from.part(run.at, run.at + to.count), most.part(run.scale, run.scale + 1), to);
    }
  }
}

at::Tensor Float8Codec::travelled(const at::Tensor& numbers) const {
  const at::NoGradGuard no_grad;
  const at::Tensor most = at::zeros({scales_}), largest_of_rank = at::empty({scales_}),
                   code = at::empty({bytes()}, at::kByte), out = at::empty_like(numbers);
  const auto mine = [&](int rank) {
    const Slice local = slice(n_, rank, ranks_);
    return device::view(numbers).part(local.begin, local.end);
  };
  for (int rank = 0; rank < ranks_; ++rank) {
    largest(mine(rank), rank, device::view(largest_of_rank));
    most.copy_(at::maximum(most, largest_of_rank));
  }
  for (int rank = 0; rank < ranks_; ++rank)
    encode(mine(rank), rank, device::view(most), device::view(code).part(part(rank).begin, part(rank).end));
  decode(device::view(code), device::view(most), device::view(out));
  return out;
}

}  // namespace zs::comm
