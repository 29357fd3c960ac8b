// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/outgoing.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "checkpoints/fact.hpp"

namespace zs::checkpoints {
namespace {

namespace fs = std::filesystem;
using tensorfile::Dict;
using tensorfile::Item;
using tensorfile::List;
using tensorfile::Object;
using tensorfile::Storage;
using tensorfile::Tensor;
using tensorfile::Tuple;
using tensorfile::Value;

/// Some elements of a tensor with contiguous elements, as a one-dimensional tensor.
Tensor flat_run(Tensor tensor, std::int64_t begin, std::int64_t count) {
  tensor.offset += tensor.shape.size() == 1 && !tensor.contiguous() ? begin * tensor.strides[0] : begin;
  tensor.strides = {tensor.shape.size() == 1 ? tensor.strides[0] : 1};
  tensor.shape = {count};
  return tensor;
}

void stream_run(const Run& run, const tensorfile::Sink& sink) {
  std::vector<const Piece*> order;
  bool flat = true;
  for (const Piece& piece : run.whole->pieces) {
    if (piece.tensor.count() == 0) continue;
    flat = flat && piece.at.empty() && (piece.tensor.shape.size() == 1 || piece.tensor.contiguous());
    order.push_back(&piece);
  }
  if (!flat) {
    const Tensor tensor = joined(*run.whole, "");
    return tensorfile::stream(tensor.contiguous() ? flat_run(tensor, run.begin, run.count) : tensor, sink);
  }
  std::ranges::sort(order, [](const Piece* a, const Piece* b) { return a->begin < b->begin; });
  for (const Piece* const piece : order) {
    const std::int64_t from = std::max(run.begin, piece->begin),
                       to = std::min(run.begin + run.count, piece->begin + piece->tensor.count());
    if (from >= to) continue;
    tensorfile::stream(flat_run(piece->tensor, from - piece->begin, to - from), sink);
    piece->tensor.storage->forget();
  }
}

/// Reads literals of Python's, as text_of() writes them.
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  std::optional<Value> all() {
    auto value = one();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  std::string_view rest_;

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<Value> one() {
    if (take("None")) return Value();
    if (take("True")) return Value(true);
    if (take("False")) return Value(false);
    if (take("[")) {
      auto values = until("]");
      return values ? std::optional<Value>(List{std::move(*values)}) : std::nullopt;
    }
    if (take("(")) {
      auto values = until(")");
      return values ? std::optional<Value>(Tuple{std::move(*values)}) : std::nullopt;
    }
    if (take("'")) {
      const std::size_t end = rest_.find('\'');
      const std::string text(rest_.substr(0, end));
      if (end == std::string_view::npos || text.find('\\') != std::string::npos) return {};
      rest_.remove_prefix(end + 1);
      return Value(text);
    }
    const std::size_t end = std::min(rest_.find_first_of(",])"), rest_.size());
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (const auto number = parse_int(word)) return Value(*number);
    if (const auto number = parse_real(word)) return Value(*number);
    return {};
  }

  std::optional<std::vector<Value>> until(std::string_view end) {
    std::vector<Value> values;
    if (take(end)) return values;
    do {
      auto value = one();
      if (!value) return {};
      values.push_back(std::move(*value));
    } while (take(", "));
    if (!take(end)) return {};
    return values;
  }
};

}  // namespace

NewFolder::NewFolder(const std::string& to) : to_(to) {
  std::error_code failure;
  if (fs::exists(fs::symlink_status(to, failure))) throw Error(to, 0, "is there already: name a folder that is not");
  fs::path path(to);
  if (path.filename().empty()) path = path.parent_path();
  to_ = path.string();
  path_ = (path.parent_path() / (".zs-tmp-" + random_letters(12))).string();
  if (!fs::create_directory(path_, failure)) throw Error(to, 0, "cannot be made: " + failure.message());
  guard_.emplace(path_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void NewFolder::publish() {
  std::error_code failure;
  if (fs::exists(fs::symlink_status(to_, failure))) throw Error(to_, 0, "was made by another program meanwhile");
  fs::rename(path_, to_, failure);
  if (failure) throw Error(to_, 0, failure.message());
  path_.clear();
}

Tensor laid_out(tensorfile::Dtype dtype, tensorfile::Shape shape, std::vector<Run> runs, std::int64_t zeros) {
  std::int64_t count = zeros;
  for (const Run& run : runs) count += run.count;
  const auto produce = [runs = std::move(runs),
                        bytes = static_cast<std::size_t>(zeros) * size_of(dtype)](const tensorfile::Sink& sink) {
    for (const Run& run : runs) stream_run(run, sink);
    if (bytes > 0) sink(std::string(bytes, '\0'));
  };
  return make_tensor(dtype, std::move(shape),
                     Storage::produce(static_cast<std::uint64_t>(count) * size_of(dtype), produce));
}

Tensor widened(const Whole& whole, const std::string& name) {
  using tensorfile::Dtype;
  if (const std::string what = defect(whole); !what.empty()) throw Error(name, 0, what);
  if (whole.dtype != Dtype::bf16 && whole.dtype != Dtype::f16) return streamed(whole, name);
  const auto produce = [&whole, name](const tensorfile::Sink& sink) {
    const Tensor narrow = joined(whole, name);
    std::vector<float> values;
    for (std::int64_t at = 0; at < narrow.count(); at += static_cast<std::int64_t>(values.size())) {
      values.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 16, narrow.count() - at)));
      read_f32(narrow, at, values);
      sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    }
    narrow.storage->forget();
  };
  return make_tensor(Dtype::f32, whole.shape,
                     Storage::produce(static_cast<std::uint64_t>(whole.count()) * sizeof(float), produce));
}

