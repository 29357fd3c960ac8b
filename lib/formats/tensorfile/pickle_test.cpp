// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/pickle.hpp"

#include <doctest/doctest.h>

#include "tensorfile/folder_test.hpp"

namespace zs::tensorfile {
namespace {

using namespace std::string_literals;

Value read(const std::string& bytes) {
  return unpickle(bytes, "x.pkl", [](const std::string&) { return Storage::own(std::string(24, '\1')); });
}
std::string error(const std::string& bytes) {
  return error_of([&] { read(bytes); });
}
// _rebuild_tensor_v2 of a storage of `count` floats, with the offset, shape and strides given as opcodes.
std::string rebuild(const std::string& count, const std::string& view) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
         "0X\3\0\0\0cpu"s +
         count + "tQ" + view +
         "\x89"
         "NtR.";
}

TEST_CASE("pickle: plain values survive") {
  std::vector<StoragePtr> storages;
  const Value root = Dict{{{"a", List{{1, -1, 70000, true, Value(), "b", Tuple{}}}}, {2, Dict{}}, {"r", 0.1}}};
  const std::string bytes = pickle(root, storages);
  CHECK(storages.size() == 1);
  const Value back = unpickle(bytes, "x", [&](const std::string& key) { return storages.at(std::stoul(key)); });
  const List* const list = back.find("a")->get<List>();
  REQUIRE(list->values.size() == 7);
  CHECK(list->values[1].integer("") == -1);
  CHECK(*list->values[3].get<bool>());
  CHECK(list->values[4].is_none());
  CHECK(*list->values[5].get<std::string>() == "b");
  CHECK(list->values[6].get<Tuple>());
  CHECK(back.get<Dict>()->items[1].key.integer("") == 2);
  CHECK(back.find("r")->real("r") == 0.1);
  CHECK(back.find("r")->get<Tensor>()->dtype == Dtype::f64);
  CHECK(error_of([&] { back.find("a")->real("a"); }) == "a: is a list, expected a number");
  CHECK(error_of([&] { back.find("r")->integer("lr"); }) == "lr: is a tensor, expected an integer");
}

TEST_CASE("pickle: objects and floats as Python writes them") {
  std::vector<StoragePtr> storages;
  const Value root = List{{Object{"torch.Size", {Tuple{{2, 3}}}}, Object{"a.b.C", {}, {Dict{{{"x", 0.1}}}}},
                           Object{"torch.bfloat16"}, Object{"a.D", {7}, {Dict{{{"y", -1.5e300}}}}}}};
  const std::string bytes = pickle(root, storages, Reals::plain);
  CHECK(storages.empty());
  const Value back = unpickle(
      bytes, "x", [](const std::string&) { return StoragePtr(); }, Names::any);
  const auto& values = back.get<List>()->values;
  REQUIRE(values.size() == 4);
  CHECK(values[0].get<Tuple>()->values.size() == 2);
  CHECK(values[1].get<Object>()->name == "a.b.C");
  CHECK(*values[1].find("x")->get<double>() == 0.1);
  CHECK(values[3].get<Object>()->arguments.size() == 1);
  CHECK(*values[3].find("y")->get<double>() == -1.5e300);
  CHECK(error_of([&] { pickle(Object{"eval"}, storages); }) == "'eval' is not a name that Python could import");
}

TEST_CASE("pickle: a global outside of the list is named and never called") {
  CHECK(error("\x80\x02"
              "cos\nsystem\nX\4\0\0\0true\x85R."s) ==
        "x.pkl: byte 2: global os.system is not allowed: only tensors and plain values are read");
  CHECK(error("\x80\x04\x8C\5posix\x8C\6system\x93."s) ==
        "x.pkl: byte 17: global posix.system is not allowed: only tensors and plain values are read");
  CHECK(error("\x80\x02"
              "ctorch.storage\n_load_from_bytes\n."s)
            .find("global torch.storage._load_from_bytes") != std::string::npos);
  CHECK(error("\x80\x02"
              "ctorch\nTensor\n)R."s) == "x.pkl: byte 17: global torch.Tensor is not allowed to be called");
  CHECK(error("\x80\x02"
              "ctorch\nTensor\n."s) == "x.pkl: byte 16: a torch.Tensor as a value");
}

TEST_CASE("pickle: protocols 0, 1 and 6 and unknown opcodes are errors with their byte") {
  CHECK(error("\x80\x06N."s) == "x.pkl: byte 0: pickle protocol 6, expected 2 to 5");
  CHECK(error("\x80\x02I1\n."s) == "x.pkl: byte 2: opcode 0x49 is not allowed");
  CHECK(error("\x80\x02\x97."s) == "x.pkl: byte 2: opcode 0x97 is not allowed");
}

TEST_CASE("pickle: what ends too early or leaves nothing is an error") {
  CHECK(error("") == "x.pkl: byte 0: the pickle ends too early");
  CHECK(error("\x80\x02N"s) == "x.pkl: byte 3: the pickle ends too early");
  CHECK(error("\x80\x02X\xFF\xFF\xFF\xFFzz."s) == "x.pkl: byte 2: the pickle ends too early");
  CHECK(error("\x80\x02."s) == "x.pkl: byte 2: malformed pickle: nothing on the stack");
  CHECK(error("\x80\x02N(a."s) == "x.pkl: byte 4: malformed pickle: nothing on the stack");
  CHECK(error("\x80\x02Nt."s) == "x.pkl: byte 3: malformed pickle: no mark on the stack");
  CHECK(error("\x80\x02h\5."s) == "x.pkl: byte 2: malformed pickle: nothing under memo 5");
  CHECK(error("\x80\x02}NNNNs."s) == "x.pkl: byte 7: malformed pickle: expected a dict to set items of");
  CHECK(error("\x80\x02}(Nu."s) == "x.pkl: byte 5: malformed pickle: a key without a value");
  CHECK(error("\x80\x02)Na."s) == "x.pkl: byte 4: malformed pickle: expected a list to append to");
  CHECK(error("\x80\x02\x8A\x09"
              "123456789."s) == "x.pkl: byte 2: an integer of 9 bytes does not fit 64 bits");
}

TEST_CASE("pickle: containers that hold themselves or grow without bound are errors") {
  CHECK(error("\x80\x02]q\0h\0a."s) == "x.pkl: byte 8: values nested deeper than 100 levels");
  // [[], []] doubled 40 times
  std::string bomb = "\x80\x02]";
  for (int i = 0; i < 40; ++i) bomb += "2\x86";
  CHECK(error(bomb + ".").find("too many values") != std::string::npos);
  // one text of 1 MB, 100 times in a list
  std::string texts = "\x80\x02](X\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\0"s;
  for (int i = 0; i < 100; ++i) texts += "h\0"s;
  CHECK(error(texts + "e.").find("too many values") != std::string::npos);
  CHECK(error(rebuild("K\6", "K\0("s + std::string(130, 'K') + "t(t")).find("more than 64 dimensions") !=
        std::string::npos);
}

TEST_CASE("pickle: equal keys are one, as in Python") {
  const Value value = read("\x80\x02}(X\1\0\0\0aK\1X\1\0\0\0bK\2X\1\0\0\0aK\3u."s);
  REQUIRE(value.get<Dict>()->items.size() == 2);
  CHECK(value.find("a")->integer("a") == 3);
}

TEST_CASE("pickle: an integer of any width is read with its sign") {
  CHECK(read("\x80\x02\x8A\0."s).integer("") == 0);
  CHECK(read("\x80\x02\x8A\1\xFF."s).integer("") == -1);
  CHECK(read("\x80\x02\x8A\2\xFF\0."s).integer("") == 255);
  CHECK(read("\x80\x02\x8A\x08\0\0\0\0\0\0\0\x80."s).integer("") == INT64_MIN);
  CHECK(read("\x80\x02G\x3F\xF8\0\0\0\0\0\0."s).real("") == 1.5);
}

TEST_CASE("pickle: a tensor that its storage cannot hold is an error") {
  CHECK(read(rebuild("K\6", "K\0K\2K\3\x86K\3K\1\x86"s)).get<Tensor>()->shape == Shape{2, 3});
  CHECK(error(rebuild("K\6", "K\1K\2K\3\x86K\3K\1\x86"s))
            .ends_with("tensor of shape [2, 3] reaches element 6 of a storage that has 6"));
  CHECK(error(rebuild("K\7", "K\0))"s)).ends_with("storage 0 has 24 bytes, expected 7 elements of 4"));
  CHECK(error(rebuild("J\xFF\xFF\xFF\xFF", "K\0))"s)).ends_with("storage 0 has 24 bytes, expected -1 elements of 4"));
  CHECK(error(rebuild("K\6", "K\0)K\1\x85"s)).ends_with("the tensor's numbers of strides and dimensions differ"));
  CHECK(error(rebuild("K\6", "NK\1\x85K\1\x85"s)).ends_with("malformed pickle: expected an integer"));
}

TEST_CASE("pickle: PyTorch's later ways to store a tensor") {
  // _rebuild_tensor_v3 of an untyped storage, with a dtype that has no class of storage
  const Value u16 = read(
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v3\n((X\7\0\0\0storagectorch.storage\nUntypedStorage\n"
      "X\1\0\0\0"
      "0X\3\0\0\0cpuK\x18tQK\2K\4\x85K\1\x85\x89"
      "Nctorch\nuint16\ntR."s);
  CHECK(u16.get<Tensor>()->dtype == Dtype::u16);
  CHECK(raw(*u16.get<Tensor>()) == std::string(8, '\1'));
  // metadata: nothing, or bits that change the meaning of the elements
  const std::string bare = rebuild("K\6", "K\0))"s), start = bare.substr(0, bare.size() - 3);  // less the call
  CHECK(read(start + "}tR.").get<Tensor>());
  CHECK(error(start + "}X\3\0\0\0neg\x88stR."s).find("negation was left for later") != std::string::npos);
  // a Parameter with attributes: _rebuild_from_type_v2(function, class, arguments, attributes)
  const std::string plain = rebuild("K\6", "K\0K\6\x85K\1\x85"s);
  const std::string arguments = plain.substr(plain.find("(("), plain.find("tR.") + 1 - plain.find("(("));
  const Value typed = read(
      "\x80\x02"
      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
      "ctorch.nn.parameter\nParameter\n"s +
      arguments + "}tR.");
  CHECK(typed.get<Tensor>()->shape == Shape{6});
}

TEST_CASE("pickle: what Python could not load is not written") {
  std::vector<StoragePtr> storages;
  const auto writes = [&](const Value& value) { return error_of([&] { pickle(value, storages); }); };
  CHECK(writes(Dict{{{"a", Dict{{{3, "\xC0\x80"}}}}}}) ==
        "a: 3: text that is not UTF-8 cannot be saved: Python could not load it");
  for (const char* const bad : {"\xFF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "a\x80"}) {
    CHECK(writes(bad) != "no error");
  }
  CHECK(writes("gr\u00fc\u00df \u20ac \U0001F600") == "no error");
  CHECK(writes(Dict{{{"u", any_tensor(Dtype::u16, {2}, 1)}}}) ==
        "u: PyTorch 1.13 has no type u16, save it as safetensors");
  const Tensor tensor = any_tensor(Dtype::f32, {2}, 1);
  Tensor other = tensor;
  other.dtype = Dtype::i32;
  CHECK(writes(Dict{{{"a", tensor}, {"b", other}}}) == "b: shares its storage as i32 with a tensor of f32");
  other = tensor;
  other.offset = 1;
  CHECK(writes(Dict{{{"a", other}}}) == "a: tensor of shape [2] reaches element 2 of a storage that has 2");
}

}  // namespace
}  // namespace zs::tensorfile
