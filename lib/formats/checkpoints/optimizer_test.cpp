// SPDX-License-Identifier: Apache-2.0
// Whose the states of an optimizer are, in files of torch.save and in folders of Accelerate.
#include "checkpoints/optimizer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "checkpoints/read.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::List;
using tensorfile::Tensor;
using tensorfile::Value;

/// A tensor of that many times the number.
Tensor all(float value, std::int64_t count) {
  const std::vector<float> values(static_cast<std::size_t>(count), value);
  return make_tensor(
      tensorfile::Dtype::f32, {count},
      tensorfile::Storage::own({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

float first_of(const Whole& whole) {
  std::vector<float> values(static_cast<std::size_t>(whole.count()));
  read_f32(joined(whole, ""), values);
  return values.at(0);
}

float momentum(const State& state, const char* name) {
  const Parameter* const found = state.find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  return first_of(found->moments.at("momentum_buffer"));
}

/// The state dict of an optimizer with momentum: a tensor of so many numbers for each parameter.
Dict momenta(double lr, const std::vector<std::pair<float, std::int64_t>>& held, const List& names = {}) {
  Dict states;
  List numbers;
  for (const auto& [value, count] : held) {
    const auto number = static_cast<std::int64_t>(numbers.values.size());
    numbers.values.emplace_back(number);
    states.items.push_back({number, Dict{{{"step", 3.0}, {"momentum_buffer", all(value, count)}}}});
  }
  Dict group{{{"lr", lr}, {"params", numbers}}};
  if (!names.values.empty()) group.items.push_back({"param_names", names});
  return Dict{{{"state", states}, {"param_groups", List{{group}}}}};
}

void save(const std::string& path, const Value& root) { tensorfile::write_torch(path, root, tensorfile::Reals::plain); }

Dict schedule(std::int64_t epoch) { return Dict{{{"last_epoch", epoch}}}; }

TEST_CASE("read: every optimizer and every schedule of a list, and of Accelerate's numbered files") {
  const TemporaryFolder folder;
  const Dict weights{{{"a", all(0, 2)}, {"b", all(0, 3)}}};
  const Dict one = momenta(0.5, {{7, 2}}), two = momenta(0.25, {{8, 3}});
  const auto both = [](const State& state) {
    CHECK(momentum(state, "a") == 7);
    CHECK(momentum(state, "b") == 8);
    CHECK(state.find("a")->hyper.at("lr") == "0.5");
    CHECK(state.find("b")->hyper.at("lr") == "0.25");
    CHECK(state.find("a")->group != state.find("b")->group);
    CHECK(state.facts.at("schedule.0.last_epoch") == "3");
    CHECK(state.facts.at("schedule.1.last_epoch") == "4");
    CHECK(state.optimizers == 2);
    CHECK(state.faults.empty());
  };
  for (const char* const key : {"optimizer_states", "optimizer", "opt"}) {
    save(folder.file("a.pt"),
         Dict{{{"model", weights}, {key, List{{one, two}}}, {"lr_schedulers", List{{schedule(3), schedule(4)}}}}});
    both(read(folder.file("a.pt")));
  }
  const std::string path = folder.file("accelerate");
  std::filesystem::create_directory(path);
  save(path + "/pytorch_model.bin", weights);
  save(path + "/optimizer.bin", one), save(path + "/optimizer_1.bin", two);
  save(path + "/scheduler.bin", schedule(3)), save(path + "/scheduler_1.bin", schedule(4));
  both(read(path));
  CHECK(read(path).unread.empty());

  // Two models may have the same names.
  save(path + "/pytorch_model.bin", Dict{{{"a", all(0, 2)}}});
  save(path + "/pytorch_model_1.bin", Dict{{{"a", all(5, 3)}}});
  write_file(path + "/model_card.md", "");
  const State models = read(path);
  CHECK(first_of(models.find("model_1.a")->weight.value()) == 5);
  CHECK(momentum(models, "a") == 7);
  CHECK(momentum(models, "model_1.a") == 8);
  CHECK(models.unread == std::vector<std::string>{"model_card.md"});

  // Where shapes tell nothing, the numbers of the two do not mix.
  save(folder.file("a.pt"), Dict{{{"model", Dict{{{"a", all(0, 2)}, {"b", all(0, 2)}, {"c", all(0, 2)}}}},
                                  {"optimizer", List{{momenta(1, {{7, 2}}), momenta(1, {{8, 2}})}}}}});
  const State state = read(folder.file("a.pt"));
  CHECK(momentum(state, "#0.0") == 7);
  CHECK(momentum(state, "#1.0") == 8);
}

TEST_CASE("read: numbered states belong to the parameters that param_names says") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.pt");
  const auto saved = [&](const Dict& model, const List& names) {
    save(path, Dict{{{"model", model}, {"optimizer", momenta(0.5, {{7, 2}, {8, 2}}, names)}}});
    return read(path);
  };
  const Dict plain{{{"a", all(0, 2)}, {"b", all(1, 2)}}}, wrapped{{{"module.a", all(0, 2)}, {"module.b", all(1, 2)}}};
  CHECK(momentum(saved(plain, {{"b", "a"}}), "a") == 8);
  CHECK(momentum(saved(plain, {{"b", "a"}}), "b") == 7);
  CHECK(momentum(saved(plain, {{"module.b", "module._orig_mod.a"}}), "a") == 8);
  CHECK(momentum(saved(wrapped, {{"b", "a"}}), "module.a") == 8);
  // An alias means its owner.
  const Tensor tied = all(0, 2);
  CHECK(momentum(saved(Dict{{{"a", tied}, {"b", all(1, 2)}, {"c", tied}}}, {{"c", "b"}}), "a") == 7);
  // Names of another model are no order.
  const State other = saved(plain, {{"x", "y"}});
  CHECK(momentum(other, "#0") == 7);
  CHECK(other.notes.at(0).find("param_names are not those of the model") != std::string::npos);
  // Without names the order is the model's, and zs says that it goes by it.
  const State numbered = saved(plain, {});
  CHECK(momentum(numbered, "a") == 7);
  CHECK(numbered.notes.at(0).find("in the order of the model's parameters") != std::string::npos);
  // An optimizer alone.
  save(path, momenta(0.5, {{7, 2}, {8, 2}}, {{"b", "a"}}));
  CHECK(momentum(read(path), "a") == 8);
}

}  // namespace
}  // namespace zs::checkpoints
