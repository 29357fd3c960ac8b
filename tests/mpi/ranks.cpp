// SPDX-License-Identifier: Apache-2.0
// A program for tests/comm.bats: the ranks of a launcher run lib/engine/comm's cases, or one of them stops answering.
//   ranks cases             every case of lib/engine/comm/cases_test.hpp
//   ranks large             more than 2^31 bytes; takes 10 GiB of memory, so by hand only
//   ranks oversubscribed    a thousand small collectives; prints the seconds they took
//   ranks die RANK          that rank kills itself before the second collective
//   ranks stop RANK         that rank stops itself (SIGSTOP)
//   ranks throw RANK        that rank throws
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/number.hpp"
#include "comm/cases_test.hpp"

namespace {

using zs::comm::Group;
using zs::comm::Slice;
using zs::device::View;
namespace cases = zs::comm::cases;

void large(Group& group) {
  const std::int64_t n = (std::int64_t{5} << 30) / 2 + 3;
  const auto full = group.allocate(n);
  const Slice own = zs::comm::slice(n, group.rank(), group.size());
  for (std::int64_t i = own.begin; i < own.end; ++i) full.data()[i] = static_cast<std::byte>(i % 251);
  const View all = full.view(zs::device::Type::byte, n);
  group.all_gather(all.part(own.begin, own.end), all, "all-gather of 2.5 GiB")->wait();
  for (std::int64_t i = 0; i < n; ++i) cases::require(full.data()[i] == static_cast<std::byte>(i % 251), "large", i);
  const std::string blob(group.rank() == 0 ? (std::size_t{1} << 31) + 5 : 1, 'x');
  const auto blobs = group.all_gather_object(blob, "exchange of 2 GiB");
  cases::require(blobs[0].size() == (std::size_t{1} << 31) + 5 && blobs[0].back() == 'x', "large blob");
}

/// The operand and the result of a sum over ranks.
struct Operands {
  static constexpr std::int64_t kCount = 16384;
  explicit Operands(Group& group)
      : memory(group.allocate(2 * kCount * std::int64_t{sizeof(float)})),
        own(zs::comm::slice(kCount, group.rank(), group.size())) {
    const View all = memory.view(zs::device::Type::float32, 2 * kCount);
    std::fill_n(all.as<float>(), 2 * kCount, 1.0f);
    full = all.part(0, kCount), mine = all.part(kCount, kCount + own.size());
  }
  zs::device::Buffer memory;
  Slice own;
  View full, mine;
};

void oversubscribed(Group& group) {
  const Operands operands(group);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) group.reduce_scatter(operands.full, operands.mine, "small sum")->wait();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  if (group.rank() == 0) std::printf("%s\n", zs::to_text(time.count()).c_str());
}

void fall_silent(Group& group, const std::string& how, int victim) {
  const Operands operands(group);
  group.reduce_scatter(operands.full, operands.mine, "reduce-scatter of h.1")->wait();
  group.all_gather_object("here", "all here");
  if (group.rank() == victim) {
    if (how == "throw") throw zs::Error("this rank has had enough");
    kill(getpid(), how == "die" ? SIGKILL : SIGSTOP);
  }
  group.reduce_scatter(operands.full, operands.mine, "reduce-scatter of h.2")->wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    const auto group = zs::comm::mpi({.timeout = argc > 2 ? 3.0 : 60.0});
    if (what == "cases") {
      cases::all(*group, {cases::Memory::allocated, cases::Memory::ordinary, cases::Memory::mixed});
      if (group->rank() == 0) std::printf("%d ranks: every case holds\n", group->size());
    } else if (what == "large") {
      large(*group);
    } else if (what == "oversubscribed") {
      oversubscribed(*group);
    } else {
      fall_silent(*group, what, static_cast<int>(zs::parse_int(argc > 2 ? argv[2] : "").value()));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ranks: %s\n", error.what());
    zs::comm::abort_job();
    return 2;
  }
  return 0;
}
