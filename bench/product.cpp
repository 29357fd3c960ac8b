// SPDX-License-Identifier: Apache-2.0
// How fast LibTorch multiplies matrices on one core, beside the most that the core can do: product [LEAST]
// prints GFLOP/s of both, their ratio, and the library; status 1 if the ratio is below LEAST (0.25).
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "unit/arithmetic.hpp"

namespace {

/// The processor time of this thread, in seconds: what else runs here does not count.
double seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double fastest(Work work) {
  work();
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = seconds();
    work();
    best = std::min(best, seconds() - begin);
  }
  return best;
}

// Enough independent chains of FMAs to fill every pipe, few enough to stay in registers.
typedef float Lanes __attribute__((vector_size(64)));
constexpr std::int64_t kChains = 10, kLanes = sizeof(Lanes) / sizeof(float), kRounds = 1'000'000;

#if defined(__x86_64__)
__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif
float multiply_add(const float* from) {
  Lanes x;
  std::memcpy(&x, from, sizeof x);
  Lanes a = x, b = x + 1, c = x + 2, d = x + 3, e = x + 4, f = x + 5, g = x + 6, h = x + 7, i = x + 8, j = x + 9;
  for (std::int64_t round = 0; round < kRounds; ++round) {
    a = a * x + x, b = b * x + x, c = c * x + x, d = d * x + x, e = e * x + x;
    f = f * x + x, g = g * x + x, h = h * x + x, i = i * x + x, j = j * x + x;
  }
  return (a + b + c + d + e + f + g + h + i + j)[0];
}

}  // namespace

int main(int argc, char** argv) {
  zs::unit::choose_products(argv);
  const double least = argc > 1 ? std::strtod(argv[1], nullptr) : 0.25;
  at::set_num_threads(1);
  constexpr std::int64_t n = 1024;
  const at::Tensor a = at::rand({n, n}), b = at::rand({n, n});
  at::Tensor c = at::empty({n, n});
  const double products = 2e-9 * n * n * n / fastest([&] { at::mm_out(c, a, b); });
  std::array<float, kLanes> from;
  from.fill(0.5F);
  const double most = 2e-9 * kRounds * kChains * kLanes / fastest([&] { from[0] = multiply_add(from.data()); });
  const zs::unit::Arithmetic arithmetic = zs::unit::arithmetic();
  std::printf("%.0f GFLOP/s of %.0f that the core can do (%.2f); %s, %s\n", products, most, products / most,
              arithmetic.blas.c_str(), arithmetic.instruction_set.c_str());
  return products >= least * most && zs::unit::slow_products().empty() ? 0 : 1;
}
