// SPDX-License-Identifier: Apache-2.0
#include "probefile/writer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::probefile {
namespace {

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("recording: a resumed training appends to its file, and counts all steps there; another one is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("rank-0.jsonl");
  {
    Writer writer(folder.path(), {.library = "x"}, 0);
    writer.start(0, 0, "");
    writer.step({.step = 1, .loss = NAN, .batch = {{255}}}, R"({"name": "param/w"})", "");
    writer.step({.step = 2, .loss = 1.5}, "", "");
    writer.end(2, 1, "signal 15");
  }
  std::ofstream(path, std::ios::app) << R"({"step": 3, "lo)";  // as a kill leaves it
  CHECK_THROWS_WITH_AS(Writer(folder.path(), {}, 0),
                       doctest::Contains("is there already, the record of another training up to step 2"), Error);
  CHECK_THROWS_AS(Writer(folder.path(), {}, 1), Error);
  {
    Writer writer(folder.path(), {.library = "x"}, 2);
    writer.step({.step = 3}, "", "");
    writer.only(3, {"param"}, "");
    writer.end(3, 1, "whole");
  }
  const auto lines = lines_of(path);
  REQUIRE(lines.size() == 9);
  CHECK(lines[0]["zs_probe"] == 2);
  CHECK(lines[0]["id"] != lines[5]["id"]);
  CHECK(lines[2]["loss"] == "nan");
  CHECK(lines[2]["batch"] == nlohmann::json::parse(R"([["00000000000000ff"]])"));
  CHECK(lines[4]["lines"] == 2);
  CHECK(lines[4]["how"] == "signal 15");
  CHECK(lines[6]["loss"].is_null());
  CHECK(lines[7]["only"] == nlohmann::json{"param"});
  CHECK(lines[8]["lines"] == 4);
  CHECK(Input(path).read_all().starts_with("{\"zs_probe\": 2, \"rank\": 0, "));
}

}  // namespace zs::probefile
