// SPDX-License-Identifier: Apache-2.0
#include "unit/unit.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <string_view>

#include "unit/random.hpp"

namespace zs::unit {

Range Range::within(std::int64_t from, std::int64_t to) const {
  const std::int64_t first = std::max(begin, from);
  return {first, std::max(first, std::min(end, to))};
}

std::int64_t Parameter::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::vector<std::int64_t> Parameter::shape_in_files() const {
  std::vector<std::int64_t> whole = shape;
  if (!stack.empty()) whole.insert(whole.begin(), rows);
  return whole;
}

Unit::Unit(std::string name, std::vector<Parameter> parameters, int tied_to, std::vector<Extra> extras)
    : name_(std::move(name)), parameters_(std::move(parameters)), tied_to_(tied_to), extras_(std::move(extras)) {
  const auto place = [&](bool trained, bool packed) {
    const std::int64_t begin = numel_;
    for (Parameter& parameter : parameters_) {
      if (parameter.trained != trained || (parameter.packing != Parameter::Packing::none) != packed) continue;
      parameter.offset = numel_;
      numel_ += parameter.numel();
    }
    return numel_ - begin;
  };
  trained_ = place(true, false);
  place(false, false);
  packed_ = place(false, true);
}

Batch Batch::to(const at::Device& device) const {
  const auto moved = [&](const at::Tensor& x) {
    if (device.is_cpu()) return x.to(device);
    // Out of pinned memory: else the host would wait until the GPU has done what it was given before.
    return at::empty_like(x, x.options().pinned_memory(true)).copy_(x).to(device, x.scalar_type(), true);
  };
  Batch batch = *this;
  batch.inputs = moved(inputs), batch.targets = moved(targets);
  if (lengths.defined()) batch.lengths = moved(lengths);
  if (!documents) return batch;
  batch.documents.positions = moved(documents.positions), batch.documents.sizes = moved(documents.sizes);
  return batch;
}

Batch Batch::chunk(std::int64_t number, std::int64_t chunks) const {
  const std::int64_t length = inputs.size(1) / chunks, begin = number * length;
  const auto part = [&](const at::Tensor& of_BT) { return of_BT.narrow(1, begin, length).contiguous(); };
  Batch chunk = *this;
  chunk.inputs = part(inputs), chunk.targets = part(targets), chunk.first = begin, chunk.whole = inputs.size(1);
  if (lengths.defined()) chunk.lengths = (lengths - begin).clamp(0, length);
  if (documents) chunk.documents.positions = part(documents.positions), chunk.documents.sizes = part(documents.sizes);
  if (!weight) return chunk;
  // A leaf counts as much as any other; of their means each is weighted by its share of the targets.
  const auto counted = [](const at::Tensor& x) { return static_cast<double>(x.ge(0).sum().item<std::int64_t>()); };
  const double total = counted(targets), share = total > 0 ? counted(chunk.targets) / total : 0;
  chunk.weight = static_cast<float>(static_cast<double>(*weight) * static_cast<double>(chunks) * share);
  return chunk;
}

std::vector<at::Tensor> Unit::forward_chunks(std::span<const Chunk> chunks, const Sequence&) const {
  std::vector<at::Tensor> outputs;
  for (const Chunk& chunk : chunks) outputs.push_back(forward(chunk.x, chunk.owned, chunk.borrowed, chunk.context));
  return outputs;
}

Documents documents(std::vector<std::int64_t> begins, std::int64_t samples, std::int64_t length) {
  const at::Tensor positions_BT = at::empty({samples, length}, at::TensorOptions(at::kLong)),
                   sizes_BT = at::empty_like(positions_BT);
  auto *const positions = positions_BT.data_ptr<std::int64_t>(), *const sizes = sizes_BT.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::int64_t end = i + 1 < begins.size() ? begins[i + 1] : samples * length;
    std::iota(positions + begins[i], positions + end, 0);
    std::fill(sizes + begins[i], sizes + end, end - begins[i]);
  }
  return {std::move(begins), positions_BT, sizes_BT};
}

std::int64_t numel(const Units& units) {
  std::int64_t count = 0;
  for (const auto& unit : units) count += unit->numel();
  return count;
}

std::int64_t trained(const Units& units) {
  std::int64_t count = 0;
  for (const auto& unit : units) count += unit->trained();
  return count;
}

std::int64_t idle(const Unit& unit) {
  std::int64_t count = 0;
  for (const Parameter& parameter : unit.parameters()) count += parameter.idle;
  return count;
}

std::int64_t idle(const Units& units) {
  std::int64_t count = 0;
  for (const auto& unit : units) count += idle(*unit);
  return count;
}

at::Tensor view(const Parameter& parameter, const at::Tensor& flat) {
  return flat.narrow(0, parameter.offset, parameter.numel()).view(parameter.shape);
}

std::vector<at::Tensor> views(const Unit& unit, const at::Tensor& flat) {
  std::vector<at::Tensor> tensors;
  for (const Parameter& parameter : unit.parameters()) tensors.push_back(view(parameter, flat));
  return tensors;
}

std::vector<std::vector<const Parameter*>> tensors(const Unit& unit) {
  std::vector<std::vector<const Parameter*>> stacks;
  std::map<std::string_view, std::size_t> places;
  for (const Parameter& parameter : unit.parameters()) {
    const auto [place, is_new] = places.emplace(parameter.name_in_files(), stacks.size());
    if (is_new) stacks.emplace_back();
    stacks[place->second].push_back(&parameter);
  }
  return stacks;
}

namespace {

void draw(const Parameter& parameter, std::uint64_t seed, at::Tensor values) {
  const at::NoGradGuard no_grad;  // of the thread
  switch (parameter.init) {
    case Parameter::Init::normal:
      values.normal_(parameter.mean, parameter.std, generator(mix(seed, parameter.name)));
      break;
    case Parameter::Init::uniform:
      values.uniform_(parameter.mean - parameter.std, parameter.mean + parameter.std,
                      generator(mix(seed, parameter.name)));
      break;
    case Parameter::Init::zeros:
      values.zero_();
      break;
    case Parameter::Init::ones:
      values.fill_(1);
      break;
  }
}

/// Elements [begin, begin + values.size()) of a parameter. The values of a generator depend on how many are drawn, so a
/// part is cut from the whole.
void draw(const Parameter& parameter, std::uint64_t seed, std::int64_t begin, std::span<float> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  const at::Tensor part = at::from_blob(values.data(), {size}, at::kFloat);
  if (size == parameter.numel()) return draw(parameter, seed, part);
  const at::Tensor whole = at::empty({parameter.numel()});
  draw(parameter, seed, whole);
  part.copy_(whole.narrow(0, begin, size));
}

}  // namespace

void initialise(const Unit& unit, std::uint64_t seed, std::int64_t begin, std::span<float> values) {
  constexpr std::int64_t kLarge = 1 << 20;  // below, a thread costs more than it gains
  const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
  std::vector<std::future<void>> large;
  for (const Parameter& parameter : unit.parameters()) {
    const Range part = parameter.place().within(begin, end);
    if (part.size() == 0) continue;
    // Each draws from a separate generator, so their order does not matter.
    const auto some = [=, &parameter] {
      draw(parameter, seed, part.begin - parameter.offset,
           values.subspan(static_cast<std::size_t>(part.begin - begin), static_cast<std::size_t>(part.size())));
    };
    if (parameter.numel() >= kLarge)
      large.push_back(std::async(std::launch::async, some));
    else
      some();
  }
  for (std::future<void>& one : large) one.get();
}

}  // namespace zs::unit
