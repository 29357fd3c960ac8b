// SPDX-License-Identifier: Apache-2.0
#include "compare/content.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "optimizer/optimizer.hpp"
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

std::vector<Leaf> weights(const std::string& path, std::vector<std::string>& unread) {
  std::vector<Leaf> leaves;
  const tensorfile::StateDict dict = tensorfile::open_state_dict(path);
  for (const auto& entry : dict.entries()) leaves.push_back({entry.name, entry.tensor});
  unread = dict.others();
  return leaves;
}

std::vector<Leaf> everything(const std::string& path) {
  std::vector<Leaf> leaves;
  flatten(tensorfile::read_torch(path), "", leaves);
  return leaves;
}

bool is_document(const std::string& path) { return path.ends_with(".json") && !is_index(path); }

/// A number as its value, so that 1.0 is 1; else as JSON spells it.
std::string document_text(const nlohmann::json& value) {
  constexpr double kWhole = 0x1p53;
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  if (number != std::floor(number) || std::fabs(number) > kWhole || (number == 0 && std::signbit(number)))
    return to_text(number);
  return to_text(static_cast<std::int64_t>(number));
}

/// Every value of a document by dotted name, also an empty list or object.
void flatten(const nlohmann::json& value, const std::string& name, std::vector<Leaf>& into) {
  // Left out: who wrote it, and the layout, which decides no bit.
  if (name == "transformers_version" || name == "_name_or_path" || attribute::role(name) == attribute::Role::layout)
    return;
  if (!value.is_structured() || value.empty()) {
    into.push_back({name, document_text(value)});
    return;
  }
  const std::string lead = name.empty() ? "" : name + ".";
  std::size_t number = 0;
  for (const auto& [key, item] : value.items())
    flatten(item, lead + (value.is_array() ? std::to_string(number++) : key), into);
}

std::vector<Leaf> document(const std::string& path) {
  std::vector<Leaf> leaves;
  flatten(read_json(path), "", leaves);
  return leaves;
}

constexpr const char* kMoments = "accelerator_states";

}  // namespace

Contents contents(const std::string& a, const std::string& b) {
  const auto file = [](const std::string& path) {
    return fs::is_directory(path) ? tensorfile::open_state_dict(path).path() : path;
  };
  const std::string file_a = file(a), file_b = file(b);
  if (is_document(file_a) && is_document(file_b)) return {document(file_a), document(file_b), true};
  if (is_torch(file_a) && is_torch(file_b)) return {everything(file_a), everything(file_b)};
  Contents held;
  held.a = weights(file_a, held.unread_a), held.b = weights(file_b, held.unread_b);
  return held;
}

namespace {

/// The paths of a folder's files optimizer_RANK.pt.
std::vector<std::string> optimizer_files(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("optimizer_") && name.ends_with(".pt")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The optimizer state of a checkpoint, by its state.json; without one, and for older versions of zs, AdamW's.
std::vector<std::string_view> kept_names(const std::string& folder) {
  const std::string path = folder + "/state.json";
  std::string name = "adamw";
  if (std::error_code ignored; fs::exists(path, ignored)) {
    const auto json = nlohmann::json::parse(Input(path).read_all(), nullptr, /*allow_exceptions=*/false);
    constexpr const char* kName = "/optimizer/name";
    if (const nlohmann::json::json_pointer at(kName); json.is_object() && json.contains(at) && json[at].is_string())
      name = json[at].get<std::string>();
  }
  const optimizer::Description* const known = optimizer::named(name);
  if (!known) throw Error(path, 0, "optimizer is " + name + ", which this zs does not have");
  return optimizer::kept_names(*known);
}

/// Throws Error if the parts of a tensor overlap, or leave out
/// elements. `wholes`: the sizes of the weights, if known.
void require_whole(const std::string& folder, const std::vector<Part>& parts,
                   const std::map<std::string, std::int64_t, std::less<>>& wholes) {
  for (std::size_t first = 0; first < parts.size();) {
    const std::string& name = parts[first].name;
    std::int64_t end = 0;
    for (; first < parts.size() && parts[first].name == name; ++first) {
      const Part& part = parts[first];
      if (part.begin < end)
        throw Error(folder, 0, "two files have the optimizer state of the same elements of " + name);
      if (part.begin > end)
        throw Error(folder, 0,
                    "no file has elements " + to_text(end) + " to " + to_text(part.begin - 1) + " of " + name);
      end += part.tensor.count();
    }
    const auto whole = wholes.find(std::string_view(name).substr(name.find('.') + 1));
    if (whole != wholes.end() && whole->second != end)
      throw Error(folder, 0,
                  "has " + to_text(end) + " elements of " + name + ", whose weights are " + to_text(whole->second) +
                      ": the file of a rank is missing");
  }
}

}  // namespace

std::vector<Part> optimizer_parts(const std::string& folder) {
  std::vector<Part> parts;
  const std::vector<std::string_view> kept = kept_names(folder);
  for (const std::string& path : optimizer_files(folder)) {
    const Value root = tensorfile::read_torch(path);
    const Value* const offsets = root.find("offset");
    for (const std::string_view moment : kept) {
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
  std::map<std::string, std::int64_t, std::less<>> wholes;
  const std::string checkpoint = fs::path(folder).parent_path().string();
  if (!parts.empty() && tensorfile::has_state_dict(checkpoint)) {
    const tensorfile::StateDict weights = tensorfile::open_state_dict(checkpoint);
    for (const auto& entry : weights.entries()) wholes[entry.name] = entry.tensor.count();
  }
  require_whole(folder, parts, wholes);
  return parts;
}

bool holds_tensors(const std::string& path) {
  if (std::error_code ignored; !fs::is_regular_file(path, ignored)) return false;
  const std::string head = first_bytes(path);
  constexpr std::string_view kBeforeZip("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9", 9);  // torch.save's magic number
  if (head.starts_with("PK\x03\x04") || head == kBeforeZip || path.ends_with(".safetensors") || is_index(path))
    return true;
  // A log of JSON lines may have a brace there too, but no eight bytes that are a length.
  return head.size() == 9 && head[8] == '{' && head[7] == '\0' && head[6] == '\0';
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& name) {
    if (std::error_code ignored; fs::exists(fs::path(folder) / name, ignored)) files.push_back(name);
  };
  add("gradients.pt");
  add("gradient_norms.pt");
  for (const char* const name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (std::error_code ignored; !fs::exists(fs::path(folder) / name, ignored)) continue;
    // The weights, whatever their file is called, as open_state_dict() chooses; then any others.
    files.emplace_back(std::find(files.begin(), files.end(), "") == files.end() ? "" : name);
  }
  if (!optimizer_files(folder + "/" + kMoments).empty()) files.emplace_back(kMoments);
  add("optimizer.pt");
  add("config.json");
  add(std::string(kMoments) + "/state.json");
  return files;
}

std::vector<std::string> others_of(const std::string& folder) {
  const std::vector<std::string> compared = files_of(folder);
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool weights =
        tensorfile::has_state_dict(folder) && (name.starts_with("model") || name.starts_with("pytorch_model"));
    if (weights || name == kMoments || name == "SHA256SUMS") continue;
    if (std::find(compared.begin(), compared.end(), name) == compared.end()) others.push_back(name);
  }
  std::sort(others.begin(), others.end());
  return others;
}

}  // namespace zs::compare
