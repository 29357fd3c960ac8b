// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for lib/formats/tensorfile, run by tests/fuzz/run tensorfile. The input is a file: of torch.save
// where it begins as a zip archive, a bare pickle (whose mutations no checksum stops) where it begins as one, else
// safetensors.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "fuzz/input.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace tf = zs::tensorfile;

namespace {

void use(const tf::Tensor& tensor) {
  tensor.check();
  if (tensor.count() > 1 << 16) return;  // a view may repeat one element without end
  std::vector<float> values(static_cast<std::size_t>(tensor.count()));
  try {
    tf::read_f32(tensor, values);
  } catch (const zs::Error&) {  // complex and f8
  }
}

void use(const tf::Value& value) {
  if (const tf::Tensor* tensor = value.get<tf::Tensor>()) {
    use(*tensor);
  } else if (const tf::Dict* dict = value.get<tf::Dict>()) {
    for (const tf::Item& item : dict->items) use(item.value);
  } else if (const tf::List* list = value.get<tf::List>()) {
    for (const tf::Value& element : list->values) use(element);
  }
}

// What was read can be written, unless Python could not load it, and what was written is read.
void write_again(const tf::Value& value) {
  std::vector<tf::StoragePtr> storages;
  std::string bytes;
  try {
    bytes = tf::pickle(value, storages);
  } catch (const zs::Error&) {
    return;
  }
  tf::unpickle(bytes, "again", [&](const std::string& key) { return storages.at(std::stoul(key)); });
}

void read(std::string_view bytes) {
  if (bytes.starts_with('\x80')) {
    tf::StoragePtr storage = tf::Storage::own(std::string(96, '\1'));
    const tf::Value value = tf::unpickle(bytes, "input", [&](const std::string&) { return storage; });
    use(value);
    write_again(value);
    return;
  }
  const zs::fuzz::MemoryFile file(bytes);
  if (bytes.starts_with("PK")) {
    const tf::Value value = tf::read_torch(file.path());
    use(value);
    tf::verify(value);
  } else {
    for (const auto& [name, tensor] : tf::read_safetensors(file.path()).tensors) use(tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const zs::Error&) {  // the answer to damaged input; anything else ends the program
  }
  return 0;
}
