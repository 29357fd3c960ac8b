// SPDX-License-Identifier: Apache-2.0
// Edits of real checkpoints of every kind: each leaf of each file changed, dropped, doubled, renamed or moved, and
// bytes of each tensor. What the comparison does not notice must be in a list with its reason.
#include <doctest/doctest.h>
#include <re2/re2.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"
#include "checkpoints/read.hpp"
#include "state/describe.hpp"
#include "state/diff.hpp"
#include "state/genuine_test.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/torch.hpp"

namespace zs::state {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

/// What may change unnoticed, as FILE:PLACE, and why.
struct Excused {
  const char *place, *reason;
};
constexpr Excused kExcused[] = {
    {R"(param_groups(\[\d+\]|.*)\.(foreach|fused|capturable|differentiable)$)",
     "how an optimizer computes: rounding at most"},
    {R"(moved .*param_groups\[\d+\]\.decoupled_weight_decay$)", "swaps with one of these"},
    {R"((optim_states|zero/optimizer_state)\.pt: .*param_groups\[\d+\]\.params)",
     "a number of a flat group, whose order says the same"},
    {R"(optimizer\.bin: .*param_groups\[\d+\]\.params\[\d+\])", "states that shapes do not name go by their numbers"},
    {R"(moved .*\.param_groups\[\d+\]$)", "another order of the groups"},
    {R"((optim_states|zero/optimizer_state)\.pt: \w+ .*\.(clip_grad|dynamic_loss_scale|overflow|loss_scaler.*\.dynamic))",
     "DeepSpeed is given it anew when it resumes"},
    {R"(zero/optimizer_state\.pt: \w+ \.(optimizer_state_dict\.state|zero_stage|fp32_flat_groups|partition_count|ds_version))",
     "left over of the shards that it was made of: the tensors are in folders of their own"},
    {R"(zero_pp_rank_\d_mp_rank_00_model_states\.pt: \w+ \.module)", "ZeRO-3 has tensors of no elements there"},
    {R"(param_slice_mappings)", "param_shapes says the same, and zs goes by it; a difference is a note"},
    {R"((group|param_alignment)_paddings|partition_count\[)", "the sizes of the parts say the same"},
    {R"(optim_states\.pt: changed .*exp_avg(_sq)?$)", "padding behind a part, which zs-checkpoint verify checks"},
    {R"(fp32_flat_groups)", "padding behind a part, which DeepSpeed does not clear"},
    {R"((model|optim)_states\.pt: .*ds_config)", "the configuration: DeepSpeed is given it anew when it resumes"},
    {R"(rank_00_model_states\.pt: \w+ \.(mp|dp)_world_size|checkpoint_parallel_dimensions)", "the layout of ranks"},
    {R"(model_states\.pt: \w+ \.(optimizer|random_ltd|data_sampler|sparse_tensor_module_names|ds_autoep_layers))",
     "None, or empty"},
    {R"(\.buffer_names)", "which tensors are buffers, whose numbers are compared"},
    {R"(\.shared_params|\.module\.head\.weight)", "another name of a weight, whose numbers its owner has"},
    {R"(: (dropped|renamed) empty )", "None or empty, as where it is not there"},
    {R"(bf16_zero_pp_rank_\d_mp_rank_00_optim_states\.pt: \w+ \.optimizer_state_dict\.zero_stage)",
     "1 and 2 lie alike, and a file without is taken for 1, by ds_to_universal.py too"},
    {R"(\.metadata: \w+ \[\d+\]\.version)", "by which release: no reader of PyTorch asks for it"},
    {R"(\.frozen_param_shapes|changed \.frozen_param_fragments$)",
     "the module has the shape too; None of no parameter"},
    {R"(zero_pp_rank_\d_mp_rank_00_model_states\.pt: changed \.frozen_param_fragments\.)", "padding behind a part"},
    {R"(\.param_shapes)", "where the tensors themselves have shapes"},
    {R"(\.cat_dim|\.is_|\.pytorch-lightning_version|_version)", "how it was written, and by whom"},
    {R"(trainer_state\.json: \w+ \.(best_|is_|trial_|max_steps))", "where it ran, or None"},
    {R"(zero/(buf|fz\.weight|head\.weight)/)",
     "is named as not compared: DeepSpeed reads it of trained parameters alone"},
    {R"(generation_config\.json|metadata\.json|README)", "is named as not compared"},
    {R"(config\.json: \w+ \.(transformers_version|_name_or_path|use_cache))", "who wrote it"},
    {R"(\.metadata: .*(properties|planner_data|mem_format|storage_meta))",
     "of the tensor in PyTorch's memory, or a name told twice"},
    {R"(\.metadata: moved .*(chunks|storage_data|state_dict_metadata))", "parts may stand in any order"},
};

bool is_excused(const std::string& place) {
  return std::ranges::any_of(kExcused, [&](const Excused& one) { return RE2::PartialMatch(place, one.place); });
}

/// A tensor with one byte changed.
Tensor with_another_byte(const Tensor& tensor, std::size_t at) {
  std::string bytes(tensor.byte_count(), '\0');
  tensorfile::read_raw(tensor, bytes);
  bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ 0x10);
  return tensorfile::make_tensor(tensor.dtype, tensor.shape, tensorfile::Storage::own(std::move(bytes)));
}

