// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/graph.hpp"

#include <limits>
#include <unordered_map>

namespace zs::tensorfile {
namespace {

constexpr int kDepth = 100;

template <class T>
const T& single(const Node& node, const char* what) {
  const Value* const value = std::get_if<Value>(&node);
  const T* const held = value ? value->get<T>() : nullptr;
  if (!held) throw Malformed{std::string("malformed pickle: expected ") + what};
  return *held;
}

// The cost of copying a node into the tree, in values.
std::size_t cost(const Node& node) {
  const Value* const value = std::get_if<Value>(&node);
  const std::string* const text = value ? value->get<std::string>() : nullptr;
  return text ? 1 + text->size() / 16 : 1;
}

}  // namespace

std::optional<Dtype> as_dtype(const std::string& name) {
  constexpr std::string_view kModule = "torch.";
  if (!name.starts_with(kModule)) return std::nullopt;
  return from_torch_name(std::string_view(name).substr(kModule.size()));
}

Id Graph::add(Node node) {
  if (nodes_.size() >= std::numeric_limits<Id>::max()) throw Malformed{"too many values"};
  nodes_.push_back(std::move(node));
  return static_cast<Id>(nodes_.size() - 1);
}

const std::string& Graph::text(Id id) { return single<std::string>(nodes_[id], "text"); }
std::int64_t Graph::integer(Id id) { return single<std::int64_t>(nodes_[id], "an integer"); }
const Tensor& Graph::tensor(Id id) { return single<Tensor>(nodes_[id], "a tensor"); }

Shape Graph::shape(Id id) {
  Shape shape;
  for (const Id element : as<Sequence>(id, "a tuple").ids) shape.push_back(integer(element));
  return shape;
}

bool Graph::is_none(Id id) const {
  const Value* const held = std::get_if<Value>(&nodes_[id]);
  return held && held->is_none();
}

Value Graph::tree(Id id) {
  budget_ = 1000000;
  for (const Node& node : nodes_) budget_ += 4 * cost(node);
  open_.assign(nodes_.size(), false);
  return convert(id, 0);
}

Value Graph::convert(Id id, int depth) {
  if (depth > kDepth) throw Malformed{"values nested deeper than " + std::to_string(kDepth) + " levels"};
  const Node& node = nodes_[id];
  if (budget_ < cost(node)) throw Malformed{"too many values: one is held far more often than it is stored"};
  budget_ -= cost(node);
  if (!objects_) return convert_node(node, depth);
  if (open_[id]) return Object{"(itself)"};
  open_[id] = true;
  Value value = convert_node(node, depth);
  open_[id] = false;
  return value;
}

std::vector<Value> Graph::convert_all(const std::vector<Id>& ids, int depth) {
  std::vector<Value> values;
  for (const Id element : ids) values.push_back(convert(element, depth + 1));
  return values;
}

Value Graph::convert_node(const Node& node, int depth) {
  if (const Value* value = std::get_if<Value>(&node)) return *value;
  if (const Sequence* sequence = std::get_if<Sequence>(&node)) {
    std::vector<Value> values = convert_all(sequence->ids, depth);
    if (sequence->tuple) return Tuple{std::move(values)};
    return List{std::move(values)};
  }
  if (const Pairs* pairs = std::get_if<Pairs>(&node)) return convert_dict(*pairs, depth);
  if (const Made* made = std::get_if<Made>(&node)) {
    return Object{made->name, convert_all(made->arguments, depth), convert_all(made->state, depth),
                  convert_all(made->elements, depth), convert_dict({made->pairs}, depth).items};
  }
  const Global* const global = std::get_if<Global>(&node);
  if (!global) throw Malformed{"a storage without a tensor"};
  if (as_dtype(global->name)) return Value(global->name);
  if (!objects_) throw Malformed{"a " + global->name + " as a value"};
  return Object{global->name};
}

// If keys are equal, the last value wins, at the place of the first: as in Python.
Dict Graph::convert_dict(const Pairs& pairs, int depth) {
  Dict dict;
  std::unordered_map<std::string, std::size_t> texts;
  std::unordered_map<std::int64_t, std::size_t> integers;
  for (std::size_t i = 0; i < pairs.ids.size(); i += 2) {
    Item item{convert(pairs.ids[i], depth + 1), convert(pairs.ids[i + 1], depth + 1)};
    std::size_t place = dict.items.size();
    if (const std::string* text = item.key.get<std::string>()) {
      place = texts.emplace(*text, place).first->second;
    } else if (const std::int64_t* number = item.key.get<std::int64_t>()) {
      place = integers.emplace(*number, place).first->second;
    }
    if (place == dict.items.size()) {
      dict.items.push_back(std::move(item));
    } else {
      dict.items[place] = std::move(item);
    }
  }
  return dict;
}

}  // namespace zs::tensorfile
