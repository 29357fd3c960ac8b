// SPDX-License-Identifier: Apache-2.0
#include "compare/content.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "tensorfile/state_dict.hpp"
#include "tensorfile/torch.hpp"
#include "tensorfile/value.hpp"

namespace zs::compare {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::List;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

std::string scalar_text(const Value& value) {
  if (value.is_none()) return "None";
  if (const bool* const truth = value.get<bool>()) return *truth ? "True" : "False";
  if (const std::int64_t* const number = value.get<std::int64_t>()) return to_text(*number);
  if (const double* const number = value.get<double>()) return to_text(*number);
  if (const std::string* const text = value.get<std::string>()) return "'" + *text + "'";
  return "empty " + std::string(value.type_name());
}

void flatten(const Value& value, const std::string& name, std::vector<Leaf>& into) {
  const std::string lead = name.empty() ? "" : name + ".";
  const auto each = [&](const std::vector<Value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) flatten(values[i], lead + std::to_string(i), into);
  };
  const auto* const dict = value.get<Dict>();
  const auto* const list = value.get<List>();
  const auto* const tuple = value.get<Tuple>();
  if (const Tensor* const tensor = value.get<Tensor>()) {
    into.push_back({name, *tensor});
  } else if (dict && !dict->items.empty()) {
    for (const tensorfile::Item& item : dict->items) {
      const std::string* const text = item.key.get<std::string>();
      flatten(item.value, lead + (text ? *text : scalar_text(item.key)), into);
    }
  } else if (list && !list->values.empty()) {
    each(list->values);
  } else if (tuple && !tuple->values.empty()) {
    each(tuple->values);
  } else {
    into.push_back({name, scalar_text(value)});
  }
}

std::string first_bytes(const std::string& path) {
  std::string head(9, '\0');
  std::ifstream stream(path, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return head;
}

bool is_torch(const std::string& path) { return first_bytes(path).starts_with("PK\x03\x04"); }

bool is_index(const std::string& path) { return path.ends_with(".index.json"); }

std::vector<Leaf> weights(const std::string& path) {
  std::vector<Leaf> leaves;
  const tensorfile::StateDict dict = tensorfile::open_state_dict(path);
  for (const auto& entry : dict.entries()) leaves.push_back({entry.name, entry.tensor});
  return leaves;
}

std::vector<Leaf> everything(const std::string& path) {
  std::vector<Leaf> leaves;
  flatten(tensorfile::read_torch(path), "", leaves);
  return leaves;
}

bool is_document(const std::string& path) { return path.ends_with(".json") && !is_index(path); }

/// The values in two files of JSON, by dotted name: those of names that both have. Left out: who wrote it
/// (transformers_version, _name_or_path), and the layout, which decides no bit.
Contents documents(const std::string& a, const std::string& b) {
  const auto left_out = [](const std::string& name) {
    return name == "transformers_version" || name == "_name_or_path" ||
           attribute::role(name) == attribute::Role::layout;
  };
  const auto values = [&](const std::string& path) {
    std::map<std::string, std::string> found;
    try {
      const nlohmann::json flat = nlohmann::json::parse(Input(path).read_all()).flatten();
      for (const auto& [name, value] : flat.items()) {
        std::string dotted = name.substr(std::min<std::size_t>(1, name.size()));
        std::replace(dotted.begin(), dotted.end(), '/', '.');
        if (!left_out(dotted)) found[dotted] = value.dump();
      }
    } catch (const nlohmann::json::exception& error) {
      throw Error(path, 0, std::string("is no JSON: ") + error.what());
    }
    return found;
  };
  const auto of_a = values(a), of_b = values(b);
  Contents both;
  for (const auto& [name, value] : of_a) {
    const auto other = of_b.find(name);
    if (other == of_b.end()) continue;
    both.a.push_back({name, value}), both.b.push_back({name, other->second});
  }
  return both;
}

constexpr const char* kMoments = "accelerator_states";

}  // namespace

Contents contents(const std::string& a, const std::string& b) {
  const auto file = [](const std::string& path) {
    return fs::is_directory(path) ? tensorfile::open_state_dict(path).path() : path;
  };
  const std::string file_a = file(a), file_b = file(b);
  if (is_document(file_a) && is_document(file_b)) return documents(file_a, file_b);
  if (is_torch(file_a) && is_torch(file_b)) return {everything(file_a), everything(file_b)};
  return {weights(file_a), weights(file_b)};
}

std::vector<Part> optimizer_parts(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("optimizer_") && name.ends_with(".pt")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Part> parts;
  for (const std::string& path : paths) {
    const Value root = tensorfile::read_torch(path);
    const Value* const offsets = root.find("offset");
    for (const char* const moment : {"exp_avg", "exp_avg_sq"}) {
      const Value* const values = root.find(moment);
      if (!offsets || !values || !values->get<Dict>()) throw Error(path, 0, "is no part of zs's optimizer state");
      for (const tensorfile::Item& item : values->get<Dict>()->items) {
        const std::string* const name = item.key.get<std::string>();
        const Tensor* const tensor = item.value.get<Tensor>();
        const Value* const begin = name ? offsets->find(*name) : nullptr;
        if (!tensor || !begin || tensor->shape.size() != 1) throw Error(path, 0, "is no part of zs's optimizer state");
        parts.push_back({std::string(moment) + "." + *name, begin->integer(path), *tensor});
      }
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& x, const Part& y) { return std::tie(x.name, x.begin) < std::tie(y.name, y.begin); });
  return parts;
}

bool holds_tensors(const std::string& path) {
  if (std::error_code ignored; !fs::is_regular_file(path, ignored)) return false;
  const std::string head = first_bytes(path);
  if (head.starts_with("PK\x03\x04") || path.ends_with(".safetensors") || is_index(path)) return true;
  // A log of JSON lines may have a brace there too, but no eight bytes that are a length.
  return head.size() == 9 && head[8] == '{' && head[7] == '\0' && head[6] == '\0';
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& name) {
    if (std::error_code ignored; fs::exists(fs::path(folder) / name, ignored)) files.push_back(name);
  };
  add("gradients.pt");
  for (const char* const name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (std::error_code ignored; !fs::exists(fs::path(folder) / name, ignored)) continue;
    files.emplace_back("");  // the weights, whatever their file is called: as open_state_dict() chooses
    break;
  }
  if (std::error_code ignored; fs::exists(fs::path(folder) / kMoments / "optimizer_00000.pt", ignored))
    files.emplace_back(kMoments);
  add("optimizer.pt");
  add("config.json");
  add(std::string(kMoments) + "/state.json");
  return files;
}

}  // namespace zs::compare
