// SPDX-License-Identifier: Apache-2.0
#include "setup/preprocessor.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::setup {
namespace {

using image::Filter;
using nlohmann::json;

/// What zs makes of a file with these values over the usual ones.
image::Transform with(const json& values, bool chosen = false) {
  const TemporaryFolder folder;
  json file = {{"image_processor_type", "ViTImageProcessor"},
               {"do_resize", true},
               {"do_rescale", true},
               {"do_normalize", true},
               {"image_mean", {0.1, 0.2, 0.3}},
               {"image_std", 0.5},
               {"resample", 2},
               {"rescale_factor", 1.0 / 255},
               {"size", {{"height", 16}, {"width", 16}}}};
  file.update(values);
  write_file(folder.file(kPreprocessor), file.dump());
  return read_preprocessor(folder.path(), 16, chosen);
}

void refuses(const json& values, const std::string& words) {
  CAPTURE(words);
  CHECK_THROWS_WITH_AS(with(values), doctest::Contains(words.c_str()), Error);
}

}  // namespace

TEST_CASE("preprocessor: what the file says is done, and what zs writes is read again") {
  using Numbers = std::array<double, 3>;
  const image::Transform usual = with(json::object());
  CHECK(usual.size == 16);
  CHECK(usual.mean == Numbers{0.1, 0.2, 0.3});
  CHECK(usual.std == Numbers{0.5, 0.5, 0.5});
  CHECK(usual.filter == Filter::bilinear);
  CHECK_FALSE(usual.middle);
  CHECK(with({{"resample", 3}}).filter == Filter::bicubic);
  CHECK(with({{"size", 16}}).size == 16);
  const image::Transform none = with({{"do_normalize", false}});
  CHECK(none.mean == Numbers{0, 0, 0});
  CHECK(none.std == Numbers{1, 1, 1});
  // (2 i / 255 - mean) / std
  const image::Transform twice = with({{"rescale_factor", 2.0 / 255}, {"image_mean", 0.5}});
  CHECK(twice.mean[0] == doctest::Approx(0.25));
  CHECK(twice.std[0] == doctest::Approx(0.25));
  const image::Transform raw = with({{"do_rescale", false}, {"image_mean", 127.5}, {"image_std", 127.5}});
  CHECK(raw.mean[1] == doctest::Approx(0.5));
  CHECK(raw.std[1] == doctest::Approx(0.5));
  const json middle = {{"size", {{"shortest_edge", 16}}}, {"do_center_crop", true}, {"crop_size", 16}};
  CHECK(with(middle).middle);
  CHECK(with({{"size", 20}}, /*chosen=*/true).size == 16);
  for (const json& values : {json::object(), middle, json{{"resample", 3}}, json{{"do_normalize", false}}}) {
    const image::Transform once = with(values), again = with(json::parse(preprocessor_json(once)));
    CHECK(again.mean == once.mean);
    CHECK(again.std == once.std);
    CHECK(again.middle == once.middle);
    CHECK(again.filter == once.filter);
  }
  // An evaluation of augmented samples takes the middle.
  CHECK(with(json::parse(preprocessor_json({.size = 16, .augmentation = true}))).middle);
}

TEST_CASE("preprocessor: what zs does not do is refused, with key and remedy") {
  refuses({{"resample", 1}}, "resample is 1, zs knows 2 (bilinear) and 3 (bicubic): write one of them");
  refuses({{"do_resize", false}}, "do_resize is false");
  refuses({{"size", 20}}, "size is 20 pixels a side, and the model takes 16: set --image_size 20, or write 16");
  refuses({{"size", {{"height", 16}, {"width", 20}}}}, "size is {\"height\":16,\"width\":20}, do_center_crop false");
  refuses({{"size", {{"shortest_edge", 16}}}}, "size is {\"shortest_edge\":16}, do_center_crop false: zs takes the");
  refuses({{"size", 20}, {"do_center_crop", true}, {"crop_size", 16}}, "size is 20, do_center_crop true");
  refuses({{"size", nullptr}}, "size is 224 pixels a side");
  refuses({{"do_pad", true}}, "do_pad is not known, of an image processor");
  refuses({{"image_processor_type", "ConvNextImageProcessor"}}, "image_processor_type is 'ConvNextImageProcessor'");
  refuses({{"image_processor_type", "CLIPImageProcessor"}}, "do_center_crop is missing");
  refuses({{"image_std", 0}}, "image_std is 0, expected one number or three");
  refuses({{"rescale_factor", 0}}, "rescale_factor is 0");
}

}  // namespace zs::setup
