// SPDX-License-Identifier: Apache-2.0
// What a conversion writes comes back; what it does not write, it names.
#include "state/convert.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/read.hpp"
#include "state/diff.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using checkpoints::State;
using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

Tensor f32(const std::vector<float>& values, tensorfile::Shape shape) {
  return tensorfile::make_tensor(Dtype::f32, std::move(shape),
                                 tensorfile::Storage::own(std::string(reinterpret_cast<const char*>(values.data()),
                                                                      values.size() * sizeof(float))));
}

Tensor bytes(std::size_t count) {
  return tensorfile::make_tensor(Dtype::u8, {static_cast<std::int64_t>(count)},
                                 tensorfile::Storage::own(std::string(count, '\x81')));
}

Value state_of(float first, const tensorfile::Shape& shape, Dict more = {}) {
  std::vector<float> values(shape.size() == 2 ? 6 : 3, first);
  more.items.insert(more.items.begin(), {"step", f32({3}, {})});
  more.items.push_back({"exp_avg", f32(values, shape)});
  return more;
}

/// A file of torch.save: a model, an optimizer with this state of w, by name or number, and random states.
std::string saved(const TemporaryFolder& folder, Dict state_of_w, bool named = true) {
  const auto id = [&](const char* name, int number) { return named ? Value(name) : Value(number); };
  List python;
  for (std::int64_t i = 0; i < 60; ++i) python.values.emplace_back(i);
  const Value root =
      Dict{{{"model", Dict{{{"w", f32({1, 2, 3, 4, 5, 6}, {2, 3})}, {"b", f32({7, 8, 9}, {3})}}}},
            {"optimizer",
             Dict{{{"state",
                    Dict{{{id("w", 0), state_of(1, {2, 3}, std::move(state_of_w))}, {id("b", 1), state_of(2, {3})}}}},
                   {"param_groups",
                    List{{Dict{{{"lr", 0.5}, {"function", Value()}, {"params", List{{id("w", 0), id("b", 1)}}}}}}}}}}},
            {"step", 3},
            {"rng", Dict{{{"cpu", bytes(50)},
                          {"cuda", List{{bytes(4), bytes(5)}}},
                          {"python", Tuple{{3, python, Value()}}},
                          {"numpy", Object("numpy.ndarray", {"\xC3\xA9", -0.0})}}}}}};
  const std::string path = folder.file("checkpoint.pt");
  tensorfile::write_torch(path, root, tensorfile::Reals::plain);
  return path;
}

/// As bitsandbytes and LBFGS have it.
Dict nested() {
  return Dict{{{"quant", Dict{{{"state1", bytes(6)}, {"absmax", f32({2}, {1})}}}},
               {"old", List{{f32({1}, {1}), Value(), f32({2, 3}, {2})}}},
               {"calls", 12}}};
}

/// The kinds of state, and of values, that are left out: "random".
std::vector<std::string> kinds_of(const Converted& made) {
  std::vector<std::string> kinds;
  for (const std::string& one : made.left_out) kinds.push_back(one.substr(0, one.find(':')));
  return kinds;
}

TEST_CASE("convert: state in dicts and lists, settings that are None and random states come back") {
  const TemporaryFolder folder;
  State from = checkpoints::read(saved(folder, nested()));
  REQUIRE(from.faults.empty());
  for (const char* const form : {"dcp", "safetensors"}) {
    if (form == std::string("safetensors"))  // Python's bytes
      from.values["random.raw"] = Value("\x81\xFF"), from.facts["random.raw"] = checkpoints::text_of("\x81\xFF");
    const Converted made = convert(from, folder.file(form), {form, {}, {}, ""});
    const State back = checkpoints::read(folder.file(form));
    for (const char* const kind : {"quant/state1", "quant/absmax", "old/0", "old/2", "exp_avg"}) {
      const auto &x = from.find("w")->moments.at(kind), &y = back.find("w")->moments.at(kind);
      CHECK_MESSAGE(same_bits(joined(x, kind), joined(y, kind)), form << " " << kind);
    }
    CHECK(back.find("w")->values.at("calls").integer("") == 12);
    CHECK(back.find("w")->hyper.at("function") == "None");
    CHECK(back.facts.at("random.rng.cpu") == from.facts.at("random.rng.cpu"));
    CHECK(back.facts.at("random.rng.python") == from.facts.at("random.rng.python"));
    CHECK(back.values.at("random.rng.cpu").get<Tensor>());
    CHECK(back.values.at("random.rng.python").get<Tuple>());
    // An object is code in a file of PyTorch's, and text in safetensors.
    CHECK(back.facts.contains("random.rng.numpy") == (form == std::string("safetensors")));
    CHECK(kinds_of(made) ==
          (form == std::string("dcp") ? std::vector<std::string>{"random"} : std::vector<std::string>{}));
  }
  const State again = checkpoints::read(folder.file("safetensors"));
  CHECK(again.facts == from.facts);
  CHECK(diff(from, again, {}).verdict == compare::Verdict::exact);
  from.facts["training.log"] = "sha256 0123";  // its reader kept no more
  CHECK(convert(from, folder.file("third"), {"safetensors", {}, {}, ""}).left_out ==
        std::vector<std::string>{"training.log: all but its digest"});
  CHECK(*again.values.at("random.raw").get<std::string>() == "\x81\xFF");
  from = again, from.values.erase("random.raw"), from.facts.erase("random.raw");
  CHECK(convert(from, folder.file("second"), {"dcp", {}, {}, ""}).left_out ==
        std::vector<std::string>{"random: rng.numpy"});
}

