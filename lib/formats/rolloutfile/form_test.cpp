// SPDX-License-Identifier: Apache-2.0
#include "rolloutfile/form.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "h5/image.hpp"

namespace zs::rolloutfile {
namespace {

using Whole = std::vector<std::int64_t>;
using Reals = std::vector<double>;

std::string hdf5(const Whole& length, const Whole& prompt, const Reals& gen) {
  h5::Image image = h5::Image::create();
  h5::Group root = image.root();
  root.set("zs_rollout", std::int64_t{1}), root.set("system", "mine"), root.set("generator_dtype", "BF16");
  root.write("length", length, {}), root.write("prompt", prompt, {}), root.write("step", Whole{3, 4}, {});
  root.write("ids", Whole{1, 2, 3, 4, 5, 6}, {}), root.write("gen", gen, {}),
      root.write("train", Reals{-1, -2, -3}, {});
  return image.finish();
}

Dump read_bytes(const std::string& name, const std::string& bytes) {
  const std::string folder = "rollout-test-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/" + name;
  write_file(path, bytes);
  try {
    Dump dump = read(path);
    std::filesystem::remove_all(folder);
    return dump;
  } catch (...) {
    std::filesystem::remove_all(folder);
    throw;
  }
}

TEST_CASE("rollout: HDF5 has flat datasets, cut by length and prompt") {
  const Dump dump = read_bytes("rollout.h5", hdf5({4, 2}, {2, 1}, {-1, -2, -3.5}));
  CHECK(dump.system == "mine");
  CHECK(dump.generator_dtype == "BF16");
  REQUIRE(dump.sequences.size() == 2);
  CHECK(dump.sequences[0].ids == Whole{1, 2, 3, 4});
  CHECK(dump.sequences[0].gen == Numbers{-1, -2});
  CHECK(dump.sequences[1].ids == Whole{5, 6});
  CHECK(dump.sequences[1].step == 4);
  CHECK(dump.sequences[1].gen == Numbers{-3.5F});
  CHECK_THROWS_AS(read_bytes("rollout.h5", hdf5({4, 2}, {2, 1}, {-1, -2})), Error);
  CHECK_THROWS_AS(read_bytes("rollout.h5", hdf5({1, 2}, {2, 1}, {-1, -2, -3.5})), Error);
}

TEST_CASE("rollout: numbers of a line are a list or base64 of float32") {
  const std::string head = R"({"zs_rollout": 1, "system": "mine"})"
                           "\n";
  const Dump dump = read_bytes(
      "rollout-0.jsonl",
      head + R"({"step": 2, "sample": "a", "ids": [5, 6, 7], "prompt": 1, "gen": "AACAvwAAAMA=", "train": [-1, "nan"]})"
             "\n");
  REQUIRE(dump.sequences.size() == 1);
  CHECK(dump.sequences[0].gen == Numbers{-1, -2});
  CHECK(std::isnan(dump.sequences[0].train[1]));
  CHECK(dump.sequences[0].sample == "a");
  CHECK_THROWS_AS(read_bytes("rollout-0.jsonl", head + R"({"step": 2, "ids": [5, 6], "prompt": 3, "gen": [1]})"
                                                       "\n"),
                  Error);
  CHECK_THROWS_AS(read_bytes("rollout-0.jsonl", head + R"({"step": 2, "prompt": 3, "gen": [1]})"
                                                       "\n"),
                  Error);
}

}  // namespace
}  // namespace zs::rolloutfile
