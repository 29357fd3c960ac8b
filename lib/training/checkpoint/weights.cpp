// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights.hpp"

#include <algorithm>
#include <set>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/mapped.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"

namespace zs::checkpoint {
namespace {

using tensorfile::StateDict;
using tensorfile::Tensor;

/// Whether a tensor of this type can be weights: whole numbers are something else, and need a scale.
bool holds_weights(tensorfile::Dtype dtype) {
  using tensorfile::Dtype;
  return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32 || dtype == Dtype::f64;
}

/// peft's file of adapters, also of its older form.
std::string adapter_file(const std::string& folder) {
  const std::string usual = folder + kAdapterWeights, older = folder + "/adapter_model.bin";
  return !is_there(usual) && is_there(older) ? older : usual;
}

/// Whether two tensors have the same shape and values.
bool same(const Tensor& a, const Tensor& b) {
  if (a.shape != b.shape) return false;
  std::vector<float> x(static_cast<std::size_t>(a.count())), y(x.size());
  tensorfile::read_f32(a, x);
  tensorfile::read_f32(b, y);
  return x == y;
}

/// The name under which the file has a parameter.
std::string name_in(const StateDict& weights, const unit::Parameter& parameter) {
  const std::string& name = parameter.name_in_files();
  return weights.find(name) || !weights.find(parameter.other_name) ? name : parameter.other_name;
}

/// Throws unless a tensor that no parameter took may be left out.
void check_extra(const StateDict& weights, const StateDict::Entry& entry, const unit::Units& units,
                 const std::string& otherwise, Heads heads) {
  for (const auto& unit : units) {
    for (const unit::Extra& extra : unit->extras()) {
      // A checkpoint is of this very model: it has nothing of layers that the model leaves out.
      if (!extra.prefix.empty() && heads == Heads::required) continue;
      if (!entry.name.starts_with(extra.prefix) || !entry.name.ends_with(extra.suffix)) continue;
      if (extra.same_as.empty()) return;
      for (const unit::Parameter& parameter : unit->parameters()) {
        if (parameter.name != extra.same_as) continue;
        const Tensor* const tied = weights.find(name_in(weights, parameter));
        if (tied && same(entry.tensor, *tied)) return;
        throw Error(weights.path(), 0, entry.name + " is not " + extra.same_as + ", to which this model ties it");
      }
    }
  }
  throw Error(weights.path(), 0, "has " + entry.name + ", which the model has not" + otherwise);
}

}  // namespace

Tensor for_file(const std::vector<const unit::Parameter*>& parameters, std::function<at::Tensor()> whole) {
  std::uint64_t size = 0;
  for (const unit::Parameter* const parameter : parameters)
    size += static_cast<std::uint64_t>(parameter->numel()) * sizeof(float);
  const auto produce = [parameters, whole = std::move(whole)](const tensorfile::Sink& sink) {
    const device::View values = device::view(whole());
    for (const unit::Parameter* const parameter : parameters) {
      const device::View numbers = values.part(parameter->offset, parameter->offset + parameter->numel());
      sink({numbers.as<const char>(), static_cast<std::size_t>(numbers.bytes())});
    }
  };
  return tensorfile::make_tensor(tensorfile::Dtype::f32, parameters.front()->shape_in_files(),
                                 tensorfile::Storage::produce(size, produce));
}

Placed placed(const StateDict& file, const std::string& name, const unit::Parameter& parameter,
              const std::string& otherwise) {
  const Tensor& tensor = file.at(name);
  if (const auto shape = parameter.shape_in_files(); tensor.shape != shape) {
    throw Error(file.path(), 0,
                name + " has the shape " + tensorfile::to_text(tensor.shape) + ", the model " +
                    tensorfile::to_text(shape) + " by " + parameter.keys + otherwise);
  }
  return {parameter.place(), tensor, parameter.begin_in_files()};
}

void read(const std::vector<Placed>& unit, std::int64_t begin, std::span<float> values) {
  const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
  for (const Placed& found : unit) {
    const unit::Range part = found.place.within(begin, end);
    if (part.size() == 0) continue;
    const std::int64_t first = found.first + part.begin - found.place.begin;
    const std::span<float> into =
        values.subspan(static_cast<std::size_t>(part.begin - begin), static_cast<std::size_t>(part.size()));
    found.packed ? found.packed->read(first, into) : tensorfile::read_f32(found.tensor, first, into);
    found.tensor.storage->forget();
  }
}

Weights::Weights(const unit::Units& units, const std::string& folder, const std::string& otherwise, Heads heads)
    : folder_(folder), file_(tensorfile::open_state_dict(folder)) {
  std::set<std::string> taken;
  for (const auto& unit : units) {
    units_.emplace_back();
    for (const unit::Parameter& parameter : unit->parameters()) {
      const std::string name = name_in(file_, parameter);
      if (parameter.head && heads != Heads::required) {
        const Tensor* const found = file_.find(name);
        if (!found || (heads == Heads::may_differ && found->shape != parameter.shape)) {
          lacking_.push_back(parameter.name);
          taken.insert(name);
          continue;
        }
      }
      // Adapters are not part of the model's files: a checkpoint has them.
      if (parameter.added && heads != Heads::required && !file_.find(name)) continue;
      if (auto packed = Nf4Tensor::find(file_, name, parameter.shape, taken)) {
        units_.back().push_back({parameter.place(), file_.at(name), 0, std::move(packed)});
        continue;
      }
      const Placed found = placed(file_, name, parameter, otherwise);
      if (!holds_weights(found.tensor.dtype)) {
        throw Error(file_.path(), 0,
                    name + " is of " + std::string(tensorfile::name_of(found.tensor.dtype)) +
                        ": weights of f16, bf16, f32 and f64 are read");
      }
      units_.back().push_back(found);
      taken.insert(name);
    }
  }
  for (const StateDict::Entry& entry : file_.entries()) {
    if (taken.count(entry.name) == 0) check_extra(file_, entry, units, otherwise, heads);
  }
}

bool Weights::packed(std::size_t unit, const unit::Parameter& parameter, std::span<std::byte> bytes) const {
  const auto found = std::ranges::find(units_[unit], parameter.offset, [](const Placed& p) { return p.place.begin; });
  if (found == units_[unit].end() || !found->packed) return false;
  const bool nested = found->packed->form().nested;
  if (nested != (parameter.packing == unit::Parameter::Packing::nested_nf4))
    throw Error(file_.path(), 0,
                parameter.name + " has scales of " + (nested ? "8" : "32") + " bits: use --nf4 " +
                    (nested ? "double" : "single"));
  if (!bytes.empty()) found->packed->read(bytes);
  return true;
}

void Weights::check(comm::Group& group) const {
  // Tensor i is rank i's, modulo their number, and read by the rank before it too.
  const int ranks = group.size();
  const auto hash_of = [&](int rank) {
    device::Hash hash;
    std::size_t number = 0;
    for (const auto& unit : units_) {
      for (const Placed& place : unit) {
        if (place.first > 0) continue;  // of a tensor that was read with its first row
        if (static_cast<int>(number++ % static_cast<std::size_t>(ranks)) != rank) continue;
        std::vector<const Tensor*> tensors = {&place.tensor};
        if (place.packed) tensors = place.packed->tensors();
        for (const Tensor* const tensor : tensors) {
          tensor->storage->verify();
          if (ranks == 1) continue;
          tensorfile::stream(
              *tensor, [&](std::string_view bytes) { hash.add(bytes); }, path());
          tensor->storage->forget();
        }
      }
    }
    return hash.text();
  };
  std::string mine, next;
  comm::together(group, "reading of " + path(), [&] {
    mine = hash_of(group.rank());
    next = hash_of((group.rank() + 1) % ranks);
  });
  const std::vector<std::string> hashes = group.all_gather_object(mine + next, "agreement on " + folder_);
  for (int rank = 0; rank < ranks; ++rank) {
    const int neighbour = (rank + 1) % ranks;
    if (hashes[static_cast<std::size_t>(rank)].substr(mine.size()) ==
        hashes[static_cast<std::size_t>(neighbour)].substr(0, mine.size()))
      continue;
    throw comm::SharedError(folder_, 0,
                            "the ranks differ in the weights: rank " + std::to_string(rank) + " on " +
                                group.host(rank) + " has others than rank " + std::to_string(neighbour) + " on " +
                                group.host(neighbour));
  }
}

AdapterWeights::AdapterWeights(const unit::Units& units, const std::string& folder)
    : file_(tensorfile::open_state_dict(adapter_file(folder))) {
  std::set<std::string> taken;
  for (const auto& unit : units) {
    units_.emplace_back();
    for (const unit::Parameter& parameter : unit->parameters()) {
      const std::string name = kInPeft + parameter.name;
      // A parameter that is neither in the file nor trained has the model's own values.
      if (!parameter.added && !parameter.trained && !file_.find(name)) continue;
      units_.back().push_back(placed(file_, name, parameter));
      taken.insert(name);
    }
  }
  for (const auto& entry : file_.entries()) {
    if (!taken.contains(entry.name))
      throw Error(file_.path(), 0, "has " + entry.name + ", for which the model has no place: it is of another model");
  }
}

std::string AdapterWeights::hash() const { return sha256(Mapping::open(path())->bytes()); }

}  // namespace zs::checkpoint
