// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/file.hpp"
#include "gradient/finding.hpp"
#include "gradient/select.hpp"
#include "tensorfile/folder_test.hpp"
#include "tensorfile/torch.hpp"

namespace zs::gradient {
namespace {

namespace fs = std::filesystem;
using tensorfile::Folder;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

using Values = std::vector<float>;
using Named = std::vector<std::pair<std::string, Values>>;

/// Writes RUN/checkpoint_STEP/gradients.pt with vectors of these values.
std::string save(const Folder& folder, const std::string& checkpoint, const Named& named) {
  std::string path = folder.file(checkpoint);
  fs::create_directories(path);
  tensorfile::Dict dict;
  for (const auto& [name, values] : named) {
    dict.items.push_back({name, tensorfile::borrow_f32({static_cast<std::int64_t>(values.size())}, std::span(values))});
  }
  tensorfile::write_torch(path + "/gradients.pt", dict);
  return path;
}

History read_all(const std::vector<std::string>& names) {
  return read(find(input::named(names, "no-registry", "zs-plot gradients")));
}

std::string error_of(const std::vector<std::string>& names) {
  return tensorfile::error_of([&] { read_all(names); });
}

}  // namespace

TEST_CASE("gradient: a measure of hand-made values") {
  Measure measure;
  measure.add(Values{3, 0, -4, 0});
  CHECK(measure.norm() == 5);
  CHECK(measure.rms() == 2.5);
  CHECK(measure.mean == -0.25);
  CHECK(measure.variance() == 25.0 / 4 - 0.0625);
  CHECK(measure.largest == 4);
  CHECK(measure.zeros == 2);
  CHECK_FALSE(measure.all_zero());
  Measure zero;
  zero.add(Values{0, -0.0F});
  CHECK(zero.all_zero());
  CHECK(zero.norm() == 0);
  CHECK_FALSE(Measure().all_zero());
  CHECK(std::isnan(Measure().rms()));
}

TEST_CASE("gradient: pieces join to what the whole gives, also far from zero") {
  Values values;
  for (int i = 0; i < 1000; ++i) values.push_back(1e4F + static_cast<float>(i % 7) / 8);
  Measure whole, joined;
  whole.add(values);
  for (std::size_t at = 0; at < values.size(); at += 250) joined.add(std::span(values).subspan(at, 250));
  double mean = 0, variance = 0;
  for (const float value : values) mean += value / 1000.0;
  for (const float value : values) variance += (value - mean) * (value - mean) / 1000;
  CHECK(joined.variance() == doctest::Approx(variance).epsilon(1e-10));
  CHECK(whole.variance() == doctest::Approx(variance).epsilon(1e-10));
  CHECK(joined.norm() == doctest::Approx(whole.norm()).epsilon(1e-14));
}

TEST_CASE("gradient: nan and inf are counted, and are the norm") {
  Measure measure;
  measure.add(Values{1, kInf, 2, -kInf, 2});
  CHECK(measure.infinities == 2);
  CHECK(std::isinf(measure.norm()));
  CHECK(measure.variance() == doctest::Approx(2.0 / 9));
  measure.add(Values{kNaN});
  CHECK(measure.nans == 1);
  CHECK(measure.count == 6);
  CHECK(std::isnan(measure.norm()));
  CHECK(measure.largest == 2);
}

TEST_CASE("gradient: the cosine of hand-made vectors") {
  const Values a = {1, 0, 2}, b = {-2, 5, 1};
  CHECK(dot(a, b) == 0);
  CHECK(cosine(0, 1, 1) == 0);
  CHECK(cosine(-6, 2, 3) == -1);
  CHECK(cosine(6.0000001, 2, 3) == 1);
  CHECK(std::isnan(cosine(0, 0, 1)));
  CHECK(std::isnan(cosine(0, kInf, 1)));
}

TEST_CASE("gradient: layers of the usual models") {
  const auto names = [](const std::vector<std::string>& tensors) {
    std::string text;
    for (const Layer& layer : layers(tensors))
      text += layer.name + (layer.block ? "*" : "") + "=" + std::to_string(layer.tensors.size()) + " ";
    return text;
  };
  CHECK(names({"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
               "transformer.h.0.attn.c_attn.weight", "transformer.h.10.ln_1.weight", "transformer.ln_f.weight",
               "transformer.ln_f.bias"}) == "wte=1 wpe=1 h.0*=2 h.10*=1 ln_f=2 ");
  CHECK(names({"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "model.norm.weight",
               "lm_head.weight"}) == "embed_tokens=1 layers.0*=1 norm=1 lm_head=1 ");
  CHECK(names({"vit.embeddings.cls_token", "vit.embeddings.patch_embeddings.projection.bias",
               "vit.encoder.layer.0.output.dense.bias", "vit.layernorm.weight", "classifier.bias"}) ==
        "embeddings=2 encoder.layer.0*=1 layernorm=1 classifier=1 ");
  CHECK(names({"encoder.layers.0.w", "decoder.layers.0.w"}) == "encoder.layers.0*=1 decoder.layers.0*=1 ");
  CHECK(names({"0.weight", "2.weight", "fc.weight", "scale"}) == "0*=1 2*=1 fc=1 scale=1 ");
}

TEST_CASE("gradient: checkpoints of a run by step, with cosines between neighbours") {
  const Folder folder;
  save(folder, "run/checkpoint_10", {{"h.0.w", {1, 0}}, {"h.1.w", {0, 2}}, {"head.w", {2}}});
  save(folder, "run/checkpoint_9", {{"h.0.w", {0, 1}}, {"h.1.w", {0, 4}}, {"head.w", {-2}}});
  fs::create_directories(folder.file("run/checkpoint_11/accelerator_states"));
  const History history = read_all({folder.file("run/")});
  REQUIRE(history.checkpoints.size() == 2);
  CHECK(history.subject == "run");
  CHECK(history.by_step);
  CHECK(history.place(0) == 9);
  CHECK(history.when(1) == "step 10");
  CHECK(history.without == std::vector<std::string>{folder.file("run/checkpoint_11")});
  CHECK(std::isnan(history.layer_cosine(0, 0)));
  CHECK(history.layer_cosine(1, 0) == 0);
  CHECK(history.layer_cosine(1, 1) == 1);
  CHECK(history.tensor_cosine(1, 2) == -1);
  CHECK(history.cosine(1) == doctest::Approx((0 + 8 - 4) / (3 * std::sqrt(21))));
  CHECK(history.checkpoints[0].whole.norm() == doctest::Approx(std::sqrt(21)));
  // In another order, steps do not make an axis.
  const History back = read_all({folder.file("run/checkpoint_10"), folder.file("run/checkpoint_9/gradients.pt")});
  CHECK_FALSE(back.by_step);
  CHECK(back.place(1) == 2);
}

TEST_CASE("gradient: the rules, each at its threshold") {
  const Folder folder;
  const auto five = [](float first, float second) {
    return Named{
        {"h.0.w", {first, first}}, {"h.1.w", {1, -1}}, {"h.2.w", {1, 1}}, {"h.3.w", {second}}, {"head.w", {1}}};
  };
  save(folder, "run/checkpoint_1", five(0.00101F, 1));
  save(folder, "run/checkpoint_2", five(0.00099F, 1001));
  save(folder, "run/checkpoint_3", five(0, 150));
  save(folder, "run/checkpoint_4", five(kNaN, 1));
  const History history = read_all({folder.file("run")});
  CHECK(median_rms(history.checkpoints[0]) == 1);
  const std::vector<Finding> found = findings(history);
  REQUIRE(found.size() == 5);
  CHECK(found[0].trouble == Trouble::vanishing);
  CHECK(found[0].checkpoint == 1);
  CHECK(found[0].ratio == doctest::Approx(0.00099));
  CHECK(found[1].trouble == Trouble::exploding);
  CHECK(found[1].layer == 3);
  CHECK(found[2].trouble == Trouble::growing);
  CHECK(found[2].ratio == doctest::Approx(1001));
  CHECK(found[3].trouble == Trouble::zero);  // 150 is no 100 times the median of 1 and 1001
  CHECK(found[4].trouble == Trouble::not_finite);
  CHECK(at(found, 1, 3)->trouble == Trouble::exploding);
  CHECK_FALSE(at(found, 0, 0));
}

TEST_CASE("gradient: the factor over the depth, and too few layers for a median") {
  const Folder folder;
  save(folder, "deep", {{"h.0.w", {1}}, {"h.1.w", {2}}, {"h.2.w", {4}}, {"head.w", {9}}});
  CHECK(depth_factor(read_all({folder.file("deep")}), 0) == 0.5);
  save(folder, "two", {{"a.w", {1}}, {"b.w", {1e-9F}}});
  CHECK(std::isnan(median_rms(read_all({folder.file("two")}).checkpoints[0])));
  CHECK(findings(read_all({folder.file("two")})).empty());
  CHECK(std::isnan(depth_factor(read_all({folder.file("two")}), 0)));
}

TEST_CASE("gradient: what cannot be read is an error with its place") {
  const Folder folder;
  const std::string a = save(folder, "a", {{"x.w", {1, 2}}, {"y.w", {1}}});
  const std::string b = save(folder, "b", {{"x.w", {1, 2}}, {"z.w", {1}}});
  const std::string c = save(folder, "c", {{"x.w", {1, 2, 3}}, {"y.w", {1}}});
  const std::string d = save(folder, "d", {{"x.w", {1, 2}}, {"y.w", {1}}, {"z.w", {1}}});
  CHECK(error_of({a, b}) ==
        b + "/gradients.pt: has no y.w, unlike " + a + "/gradients.pt: they are of different models");
  CHECK(error_of({a, c}) ==
        c + "/gradients.pt: x.w has the shape [3], in " + a + "/gradients.pt [2]: they are of different models");
  CHECK(error_of({a, d}) == d + "/gradients.pt: has z.w, unlike " + a + "/gradients.pt: they are of different models");
  std::string bytes = tensorfile::slurp(a + "/gradients.pt");
  tensorfile::spill(folder.file("short.pt"), bytes.substr(0, bytes.size() / 2));
  CHECK(error_of({folder.file("short.pt")}).starts_with(folder.file("short.pt") + ": "));
  const Values two = {1, 2};  // one bit of the data
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(two.data()), 8));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  tensorfile::spill(a + "/gradients.pt", bytes);
  CHECK(error_of({a}) == a + "/gradients.pt: archive/data/0: checksum mismatch, the file is damaged");
  fs::create_directories(folder.file("empty/accelerator_states"));
  CHECK(error_of({folder.file("empty")}).starts_with(folder.file("empty") + ": has no gradients.pt: it was saved"));
  fs::create_directories(folder.file("run/checkpoint_5"));
  CHECK(error_of({folder.file("run")}).starts_with(folder.file("run/checkpoint_5") + ": has no gradients.pt"));
  CHECK(error_of({folder.file("none")}) == folder.file("none") + ": No such file or directory");
  fs::create_directories(folder.file("b/accelerator_states"));
  write_file(folder.file("b/accelerator_states/state.json"), "{}");
  CHECK(error_of({b}).starts_with(b + "/accelerator_states/state.json: "));
}

