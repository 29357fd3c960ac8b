// SPDX-License-Identifier: Apache-2.0
#include "kernel/product.hpp"

#include <ATen/record_function.h>

#include <algorithm>

#include "unit/arithmetic.hpp"

// LibTorch's way into oneDNN for dense matrices: in no header that is shipped. Weak: a LibTorch that has it not is
// fine.
namespace at::native {
[[gnu::weak]] void mkldnn_matmul(const Tensor& a, const Tensor& b, const Tensor& out, float beta, float alpha);
}

namespace zs::kernel {
namespace {

/// Below this number of multiplications, the call of oneDNN costs more than it gains.
constexpr std::int64_t kLarge = 1 << 22;

/// Tried once: LibTorch before 2.8 takes matrices of 16 bits alone, and one of another make may have no oneDNN.
bool works(at::ScalarType type) {
  if (at::native::mkldnn_matmul == nullptr || !at::hasMKLDNN()) return false;
  const at::Tensor a = at::arange(6, type).view({2, 3}), out = at::ones({2, 2}, type);
  try {
    at::native::mkldnn_matmul(a, a.t(), out, 1, 1);
  } catch (const std::exception&) {
    return false;
  }
  return at::equal(out.to(at::kFloat), at::tensor({6.0F, 15.0F, 15.0F, 51.0F}).view({2, 2}));
}

/// Rows or columns that are widened at once.
constexpr std::int64_t kPart = 1024;

/// Products of bfloat16 on processors that have none: in float32, from operands that are widened a part at a time along
/// the longest side, so that a widened part stays in the cache.
void multiply_widened(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta, double alpha) {
  const std::int64_t M = a.size(0), K = a.size(1), N = b.size(1);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kFloat); };
  const auto each_part = [](std::int64_t size, const auto& visit) {
    for (std::int64_t begin = 0; begin < size; begin += kPart) visit(begin, std::min(kPart, size - begin));
  };
  const auto put = [&](const at::Tensor& place, const at::Tensor& product) {
    if (beta != 0) product.add_(place, beta);
    place.copy_(product);
  };
  if (K > M && K > N) {
    const at::Tensor sum = at::empty({M, N}, at::kFloat);
    each_part(K, [&](std::int64_t begin, std::int64_t count) {
      multiply(sum, wide(a.narrow(1, begin, count)), wide(b.narrow(0, begin, count)), begin == 0 ? 0 : 1, alpha);
    });
    return put(out, sum);
  }
  const bool columns = N >= M;
  const at::Tensor whole = wide(columns ? a : b);
  each_part(columns ? N : M, [&](std::int64_t begin, std::int64_t count) {
    const at::Tensor part = wide((columns ? b : a).narrow(columns, begin, count));
    const at::Tensor product = columns ? at::empty({M, count}, at::kFloat) : at::empty({count, N}, at::kFloat);
    multiply(product, columns ? whole : part, columns ? part : whole, 0, alpha);
    put(out.narrow(columns, begin, count), product);
  });
}

}  // namespace

bool multiplies_by_onednn(at::ScalarType type) {
  static const bool wide = works(at::kFloat), narrow = works(at::kBFloat16);
  return type == at::kFloat ? wide : type == at::kBFloat16 && narrow;
}

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double beta, double alpha) {
  RECORD_USER_SCOPE("zs::product");
  if (out.scalar_type() == at::kBFloat16 && unit::bfloat16_products().empty())
    return multiply_widened(out, a, b, beta, alpha);
  if (a.size(0) * a.size(1) * b.size(1) >= kLarge && multiplies_by_onednn(out.scalar_type())) {
    at::native::mkldnn_matmul(a, b, out, static_cast<float>(beta), static_cast<float>(alpha));
  } else {
    at::Tensor place = out;
    at::addmm_out(place, place, a, b, beta, alpha);
  }
}

}  // namespace zs::kernel
