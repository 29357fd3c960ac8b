// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/state_dict.hpp"

#include <doctest/doctest.h>

#include "tensorfile/folder_test.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::tensorfile {
namespace {

Tensor numbered(std::uint32_t seed) { return any_tensor(Dtype::f32, {4}, seed); }

TEST_CASE("state dict: a folder's file is chosen in the stated order") {
  const Folder folder;
  CHECK(error_of([&] { open_state_dict(folder.path()); }) ==
        folder.path() +
            ": no weights in this folder, looked for model.safetensors, model.safetensors.index.json, "
            "pytorch_model.bin, pytorch_model.bin.index.json");
  write_torch(folder.file("pytorch_model.bin"), Dict{{{"w", numbered(1)}, {"step", 3}}});
  const StateDict torch = open_state_dict(folder.path());
  CHECK(torch.path() == folder.file("pytorch_model.bin"));
  CHECK(raw(torch.at("w")) == raw(numbered(1)));
  CHECK(torch.others() == std::vector<std::string>{"step"});
  CHECK(torch.verify() == 1);
  write_safetensors(folder.file("model.safetensors"), {{"w", numbered(2)}});
  const StateDict safe = open_state_dict(folder.path());
  CHECK(raw(safe.at("w")) == raw(numbered(2)));
  CHECK(safe.verify() == 0);
}

TEST_CASE("state dict: a missing name is an error with the nearest") {
  const Folder folder;
  write_torch(folder.file("m.bin"), Dict{{{"wte.weight", numbered(1)}}});
  const StateDict dict = open_state_dict(folder.file("m.bin"));
  CHECK(dict.find("wpe") == nullptr);
  CHECK(error_of([&] { dict.at("wpe.weight"); }) ==
        folder.file("m.bin") + ": no tensor 'wpe.weight', did you mean 'wte.weight'?");
}

TEST_CASE("state dict: the weights may stand one dict deeper, if it is clear where") {
  const Folder folder;
  const std::string path = folder.file("m.pt");
  const Dict weights{{{"w", numbered(1)}}};
  write_torch(path, Dict{{{"epoch", 1}, {"model", weights}, {"optimizer", Dict{{{"m", numbered(2)}}}}}});
  const StateDict dict = open_state_dict(path);
  CHECK(dict.entries().size() == 1);
  CHECK(dict.others() == std::vector<std::string>{"epoch", "optimizer"});
  write_torch(path, Dict{{{"model", weights}, {"state_dict", weights}}});
  CHECK(error_of([&] { open_state_dict(path); }) == path + ": holds no tensors");
  write_torch(path, List{{numbered(1)}});
  CHECK(error_of([&] { open_state_dict(path); }) == path + ": holds a list, expected a dict of tensors");
}

TEST_CASE("state dict: an index gathers its shards and nothing outside of its folder") {
  const Folder folder;
  write_safetensors(folder.file("s1.safetensors"), {{"a", numbered(1)}, {"left", numbered(9)}});
  write_safetensors(folder.file("s2.safetensors"), {{"b", numbered(2)}});
  const std::string index = folder.file("model.safetensors.index.json");
  spill(index, R"({"metadata":{"total_size":32},"weight_map":{"b":"s2.safetensors","a":"s1.safetensors"}})");
  const StateDict dict = open_state_dict(folder.path());
  REQUIRE(dict.entries().size() == 2);
  CHECK(dict.entries()[0].name == "b");
  CHECK(raw(dict.at("a")) == raw(numbered(1)));
  CHECK(dict.others() == std::vector<std::string>{"left"});
  const auto error = [&](const std::string& text) {
    spill(index, text);
    return error_of([&] { open_state_dict(index); });
  };
  CHECK(error(R"({"weight_map":{"c":"s2.safetensors"}})") ==
        folder.file("s2.safetensors") + ": c: no such tensor, but the index says so");
  CHECK(error(R"({"weight_map":{"c":"s3.safetensors"}})") ==
        folder.file("s3.safetensors") + ": No such file or directory");
  CHECK(error(R"({"weight_map":{"c":"../x.safetensors"}})") ==
        index + ": c: malformed index: expected the name of a file in the same folder");
  CHECK(error(R"({"weight_map":{"c":3}})") ==
        index + ": c: malformed index: expected the name of a file in the same folder");
  CHECK(error("{") == index + ": malformed index: expected {\"weight_map\": {NAME: FILE}}");
  CHECK(error(R"({"weight_map":{}})") == index + ": holds no tensors");
}

}  // namespace
}  // namespace zs::tensorfile