TEST_CASE("gradient: strided and 16-bit tensors are measured as what they are") {
  const Folder folder;
  const Values values = {1, 2, 3, 4, 5, 6};
  tensorfile::Tensor turned = tensorfile::borrow_f32({2, 3}, values);
  turned.shape = {3, 2}, turned.strides = {1, 3};
  std::vector<float> part(2);
  tensorfile::read_f32(turned, 1, part);
  CHECK(part == Values{4, 2});
  CHECK_THROWS_AS(tensorfile::read_f32(turned, 5, part), Error);
  const std::vector<std::uint16_t> half = {0x3F80, 0xC000};  // bf16: 1, -2
  const auto bytes = tensorfile::Storage::borrow({reinterpret_cast<const char*>(half.data()), 4});
  tensorfile::Dict dict;
  dict.items = {{"a.w", turned}, {"b.w", tensorfile::make_tensor(tensorfile::Dtype::bf16, {2}, bytes)}};
  fs::create_directories(folder.file("x"));
  tensorfile::write_torch(folder.file("x/gradients.pt"), dict);
  const History history = read_all({folder.file("x")});
  CHECK(history.checkpoints[0].tensors[0].norm() == doctest::Approx(std::sqrt(91)));
  CHECK(history.checkpoints[0].tensors[1].norm() == doctest::Approx(std::sqrt(5)));
}

