// SPDX-License-Identifier: Apache-2.0
// What verify finds, and what it must not call wrong.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/forms.hpp"
#include "checkpoints/read.hpp"
#include "state/describe.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

using tensorfile::Dict;
using tensorfile::List;
using tensorfile::Shape;
using tensorfile::Storage;
using tensorfile::Tensor;

Tensor ones(const Shape& shape) {
  const std::vector<float> values(static_cast<std::size_t>(Whole{{}, shape}.count()), 1);
  return make_tensor(tensorfile::Dtype::f32, shape,
                     Storage::own({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

bool has_fault(const State& state, const std::string& text) {
  return std::ranges::any_of(state.faults, [&](const auto& one) { return one.find(text) != std::string::npos; });
}

TEST_CASE("verify: a moment has the shape of its weight only where the optimizer has a number for each element") {
  const auto faults = [](const char* kind, const Shape& shape) {
    State state;
    Parameter& parameter = state.parameter("w");
    parameter.weight = checkpoints::whole(ones({2, 3}), "file");
    parameter.moments[kind] = checkpoints::whole(ones(shape), "file");
    verify(state);
    CHECK((state.faults.empty() || has_fault(state, std::string("w: ") + kind + " has the shape ")));
    return state.faults.size();
  };
  CHECK(faults("mu_product", {}) == 0);   // NAdam
  CHECK(faults("eta", {}) == 0);          // ASGD
  CHECK(faults("row_var", {2, 1}) == 0);  // Adafactor
  CHECK(faults("exp_avg_sq_col", {3}) == 0);
  for (const char* const kind : {"exp_avg", "exp_avg_sq", "momentum_buffer"}) {
    CHECK(faults(kind, {2, 3}) == 0);
    CHECK(faults(kind, {6}) == 1);
    CHECK(faults(kind, {3, 2}) == 1);
  }
}

/// Changes one bit at the first place where a file has these bytes.
void damage(const std::string& path, std::string_view bytes) {
  std::string content = Input(path).read_all();
  const std::size_t at = content.find(bytes);
  REQUIRE(at != std::string::npos);
  content[at] = static_cast<char>(content[at] ^ 4);
  write_file(path, content);
}

TEST_CASE("verify: a damaged byte of any tensor is found, also of a step, a random state or a setting") {
  const auto number = [](float value) {
    return make_tensor(tensorfile::Dtype::f32, {}, Storage::own({reinterpret_cast<const char*>(&value), sizeof value}));
  };
  const float step = 12345, rate = 0.0123F;
  const std::string random = "a random state's bytes";
  const auto bytes_of = [](const float& value) {
    return std::string_view(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto state = [&](const std::string& text) {
    return make_tensor(tensorfile::Dtype::u8, {static_cast<std::int64_t>(text.size())}, Storage::own(text));
  };
  const Dict optimizer{{{"state", Dict{{{0, Dict{{{"step", number(step)}, {"exp_avg", ones({2})}}}}}}},
                        {"param_groups", List{{Dict{{{"lr", number(rate)}, {"params", List{{0}}}}}}}}}};
  const Dict all{{{"model", Dict{{{"w", ones({2})}}}}, {"optimizer", optimizer}, {"rng", state(random)}}};
  const auto sound = [](const std::string& path) {
    State read = checkpoints::read(path);
    verify(read);
    return read.faults.empty();
  };
  for (const std::string_view part : {bytes_of(step), bytes_of(rate), std::string_view(random)}) {
    const TemporaryFolder folder;
    tensorfile::write_torch(folder.file("a.pt"), all);
    CHECK(sound(folder.file("a.pt")));
    const TemporaryFolder distributed;
    write_dcp(checkpoints::read(folder.file("a.pt")), distributed.path(), {"dcp", 1, {}, ""});
    CHECK(sound(distributed.path()));
    damage(folder.file("a.pt"), part);
    CHECK(!sound(folder.file("a.pt")));
    if (part == bytes_of(rate)) continue;  // there it is a number of Python
    damage(distributed.file("__0_0.distcp"), part);
    CHECK(!sound(distributed.path()));
  }
}

TEST_CASE("verify: the steps of one optimizer are those of the training, of several nobody knows") {
  State state;
  state.step = 3;
  state.parameter("w").step = 2;
  State several = state;
  CHECK(verify(state).not_checked.empty());
  CHECK(has_fault(state, "has taken 2 steps of w, the training 3"));
  several.optimizers = 2;
  CHECK(verify(several).not_checked.size() == 1);
  CHECK(several.faults.empty());
}

}  // namespace
}  // namespace zs::state