/// Applies the edit of a number to a tree of values, or counts the edits.
class Editor {
 public:
  explicit Editor(std::int64_t target) : target_(target) {}

  std::int64_t count() const { return count_; }
  /// "changed .optimizer.lr" of the edit that was applied; "" if it changed nothing.
  const std::string& said() const { return said_; }

  void walk(Value& value, const std::string& place) {
    if (Dict* const dict = value.get<Dict>()) return items(dict->items, place);
    if (List* const list = value.get<List>()) return values(list->values, place, true);
    if (Tuple* const tuple = value.get<Tuple>()) return values(tuple->values, place, true);
    if (Object* const object = value.get<Object>()) {
      values(object->arguments, place, false);
      values(object->state, place, false);
      values(object->elements, place, false);
      return items(object->items, place);
    }
    if (at("changed", place)) change(value);
  }

 private:
  std::int64_t target_, count_ = 0;
  std::string said_;
  bool done_ = false;

  bool at(const char* operation, const std::string& place) {
    if (done_ || count_++ != target_) return false;
    said_ = std::string(operation) + " " + place;
    return done_ = true;
  }

  void swap(Value& a, Value& b) {
    if (checkpoints::text_of(a) == checkpoints::text_of(b)) said_.clear();
    std::swap(a, b);
  }

  static bool is_empty(const Value& value) {
    const Dict* const dict = value.get<Dict>();
    const List* const list = value.get<List>();
    return value.is_none() || (dict && dict->items.empty()) || (list && list->values.empty());
  }

  void items(std::vector<Item>& items, const std::string& place) {
    for (std::size_t i = 0; i < items.size() && !done_; ++i) {
      const std::string inner = place + "." + checkpoints::key_text(items[i].key);
      const bool empty = is_empty(items[i].value);
      if (at(empty ? "dropped empty" : "dropped", inner))
        return void(items.erase(items.begin() + static_cast<std::ptrdiff_t>(i)));
      if (std::string* const key = items[i].key.get<std::string>();
          key && at(empty ? "renamed empty" : "renamed", inner))
        return void(*key += "x");
      if (i + 1 < items.size() && at("moved", inner)) return swap(items[i].value, items[i + 1].value);
      walk(items[i].value, inner);
    }
  }

  void values(std::vector<Value>& list, const std::string& place, bool sized) {
    for (std::size_t i = 0; i < list.size() && !done_; ++i) {
      const std::string inner = place + "[" + std::to_string(i) + "]";
      const auto here = list.begin() + static_cast<std::ptrdiff_t>(i);
      if (sized && at("dropped", inner)) return void(list.erase(here));
      if (sized && at("doubled", inner)) return void(list.insert(here, Value(list[i])));
      if (sized && i + 1 < list.size() && at("moved", inner)) return swap(list[i], list[i + 1]);
      walk(list[i], inner);
    }
  }

  void change(Value& value) {
    if (bool* const truth = value.get<bool>()) return void(*truth = !*truth);
    if (std::int64_t* const number = value.get<std::int64_t>()) return void(*number += 1);
    if (double* const real = value.get<double>()) return void(*real = *real == 0 ? 0.5 : *real * 1.5);
    if (std::string* const text = value.get<std::string>()) return void(*text += "x");
    if (Tensor* const tensor = value.get<Tensor>()) {
      if (tensor->count() == 0) return said_.clear();
      return void(value = with_another_byte(*tensor, static_cast<std::size_t>(count_) * 7919));
    }
    if (value.is_none()) return void(value = Value(true));
    said_.clear();  // an empty container
  }
};