TEST_CASE("gradient: how far micro-batches differ, from their norms and their mean, worked out by hand") {
  const Folder folder;
  // Two micro-batches of (1, 2) and (3, 2): their mean is (2, 2), the variances of its elements are 2 and 0.
  const std::string path = save(folder, "run/checkpoint_1", {{"h.0.w", {2, 2}}, {"h.1.w", {0, 1}}});
  const auto save_norms = [&](std::vector<double> first, std::vector<double> second) {
    tensorfile::Dict dict;
    for (const auto& [name, norms] : {std::pair{"h.0.w", &first}, {"h.1.w", &second}}) {
      const std::string_view bytes(reinterpret_cast<const char*>(norms->data()), norms->size() * sizeof(double));
      dict.items.push_back(
          {name, tensorfile::make_tensor(tensorfile::Dtype::f64, {static_cast<std::int64_t>(norms->size())},
                                         tensorfile::Storage::borrow(bytes))});
    }
    tensorfile::write_torch(path + "/gradient_norms.pt", dict);
  };
  CHECK(std::isnan(read_all({path}).noise(0).scale));  // none were saved
  save_norms({std::sqrt(5), std::sqrt(13)}, {1, 1});
  const History history = read_all({path});
  CHECK(history.checkpoints[0].micro_batches == 2);
  CHECK(history.layer_noise(0, 0).variance == doctest::Approx(1));
  CHECK(history.tensor_noise(0, 0).scale == doctest::Approx(2.0 / 7));  // the squared norm less its noise is 8 - 1
  CHECK(history.tensor_noise(0, 1).variance == doctest::Approx(0));
  CHECK(history.noise(0).variance == doctest::Approx(0.5));
  CHECK(history.noise(0).scale == doctest::Approx(2.0 / 8));
  CHECK(only(history, {"h.1.w", "h.0.w", "none"}).layer_noise(0, 1).variance == doctest::Approx(1));
  CHECK(std::isnan(only(history, {"none"}).layer_noise(0, 0).variance));
  CHECK(noise(2, 2, history.checkpoints[0].tensors[0]).variance == 0);  // what rounding leaves below 0
  Measure small;
  small.add(Values{0.1F, 0});
  CHECK(std::isinf(noise(2, 100, small).scale));
  CHECK(std::isnan(noise(1, 8, history.checkpoints[0].tensors[0]).variance));
  save_norms({1, 2}, {1});
  CHECK(error_of({path}) == path +
                                "/gradient_norms.pt: h.1.w has the shape [1]: expected a float64 for each "
                                "micro-batch, of each tensor as many");
}

}  // namespace zs::gradient
