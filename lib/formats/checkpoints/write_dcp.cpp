// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoints/dcp.hpp"
#include "checkpoints/outgoing.hpp"
#include "tensorfile/pickle.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Dict;
using tensorfile::Dtype;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Shape;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

const std::string kMetadata = "torch.distributed.checkpoint.metadata.";

/// The keys of nested dicts that lead to a value; a number is a place in a list.
using Path = std::vector<Value>;

Value made(const std::string& name, std::vector<tensorfile::Item> attributes) {
  return Object{name, {}, {Dict{std::move(attributes)}}};
}

class DcpWriter {
 public:
  DcpWriter(const std::string& folder, std::int64_t ranks) : folder_(folder) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      names_.push_back("__" + to_text(rank) + "_0.distcp");
      files_.push_back(std::make_unique<Output>(folder + "/" + names_.back()));
    }
    ends_.resize(files_.size());
  }

  /// A tensor, cut along its first dimension as FSDP cuts it: each rank has the same number of rows, the last ones
  /// fewer.
  void tensor(const Path& path, const Whole& whole) {
    if (const std::string what = defect(whole); !what.empty()) throw Error(name_of(path), 0, what);
    const std::int64_t rows = whole.shape.empty() ? 1 : whole.shape[0];
    const std::int64_t row = rows == 0 ? 0 : whole.count() / rows;
    const auto ranks = static_cast<std::int64_t>(whole.shape.empty() ? 1 : files_.size());
    const std::int64_t part = std::max<std::int64_t>((rows + ranks - 1) / ranks, 1);
    std::vector<std::pair<Shape, Tensor>> chunks;
    for (std::int64_t at = 0; at < rows || chunks.empty(); at += part) {
      const std::int64_t length = std::min(part, rows - at);
      Shape shape = whole.shape, offset(whole.shape.size(), 0);
      if (!shape.empty()) shape[0] = length, offset[0] = at;
      chunks.emplace_back(offset, laid_out(whole.dtype, shape, {{&whole, at * row, length * row}}));
    }
    tensors(path, whole.dtype, whole.shape, chunks);
  }

  void scalar(const Path& path, Tensor tensor) { tensors(path, tensor.dtype, {}, {{{}, tensor}}); }

  /// A value other than a tensor: one rank writes it unchanged.
  void bytes(const Path& path, const Value& value) {
    const std::string fqn = name_of(path);
    place(path, fqn, made(kMetadata + "BytesStorageMetadata", {}));
    store(fqn, Value(), Value(), 0, value);
  }

  void finish() {
    for (const auto& file : files_) file->commit();
    std::vector<tensorfile::StoragePtr> none;
    const Value root = made(kMetadata + "Metadata", {{"state_dict_metadata", entries_},
                                                     {"planner_data", paths_},
                                                     {"storage_data", stored_},
                                                     {"storage_meta", Value()},
                                                     {"version", "1.0.0"}});
    write_file(folder_ + "/.metadata", tensorfile::pickle(root, none, tensorfile::Reals::plain));
  }

 private:
  std::string folder_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Output>> files_;
  std::vector<std::uint64_t> ends_;
  Dict entries_, paths_, stored_;

  static std::string name_of(const Path& path) {
    std::string name;
    for (const Value& part : path) {
      const std::string* const text = part.get<std::string>();
      name += (name.empty() ? "" : ".") + (text ? *text : to_text(*part.get<std::int64_t>()));
    }
    return name;
  }

  void place(const Path& path, const std::string& fqn, Value entry) {
    entries_.items.push_back({fqn, std::move(entry)});
    paths_.items.push_back({fqn, Tuple{path}});
  }

  void tensors(const Path& path, Dtype dtype, const Shape& shape, const std::vector<std::pair<Shape, Tensor>>& chunks) {
    const std::string fqn = name_of(path);
    const Tuple properties{{Object{"torch." + std::string(tensorfile::torch_name(dtype))},
                            Object{"torch.serialization._get_layout", {"torch.strided"}}, false,
                            Object{kMetadata + "_MEM_FORMAT_ENCODING", {0}}, false}};
    List list;
    for (const auto& [offset, tensor] : chunks)
      list.values.push_back(made(kMetadata + "ChunkStorageMetadata",
                                 {{"offsets", torch_size(offset)}, {"sizes", torch_size(tensor.shape)}}));
    place(path, fqn,
          made(kMetadata + "TensorStorageMetadata",
               {{"properties", Object{kMetadata + "TensorProperties", {}, {properties}}},
                {"size", torch_size(shape)},
                {"chunks", list}}));
    for (std::size_t i = 0; i < chunks.size(); ++i)
      store(fqn, torch_size(chunks[i].first), static_cast<std::int64_t>(i), i, chunks[i].second);
  }

  void store(const std::string& fqn, Value offset, Value index, std::size_t rank, const Value& value) {
    const std::uint64_t length = tensorfile::append_torch(*files_[rank], ends_[rank], fqn, value);
    stored_.items.push_back(
        {made(kMetadata + "MetadataIndex", {{"fqn", fqn}, {"offset", std::move(offset)}, {"index", std::move(index)}}),
         made("torch.distributed.checkpoint.filesystem._StorageInfo",
              {{"relative_path", names_[rank]},
               {"offset", static_cast<std::int64_t>(ends_[rank])},
               {"length", static_cast<std::int64_t>(length)},
               {"transform_descriptors", Value()}})});
    ends_[rank] += length;
  }
};

