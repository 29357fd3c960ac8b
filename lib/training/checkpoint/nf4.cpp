// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/nf4.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::checkpoint {
namespace {

using device::Nf4;
using tensorfile::Dtype;
using tensorfile::Tensor;

constexpr const char *kQuantState = ".quant_state.bitsandbytes__nf4",
                     *kQuantStateFp4 = ".quant_state.bitsandbytes__fp4";

std::string text_of(const Tensor& tensor) {
  std::string text(tensor.byte_count(), '\0');
  tensorfile::read_raw(tensor, text);
  return text;
}

void read_part(const Tensor& tensor, std::span<std::byte> bytes, std::int64_t begin) {
  tensorfile::read_raw(tensor, {reinterpret_cast<char*>(bytes.data()) + begin, tensor.byte_count()});
}

}  // namespace

std::optional<Nf4Tensor> Nf4Tensor::find(const tensorfile::StateDict& file, const std::string& name,
                                         const tensorfile::Shape& shape, std::set<std::string>& taken) {
  const auto refuse = [&](const std::string& what) { throw Error(file.path(), 0, name + " " + what); };
  if (file.find(name + kQuantStateFp4)) refuse("is of FP4: NF4 is read");
  const Tensor* const said = file.find(name + kQuantState);
  if (!said) return {};
  taken.insert(name + kQuantState);
  const auto part = [&](const std::string& end, Dtype dtype, std::int64_t count) {
    const Tensor& tensor = file.at(name + end);
    taken.insert(name + end);
    if (tensor.dtype != dtype || tensor.count() != count)
      refuse(end + " has " + to_text(tensor.count()) + " numbers of " + std::string(tensorfile::name_of(tensor.dtype)) +
             ", expected " + to_text(count) + " of " + std::string(tensorfile::name_of(dtype)));
    return tensor;
  };
  Nf4Tensor found;
  try {
    const auto state = nlohmann::json::parse(text_of(*said));
    const auto block = state.at("blocksize").get<std::int64_t>();
    if (state.at("quant_type") != "nf4" || block != device::kNf4Block)
      refuse("has blocks of " + to_text(block) + ", expected NF4 in blocks of " + to_text(device::kNf4Block));
    if (state.at("shape").get<tensorfile::Shape>() != shape)
      refuse("has the shape " + state.at("shape").dump() + ", the model " + tensorfile::to_text(shape));
    found.form_.nested = state.contains("nested_offset");
    if (found.form_.nested) {
      if (state.at("nested_blocksize") != device::kCodedBlock) refuse("has other groups of scales than of 256");
      found.mean_ = static_cast<float>(state.at("nested_offset").get<double>());
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(std::string("has a damaged state: ") + error.what());
  }
  Nf4& form = found.form_;
  form.numel = 1;
  for (const std::int64_t extent : shape) form.numel *= extent;
  found.codes_ = part("", Dtype::u8, form.codes_bytes());
  found.scales_ = part(".absmax", form.nested ? Dtype::u8 : Dtype::f32, form.blocks());
  const std::string map = text_of(part(".quant_map", Dtype::f32, std::ssize(device::kNf4)));
  if (std::memcmp(map.data(), device::kNf4.data(), map.size()) != 0) refuse("has other values than NF4's");
  if (!form.nested) return found;
  found.groups_ = part(".nested_absmax", Dtype::f32, form.groups());
  found.table_ = part(".nested_quant_map", Dtype::f32, device::kCodedBlock);
  return found;
}

std::vector<const Tensor*> Nf4Tensor::tensors() const {
  std::vector<const Tensor*> tensors = {&codes_, &scales_};
  if (form_.nested) tensors.insert(tensors.end(), {&*table_, &*groups_});
  return tensors;
}

void Nf4Tensor::read(std::span<std::byte> bytes) const {
  std::ranges::fill(bytes, std::byte{0});  // between parts
  read_part(codes_, bytes, 0);
  read_part(scales_, bytes, form_.scales_at());
  if (!form_.nested) return;
  read_part(*table_, bytes, form_.table_at());
  read_part(*groups_, bytes, form_.groups_at());
  std::memcpy(bytes.data() + form_.mean_at(), &mean_, sizeof mean_);
}

void Nf4Tensor::read(std::int64_t first, std::span<float> values) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(form_.bytes()));
  read(bytes);
  std::vector<float> whole(static_cast<std::size_t>(form_.numel));
  device::from_nf4(device::view(bytes.data(), std::ssize(bytes)), form_, device::view(whole.data(), form_.numel));
  std::copy_n(whole.begin() + first, values.size(), values.begin());
}

}  // namespace zs::checkpoint