Value torch_size(const tensorfile::Shape& shape) { return Object{"torch.Size", {Tuple{{shape.begin(), shape.end()}}}}; }

Tensor scalar(float value) {
  return make_tensor(tensorfile::Dtype::f32, {}, Storage::own({reinterpret_cast<const char*>(&value), sizeof value}));
}

Tensor scalar(std::int64_t value) {
  return make_tensor(tensorfile::Dtype::i64, {}, Storage::own({reinterpret_cast<const char*>(&value), sizeof value}));
}

std::optional<Value> literal(const std::string& text) {
  auto value = Literal(text).all();
  return value && text_of(*value) == text ? value : std::nullopt;
}

bool has_object(const Value& value) {
  const auto any = [](const std::vector<Value>& values) { return std::ranges::any_of(values, has_object); };
  if (value.get<Object>()) return true;
  if (const List* const list = value.get<List>()) return any(list->values);
  if (const Tuple* const tuple = value.get<Tuple>()) return any(tuple->values);
  if (const Dict* const dict = value.get<Dict>())
    return std::ranges::any_of(dict->items,
                               [](const Item& item) { return has_object(item.key) || has_object(item.value); });
  return false;
}

std::optional<Value> value_of(const State& state, const std::string& fact) {
  if (const auto found = state.values.find(fact); found != state.values.end())
    return has_object(found->second) ? std::nullopt : std::optional(found->second);
  return state.facts.contains(fact) ? literal(state.facts.at(fact)) : std::nullopt;
}

bool is_own(const State& state, const Parameter& parameter) {
  return parameter.tied.empty() || !state.find(parameter.tied);
}

const Whole* numbers(const Parameter& parameter) {
  return parameter.master ? &*parameter.master : parameter.weight ? &*parameter.weight : nullptr;
}

const Whole* numbers(const State& state, const Parameter& parameter) {
  return numbers(is_own(state, parameter) ? parameter : *state.find(parameter.tied));
}

std::vector<std::vector<const Parameter*>> groups(const State& state) {
  std::map<int, std::vector<const Parameter*>> by_number;
  std::vector<std::map<std::string, std::string>> distinct;
  for (const Parameter& parameter : state.parameters) {
    const bool trained = !parameter.moments.empty() || parameter.group >= 0;
    if (!trained || !is_own(state, parameter) || parameter.buffer || parameter.frozen) continue;
    int number = parameter.group;
    if (number < 0) {
      number = static_cast<int>(std::ranges::find(distinct, parameter.hyper) - distinct.begin());
      if (static_cast<std::size_t>(number) == distinct.size()) distinct.push_back(parameter.hyper);
    }
    by_number[number].push_back(&parameter);
  }
  std::vector<std::vector<const Parameter*>> lists;
  for (auto& [number, group] : by_number) lists.push_back(std::move(group));
  return lists;
}

std::vector<Item> settings(const Parameter& parameter) {
  std::vector<Item> items;
  std::set<std::string> said;
  for (const auto& [key, text] : parameter.hyper) {
    if (key == "step") continue;  // FusedAdam's; stored separately
    if (auto value = literal(text)) items.push_back({key, std::move(*value)}), said.insert(key);
  }
  const std::vector<std::pair<const char*, Value>> defaults = {{"lr", 1e-3},
                                                               {"betas", Tuple{{0.9, 0.999}}},
                                                               {"eps", 1e-8},
                                                               {"weight_decay", 1e-2},
                                                               {"amsgrad", false},
                                                               {"maximize", false},
                                                               {"foreach", Value()},
                                                               {"capturable", false},
                                                               {"differentiable", false},
                                                               {"fused", Value()},
                                                               {"decoupled_weight_decay", true}};
  for (const auto& [key, value] : defaults) {
    if (!said.contains(key)) items.push_back({key, value});
  }
  return items;
}

}  // namespace zs::checkpoints