/// A JSON document as a value, and back.
Value value_of(const nlohmann::ordered_json& json) {
  if (json.is_object()) {
    Dict dict;
    for (const auto& [key, item] : json.items()) dict.items.push_back({key, value_of(item)});
    return dict;
  }
  if (json.is_array()) {
    List list;
    for (const auto& item : json) list.values.push_back(value_of(item));
    return list;
  }
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.is_string() ? Value(json.get<std::string>()) : Value();
}
nlohmann::ordered_json json_of(const Value& value) {
  nlohmann::ordered_json json;
  if (const Dict* const dict = value.get<Dict>()) {
    json = nlohmann::ordered_json::object();
    for (const Item& item : dict->items) json[checkpoints::key_text(item.key)] = json_of(item.value);
  } else if (const List* const list = value.get<List>()) {
    json = nlohmann::ordered_json::array();
    for (const Value& item : list->values) json.push_back(json_of(item));
  } else if (const bool* const truth = value.get<bool>()) {
    json = *truth;
  } else if (const auto* const number = value.get<std::int64_t>()) {
    json = *number;
  } else if (const double* const real = value.get<double>()) {
    json = *real;
  } else if (const std::string* const text = value.get<std::string>()) {
    json = *text;
  }
  return json;
}

/// A file whose leaves can be edited.
struct Document {
  std::string name;
  enum class Form { torch, json, pickle, safetensors } form;
  Value root;
};

Value of_safetensors(const std::string& path) {
  Dict tensors;
  const tensorfile::Safetensors held = tensorfile::read_safetensors(path);
  for (const auto& [name, tensor] : held.tensors) tensors.items.push_back({name, tensor});
  return tensors;
}

std::vector<Document> documents_of(const std::string& checkpoint) {
  std::vector<Document> documents;
  for (const auto& entry : fs::recursive_directory_iterator(checkpoint)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string(), name = fs::relative(path, checkpoint).string();
    const std::string bytes = Input(path).read_all();
    if (name.ends_with(".json"))
      documents.push_back({name, Document::Form::json, value_of(nlohmann::ordered_json::parse(bytes))});
    else if (name.ends_with(".safetensors"))
      documents.push_back({name, Document::Form::safetensors, of_safetensors(path)});
    else if (name == ".metadata")
      documents.push_back(
          {name, Document::Form::pickle, tensorfile::unpickle(bytes, path, {}, tensorfile::Names::any)});
    else if (bytes.starts_with("PK") && !name.ends_with(".distcp"))
      documents.push_back({name, Document::Form::torch, tensorfile::read_torch_objects(path)});
  }
  std::ranges::sort(documents, {}, &Document::name);
  return documents;
}

void write(const std::string& path, const Document& document, const Value& root) {
  std::vector<tensorfile::StoragePtr> none;
  tensorfile::NamedTensors tensors;
  switch (document.form) {
    case Document::Form::torch:
      return tensorfile::write_torch(path, root, tensorfile::Reals::plain);
    case Document::Form::json:
      return write_file(path, json_of(root).dump());
    case Document::Form::pickle:
      return write_file(path, tensorfile::pickle(root, none, tensorfile::Reals::plain));
    case Document::Form::safetensors:
      for (const Item& item : root.get<Dict>()->items)
        tensors.emplace_back(checkpoints::key_text(item.key), *item.value.get<Tensor>());
      return tensorfile::write_safetensors(path, tensors);
  }
}

/// Whether a comparison of both calls the edited one equal.
bool passes(const State& whole, const std::string& edited) {
  try {
    return compare::equal(diff(whole, checkpoints::read(edited), {}).verdict);
  } catch (const std::exception&) {
    return false;
  }
}

struct Tally {
  std::int64_t edits = 0, excused = 0;
  std::map<std::string, std::int64_t> passed;  ///< by file and place, with the numbers taken out

  void count(const std::string& said, bool passes) {
    ++edits;
    if (!passes) return;
    if (is_excused(said)) return void(++excused);
    std::string place = said;
    RE2::GlobalReplace(&place, "\\d+", "N");
    ++passed[place];
  }
};

void edit_documents(const std::string& original, const std::string& edited, const State& whole, std::int64_t most,
                    Tally& tally) {
  for (const Document& document : documents_of(original)) {
    const std::string path = edited + "/" + document.name;
    Value same = document.root;
    Editor counter(-1);
    counter.walk(same, "");
    write(path, document, same);
    CHECK_MESSAGE(passes(whole, edited), path << " written again");
    const std::int64_t stride = std::max<std::int64_t>(1, counter.count() / most);
    for (std::int64_t number = tally.edits % stride; number < counter.count(); number += stride) {
      Value root = document.root;
      Editor editor(number);
      editor.walk(root, "");
      if (editor.said().empty()) continue;
      try {
        write(path, document, root);
      } catch (const std::exception&) {  // what no program could write
        continue;
      }
      tally.count(document.name + ": " + editor.said(), passes(whole, edited));
    }
    fs::copy_file(original + "/" + document.name, path, fs::copy_options::overwrite_existing);
  }
}

