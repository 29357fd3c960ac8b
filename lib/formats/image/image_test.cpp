// SPDX-License-Identifier: Apache-2.0
// Against what Pillow made of the same files: tests/peers/image.py writes tests/data/images.
#include "image/image.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "image/listing.hpp"
#include "image/transform.hpp"

namespace zs::image {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = "tests/data/images/";

std::string bytes_of(const std::string& path) { return Input(path).read_all(); }
Image read(const std::string& path) { return decode(bytes_of(path), path); }

/// Makes an image file of a class.
void put(const std::string& path, const std::string& like = kFolder + "rgb.jpg") {
  fs::create_directories(fs::path(path).parent_path());
  write_file(path, bytes_of(like));
}

TEST_CASE("image: JPEG and PNG of every kind become the pixels that Pillow has, also resized, within 1 of 255") {
  constexpr std::array kSizes = {std::array{37, 23}, std::array{10, 7}, std::array{64, 31}, std::array{37, 5},
                                 std::array{9, 23}};
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".expected") continue;
    const std::string path = entry.path().string(), expected = bytes_of(path + ".expected");
    CAPTURE(path);
    const Image image = read(path);
    REQUIRE(image.width == 37);
    REQUIRE(image.height == 23);
    std::size_t at = 0;
    for (const auto& [width, height] : kSizes) {
      CAPTURE(width);
      const Image made = resized(image, {0, 0, 37, 23}, width, height);
      REQUIRE(made.rgb.size() == static_cast<std::size_t>(width * height * 3));
      int furthest = 0;
      for (const std::uint8_t value : made.rgb)
        furthest = std::max(furthest, std::abs(value - static_cast<std::uint8_t>(expected[at++])));
      CHECK(furthest <= 1);
    }
    CHECK(at == expected.size());
    ++files;
  }
  CHECK(files == 9);
}

TEST_CASE("image: bicubic as Pillow resizes") {
  // Image.open("rgb.png").resize(SIZE, BICUBIC). Where the width grows and the height shrinks, Pillow 13 begins with
  // the height, and some pixels are 1 or 2 apart.
  const Image image = read(kFolder + "rgb.png"), small = resized(image, {0, 0, 37, 23}, 6, 4, Filter::bicubic),
              large = resized(image, {0, 0, 37, 23}, 60, 46, Filter::bicubic);
  const std::vector<std::uint8_t> first = {213, 47,  115, 148, 88,  69,  28, 132, 46,
                                           195, 185, 60,  160, 205, 106, 23, 108, 157};
  CHECK(std::equal(first.begin(), first.end(), small.rgb.begin()));
  CHECK(std::accumulate(small.rgb.begin(), small.rgb.end(), 0) == 9098);
  CHECK(std::accumulate(large.rgb.begin(), large.rgb.end(), 0) == 1047033);
}

TEST_CASE("image: a part of an image is resized as if it were all of it") {
  const Image image = read(kFolder + "rgb.png");
  Image part{9, 11, {}};
  for (std::int64_t y = 4; y < 15; ++y)
    part.rgb.insert(part.rgb.end(), image.rgb.begin() + (y * 37 + 20) * 3, image.rgb.begin() + (y * 37 + 29) * 3);
  CHECK(resized(image, {20, 4, 9, 11}, 6, 5).rgb == resized(part, {0, 0, 9, 11}, 6, 5).rgb);
}