TEST_CASE("convert: a number that differs within a dict of an optimizer's state is a difference") {
  const TemporaryFolder folder, other;
  Dict changed = nested();
  changed.items[0].value.get<Dict>()->items[1].value = f32({3}, {1});
  const Difference found =
      diff(checkpoints::read(saved(folder, nested())), checkpoints::read(saved(other, changed)), {});
  CHECK(found.verdict == compare::Verdict::different);
}

TEST_CASE("convert: DeepSpeed's forms refuse state that they cannot cut, and other programs' forms numbers for names") {
  const TemporaryFolder folder, numbered, lists;
  const State from = checkpoints::read(saved(folder, nested()));
  for (const char* const form : {"deepspeed", "universal"})
    CHECK_THROWS_WITH_AS(convert(from, folder.file("out"), {form, {}, {}, ""}),
                         doctest::Contains("its state is in a dict or a list (old/0)"), Error);
  // The state of w has the shape of nothing in the model.
  const State unknown = checkpoints::read(saved(numbered, Dict{{{"row", f32({1, 2, 3, 4, 5, 6, 7}, {7})}}}, false));
  REQUIRE(unknown.find("#0"));
  for (const char* const form : {"dcp", "deepspeed", "universal"})
    CHECK_THROWS_WITH_AS(convert(unknown, numbered.file("out"), {form, {}, {}, ""}),
                         doctest::Contains("numbers the optimizer's states"), Error);
  convert(unknown, numbered.file("out"), {"safetensors", {}, {}, ""});
  State plain = unknown;  // SGD without momentum
  for (const char* const name : {"#0", "#1"}) plain.parameter(name).moments.clear(), plain.parameter(name).step.reset();
  convert(plain, numbered.file("plain"), {"dcp", {}, {}, ""});
  // The moments of bitsandbytes are in a dict, and tell by their shapes whose they are.
  CHECK(checkpoints::read(saved(lists, nested(), false)).find("w")->moments.contains("quant/state1"));
}

TEST_CASE("convert: one number for a parameter goes through DeepSpeed's shards, and is named where the form has none") {
  const TemporaryFolder folder;
  State from = checkpoints::read(saved(folder, {}));
  for (const char* const name : {"w", "b"}) {
    from.parameter(name).moments["mu_product"] = checkpoints::whole(f32({0.75}, {}), "");
    from.parameter(name).values["calls"] = Value(12);
  }
  for (const std::int64_t stage : {1, 2, 3}) {
    const std::string to = folder.file("stage" + std::to_string(stage));
    const Converted made = convert(from, to, {"deepspeed", 2, stage, ""});
    CHECK(kinds_of(made) == std::vector<std::string>{"random"});
    State back = checkpoints::read(to);
    CHECK(back.find("w")->moments.at("mu_product").shape.empty());
    CHECK(back.find("b")->values.at("calls").integer("") == 12);
    // What zs cannot give to parameters is a value of the rank.
    for (const checkpoints::File& file : back.files) {
      if (file.rank != 1 || !file.name.ends_with("optim_states.pt")) continue;
      Value root = tensorfile::read_torch_objects(back.folder + "/" + file.name);
      Dict& held = *root.get<Dict>()->items[0].value.get<Dict>();
      for (tensorfile::Item& item : held.items) {
        const std::string key = *item.key.get<std::string>();
        if (key != "base_optimizer_state" && key != "optimizer_state_dict") continue;
        Dict& group = *item.value.get<Dict>()->items[0].value.get<Dict>()->items[0].value.get<Dict>();
        group.items.push_back({"quant", Dict{{{"absmax", bytes(3)}}}});
      }
      tensorfile::write_torch(back.folder + "/" + file.name, root, tensorfile::Reals::plain);
    }
    back = checkpoints::read(to);
    CHECK(back.faults.empty());
    CHECK(back.facts.contains("optimizer.group 0 of rank 1.quant.absmax"));
    CHECK(diff(from, back, {}).verdict == compare::Verdict::inconclusive);
  }
  const Converted made = convert(from, folder.file("universal"), {"universal", {}, {}, ""});
  CHECK(kinds_of(made) == std::vector<std::string>{"calls", "mu_product", "random"});
  // ZeRO-3 reads a model file of another name, and the step and the settings from another dict.
  const std::string written = checkpoints::read(folder.file("universal")).folder;
  CHECK(fs::exists(written + "/zero_pp_rank_0_mp_rank_00_model_states.pt"));
  const Value states = tensorfile::read_torch_objects(written + "/zero/optimizer_state.pt");
  CHECK(checkpoints::list_of(checkpoints::within(&states, {"optimizer_state_dict", "param_groups"})).size() == 1);
  const auto& first = checkpoints::items_of(checkpoints::within(&states, {"optimizer_state_dict", "state"}));
  REQUIRE(first.size() == 1);
  CHECK(checkpoints::number_of(first[0].value.find("step")) == 3);
}

}  // namespace
}  // namespace zs::state
