// SPDX-License-Identifier: Apache-2.0
// Ranks that come apart in the middle of a training: no checkpoint hides it.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/folder.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "model/model.hpp"

namespace zs {
namespace {

/// What two ranks that each hold everything say when they save; `spoil` is called on the second one before.
std::string saved(const std::string& folder, const std::function<void(zero::Engine&, checkpoint::Progress&)>& spoil) {
  std::string said;
  comm::run_in_process(2, [&](comm::Group& group) {
    const model::Model model = model::make({.name = "tiny", .num_layers = 1, .seq_length = 16});
    zero::Engine engine(group, model.units, {}, {});
    zero::UnitState& last = engine.states().back();
    last.set_kept(at::zeros({last.numel()}));
    checkpoint::Progress progress{
        .step = 1, .leaves = 2, .batch_size = 1, .seq_length = 16, .sampler_position = 2, .dataset_sha256 = ""};
    if (group.rank() == 1) spoil(engine, progress);
    try {
      checkpoint::Writer(group, engine, folder, {"{}"}).commit(progress);
    } catch (const comm::SharedError& error) {
      if (group.rank() == 0) said = error.what();
    }
    comm::barrier(group, "end");
  });
  return said;
}

TEST_CASE("apart: one bit of one parameter, or a counter, on one rank: no checkpoint, and both values are told") {
  const TemporaryFolder folder;
  const std::string path = folder.file("checkpoint_1");
  const auto nothing_left = [&] { return std::filesystem::is_empty(folder.path()); };
  const std::string bit = saved(path, [](zero::Engine& engine, checkpoint::Progress&) {
    zero::UnitState& last = engine.states().back();
    const at::Tensor flat = at::zeros({last.numel()});
    float& value = device::floats(flat).back();
    value = std::nextafter(value, INFINITY);
    last.set_kept(flat);
  });
  CHECK(bit.find("the ranks differ in the parameters (their hash): it is ") != std::string::npos);
  CHECK(nothing_left());
  const std::string counter = saved(path, [](zero::Engine& engine, checkpoint::Progress&) { engine.restore(3, {}); });
  CHECK(counter.find("the ranks differ in the number of updates: it is 0 for rank 0") != std::string::npos);
  const std::string place =
      saved(path, [](zero::Engine&, checkpoint::Progress& progress) { progress.sampler_position = 4; });
  CHECK(place.find("the ranks differ in the place in the data: it is 2 for rank 0") != std::string::npos);
  CHECK(nothing_left());
  CHECK(saved(path, [](zero::Engine&, checkpoint::Progress&) {}).empty());
  CHECK(std::filesystem::exists(path + "/SHA256SUMS"));
}

}  // namespace
}  // namespace zs