TEST_CASE("image: what is no image, another format, cut short or damaged is told") {
  const auto told = [](const std::string& bytes, const char* why) {
    CHECK_THROWS_WITH_AS(decode(bytes, "a.jpg"), doctest::Contains(why), Error);
  };
  told("", "a.jpg: is empty");
  told("GIF89a...", "a.jpg: is a GIF file: zs reads JPEG and PNG");
  told("<html>", "a page of the web");
  told("something", "is neither a JPEG nor a PNG file");
  for (const char* const name : {"rgb.jpg", "progressive.jpg", "rgb.png", "palette.png"}) {
    CAPTURE(name);
    const std::string whole = bytes_of(kFolder + name);
    check(whole, name);
    told(whole.substr(0, whole.size() * 2 / 3), "is damaged: ");
    CHECK_THROWS_AS(check(whole.substr(0, whole.size() * 2 / 3), name), Error);
    // Nothing that is cut or bent may do worse than throw.
    for (std::size_t i = 2; i < whole.size(); i += 7) {
      std::string bent = whole;
      bent[i] = static_cast<char>(bent[i] ^ 0x5a);
      try {
        const Image image = decode(bent, name);
        CHECK(image.rgb.size() == static_cast<std::size_t>(image.width * image.height * 3));
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("image: a random part is inside, between 8 and 100 per cent, and its key decides it") {
  std::int64_t mirrored = 0;
  double area = 0;
  constexpr int kDraws = 2000;
  for (std::uint64_t key = 0; key < kDraws; ++key) {
    const Chance by = chance(500, 375, key), again = chance(500, 375, key);
    REQUIRE(by.box.left >= 0);
    REQUIRE(by.box.top >= 0);
    REQUIRE(by.box.left + by.box.width <= 500);
    REQUIRE(by.box.top + by.box.height <= 375);
    const double part = static_cast<double>(by.box.width * by.box.height) / (500 * 375),
                 ratio = static_cast<double>(by.box.width) / static_cast<double>(by.box.height);
    REQUIRE(part > 0.075);
    REQUIRE(ratio > 0.73);
    REQUIRE(ratio < 1.36);
    REQUIRE(by.box.left == again.box.left);
    area += part;
    mirrored += by.mirrored;
  }
  CHECK(area / kDraws == doctest::Approx(0.4328).epsilon(0.03));  // 200000 draws of torchvision's formula
  CHECK(std::abs(mirrored - kDraws / 2) < 150);
  const Chance far = chance(1000, 10, 1);  // no such part fits often: the middle
  CHECK(far.box.width <= 14);
}

TEST_CASE("image: samples are planes of normalised channels, mirrored and cropped by key in training alone") {
  const Image image = read(kFolder + "rgb.png");
  std::vector<float> a(3 * 8 * 8), b(a.size());
  Transform transform{.size = 8};
  apply(transform, image, true, 1, a);
  apply(transform, image, true, 2, b);
  CHECK(a == b);  // without augmentation no key counts
  const Image small = resized(image, {0, 0, 37, 23}, 8, 8);
  CHECK(a[0] == doctest::Approx(small.rgb[0] / 255.0 * 2 - 1));
  CHECK(a[64 + 9] == doctest::Approx(small.rgb[9 * 3 + 1] / 255.0 * 2 - 1));
  transform.augmentation = true;
  transform.mean = {0.485, 0.456, 0.406};
  transform.std = {0.229, 0.224, 0.225};
  apply(transform, image, true, 1, a);
  apply(transform, image, true, 2, b);
  CHECK(a != b);
  apply(transform, image, false, 1, a);
  apply(transform, image, false, 2, b);
  CHECK(a == b);
  // The shorter side becomes 8, and of the 12 columns (37 * 8 / 23) those from 2 on stay.
  const Image whole = resized(image, {0, 0, 37, 23}, 12, 8);
  CHECK(a[0] == doctest::Approx((whole.rgb[2 * 3] / 255.0 - 0.485) / 0.229));
}

TEST_CASE("listing: folders of classes, with parts or without, and Food-101") {
  const TemporaryFolder folder;
  const auto at = [&](const std::string& name) { return folder.file(name); };
  for (const char* const name : {"b", "a"}) {
    for (int i = 0; i < 10; ++i) put(at(std::string("flat/") + name + "/" + std::to_string(i) + ".JPG"));
  }
  write_file(at("flat/a/notes.txt"), "x");
  Listing flat = list(at("flat"));
  CHECK(flat.classes == std::vector<std::string>{"a", "b"});
  CHECK(flat.training.size() == 20);
  CHECK(flat.training.labels[0] == 0);
  CHECK(flat.training.labels[1] == 1);
  CHECK(flat.left_out == std::vector<std::string>{at("flat/a/notes.txt")});
  divide(flat.training, flat.validation, 0.2);
  CHECK(flat.training.size() == 16);
  CHECK(std::count(flat.validation.labels.begin(), flat.validation.labels.end(), 1) == 2);
  put(at("parts/train/x/1.png"), kFolder + "rgb.png");
  put(at("parts/train/y/1.png"), kFolder + "rgb.png");
  put(at("parts/valid/y/2.png"), kFolder + "rgb.png");
  const Listing parts = list(at("parts"));
  CHECK(parts.training.size() == 2);
  CHECK(parts.validation.labels == std::vector<std::int64_t>{1});
  CHECK(parts.test.size() == 0);
  put(at("food/images/pie/1.jpg"));
  put(at("food/images/pie/2.jpg"));
  put(at("food/images/rice/3.jpg"));
  fs::create_directories(at("food/meta"));
  write_file(at("food/meta/train.txt"), "pie/1\nrice/3\n");
  write_file(at("food/meta/test.txt"), "pie/2\n");
  const Listing food = list(at("food"));
  CHECK(food.training.size() == 2);
  CHECK(food.validation.paths == std::vector<std::string>{at("food/images/pie/2.jpg")});
  const auto told = [&](const char* name, const std::string& why) {
    CHECK_THROWS_WITH_AS(list(at(name)), doctest::Contains(why.c_str()), Error);
  };
  write_file(at("food/meta/test.txt"), "pie/2\ncake/2\n");
  told("food", "test.txt:2: class 'cake' has no folder among the others");
  write_file(at("food/meta/test.txt"), "pie/9\n");
  told("food", "test.txt:1: there is no ");
  fs::create_directories(at("flat/empty"));
  told("flat", "flat/empty: is a class without an image");
  put(at("parts/valid/z/2.png"), kFolder + "rgb.png");
  told("parts", "class 'z' has no folder among the others");
  fs::create_directories(at("one/only"));
  told("one", "holds 1 folders: images are expected in a folder for each class");
}

}  // namespace
}  // namespace zs::image
