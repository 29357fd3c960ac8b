// SPDX-License-Identifier: Apache-2.0
// bench/offload FOLDER BYTES BLOCKS: what offload to a disk moves in a second, in blocks of BYTES, each with its
// checksum, as a step does it: one is on its way from the disk while the one before is used, and goes back while the
// next is. Prints GB/s of stores alone, of loads alone, and of both as in a step.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "zero/store.hpp"

namespace {

using zs::device::Buffer;

/// Bytes per second of `what`, which moves as many.
double rate(double bytes, const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return bytes / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "bench/offload FOLDER BYTES BLOCKS\n"), 2;
  try {
    const std::int64_t bytes = std::atoll(argv[2]), count = std::atoll(argv[3]);
    const zs::device::Device processor{};
    const auto store = zs::zero::file_store(processor, argv[1]);
    for (std::int64_t block = 0; block < count; ++block) store->add("block " + std::to_string(block), bytes);
    const Buffer memory = zs::device::allocate(processor, bytes);
    const auto view = memory.view(zs::device::Type::byte, bytes);
    zs::device::clear(view);
    const auto stores = [&] {
      for (int block = 0; block < count; ++block) store->start_store(block, view);
    };
    const auto loads = [&](bool put_back) {
      store->start_load(0);
      for (int block = 0; block < count; ++block) {
        if (block + 1 < count) store->start_load(block + 1);
        store->finish_load(block, view);
        if (put_back) store->start_store(block, view);
      }
    };
    stores();
    loads(false);  // also waits for what is written
    const double total = static_cast<double>(bytes * count);
    const double written = rate(total, [&] {
      stores();
      store->start_load(static_cast<int>(count) - 1);  // waits for the last one
      store->finish_load(static_cast<int>(count) - 1, view);
    });
    const double read = rate(total, [&] { loads(false); });
    const double both = rate(2 * total, [&] { loads(true); });
    std::printf("%.3f %.3f %.3f\n", written / 1e9, read / 1e9, both / 1e9);
    return 0;
  } catch (const zs::Error& error) {
    return std::fprintf(stderr, "bench/offload: %s\n", error.what()), 2;
  }
}
