// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/folders.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/safetensors.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the newest whole checkpoint is the one of the largest number that can be read") {
  const TemporaryFolder folder;
  const std::string run = fs::path(folder.file("x")).parent_path().string();
  CHECK(newest_whole(run).empty());
  const auto save = [&](const std::string& name) {
    fs::create_directories(run + "/" + name);
    tensorfile::write_safetensors(
        run + "/" + name + "/model.safetensors",
        {{"w", tensorfile::make_tensor(tensorfile::Dtype::f32, {2}, tensorfile::Storage::borrow("12345678"))}});
  };
  save("checkpoint_8");
  save("out/checkpoint-10");
  save("checkpoint_9");
  CHECK(newest_whole(run) == run + "/out/checkpoint-10");
  fs::resize_file(run + "/out/checkpoint-10/model.safetensors", 20);  // cut while it was written
  CHECK(newest_whole(run) == run + "/checkpoint_9");
  fs::create_directories(run + "/checkpoint_11");  // only begun
  CHECK(newest_whole(run) == run + "/checkpoint_9");
  save("out/final_checkpoint");
  CHECK(newest_whole(run) == run + "/out/final_checkpoint");
}

TEST_CASE("a folder that cannot be read is an error with its path, and holds no fewer checkpoints for that") {
  const TemporaryFolder folder;
  const std::string loop = folder.file("loop");
  fs::create_symlink("loop", loop);
  CHECK_THROWS_WITH_AS(newest_whole(loop), doctest::Contains((loop + ": cannot list the folder: ").c_str()), Error);
  CHECK_THROWS_WITH_AS(is_deepspeed(loop), doctest::Contains((loop + ": cannot list the folder: ").c_str()), Error);
}

}  // namespace
}  // namespace zs::checkpoints
