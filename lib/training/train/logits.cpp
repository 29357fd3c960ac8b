// SPDX-License-Identifier: Apache-2.0
#include "train/logits.hpp"

#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "comm/agree.hpp"
#include "h5/image.hpp"

namespace zs::train {
namespace {

struct Header {
  std::int64_t leaf, logits, targets, inputs;  // elements
};

/// Values of a tensor at the end of `to`.
template <typename T>
void append(std::vector<T>& to, const char* from, std::int64_t count) {
  const std::size_t before = to.size();
  to.resize(before + static_cast<std::size_t>(count));
  std::memcpy(to.data() + before, from, static_cast<std::size_t>(count) * sizeof(T));
}

}  // namespace

void Logits::add(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits) {
  Leaf& its = leaves_[leaf];
  const bool texts = batch.inputs.scalar_type() == at::kLong;
  its = {logits.to(at::kCPU, at::kFloat).contiguous(), batch.targets.to(at::kCPU).contiguous(),
         texts ? batch.inputs.to(at::kCPU).contiguous() : at::empty({0}, at::kLong)};
  bytes_ += its.logits.nbytes() * static_cast<std::size_t>(group_.size());
  if (bytes_ > most_in_memory())
    throw Error(
        path_, 0,
        "the logits are more than " + to_bytes_text(static_cast<double>(most_in_memory())) +
            ", a quarter of this machine's memory: evaluate less (--validation_fraction, --dataset_percentage)");
}

void Logits::commit(std::int64_t first) {
  std::string mine;
  std::vector<std::int64_t> shape, target_shape, input_shape;
  for (const auto& [leaf, its] : leaves_) {
    shape = its.logits.sizes().vec();
    target_shape = its.targets.sizes().vec(), input_shape = its.inputs.sizes().vec();
    const Header header{leaf, its.logits.numel(), its.targets.numel(), its.inputs.numel()};
    mine.append(reinterpret_cast<const char*>(&header), sizeof header);
    mine.append(static_cast<const char*>(its.logits.data_ptr()), its.logits.nbytes());
    mine.append(static_cast<const char*>(its.targets.data_ptr()), its.targets.nbytes());
    mine.append(static_cast<const char*>(its.inputs.data_ptr()), its.inputs.nbytes());
  }
  const std::vector<std::string> all = group_.all_gather_object(mine, "all-gather of the logits");
  comm::together(group_, "writing of " + path_, [&] {
    if (group_.rank() != 0) return;
    struct Place {
      const char* at;
      Header header;
    };
    std::map<std::int64_t, Place> places;
    for (const std::string& its : all) {
      for (std::size_t at = 0; at < its.size();) {
        Header header{};
        std::memcpy(&header, its.data() + at, sizeof header);
        at += sizeof header;
        places[header.leaf] = {its.data() + at, header};
        at += static_cast<std::size_t>(header.logits) * sizeof(float) +
              static_cast<std::size_t>(header.targets + header.inputs) * sizeof(std::int64_t);
      }
    }
    std::vector<float> logits;
    std::vector<std::int64_t> targets, inputs;
    for (const auto& [leaf, place] : places) {
      append(logits, place.at, place.header.logits);
      const char* const behind = place.at + place.header.logits * static_cast<std::int64_t>(sizeof(float));
      append(targets, behind, place.header.targets);
      append(inputs, behind + place.header.targets * static_cast<std::int64_t>(sizeof(std::int64_t)),
             place.header.inputs);
    }
    // The last leaf may have fewer samples: only the first extent differs. Rank 0 has leaf 0.
    const auto with_all = [](std::vector<std::int64_t> extents, std::size_t count) {
      std::int64_t of_sample = 1;
      for (std::size_t i = 1; i < extents.size(); ++i) of_sample *= extents[i];
      extents.at(0) = static_cast<std::int64_t>(count) / of_sample;
      return std::vector<std::uint64_t>(extents.begin(), extents.end());
    };
    h5::Image image = h5::Image::create();
    const std::vector<std::uint64_t> shape_of_targets = with_all(target_shape, targets.size());
    std::vector<std::int64_t> numbers(shape_of_targets.at(0));
    std::iota(numbers.begin(), numbers.end(), first);
    image.root().write_array("logits", logits, with_all(shape, logits.size()));
    image.root().write_array("targets", targets, shape_of_targets);
    if (!inputs.empty()) image.root().write_array("input_ids", inputs, with_all(input_shape, inputs.size()));
    image.root().write_array("sample", numbers, {numbers.size()});
    write_file(path_, image.finish());
  });
}

}  // namespace zs::train
