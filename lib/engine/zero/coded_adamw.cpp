// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "device/coded.hpp"
#include "device/operations.hpp"
#include "device/tensor.hpp"
#include "zero/optimizer.hpp"

namespace zs::zero {
namespace {

using optimizer::Rule;

constexpr int kMoments = 2;
constexpr std::int64_t kFloat = device::size(device::Type::float32);

/// A block of which ranks have parts: where it begins in the unit, and what its scales are by this rank's part.
struct Border {
  std::int64_t begin;
  std::array<float, kMoments> scales;
};

/// How far into its tensor a segment begins.
std::int64_t offset(const Segment& s, const Layout& layout) { return layout.owned.begin + s.begin - s.tensor.begin; }

/// The places of a segment's moments in the memory of the state, in bytes.
struct SegmentPlaces {
  std::array<std::int64_t, kMoments> scales{}, numbers{};  // numbers: codes of 1 byte, or float32
  std::int64_t blocks = 0;
};

/// First all scales, then the float32 numbers, then the codes: so everything is aligned.
std::vector<SegmentPlaces> places(const Recipe& recipe, const Layout& layout, std::int64_t& bytes) {
  std::vector<SegmentPlaces> places(recipe.updates ? recipe.segments.size() : 0);
  bytes = 0;
  for (int pass = 0; pass < 3; ++pass) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Segment& s = recipe.segments[i];
      const bool coded = s.rule == Rule::adamw_8bit;
      const std::int64_t n = s.end - s.begin;
      if (coded) places[i].blocks = device::coded_blocks(offset(s, layout), n);
      for (int moment = 0; moment < kMoments; ++moment) {
        const auto m = static_cast<std::size_t>(moment);
        if (pass == 0 && coded) places[i].scales[m] = bytes, bytes += places[i].blocks * kFloat;
        if (pass == 1 && !coded) places[i].numbers[m] = bytes, bytes += n * kFloat;
        if (pass == 2 && coded) places[i].numbers[m] = bytes, bytes += n;
      }
    }
  }
  return places;
}
std::int64_t bytes_of(const Recipe& recipe, const Layout& layout) {
  std::int64_t bytes = 0;
  places(recipe, layout, bytes);
  return bytes;
}

/// Whether a border between two ranks lies within a block.
bool cuts_blocks(const Recipe& recipe, const Layout& layout, int ranks) {
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t border = comm::slice(layout.trained, rank, ranks).begin;
    for (const comm::Slice tensor : recipe.coded) {
      if (tensor.begin < border && border < tensor.end && (border - tensor.begin) % device::kCodedBlock != 0)
        return true;
    }
  }
  return false;
}

class CodedAdamW final : public Optimizer {
 public:
  explicit CodedAdamW(const OptimizerOf& unit)
      : Optimizer(unit.name, unit.parameters, Slots(unit.recipe), unit.residency, bytes_of(unit.recipe, unit.layout)),
        name_(unit.name),
        recipe_(unit.recipe),
        layout_(unit.layout),
        group_(unit.pool ? &unit.pool->group() : nullptr) {
    std::int64_t bytes = 0;
    places_ = places(recipe_, layout_, bytes);
    shares_blocks_ = layout_.divided.optimizer_state && group_ && group_->size() > 1 &&
                     cuts_blocks(recipe_, layout_, group_->size());
  }

