// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <map>
#include <unordered_map>

#include "base/error.hpp"
#include "tensorfile/pickle.hpp"

namespace zs::tensorfile {
namespace {

// Well-formed UTF-8 (Unicode 15, table 3-7).
bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned first = byte(i), second = byte(i + 1);
    if (first < 0x80) {
      i += 1;
    } else if (first >= 0xC2 && first <= 0xDF && tail(i + 1)) {
      i += 2;
    } else if (first >= 0xE0 && first <= 0xEF && tail(i + 1) && tail(i + 2) && !(first == 0xE0 && second < 0xA0) &&
               !(first == 0xED && second > 0x9F)) {
      i += 3;
    } else if (first >= 0xF0 && first <= 0xF4 && tail(i + 1) && tail(i + 2) && tail(i + 3) &&
               !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second > 0x8F)) {
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

std::size_t count_reals(const Value& value) {
  std::size_t count = value.get<double>() ? 1 : 0;
  if (const List* list = value.get<List>()) {
    for (const Value& element : list->values) count += count_reals(element);
  } else if (const Tuple* tuple = value.get<Tuple>()) {
    for (const Value& element : tuple->values) count += count_reals(element);
  } else if (const Dict* dict = value.get<Dict>()) {
    for (const Item& item : dict->items) count += count_reals(item.key) + count_reals(item.value);
  }
  return count;
}

class Pickler {
 public:
  Pickler(std::vector<StoragePtr>& storages, std::size_t reals)
      : storages_(storages), reals_index_(storages.size()), reals_(reals) {
    bytes_ = "\x80\x02";                           // PROTO 2
    if (reals_ > 0) storages_.push_back(nullptr);  // theirs, filled by finish()
  }

  void write(const Value& value) {
    if (value.is_none()) {
      bytes_ += 'N';
    } else if (const bool* truth = value.get<bool>()) {
      bytes_ += *truth ? '\x88' : '\x89';
    } else if (const std::int64_t* number = value.get<std::int64_t>()) {
      write_int(*number);
    } else if (const double* real = value.get<double>()) {
      if (reals_ > 0)
        write_real(*real);
      else
        write_float(*real);
    } else if (const std::string* text = value.get<std::string>()) {
      write_text(*text);
    } else if (const List* list = value.get<List>()) {
      bytes_ += ']';
      write_marked(list->values, 'e');
    } else if (const Tuple* tuple = value.get<Tuple>()) {
      bytes_ += '(';
      for (const Value& element : tuple->values) write(element);
      bytes_ += 't';
    } else if (const Dict* dict = value.get<Dict>()) {
      write_dict(*dict);
    } else if (const Object* object = value.get<Object>()) {
      write_object(*object);
    } else {
      write_tensor(*value.get<Tensor>());
    }
  }

  std::string finish() {
    bytes_ += '.';
    if (reals_ > 0) {
      storages_[reals_index_] = Storage::own(
          std::string(reinterpret_cast<const char*>(written_reals_.data()), written_reals_.size() * sizeof(double)));
    }
    return std::move(bytes_);
  }

 private:
  std::vector<StoragePtr>& storages_;
  std::size_t reals_index_, reals_;
  std::string bytes_;
  std::vector<double> written_reals_;
  std::map<std::string, std::uint8_t> memo_;
  struct Known {
    std::size_t index;
    Dtype dtype;
  };
  std::unordered_map<const Storage*, Known> known_;

  template <class T>
  void put(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  void write_int(std::int64_t number) {
    if (number >= 0 && number <= 0xFF) {
      bytes_ += 'K';
      put(static_cast<std::uint8_t>(number));
    } else if (number >= 0 && number <= 0xFFFF) {
      bytes_ += 'M';
      put(static_cast<std::uint16_t>(number));
    } else if (number >= std::numeric_limits<std::int32_t>::min() &&
               number <= std::numeric_limits<std::int32_t>::max()) {
      bytes_ += 'J';
      put(static_cast<std::int32_t>(number));
    } else {
      bytes_ += "\x8A\x08";  // LONG1, 8 bytes
      put(number);
    }
  }

  void write_text(const std::string& text) {
    if (!is_utf8(text)) throw Error("text that is not UTF-8 cannot be saved: Python could not load it");
    if (text.size() > std::numeric_limits<std::int32_t>::max()) throw Error("text of 2 GB or more cannot be saved");
    bytes_ += 'X';
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }

  // Writes values that recur in every tensor once, then uses the memo, as far as it has room.
  void write_once(const std::string& bytes) {
    if (memo_.size() > 0xFF && !memo_.contains(bytes)) {
      bytes_ += bytes;
      return;
    }
    const auto [found, fresh] = memo_.emplace(bytes, static_cast<std::uint8_t>(memo_.size()));
    bytes_ += fresh ? bytes + 'q' : "h";
    put(found->second);
  }
  void write_global(const std::string& module, const std::string& name) {
    write_once('c' + module + '\n' + name + '\n');
  }
  void write_word(const std::string& word) {
    write_once(std::string("X") + static_cast<char>(word.size()) + std::string(3, '\0') + word);
  }

  void write_marked(const std::vector<Value>& values, char opcode) {
    if (values.empty()) return;
    bytes_ += '(';
    for (const Value& value : values) write(value);
    bytes_ += opcode;
  }

  void write_dict(const Dict& dict) {
    bytes_ += '}';
    if (dict.items.empty()) return;
    bytes_ += '(';
    for (const Item& item : dict.items) {
      write(item.key);
      try {
        write(item.value);
      } catch (const Error& error) {  // say where
        const std::string* const key = item.key.get<std::string>();
        const std::int64_t* const number = item.key.get<std::int64_t>();
        throw Error(key ? *key : number ? std::to_string(*number) : item.key.type_name(), 0, error.what());
      }
    }
    bytes_ += 'u';
  }

  void write_object(const Object& object) {
    const std::size_t point = object.name.rfind('.');
    if (point == std::string::npos || object.name.find('\n') != std::string::npos)
      throw Error("'" + object.name + "' is not a name that Python could import");
    write_global(object.name.substr(0, point), object.name.substr(point + 1));
    if (object.arguments.empty() && object.state.empty()) return;
    bytes_ += '(';
    for (const Value& argument : object.arguments) write(argument);
    bytes_ += object.arguments.empty() ? "t\x81" : "tR";  // NEWOBJ, REDUCE
    if (object.state.empty()) return;
    write(object.state.front());
    bytes_ += 'b';
  }

  void write_float(double real) {
    auto bits = std::bit_cast<std::uint64_t>(real);
    bytes_ += 'G';  // BINFLOAT: big-endian
    for (int byte = 7; byte >= 0; --byte) bytes_ += static_cast<char>(bits >> (8 * byte));
  }

  void write_shape(const Shape& shape) {
    bytes_ += '(';
    for (const std::int64_t size : shape) write_int(size);
    bytes_ += 't';
  }

  void write_view(Dtype dtype, const std::string& key, std::uint64_t held, std::int64_t offset, const Shape& shape,
                  const Shape& strides) {
    write_global("torch._utils", "_rebuild_tensor_v2");
    bytes_ += "((";
    write_word("storage");
    write_global("torch", std::string(storage_class(dtype)));
    write_text(key);
    write_word("cpu");
    write_int(static_cast<std::int64_t>(held));
    bytes_ += "tQ";  // BINPERSID: the storage
    write_int(offset);
    write_shape(shape);
    write_shape(strides);
    bytes_ += '\x89';  // requires_grad
    write_global("collections", "OrderedDict");
    bytes_ += ")RtR";  // no hooks
  }

  void write_tensor(const Tensor& tensor) {
    tensor.check();
    const std::string type(name_of(tensor.dtype));
    if (storage_class(tensor.dtype).empty()) {
      throw Error("PyTorch 1.13 has no type " + type + ", save it as safetensors");
    }
    const auto [found, fresh] = known_.emplace(tensor.storage.get(), Known{storages_.size(), tensor.dtype});
    if (fresh) storages_.push_back(tensor.storage);
    if (found->second.dtype != tensor.dtype) {
      throw Error("shares its storage as " + type + " with a tensor of " + std::string(name_of(found->second.dtype)));
    }
    if (tensor.storage->size() % size_of(tensor.dtype) != 0) throw Error("storage is not a whole number of elements");
    write_view(tensor.dtype, std::to_string(found->second.index), tensor.storage->size() / size_of(tensor.dtype),
               tensor.offset, tensor.shape, tensor.strides);
  }

  void write_real(double real) {
    write_view(Dtype::f64, std::to_string(reals_index_), reals_, static_cast<std::int64_t>(written_reals_.size()), {},
               {});
    written_reals_.push_back(real);
  }
};

}  // namespace

std::string pickle(const Value& root, std::vector<StoragePtr>& storages, Reals reals) {
  Pickler pickler(storages, reals == Reals::tensors ? count_reals(root) : 0);
  pickler.write(root);
  return pickler.finish();
}

}  // namespace zs::tensorfile
