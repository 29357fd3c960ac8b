// SPDX-License-Identifier: Apache-2.0
// Both directions against Python's PyTorch, run by tests/tensorfile.bats: it needs python3-torch.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tensorfile/dtype.hpp"
#include "tensorfile/folder_test.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"
#include "tensorfile/zip.hpp"

namespace zs::tensorfile {
namespace {

struct MadeTensor {
  Dtype dtype;
  Shape shape;
};
const std::vector<MadeTensor> kTensors = {
    {Dtype::boolean, {5}}, {Dtype::u8, {3, 3}}, {Dtype::i8, {7}},      {Dtype::i16, {2, 2, 2}}, {Dtype::i32, {4}},
    {Dtype::i64, {3}},     {Dtype::f16, {33}},  {Dtype::bf16, {4, 9}}, {Dtype::f32, {17, 5}},   {Dtype::f64, {6}},
    {Dtype::c64, {3}},     {Dtype::c128, {2}},  {Dtype::f32, {}},      {Dtype::f32, {0, 4}}};

Tensor made(std::size_t k) {
  return any_tensor(kTensors[k].dtype, kTensors[k].shape, static_cast<std::uint32_t>(1000 + k));
}

void write_ours(const Folder& folder) {
  Dict root;
  NamedTensors named;
  for (std::size_t k = 0; k < kTensors.size(); ++k) {
    const std::string name = "t" + std::to_string(k);
    root.items.push_back({name, made(k)});
    if (kTensors[k].dtype != Dtype::c128) named.emplace_back(name, made(k));
  }
  const Tensor whole = any_tensor(Dtype::f32, {8, 6}, 7);
  Tensor part = whole, turned = whole;
  part.shape = {3, 6};
  part.offset = 12;
  turned.shape = {6, 8};
  turned.strides = {1, 6};
  root.items.push_back({"wte", whole});
  root.items.push_back({"head", whole});
  root.items.push_back({"part", part});
  root.items.push_back({"turned", turned});
  const std::string bytes = any_bytes(40000, 11);
  root.items.push_back({"produced", make_tensor(Dtype::f32, {100, 100}, Storage::produce(40000, [&](const Sink& sink) {
                                                  for (std::size_t at = 0; at < bytes.size(); at += 999)
                                                    sink(std::string_view(bytes).substr(at, 999));
                                                }))});
  const std::int64_t wide = 1;
  const List ints{{0, 255, 256, 65535, 65536, -1, 2147483647, std::int64_t{-2147483648}, wide << 31,
                   std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}};
  const List floats{{0.1, -1e300, std::numeric_limits<double>::infinity(), std::nan("")}};
  root.items.push_back({"plain", Dict{{{"floats", floats},
                                       {"ints", ints},
                                       {"text", "gr\u00fc\u00df \U0001F600"},
                                       {"yes", true},
                                       {"no", false},
                                       {"none", Value()},
                                       {"empty", List{{Dict{}, List{}, Tuple{}}}},
                                       {"tuple", Tuple{{1, Tuple{{2, "three"}}, List{{4}}}}}}}});
  root.items.push_back({0, Dict{{{1, "one"}}}});
  write_torch(folder.file("ours.bin"), root);
  write_safetensors(folder.file("ours.safetensors"), named, {{"format", "pt"}, {"who", "zs"}});

  Output output(folder.file("zip64.zip"));
  ZipWriter zip(output, 0, "zip64.zip", 1000);  // everything from 1000 bytes on as if it were 4 GB
  zip.add("archive/version", *Storage::borrow("3\n"));
  zip.add("archive/a", *Storage::own(any_bytes(999, 2)));
  zip.add("archive/b", *Storage::own(any_bytes(5000, 3)));
  zip.finish();
  output.commit();
}

void write_conversions(const Folder& folder) {
  std::vector<std::uint16_t> every(65536);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::uint16_t>(i);
  std::vector<float> from_f16(every.size()), from_bf16(every.size());
  f16_to_f32(every.data(), from_f16.data(), every.size());
  bf16_to_f32(every.data(), from_bf16.data(), every.size());
  // Every upper half with the lower halves around a tie of either type.
  std::vector<float> source;
  for (std::uint32_t high = 0; high < 65536; ++high) {
    for (const std::uint32_t low : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      source.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  std::vector<std::uint16_t> to_f16(source.size()), to_bf16(source.size());
  f32_to_f16(source.data(), to_f16.data(), source.size());
  f32_to_bf16(source.data(), to_bf16.data(), source.size());
  const auto half = [&](Dtype dtype, const std::vector<std::uint16_t>& bits) {
    const std::string_view bytes(reinterpret_cast<const char*>(bits.data()), bits.size() * 2);
    return make_tensor(dtype, {static_cast<std::int64_t>(bits.size())}, Storage::borrow(bytes));
  };
  write_torch(folder.file("conversions.bin"),
              Dict{{{"f16", borrow_f32({65536}, from_f16)},
                    {"bf16", borrow_f32({65536}, from_bf16)},
                    {"f32", borrow_f32({static_cast<std::int64_t>(source.size())}, source)},
                    {"to_f16", half(Dtype::f16, to_f16)},
                    {"to_bf16", half(Dtype::bf16, to_bf16)}}});
}

void check_tensors(const Folder& folder) {
  const StateDict theirs = open_state_dict(folder.file("theirs.bin"));
  CHECK(theirs.verify() == kTensors.size() + 2);
  CHECK(theirs.others().empty());
  for (std::size_t k = 0; k < kTensors.size(); ++k) {
    const Tensor& tensor = theirs.at("t" + std::to_string(k));
    CHECK(tensor.dtype == kTensors[k].dtype);
    CHECK(tensor.shape == kTensors[k].shape);
    CHECK(raw(tensor) == raw(made(k)));
  }
  const Tensor whole = any_tensor(Dtype::f32, {8, 6}, 7);
  const std::string bytes = raw(whole);
  for (const char* const name : {"head", "part", "turned", "spread", "strided"}) {
    CHECK(theirs.at(name).storage == theirs.at("wte").storage);
  }
  CHECK(raw(theirs.at("wte")) == bytes);
  CHECK(raw(theirs.at("part")) == bytes.substr(48, 72));
  std::vector<float> values(48), turned(48), strided(9), spread(24);
  read_f32(whole, values);
  read_f32(theirs.at("turned"), turned);
  read_f32(theirs.at("strided"), strided);
  read_f32(theirs.at("spread"), spread);
  const auto equal = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  for (std::size_t i = 0; i < 48; ++i) CHECK(equal(turned[i], values[i % 8 * 6 + i / 8]));
  for (std::size_t i = 0; i < 9; ++i) CHECK(equal(strided[i], values[(1 + i / 3 * 3) * 6 + i % 3 * 2]));
  for (std::size_t i = 0; i < 24; ++i) CHECK(equal(spread[i], values[i % 6]));
  CHECK(raw(theirs.at("parameter")) == raw(any_tensor(Dtype::f32, {3, 2}, 8)));
}

void check_model(const Folder& folder) {
  const StateDict model = open_state_dict(folder.file("theirs_model.bin"));
  std::vector<float> weight(40);
  read_f32(model.at("wte.weight"), weight);
  std::ifstream text(folder.file("theirs_model.txt"));
  for (const float value : weight) {
    double expected = 0;
    text >> expected;
    REQUIRE(!text.fail());
    CHECK(value == static_cast<float>(expected));
  }
  CHECK(model.at("head.weight").storage == model.at("wte.weight").storage);
  CHECK(model.at("norm.num_batches_tracked").dtype == Dtype::i64);
  const StateDict nested = open_state_dict(folder.file("theirs_nested.pt"));
  CHECK(nested.entries().size() == model.entries().size());
  CHECK(nested.others() == std::vector<std::string>{"epoch"});
}

void check_optimizer(const Folder& folder) {
  for (const int protocol : {2, 3, 4, 5}) {
    CAPTURE(protocol);
    const Value root = read_torch(folder.file("theirs_" + std::to_string(protocol) + ".pt"));
    CHECK(verify(root) > 5);
    CHECK(root.find("step")->integer("step") == 3);
    CHECK(root.find("big")->integer("big") == (std::int64_t{1} << 62) + 1);
    CHECK(*root.find("text")->get<std::string>() == "gr\u00fc\u00df");
    CHECK(*root.find("dtype")->get<std::string>() == "torch.float32");
    REQUIRE(root.find("size")->get<Tuple>());
    CHECK(root.find("size")->get<Tuple>()->values[1].integer("size") == 6);
    const List* const many = root.find("many")->get<List>();
    REQUIRE(many->values.size() == 1100);
    CHECK(many->values.back().integer("many") == 1099);
    const Value* const optimizer = root.find("optimizer");
    const Value& group = optimizer->find("param_groups")->get<List>()->values.at(0);
    CHECK(group.find("lr")->real("lr") == 0.001);
    CHECK(group.find("betas")->get<Tuple>()->values[1].real("betas") == 0.95);
    const Dict* const state = optimizer->find("state")->get<Dict>();
    REQUIRE(state->items.size() == 3);
    CHECK(state->items[0].key.integer("key") == 0);
    CHECK(state->items[0].value.find("exp_avg")->get<Tensor>()->shape == Shape{10, 4});
    CHECK(root.find("rng")->get<Tensor>()->dtype == Dtype::u8);
  }
}

TEST_CASE("PyTorch: both directions, bit by bit" * doctest::skip()) {
  const char* const python = std::getenv("PYTHON");
  REQUIRE(python);
  const Folder folder;
  write_ours(folder);
  write_conversions(folder);
  const std::string command = std::string(python) + " tests/tensorfile.py " + folder.path();
  REQUIRE(std::system(command.c_str()) == 0);
  check_tensors(folder);
  check_model(folder);
  check_optimizer(folder);
  const auto error = [&](const char* name) { return error_of([&] { open_state_dict(folder.file(name)); }); };
  CHECK(error("module.pt").find("is not allowed: only tensors and plain values are read") != std::string::npos);
  CHECK(error("module.pt").find("global __main__.") != std::string::npos);
  CHECK(error("legacy.pt") == folder.file("legacy.pt") +
                                  ": was written before PyTorch 1.6 (no zip archive): "
                                  "torch.load and torch.save it once with a newer PyTorch");
  CHECK(error("script.pt") == folder.file("script.pt") +
                                  ": is a TorchScript archive, expected a file of torch.save: "
                                  "save the state_dict from Python");
}

}  // namespace
}  // namespace zs::tensorfile
