// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/torch.hpp"

#include <bit>
#include <map>
#include <set>

#include "base/error.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/zip.hpp"

namespace zs::tensorfile {

static_assert(std::endian::native == std::endian::little,
              "tensor files are little-endian, and so must this machine be");

namespace {

constexpr std::string_view kPickle = "/data.pkl";

// Describes a file that is not a zip archive, by its first bytes.
std::string describe(std::string_view bytes) {
  if (bytes.empty()) return "is empty";
  if (bytes.starts_with('\x80') || (bytes.size() > 262 && bytes.substr(257, 5) == "ustar")) {
    return "was written before PyTorch 1.6 (no zip archive): torch.load and torch.save it once with a newer PyTorch";
  }
  return "is not a file of torch.save (no zip archive)";
}

// "archive" in "archive/data.pkl"; PyTorch names it after the file.
std::string find_root(const ZipReader& zip, const std::string& path) {
  std::vector<std::string> roots;
  for (const std::string& name : zip.names()) {
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos && std::string_view(name).substr(slash) == kPickle) {
      roots.push_back(name.substr(0, slash));
    }
  }
  if (roots.empty()) throw Error(path, 0, "is not a file of torch.save (a zip archive without data.pkl)");
  const std::string& root = roots.front();
  if (roots.size() > 1) throw Error(path, 0, "two pickles in one archive, in " + root + " and in " + roots[1]);
  if (zip.contains(root + "/constants.pkl")) {
    throw Error(path, 0, "is a TorchScript archive, expected a file of torch.save: save the state_dict from Python");
  }
  return root;
}

void collect(const Value& value, std::set<StoragePtr>& storages) {
  if (const Tensor* tensor = value.get<Tensor>()) {
    storages.insert(tensor->storage);
  } else if (const List* list = value.get<List>()) {
    for (const Value& element : list->values) collect(element, storages);
  } else if (const Tuple* tuple = value.get<Tuple>()) {
    for (const Value& element : tuple->values) collect(element, storages);
  } else if (const Dict* dict = value.get<Dict>()) {
    for (const Item& item : dict->items) collect(item.value, storages);
  }
}

/// Adds what torch.load reads.
void add(ZipWriter& zip, const std::string& place, const Value& root, Reals reals) {
  std::vector<StoragePtr> storages;
  std::string bytes;
  try {
    bytes = pickle(root, storages, reals);
  } catch (const Error& error) {
    throw Error(place, 0, error.what());
  }
  const std::string folder = "archive";
  zip.add(folder + std::string(kPickle), *Storage::borrow(bytes));
  zip.add(folder + "/byteorder", *Storage::borrow("little"));
  for (std::size_t i = 0; i < storages.size(); ++i) zip.add(folder + "/data/" + std::to_string(i), *storages[i]);
  zip.add(folder + "/version", *Storage::borrow("3\n"));
}

}  // namespace

void write_torch(const std::string& path, const Value& root, Reals reals) {
  Output output(path);
  ZipWriter zip(output, 0, path);
  add(zip, path, root, reals);
  zip.finish();
  output.commit();
}

std::uint64_t append_torch(Output& output, std::uint64_t begin, const std::string& place, const Value& root) {
  ZipWriter zip(output, begin, place);
  add(zip, place, root, Reals::plain);
  return zip.finish();
}

namespace {

Value read(const std::shared_ptr<const Mapping>& file, std::string_view content, const std::string& path, Names names) {
  if (!content.starts_with("PK")) throw Error(path, 0, describe(content));
  const ZipReader zip(file, content);
  const std::string root = find_root(zip, path);
  if (zip.contains(root + "/byteorder")) {
    const StoragePtr order = zip.open(root + "/byteorder");
    order->verify();
    if (order->bytes() != "little") throw Error(path, 0, root + "/byteorder: is not little, cannot be read here");
  }
  const StoragePtr bytes = zip.open(root + std::string(kPickle));
  bytes->verify();
  std::map<std::string, StoragePtr> opened;
  const auto source = [&](const std::string& key) {
    StoragePtr& storage = opened[key];
    if (!storage) storage = zip.open(root + "/data/" + key);
    return storage;
  };
  return unpickle(bytes->bytes(), path + ": " + root + std::string(kPickle), source, names);
}

}  // namespace

Value read_torch(const std::string& path) {
  const std::shared_ptr<const Mapping> file = Mapping::open(path);
  return read(file, file->bytes(), path, Names::tensors);
}

Value read_torch_objects(const std::string& path) {
  const std::shared_ptr<const Mapping> file = Mapping::open(path);
  return read(file, file->bytes(), path, Names::any);
}

Value read_torch_objects(const std::shared_ptr<const Mapping>& file, std::string_view bytes, const std::string& place) {
  return read(file, bytes, place, Names::any);
}

std::size_t verify(const Value& root) {
  std::set<StoragePtr> storages;
  collect(root, storages);
  std::size_t count = 0;
  for (const StoragePtr& storage : storages) count += storage->verify() ? 1 : 0;
  return count;
}

}  // namespace zs::tensorfile
