// SPDX-License-Identifier: Apache-2.0
// Images read as a training reads them, for bench/images: FOLDER SIZE BATCH WORKERS IMAGES prints images a second.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "data/images.hpp"
#include "data/loader.hpp"
#include "image/listing.hpp"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::int64_t batch = std::atoll(argv[3]), batches = std::atoll(argv[5]) / batch;
  const zs::data::Split split = zs::data::images({.path = argv[1],
                                                  .transform = {.size = std::atoll(argv[2]), .augmentation = true},
                                                  .labels = zs::image::classes_of(argv[1]),
                                                  .threads = std::atoi(argv[4])});
  zs::data::Loader loader(*split.training, batch, 1, 1);
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t read = 0;
  for (std::int64_t step = 1; step <= batches; ++step) read += loader.read(step, 0).count;
  const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%.1f\n", static_cast<double>(read) / time);
}