/// A byte of each part of each tensor, where it lies in its file.
void edit_bytes(const std::string& original, const std::string& edited, const State& whole, Tally& tally) {
  std::mt19937_64 random(7);
  for (const Parameter& parameter : whole.parameters) {
    for (const auto& [kind, tensor] : tensors_of(parameter)) {
      for (const Piece& piece : tensor->pieces) {
        std::string bytes(piece.tensor.byte_count(), '\0');
        tensorfile::read_raw(piece.tensor, bytes);
        const std::string name = fs::exists(original + "/" + piece.file) ? piece.file : "";
        if (bytes.size() < 8 || name.empty()) continue;  // too short to be found again
        std::string file = Input(original + "/" + name).read_all();
        const std::size_t at = file.find(bytes);
        if (at == std::string::npos || file.find(bytes, at + 1) != std::string::npos) continue;
        const std::size_t byte = at + random() % bytes.size();
        file[byte] = static_cast<char>(file[byte] ^ (1 << random() % 8));
        write_file(edited + "/" + name, file);
        tally.count(name + ": byte of " + kind + " of " + parameter.name, passes(whole, edited));
        fs::copy_file(original + "/" + name, edited + "/" + name, fs::copy_options::overwrite_existing);
      }
    }
  }
}

/// Each file gone, empty, twice under the name of another rank, and in the place of another.
void edit_files(const std::string& original, const std::string& edited, const State& whole, Tally& tally) {
  std::vector<std::string> names;
  for (const checkpoints::File& file : whole.files) names.push_back(file.name);
  for (const std::string& name : names) {
    const std::string path = edited + "/" + name;
    if (!fs::is_regular_file(path)) continue;
    fs::remove(path);
    tally.count(name + ": file removed", passes(whole, edited));
    write_file(path, "");
    tally.count(name + ": file emptied", passes(whole, edited));
    std::string other = name;
    if (RE2::Replace(&other, "(rank|_)_0_", "\\1_7_")) {
      fs::copy_file(original + "/" + name, path, fs::copy_options::overwrite_existing);
      fs::copy_file(original + "/" + name, edited + "/" + other);
      tally.count(name + ": file doubled", passes(whole, edited));
      fs::remove(edited + "/" + other);
    }
    for (const std::string& from : names) {
      if (from == name || fs::path(from).extension() != fs::path(name).extension()) continue;
      if (Input(original + "/" + from).read_all() == Input(original + "/" + name).read_all()) continue;
      fs::copy_file(original + "/" + from, path, fs::copy_options::overwrite_existing);
      tally.count(name + ": file is " + from, passes(whole, edited));
      break;
    }
    fs::copy_file(original + "/" + name, path, fs::copy_options::overwrite_existing);
  }
}

TEST_CASE("edits: what is changed, dropped, doubled, renamed or moved in a checkpoint is noticed, or is in a list") {
  const std::int64_t most = std::getenv("ZS_ALL_EDITS") ? INT64_MAX : 24;  // of a file
  const auto begin = std::chrono::steady_clock::now();
  Tally tally;
  for (const std::string& archive : archives()) {
    const TemporaryFolder folder;
    unpack(archive, folder.file("original")), unpack(archive, folder.file("edited"));
    const auto originals = checkpoints_of(folder.file("original")), copies = checkpoints_of(folder.file("edited"));
    for (std::size_t i = 0; i < originals.size(); ++i) {
      const State whole = checkpoints::read(originals[i]);
      edit_documents(originals[i], copies[i], whole, most, tally);
      edit_bytes(originals[i], copies[i], whole, tally);
      edit_files(originals[i], copies[i], whole, tally);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  MESSAGE(tally.edits << " edits, " << tally.excused << " excused, " << seconds.count() << " s");
  for (const auto& [place, count] : tally.passed) MESSAGE("not noticed: " << place << ": " << count);
  CHECK(tally.edits > 2000);
  CHECK(tally.passed.empty());
}

TEST_CASE("verify: every checkpoint that a package wrote is whole") {
  std::int64_t checked = 0;
  for (const std::string& archive : archives()) {
    const TemporaryFolder folder;
    unpack(archive, folder.path());
    for (const std::string& checkpoint : checkpoints_of(folder.path())) {
      State held = checkpoints::read(checkpoint);
      verify(held);
      CHECK_MESSAGE(held.faults.empty(), checkpoint << ": " << (held.faults.empty() ? "" : held.faults.front()));
      ++checked;
    }
  }
  CHECK(checked >= 22);
}

}  // namespace
}  // namespace zs::state
