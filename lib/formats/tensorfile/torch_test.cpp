// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/torch.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "tensorfile/folder_test.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/zip.hpp"

namespace zs::tensorfile {
namespace {

Dict small() {
  const Tensor weight = any_tensor(Dtype::f32, {3, 5}, 1);
  return {{{"weight", weight},
           {"tied", weight},
           {"half", any_tensor(Dtype::bf16, {7}, 2)},
           {"state", Dict{{{0, Dict{{{"step", 12}, {"lr", 0.1}}}}}}}}};
}

// Everything that small() holds, read from `path`, checksums compared.
std::string content(const std::string& path) {
  const Value root = read_torch(path);
  verify(root);
  std::vector<StoragePtr> storages;
  std::string content = pickle(root, storages);
  for (const StoragePtr& storage : storages) content += storage->bytes();
  return content;
}

// As write_torch does it, with entries of the test's choice.
void write_entries(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries) {
  Output output(path);
  ZipWriter zip(output, 0, path);
  for (const auto& [name, bytes] : entries) zip.add(name, *Storage::borrow(bytes));
  zip.finish();
  output.commit();
}

TEST_CASE("torch: what was written is read, ties included, and written again it is the same file") {
  const Folder folder;
  write_torch(folder.file("a.bin"), small());
  const Value root = read_torch(folder.file("a.bin"));
  CHECK(verify(root) == 3);
  const Tensor* const weight = root.find("weight")->get<Tensor>();
  CHECK(raw(*weight) == raw(*small().items[0].value.get<Tensor>()));
  CHECK(weight->storage == root.find("tied")->get<Tensor>()->storage);
  CHECK(root.find("state")->get<Dict>()->items[0].value.find("lr")->real("lr") == 0.1);
  write_torch(folder.file("b.bin"), small());
  CHECK(slurp(folder.file("a.bin")) == slurp(folder.file("b.bin")));
  write_torch(folder.file("c.bin"), root);
  CHECK(content(folder.file("c.bin")) == content(folder.file("a.bin")));
}

TEST_CASE("torch: a flipped bit is an error or changes nothing, never a wrong value") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  write_torch(path, small());
  const std::string sound = slurp(path), expected = content(path);
  int errors = 0, harmless = 0, silent = 0;
  for (std::size_t i = 0; i < sound.size() * 8; i += 3) {
    std::string damaged = sound;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    spill(path, damaged);
    try {
      ++(content(path) == expected ? harmless : silent);
    } catch (const Error& error) {
      ++errors;
      CHECK(std::string(error.what()).starts_with(path + ": "));
    }
  }
  CHECK(silent == 0);
  CHECK(errors > 1000);
  CHECK(harmless > 500);  // padding, dates
}

TEST_CASE("torch: a file cut short anywhere is an error") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  write_torch(path, small());
  const std::string sound = slurp(path);
  for (std::size_t size = 0; size < sound.size(); ++size) {
    spill(path, sound.substr(0, size));
    CHECK_THROWS_AS(read_torch(path), Error);
  }
  spill(path, sound.substr(0, sound.size() - 1));
  CHECK(error_of([&] { read_torch(path); }) ==
        path + ": damaged zip archive: no end record, the file may be cut short");
}

TEST_CASE("torch: damaged data is found where it is looked for") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  write_torch(path, small());
  std::string bytes = slurp(path);
  const std::size_t at = bytes.find(raw(*small().items[2].value.get<Tensor>()));
  REQUIRE(at % 64 == 0);
  bytes[at + 3] ^= 1;
  spill(path, bytes);
  const Value root = read_torch(path);
  CHECK(root.find("weight")->get<Tensor>()->storage->verify());
  const std::string message = path + ": archive/data/2: checksum mismatch, the file is damaged";
  CHECK(error_of([&] { root.find("half")->get<Tensor>()->storage->verify(); }) == message);
  CHECK(error_of([&] { verify(root); }) == message);
}

