// SPDX-License-Identifier: Apache-2.0
// The canonical collectives beside the MPI library's own, in one run: ours and theirs in the order A B B A, the median
// and the fastest of each, on the same ranks. Started by bench/comm under mpirun.
#include "comm/group.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"

namespace {

using zs::comm::Group;

// Seconds that the slowest rank took.
double time_of(const std::function<void()>& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  call();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Bytes that cross a rank's link in the best algorithm, for each byte of the whole operand: busbw is bytes / time times
// this. Defined by nccl-tests: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md#bus-bandwidth
double one_way(int ranks) { return static_cast<double>(ranks - 1) / ranks; }  // of a reduce-scatter or an all-gather
double both_ways(int ranks) { return 2 * one_way(ranks); }                    // of an all-reduce

void compare(Group& group, const char* name, std::int64_t bytes, double (*bus)(int ranks),
             const std::function<void()>& ours, const std::function<void()>& theirs) {
  const int rounds = bytes > (8 << 20) ? 5 : 50;
  std::vector<double> our_times, their_times;
  time_of(ours);
  time_of(theirs);
  for (int round = 0; round < rounds; ++round) {
    our_times.push_back(time_of(ours));
    their_times.push_back(time_of(theirs));
    their_times.push_back(time_of(theirs));
    our_times.push_back(time_of(ours));
  }
  if (group.rank() != 0) return;
  const double our = median(our_times), their = median(their_times);
  const double best = *std::min_element(our_times.begin(), our_times.end());
  const double their_best = *std::min_element(their_times.begin(), their_times.end());
  const auto busbw = [&](double seconds) {
    return zs::to_rounded_text(static_cast<double>(bytes) / seconds * bus(group.size()) / 1e9, 3);
  };
  std::printf("%s\t%lld\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", name, static_cast<long long>(bytes >> 20), group.size(),
              zs::to_rounded_text(our * 1e3, 3).c_str(), zs::to_rounded_text(their * 1e3, 3).c_str(),
              busbw(our).c_str(), busbw(their).c_str(), zs::to_rounded_text(their / our, 3).c_str(),
              zs::to_rounded_text(their_best / best, 3).c_str());
}

using zs::device::View;
using zs::device::view;

void compare_at(Group& group, std::int64_t bytes) {
  const std::int64_t n = bytes / 4;
  const int share = static_cast<int>(n / group.size());
  const auto full_memory = group.allocate(bytes), mine_memory = group.allocate(bytes / group.size() + 4),
             sum_memory = group.allocate(bytes);
  const zs::comm::Slice local = zs::comm::slice(n, group.rank(), group.size());
  const View full = full_memory.view(zs::device::Type::float32, n), sum = sum_memory.view(zs::device::Type::float32, n),
             mine = mine_memory.view(zs::device::Type::float32, local.size());
  std::vector<float> their_full(static_cast<std::size_t>(n)), their_mine(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    sum.as<float>()[i] = 0;
    full.as<float>()[i] = their_full[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000) * 1e-3f;
  }
  compare(
      group, "reduce-scatter", bytes, one_way, [&] { group.reduce_scatter(full, mine, "reduce-scatter")->wait(); },
      [&] {
        MPI_Reduce_scatter_block(their_full.data(), their_mine.data(), share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
  compare(
      group, "all-gather", bytes, one_way, [&] { group.all_gather(mine, full, "all-gather")->wait(); },
      [&] { MPI_Allgather(their_mine.data(), share, MPI_FLOAT, their_full.data(), share, MPI_FLOAT, MPI_COMM_WORLD); });
  compare(
      group, "all-reduce", bytes, both_ways,
      [&] {
        const View part = sum.part(local.begin, local.end);
        group.reduce_scatter(full, part, "reduce-scatter")->wait();
        group.all_gather(part, sum, "all-gather")->wait();
      },
      [&] {
        MPI_Allreduce(their_full.data(), their_mine.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
  std::vector<float> heap(static_cast<std::size_t>(n)), heap_mine(static_cast<std::size_t>(local.size()));
  compare(
      group, "reduce-scatter, ordinary memory", bytes, one_way,
      [&] {
        group.reduce_scatter(view(heap.data(), n), view(heap_mine.data(), local.size()), "reduce-scatter")->wait();
      },
      [&] {
        MPI_Reduce_scatter_block(their_full.data(), their_mine.data(), share, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
}

}  // namespace

int main() {
  try {
    const auto group = zs::comm::mpi();
    if (group->size() == 1) throw zs::Error("start this with mpirun on 2 or more ranks");
    for (const std::int64_t mebibytes : {1, 64}) compare_at(*group, mebibytes << 20);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/comm: %s\n", error.what());
    zs::comm::abort_job();
    return 2;
  }
  return 0;
}