/// Words joined by points, apart.
Path path_of_words(std::string_view words) {
  const std::vector<std::string> parts = split(words, ".");
  return {parts.begin(), parts.end()};
}

/// The path for a part of a parameter's state; a number is a place in a list.
Path path_of_state(const std::string& parameter, const std::string& kind) {
  Path path = {"optimizer", "state", parameter};
  for (const std::string& part : split(kind, "/")) {
    const auto place = parse_int(part);
    path.push_back(place ? Value(*place) : Value(part));
  }
  return path;
}

/// The path for a fact of a kind, so that key_of() gives it the same name; nothing if the form cannot store it.
std::optional<Path> path_of(const std::string& fact) {
  const std::string kind(kind_of(fact)), rest = fact.substr(std::min(kind.size() + 1, fact.size()));
  if (kind == "schedule") return path_of_words("lr_scheduler." + rest);
  if (kind == "scaler" || kind == "random") return path_of_words(fact);
  if (kind != "training") return {};
  const Key key = key_of(rest);
  return path_of_words(key.kind == Key::Kind::fact && key.name == fact ? rest : "train_state." + rest);
}

}  // namespace

void write_dcp(const State& state, const std::string& folder, const Form& form) {
  DcpWriter writer(folder, form.ranks.value_or(1));
  for (const Parameter& parameter : state.parameters) {
    if (const Whole* const whole = numbers(state, parameter)) writer.tensor({"model", parameter.name}, *whole);
  }
  const auto lists = groups(state);
  for (const auto& group : lists) {
    for (const Parameter* const parameter : group) {
      for (const auto& [kind, whole] : parameter->moments) writer.tensor(path_of_state(parameter->name, kind), whole);
      for (const auto& [kind, value] : parameter->values) {
        if (!has_object(value)) writer.bytes(path_of_state(parameter->name, kind), value);
      }
      if (parameter->step)
        writer.scalar({"optimizer", "state", parameter->name, "step"}, scalar(static_cast<float>(*parameter->step)));
    }
  }
  for (std::size_t number = 0; number < lists.size(); ++number) {
    const auto index = static_cast<std::int64_t>(number);
    for (const auto& [key, value] : settings(*lists[number].front()))
      writer.bytes({"optimizer", "param_groups", index, key}, value);
    List names;
    for (const Parameter* const parameter : lists[number]) names.values.emplace_back(parameter->name);
    writer.bytes({"optimizer", "param_groups", index, "params"}, names);
  }
  for (const auto& [fact, text] : state.facts) {
    const auto value = value_of(state, fact);
    const auto path = path_of(fact);
    if (!value || !path) continue;
    if (const Tensor* const tensor = value->get<Tensor>())
      writer.tensor(*path, whole(*tensor, ""));
    else
      writer.bytes(*path, *value);
  }
  if (state.step && !state.facts.contains("training.train_state.step"))
    writer.scalar({"train_state", "step"}, scalar(*state.step));
  writer.finish();
}

}  // namespace zs::checkpoints