TEST_CASE("torch: archives that are not of torch.save say what they are") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  const auto error = [&](const std::vector<std::pair<std::string, std::string>>& entries) {
    write_entries(path, entries);
    return error_of([&] { read_torch(path); });
  };
  CHECK(error({{"x/data.pkl", "\x80\x02N."}, {"x/version", "3\n"}}) == "no error");
  CHECK(error({{"a.txt", ""}}) == path + ": is not a file of torch.save (a zip archive without data.pkl)");
  CHECK(error({{"x/y/data.pkl", "\x80\x02N."}}) ==
        path + ": is not a file of torch.save (a zip archive without data.pkl)");
  CHECK(error({{"x/data.pkl", ""}, {"y/data.pkl", ""}}) == path + ": two pickles in one archive, in x and in y");
  CHECK(error({{"x/data.pkl", ""}, {"x/constants.pkl", ""}}).find("TorchScript") != std::string::npos);
  CHECK(error({{"x/data.pkl", "\x80\x02N."}, {"x/byteorder", "big"}}) ==
        path + ": x/byteorder: is not little, cannot be read here");
  CHECK(error({{"x/data.pkl", "\x80\x02N."}, {"x/data.pkl", ""}}) ==
        path + ": x/data.pkl: damaged zip archive: a second entry of this name");
  CHECK(error({{"x/data.pkl", "\x80\x02(X\7\0\0\0storage"}}).starts_with(path + ": x/data.pkl: byte "));
  spill(path, "");
  CHECK(error_of([&] { read_torch(path); }) == path + ": is empty");
  spill(path, "hello");
  CHECK(error_of([&] { read_torch(path); }) == path + ": is not a file of torch.save (no zip archive)");
  CHECK(error_of([&] { read_torch(folder.path()); }) == folder.path() + ": is a directory, expected a file");
  CHECK(error_of([&] { read_torch(folder.file("none")); }) == folder.file("none") + ": No such file or directory");
}

TEST_CASE("torch: a failed write leaves the old file and no other") {
  const Folder folder;
  const std::string path = folder.file("a.bin");
  write_torch(path, small());
  const std::string before = slurp(path);
  const StoragePtr bad = Storage::produce(8, [](const Sink& sink) { sink("1234"); });
  CHECK(error_of([&] {
          write_torch(path, Dict{{{"x", make_tensor(Dtype::f32, {2}, bad)}}});
        }) == path + ": archive/data/0: a tensor gave 4 of its 8 bytes");
  CHECK(error_of([&] { write_torch(path, Dict{{{"x", "\xFF"}}}); }).starts_with(path + ": x: text that is not UTF-8"));
  CHECK(slurp(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()) == 1);
  CHECK(error_of([&] { write_torch("/dev/full", small()); }).starts_with("/dev/full: "));
}

TEST_CASE("zip: sizes and offsets beyond 32 bits, and more than 65535 entries") {
  const Folder folder;
  const std::string path = folder.file("a.zip");
  {
    Output output(path);
    ZipWriter zip(output, 0, path, 100);  // from 100 bytes on as if it were 4 GB
    for (int i = 0; i < 70000; ++i) zip.add("archive/" + std::to_string(i), *Storage::borrow("x"));
    zip.add("archive/large", *Storage::own(std::string(300, 'y')));
    zip.finish();
    output.commit();
  }
  const ZipReader zip(Mapping::open(path));
  CHECK(zip.names().size() == 70001);
  CHECK(zip.open("archive/69999")->bytes() == "x");
  CHECK(zip.open("archive/large")->bytes() == std::string(300, 'y'));
  CHECK(zip.open("archive/large")->verify());
  CHECK(error_of([&] { zip.open("archive/none"); }) == path + ": archive/none: no such entry in the archive");
}

}  // namespace
}  // namespace zs::tensorfile
