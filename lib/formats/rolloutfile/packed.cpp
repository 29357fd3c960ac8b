// SPDX-License-Identifier: Apache-2.0
// Binary dumps: files of torch.save, pickles, HDF5.
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "h5/image.hpp"
#include "rolloutfile/rows.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/torch.hpp"

namespace zs::rolloutfile {
namespace {

using tensorfile::Value;

std::vector<double> numbers_of(const tensorfile::Tensor& tensor) {
  std::vector<float> read(static_cast<std::size_t>(tensor.count()));  // token ids are exact in float32
  tensorfile::read_f32(tensor, read);
  return {read.begin(), read.end()};
}

/// Numbers of a Python value: a number, a list or tuple of them, a tensor; none for anything else.
std::vector<double> numbers_of(const Value& value) {
  if (const bool* const one = value.get<bool>()) return {*one ? 1.0 : 0.0};
  if (const auto* const one = value.get<std::int64_t>()) return {static_cast<double>(*one)};
  if (const double* const one = value.get<double>()) return {*one};
  if (const auto* const tensor = value.get<tensorfile::Tensor>()) return numbers_of(*tensor);
  const auto* const list = value.get<tensorfile::List>();
  const auto* const tuple = value.get<tensorfile::Tuple>();
  std::vector<double> numbers;
  if (list || tuple) {
    for (const Value& one : list ? list->values : tuple->values) {
      const std::vector<double> inner = numbers_of(one);
      if (inner.size() != 1) return {};
      numbers.push_back(inner.front());
    }
  }
  return numbers;
}

/// A padded array of SkyRL: {"data": bytes, "shape", "dtype"}.
struct Padded {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values{};
  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

Padded padded_of(const Value& value, const std::string& name) {
  Padded made;
  const Value *const data = value.find("data"), *const shape = value.find("shape"), *const dtype = value.find("dtype");
  if (!data || !data->get<std::string>() || !shape || !dtype || !dtype->get<std::string>()) return made;
  const std::vector<double> sizes = numbers_of(*shape);
  if (sizes.size() != 2) return made;
  const std::string& type = *dtype->get<std::string>();
  const auto known = tensorfile::from_torch_name(type);
  if (!known) throw Error(name + " has the type " + type + ", which is not read");
  made.values = numbers_of(
      tensorfile::make_tensor(*known, {static_cast<std::int64_t>(sizes[0]), static_cast<std::int64_t>(sizes[1])},
                              tensorfile::Storage::borrow(*data->get<std::string>())));
  made.rows = static_cast<std::size_t>(sizes[0]), made.columns = static_cast<std::size_t>(sizes[1]);
  return made;
}

}  // namespace

void Rows::torch() {
  const Value root = tensorfile::read_torch_objects(path_);
  const Value* const samples = root.find("samples");
  if (!samples || !samples->get<tensorfile::List>()) throw Error("has no list of samples: it is no dump of slime");
  if (const Value* const number = root.find("rollout_id"); number && number->get<std::int64_t>())
    step_ = *number->get<std::int64_t>();
  // The trainer's dump has the names of its columns: one letter more.
  const auto canonical = [](std::string key) {
    return key == "response_lengths" || key == "loss_masks" ? key.substr(0, key.size() - 1) : key;
  };
  for (const Value& sample : samples->get<tensorfile::List>()->values) {
    const auto* const dict = sample.get<tensorfile::Dict>();
    if (!dict) throw Error("has a sample that is no dict");
    Row row;
    for (const tensorfile::Item& item : dict->items) {
      const std::string* const key = item.key.get<std::string>();
      if (!key) continue;
      if (std::vector<double> numbers = numbers_of(item.value); !numbers.empty()) {
        row.numbers[canonical(*key)] = std::move(numbers);
      } else if (const auto* const list = item.value.get<tensorfile::List>();
                 list && !list->values.empty() && list->values.back().get<std::string>()) {
        row.texts[*key] = *list->values.back().get<std::string>();
      }
    }
    add(row);
  }
}

void Rows::pickle() {
  Input input(path_);
  const std::string bytes = input.read_all();
  const Value root = tensorfile::unpickle(
      bytes, path_, [](const std::string& key) -> tensorfile::StoragePtr { throw Error("refers to a storage " + key); },
      tensorfile::Names::any);
  const auto* const object = root.get<tensorfile::Object>();
  const Value* batch = nullptr;
  if (!object) throw Error("holds no batch of SkyRL");
  for (const Value& argument : object->arguments) {
    if (const Value* const found = argument.find("batch_dict")) batch = found;
  }
  if (!batch || !batch->get<tensorfile::Dict>()) throw Error("holds no batch of SkyRL");
  std::map<std::string, Padded> arrays;
  for (const tensorfile::Item& item : batch->get<tensorfile::Dict>()->items) {
    if (const std::string* const key = item.key.get<std::string>()) {
      if (Padded made = padded_of(item.value, *key); made.rows > 0) arrays[*key] = std::move(made);
    }
  }
  const Padded &ids = arrays["sequences"], &attention = arrays["attention_mask"], &response = arrays[form_.response];
  if (ids.rows == 0 || attention.columns != ids.columns || attention.rows != ids.rows || response.rows != ids.rows)
    throw Error("lacks sequences, attention_mask or response_mask of one size");
  for (std::size_t b = 0; b < ids.rows; ++b) {
    Row row;
    std::vector<double>& tokens = row.numbers[form_.ids];
    double padded = 0, length = 0;
    for (std::size_t i = 0; i < ids.columns; ++i) {
      if (attention.at(b, i) != 0)
        tokens.push_back(ids.at(b, i));
      else if (tokens.empty())
        ++padded;
    }
    for (std::size_t i = 0; i < response.columns; ++i) length += response.at(b, i) != 0;
    row.numbers[form_.response] = {length}, row.numbers["padded"] = {padded};
    for (const auto& [key, array] : arrays) {
      if (array.columns != response.columns || array.rows != ids.rows || key == form_.response) continue;
      std::vector<double>& into = row.numbers[key];
      for (std::size_t i = 0; i < array.columns; ++i) {
        if (response.at(b, i) != 0) into.push_back(array.at(b, i));
      }
    }
    add(row);
  }
}

void Rows::hdf5() {
  Input input(path_);
  const h5::Image image = h5::Image::open(input.read_all());
  const h5::Group root = image.root();
  nlohmann::json head = {{"zs_rollout", 1}};
  for (const auto& [key, value] : root.attributes()) {
    if (key != "zs_rollout") head[key] = value;
  }
  header(head);
  std::map<std::string, std::vector<double>> columns;
  std::vector<std::string> samples;
  for (const h5::Member& member : root.members()) {
    if (member.group) continue;
    const h5::Values values = root.read(member.name);
    if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&values))
      columns[member.name].assign(whole->begin(), whole->end());
    else if (const auto* real = std::get_if<std::vector<double>>(&values))
      columns[member.name] = *real;
    else if (member.name == "sample")
      samples = std::get<std::vector<std::string>>(values);
  }
  const std::vector<double>&lengths = columns["length"], &prompts = columns["prompt"];
  if (lengths.empty() || lengths.size() != prompts.size())
    throw Error("lacks the datasets length and prompt of one size");
  double tokens = 0, completions = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) tokens += lengths[i], completions += lengths[i] - prompts[i];
  std::size_t token = 0, completion = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (!(lengths[i] >= prompts[i]) || !(prompts[i] >= 0)) throw Error("has a prompt longer than its sequence");
    const auto length = static_cast<std::size_t>(lengths[i]), answer = length - static_cast<std::size_t>(prompts[i]);
    Row row;
    for (const auto& [name, values] : columns) {
      if (name == "length") continue;
      const auto size = static_cast<double>(values.size());
      const auto part = [&](std::size_t begin, std::size_t count) {
        const auto from = values.begin() + static_cast<std::ptrdiff_t>(begin);
        row.numbers[name].assign(from, from + static_cast<std::ptrdiff_t>(count));
      };
      if (name == form_.ids && size == tokens)
        part(token, length);
      else if (name != form_.ids && size == completions && size != static_cast<double>(lengths.size()))
        part(completion, answer);
      else if (values.size() == lengths.size())
        part(i, 1);
      else
        throw Error("dataset " + name + " has " + std::to_string(values.size()) + " values, which fits neither the " +
                    "sequences nor their tokens");
    }
    if (i < samples.size()) row.texts["sample"] = samples[i];
    token += length, completion += answer;
    add(row);
  }
}

}  // namespace zs::rolloutfile
