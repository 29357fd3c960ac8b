// SPDX-License-Identifier: Apache-2.0
#include "h5/image.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "base/error.hpp"

namespace zs::h5 {
namespace {

std::string small_image() {
  Image image = Image::create();
  Group root = image.root();
  root.set("version", std::int64_t{1});
  Group group = root.make("zebra");
  group.set("text", "naïve");
  group.set("empty", "");
  for (int i = 0; i < 12; ++i) group.set("key" + std::to_string(i), std::string(100, 'x'));
  root.make("ape");
  group.write("integers", std::vector<std::int64_t>{1, -2, std::numeric_limits<std::int64_t>::min()},
              {{"unit", "bytes"}});
  group.write("reals", std::vector<double>{0.1, std::numeric_limits<double>::infinity()}, {{"unit", ""}});
  group.write("texts", std::vector<std::string>{"", "längér", "b"}, {});
  group.write("nothing", std::vector<double>{}, {});
  group.write("no texts", std::vector<std::string>{}, {});
  return image.finish();
}

}  // namespace

TEST_CASE("what is written to an image is read back from its bytes") {
  const std::string bytes = small_image();
  CHECK(image_size(bytes) == bytes.size());
  const Image image = Image::open(bytes);
  const Group root = image.root();
  CHECK(root.attributes() == Attributes{{"version", "1"}});
  const auto members = root.members();
  REQUIRE(members.size() == 2);
  CHECK(members[0].name == "zebra");  // as made, not by name
  CHECK(members[1].name == "ape");
  CHECK(members[0].group);
  const Group group = root.open("zebra");
  CHECK(group.attributes().size() == 14);
  CHECK(group.attributes().at("text") == "naïve");
  CHECK(group.attributes().at("empty").empty());
  CHECK(group.attributes("integers").at("unit") == "bytes");
  CHECK(std::get<0>(group.read("integers")) ==
        std::vector<std::int64_t>{1, -2, std::numeric_limits<std::int64_t>::min()});
  CHECK(std::get<1>(group.read("reals")) == std::vector<double>{0.1, std::numeric_limits<double>::infinity()});
  CHECK(std::get<2>(group.read("texts")) == std::vector<std::string>{"", "längér", "b"});
  CHECK(std::get<1>(group.read("nothing")).empty());
  CHECK(std::get<2>(group.read("no texts")).empty());
  CHECK(group.has("reals"));
  CHECK_FALSE(group.has("unreal"));
}

TEST_CASE("the same calls give the same bytes, whatever memory held before") {
  const std::string first = small_image();
  std::vector<std::string> dirt(50, std::string(20000, '\xAA'));
  dirt.clear();
  CHECK(small_image() == first);
}

TEST_CASE("a dataset longer than a chunk survives") {
  std::vector<std::int64_t> many(100000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i * i);
  Image image = Image::create();
  image.root().write("many", many, {});
  const std::string bytes = image.finish();
  CHECK(std::get<0>(Image::open(bytes).root().read("many")) == many);
}

TEST_CASE("two images can be open at once") {
  Image one = Image::create(), two = Image::create();
  one.root().set("which", "one");
  two.root().set("which", "two");
  const std::string first = one.finish(), second = two.finish();
  const Image a = Image::open(first), b = Image::open(second);
  CHECK(a.root().attributes().at("which") == "one");
  CHECK(b.root().attributes().at("which") == "two");
}

TEST_CASE("failures carry the reason that HDF5 gives") {
  const std::string bytes = small_image();
  const Image image = Image::open(bytes);
  CHECK_THROWS_WITH_AS(image.root().open("yak"), doctest::Contains("cannot open group 'yak': "), Error);
  CHECK_THROWS_WITH_AS(image.root().read("ape"), doctest::Contains("cannot read dataset 'ape': "), Error);
  CHECK_THROWS_WITH_AS(Image::open(bytes.substr(0, 300)), doctest::Contains("truncated file"), Error);
  CHECK_THROWS_WITH_AS(image_size("Epoch 1"), "not HDF5 data", Error);
  CHECK_THROWS_WITH_AS(image_size(std::string(kSignature)), "truncated HDF5 data: it ends in its superblock", Error);
}

TEST_CASE("no flipped bit makes the reader crash") {
  const std::string sound = small_image();
  int refused = 0;
  for (std::size_t at = 0; at < sound.size(); at += 2) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    try {
      if (image_size(bytes) > bytes.size()) throw Error("truncated");
      const Image image = Image::open(bytes);
      const Group root = image.root();
      root.attributes();
      for (const Member& member : root.members()) {
        const Group group = root.open(member.name);
        group.attributes();
        for (const Member& dataset : group.members()) {
          group.attributes(dataset.name);
          group.read(dataset.name);
        }
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > static_cast<int>(sound.size()) / 4);  // of the half that was tried; the rest is unused space
}

}  // namespace zs::h5
