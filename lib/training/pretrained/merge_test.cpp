// SPDX-License-Identifier: Apache-2.0
#include "pretrained/export.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/folder.hpp"

namespace zs::pretrained {
namespace {

const std::vector<float> kWeight = {1, 2, 3, 4, 5, 6}, kA = {1, 0, 2}, kB = {3, -1};  // [2, 3], [1, 3], [2, 1]

/// The weights after merging, with this adapter_config.json; `weight` has that shape.
std::vector<float> merged_with(const std::string& configuration, const tensorfile::Shape& weight,
                               const std::string& adapted = "h") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("adapter_config.json")) << configuration;
  tensorfile::write_safetensors(folder.file("model.safetensors"),
                                {{"h.weight", tensorfile::borrow_f32(weight, kWeight)},
                                 {adapted + ".lora_A.weight", tensorfile::borrow_f32({1, 3}, kA)},
                                 {adapted + ".lora_B.weight", tensorfile::borrow_f32({2, 1}, kB)}});
  const tensorfile::StateDict held = tensorfile::open_state_dict(folder.file("model.safetensors"));
  tensorfile::write_safetensors(folder.file("merged.safetensors"), merged(held, folder.file("adapter_config.json")));
  const tensorfile::StateDict made = tensorfile::open_state_dict(folder.file("merged.safetensors"));
  REQUIRE(made.entries().size() == 1);
  std::vector<float> values(kWeight.size());
  tensorfile::read_f32(made.entries()[0].tensor, values);
  return values;
}

TEST_CASE("merge: a weight plus alpha / r times B A, row by row") {
  // B A is [[3, 0, 6], [-1, 0, -2]].
  CHECK(merged_with(R"({"r": 1, "lora_alpha": 2})", {2, 3}) == std::vector<float>{7, 2, 15, 2, 5, 2});
  CHECK(merged_with(R"({"r": 4, "lora_alpha": 2, "use_rslora": true})", {2, 3}) ==
        std::vector<float>{4, 2, 9, 3, 5, 4});  // 2 / sqrt(4)
  CHECK(merged_with(R"({"r": 1, "lora_alpha": 1, "fan_in_fan_out": true})", {3, 2}) ==
        std::vector<float>{4, 1, 3, 4, 11, 4});
}

TEST_CASE("merge: an adapter without its product, of other shapes, or without a scale is an error") {
  CHECK_THROWS_WITH(merged_with(R"({"r": 1, "lora_alpha": 1})", {2, 3}, "g"),
                    doctest::Contains("g.lora_A.weight adapts g.weight, which is not there"));
  CHECK_THROWS_WITH(merged_with(R"({"r": 1, "lora_alpha": 1})", {3, 2}),
                    doctest::Contains("the adapter of h.weight has other shapes than it"));
  CHECK_THROWS_WITH(merged_with(R"({"r": 1})", {2, 3}), doctest::Contains("has no number lora_alpha"));
  CHECK_THROWS_WITH(merged_with("{", {2, 3}), doctest::Contains("is not JSON"));
}

}  // namespace
}  // namespace zs::pretrained
