// SPDX-License-Identifier: Apache-2.0
// The canonical reduce-scatter of float32 between GPUs, for bench/gpu: prints MIBIBYTES SECONDS a line. Start it with
// mpirun, a rank a GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "setup/ranks.hpp"

namespace {

using zs::device::View;

/// Until the GPU has done all that it was given.
void wait(const View& view) {
  float first = 0;
  zs::device::copy(zs::device::view(&first, 1), view.part(0, 1));
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int kTurns = 5;  // their median: a pause of the machine is not the figure

void measure(zs::comm::Group& group, std::int64_t bytes) {
  const std::int64_t count = bytes / 4;
  const zs::device::Buffer memory = group.allocate(bytes), part = group.allocate(bytes / group.size());
  const View full = memory.view(zs::device::Type::float32, count),
             mine = part.view(zs::device::Type::float32, count / group.size());
  zs::device::clear(full);
  const int rounds = bytes >= std::int64_t{256} << 20 ? 5 : 20;
  std::vector<double> taken;
  for (int turn = 0; turn <= kTurns; ++turn) {
    wait(full);
    zs::comm::barrier(group, "start of a measurement");
    const double begin = seconds();
    for (int round = 0; round < rounds; ++round) group.reduce_scatter(full, mine, "reduce-scatter")->wait();
    wait(mine);
    if (turn > 0) taken.push_back((seconds() - begin) / rounds);  // the first warms up
  }
  std::nth_element(taken.begin(), taken.begin() + kTurns / 2, taken.end());
  if (group.rank() == 0) std::printf("%lld %.9f\n", static_cast<long long>(bytes >> 20), taken[kTurns / 2]);
}

}  // namespace

int main() {
  try {
    zs::setup::Ranks ranks;
    ranks.start(50);
    zs::comm::Group& group = ranks.use("cuda", "nccl", /*repeat=*/true);
    for (const std::int64_t mebibytes : {1, 16, 64, 256, 1024}) measure(group, mebibytes << 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/scatter: %s\n", error.what());
    zs::comm::abort_job();
    return 2;
  }
  return 0;
}