  std::vector<at::Tensor> states() override {
    if (!restored_.empty()) return restored_;
    const ScopedLoad loaded(state());
    std::vector<at::Tensor> moments;
    for (int moment = 0; moment < kMoments; ++moment) {
      moments.push_back(at::empty({slots().count(moment)}));
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const Segment& s = recipe_.segments[i];
        const at::Tensor to = moments.back().narrow(0, slots().place(moment, s.begin), s.end - s.begin);
        if (s.rule == Rule::adamw_8bit)
          decode(i, moment, to);
        else
          to.copy_(device::tensor(numbers(i, moment)));
      }
    }
    return moments;
  }

  /// They are coded by the next update, when ranks exchange what they know of shared blocks.
  void restore(const std::vector<at::Tensor>& states, std::int64_t) override {
    for (const at::Tensor& state : states) restored_.push_back(state.to(at::kCPU, at::kFloat, false, /*copy=*/true));
  }

 private:
  std::string name_;
  Recipe recipe_;
  Layout layout_;
  comm::Group* group_;
  std::vector<SegmentPlaces> places_;  // by segment
  bool shares_blocks_ = false;
  std::vector<at::Tensor> restored_;  // by slot, until the next update

  device::View at(std::int64_t place, std::int64_t count, device::Type type) const {
    return {own().data + place, count, type, own().device};
  }
  device::View numbers(std::size_t i, int moment) const {
    const Segment& s = recipe_.segments[i];
    return at(places_[i].numbers[static_cast<std::size_t>(moment)], s.end - s.begin,
              s.rule == Rule::adamw_8bit ? device::Type::byte : device::Type::float32);
  }
  device::View scales(std::size_t i, int moment) const {
    return at(places_[i].scales[static_cast<std::size_t>(moment)], places_[i].blocks, device::Type::float32);
  }

  void decode(std::size_t i, int moment, const at::Tensor& to) const {
    const at::Tensor codes = device::tensor(numbers(i, moment)).to(at::kCPU),
                     factors = device::tensor(scales(i, moment)).to(at::kCPU);
    const device::CodeTable& table = moment == 0 ? device::kSignedCodes : device::kUnsignedCodes;
    const auto* const code = static_cast<const std::uint8_t*>(codes.data_ptr());
    const auto* const scale = factors.data_ptr<float>();
    auto* const values = to.data_ptr<float>();
    const std::int64_t begin = offset(recipe_.segments[i], layout_);
    for (std::int64_t k = 0; k < to.numel(); ++k) values[k] = table[code[k]] * scale[device::coded_block(begin, k)];
  }

  /// The inputs and outputs of a segment's update.
  device::CodedViews views(std::size_t i, const at::Tensor& next, const std::vector<at::Tensor>& restored,
                           const Update& update, const device::View& gradient_sum, const device::View& master,
                           const device::View& rounded) const {
    const Segment& s = recipe_.segments[i];
    device::CodedViews views{part(master, s),    part(gradient_sum, s), part(rounded, s), {},
                             offset(s, layout_), update.scale,          update.clip};
    for (int moment = 0; moment < kMoments; ++moment) {
      device::CodedMoment& view = views.moments[static_cast<std::size_t>(moment)];
      view = {numbers(i, moment), scales(i, moment), {}, {}};
      if (next.defined()) view.next = device::view(next.select(0, moment));
      if (restored.empty()) continue;
      const std::int64_t place = slots().place(moment, s.begin);
      view.values = device::view(restored[static_cast<std::size_t>(moment)]).part(place, place + s.end - s.begin);
    }
    return views;
  }

  bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                     const device::View& rounded) override {
    const device::Operations& operations = device::operations(master.device);
    const std::vector<at::Tensor> restored = take_restored(master.device);
    std::vector<at::Tensor> next(places_.size());  // scales, by moment and block, where ranks share blocks
    for (const bool writes : {false, true}) {
      if (!writes && !shares_blocks_) continue;
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const Segment& s = recipe_.segments[i];
        if (s.rule != Rule::adamw_8bit) continue;
        if (!writes) next[i] = at::empty({kMoments, places_[i].blocks}, device::options(master.device));
        const device::Rule numbers_of_step =
            factors(recipe_.settings, s.rule, update.learning_rate, update.number, s.decay);
        const device::CodedViews operands = views(i, next[i], restored, update, gradient_sum, master, rounded);
        (writes ? operations.coded_update : operations.coded_scales)(std::get<device::AdamWFactors>(numbers_of_step),
                                                                     operands);
      }
      if (!writes) exchange(next);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Segment& s = recipe_.segments[i];
      if (s.rule == Rule::adamw_8bit) continue;
      operations.update(factors(recipe_.settings, s.rule, update.learning_rate, update.number, s.decay),
                        {part(master, s), numbers(i, 0), numbers(i, 1), part(gradient_sum, s), part(rounded, s)},
                        update.scale, update.clip);
    }
    return rounded.count > 0;
  }

  /// The restored moments, on the device; those in float32 go to their place.
  std::vector<at::Tensor> take_restored(const device::Device& device) {
    std::vector<at::Tensor> moments;
    for (const at::Tensor& state : restored_) moments.push_back(state.to(device::torch_device(device)));
    restored_.clear();
    for (std::size_t i = 0; !moments.empty() && i < places_.size(); ++i) {
      const Segment& s = recipe_.segments[i];
      if (s.rule == Rule::adamw_8bit) continue;
      for (int moment = 0; moment < kMoments; ++moment) {
        const at::Tensor& values = moments[static_cast<std::size_t>(moment)];
        device::tensor(numbers(i, moment)).copy_(values.narrow(0, slots().place(moment, s.begin), s.end - s.begin));
      }
    }
    return moments;
  }

  /// The blocks of a segment that continue on other ranks: the first, the last, both or none.
  std::vector<std::int64_t> shared(std::size_t i) const {
    const Segment& s = recipe_.segments[i];
    const std::int64_t begin = offset(s, layout_), end = begin + s.end - s.begin;
    std::vector<std::int64_t> blocks;
    if (begin % device::kCodedBlock != 0) blocks.push_back(0);
    const bool goes_on = end % device::kCodedBlock != 0 && end < s.tensor.end - s.tensor.begin;
    if (goes_on && (blocks.empty() || places_[i].blocks > 1)) blocks.push_back(places_[i].blocks - 1);
    return blocks;
  }

  /// The scales of shared blocks become the largest that any rank has. COLLECTIVE.
  void exchange(const std::vector<at::Tensor>& next) {
    std::vector<Border> mine;
    std::vector<at::Tensor> places;  // of the scales, by border
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (!next[i].defined()) continue;
      const Segment& s = recipe_.segments[i];
      for (const std::int64_t block : shared(i)) {
        places.push_back(next[i].select(1, block));
        const at::Tensor here = places.back().to(at::kCPU).contiguous();
        const std::int64_t in_tensor = (offset(s, layout_) / device::kCodedBlock + block) * device::kCodedBlock;
        mine.push_back({s.tensor.begin + in_tensor, {here.data_ptr<float>()[0], here.data_ptr<float>()[1]}});
      }
    }
    const auto borders = group_->all_gather(std::span<const Border>(mine), "exchange of the 8-bit scales of " + name_);
    for (std::size_t k = 0; k < mine.size(); ++k) {
      at::Tensor largest = at::empty({kMoments});
      for (int moment = 0; moment < kMoments; ++moment) {
        const auto m = static_cast<std::size_t>(moment);
        float most = mine[k].scales[m];
        for (const std::vector<Border>& theirs : borders) {
          for (const Border& border : theirs) {
            if (border.begin == mine[k].begin && device::magnitude(border.scales[m]) > device::magnitude(most))
              most = border.scales[m];
          }
        }
        largest.data_ptr<float>()[moment] = most;
      }
      places[k].copy_(largest);
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> coded_adamw(const OptimizerOf& unit) { return std::make_unique<CodedAdamW>(unit); }

}  // namespace zs::zero
