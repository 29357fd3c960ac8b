// SPDX-License-Identifier: Apache-2.0
#include "verify/reference.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <iterator>

#include "unit/arithmetic.hpp"
#include "unit/autocast.hpp"
#include "unit/random.hpp"
#include "verify/arithmetic.hpp"
#include "verify/plain_optimizer.hpp"

namespace zs::verify {
namespace {

std::vector<at::Tensor> widened(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> wide;
  for (const at::Tensor& tensor : tensors) wide.push_back(tensor.to(at::kFloat));
  return wide;
}

/// One document, and its share of the micro-batch's targets.
struct Document {
  unit::Batch batch;
  double share;
};

std::vector<Document> documents(const unit::Batch& batch) {
  const std::int64_t T = batch.inputs.size(1), N = batch.inputs.numel();
  const auto counted = [](const at::Tensor& targets) { return targets.ge(0).sum().item<std::int64_t>(); };
  std::vector<std::int64_t> begins;
  if (batch.documents) begins = batch.documents.begins;
  for (std::int64_t sample = 0; !batch.documents && sample < N; sample += T) begins.push_back(sample);
  std::vector<Document> documents;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    std::int64_t count = (i + 1 < begins.size() ? begins[i + 1] : N) - begins[i];
    // Among documents, padding is one without a target.
    if (!batch.documents && batch.lengths.defined()) count = batch.lengths[begins[i] / T].item<std::int64_t>();
    const auto part = [&](const at::Tensor& x) { return x.reshape({1, -1}).narrow(1, begins[i], count).contiguous(); };
    const std::int64_t targets = counted(part(batch.targets));
    if (targets == 0) continue;
    unit::Batch alone{part(batch.inputs), part(batch.targets), 1.0F};
    if (!batch.documents) alone.whole = T;  // positions are those of a sample with its padding
    documents.push_back({alone, static_cast<double>(targets) / static_cast<double>(counted(batch.targets))});
  }
  return documents;
}

/// The tensors of a unit with each adapter merged into its weight; the adapter's own tensors then have no effect.
std::vector<at::Tensor> merged(const unit::Unit& unit, std::vector<at::Tensor> tensors, double scale) {
  const std::vector<unit::Parameter>& parameters = unit.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].adapter < 0) continue;
    const auto a = static_cast<std::size_t>(parameters[i].adapter), b = a + 1;
    const at::Tensor product = at::matmul(tensors[b].to(at::kFloat), tensors[a].to(at::kFloat)) * scale;
    const bool out_in = parameters[i].product == unit::Parameter::Product::out_in;
    tensors[i] = (tensors[i].to(at::kFloat) + (out_in ? product : product.t())).to(tensors[i].scalar_type());
    tensors[b] = at::zeros_like(tensors[b]);
  }
  return tensors;
}

/// One chunk of the samples of a micro-batch.
unit::Batch cut(const unit::Batch& batch, std::int64_t chunk, std::int64_t chunks) {
  const std::int64_t T = batch.inputs.size(1), begin = chunk * (T / chunks), end = begin + T / chunks;
  const auto tokens = [&](const at::Tensor& x) { return x.slice(1, begin, end).clone(); };
  unit::Batch piece = batch;
  piece.inputs = tokens(batch.inputs), piece.targets = tokens(batch.targets), piece.first = begin, piece.whole = T;
  if (batch.documents) {
    piece.documents.positions = tokens(batch.documents.positions);
    piece.documents.sizes = tokens(batch.documents.sizes);
  }
  if (batch.lengths.defined()) piece.lengths = batch.lengths.clamp(begin, end) - begin;
  if (!batch.weight) return piece;
  const auto counted = [](const at::Tensor& targets) {
    return static_cast<double>((targets >= 0).sum().item<std::int64_t>());
  };
  const double total = counted(batch.targets), here = counted(piece.targets);
  const double share = total == 0 ? 0 : here / total;
  piece.weight = static_cast<float>(static_cast<double>(*batch.weight) * static_cast<double>(chunks) * share);
  return piece;
}

/// Attention with all chunks and heads at hand: chunks are put together, heads taken out, and back.
class Whole final : public unit::Sequence {
 public:
  explicit Whole(std::int64_t chunks) : chunks_(chunks) {}
  std::int64_t chunks() const override { return chunks_; }
  std::vector<at::Tensor> attend(const std::vector<std::vector<at::Tensor>>& parts, std::span<const std::int64_t> heads,
                                 const Attend& attend) const override {
    std::vector<at::Tensor> whole;
    for (std::size_t part = 0; part < heads.size(); ++part) {
      std::vector<at::Tensor> pieces;
      for (const auto& chunk : parts) pieces.push_back(chunk[part]);
      whole.push_back(at::cat(pieces, 1));
    }
    std::vector<at::Tensor> attended;
    for (std::int64_t block = 0; block < chunks_; ++block) {
      std::vector<at::Tensor> pieces;
      for (std::size_t part = 0; part < heads.size(); ++part) {
        const std::int64_t H = heads[part], D = whole[part].size(2) / H, count = std::max<std::int64_t>(1, H / chunks_);
        pieces.push_back(whole[part].narrow(2, block * H / chunks_ * D, count * D).contiguous());
      }
      attended.push_back(attend(static_cast<std::size_t>(block), pieces));
      // As it would come from elsewhere.
      if (attended.back().requires_grad())
        attended.back().register_hook([](const at::Tensor& gradient) { return gradient.contiguous(); });
    }
    std::vector<at::Tensor> chunks = at::cat(attended, 2).chunk(chunks_, 1);
    for (at::Tensor& chunk : chunks) chunk = chunk.contiguous();
    return chunks;
  }
  std::vector<at::Tensor> of_all(const std::vector<at::Tensor>& local) const override { return local; }

 private:
  std::int64_t chunks_;
};

}  // namespace

Reference::Reference(const unit::Units& units, const ReferenceSettings& settings, std::int64_t leaves)
    : units_(units), settings_(settings), leaves_(leaves), scale_(settings.loss_scaling, settings.scales()) {
  for (const auto& unit : units) {
    const at::Tensor flat = at::empty({unit->numel()});
    const std::span<float> values(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel()));
    if (settings.begin)
      settings.begin(masters_.size(), 0, values);
    else
      unit::initialise(*unit, settings.seed, 0, values);
    masters_.emplace_back();
    for (std::size_t i = 0; i < unit->parameters().size(); ++i) {
      const unit::Parameter& parameter = unit->parameters()[i];
      at::Tensor value = unit::view(parameter, flat).clone();
      const auto is_stored = [&] { return settings.packed && settings.packed(masters_.size() - 1, i, {}); };
      if (parameter.packing != unit::Parameter::Packing::none && !is_stored())
        value = as_nf4(value, parameter.packing == unit::Parameter::Packing::nested_nf4);
      if (parameter.trained)
        masters_.back().push_back(
            value.to(settings.torch_adamw ? settings.device : at::Device(at::kCPU)).requires_grad_(true));
      else  // a frozen parameter has only the value that is computed with
        masters_.back().push_back(value.to(settings.dtype).to(at::kFloat));
    }
  }
  optimizer_ = std::make_shared<PlainOptimizer>(units, masters_, settings);
}

Tensors Reference::rounded() const {
  const at::NoGradGuard no_grad;
  Tensors tensors;
  for (const auto& unit : masters_) {
    tensors.emplace_back();
    for (const at::Tensor& master : unit) tensors.back().push_back(master.to(at::kCPU).to(settings_.dtype));
    if (settings_.weight_bits > 0) tensors.back() = as_integers(tensors.back(), settings_.weight_bits);
    if (settings_.float8_gathers) as_float8(units_[tensors.size() - 1]->parameters(), tensors.back());
    for (at::Tensor& tensor : tensors.back()) tensor = tensor.to(at::kFloat);
  }
  return tensors;
}

Tensors Reference::parameters() const {
  const at::NoGradGuard no_grad;
  Tensors tensors;
  for (const auto& unit : masters_) {
    tensors.emplace_back();
    for (const at::Tensor& master : unit) tensors.back().push_back(master.to(at::kCPU));
  }
  return tensors;
}

/// The tensors that forward uses and that get gradients. Parameters of 16 bits are separate leaves: each use gives a
/// gradient in 16 bits, as in a model of that type. The contract puts the tensors of a unit into one buffer, because a
/// GPU's kernels are chosen by the addresses of matrices.
Tensors Reference::leaves() const {
  if (settings_.dtype == at::kFloat && settings_.device == at::kCPU && settings_.weight_bits == 0) return masters_;
  const at::NoGradGuard no_grad;
  Tensors tensors;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const at::Tensor flat =
        at::empty({units_[unit]->numel()}, at::TensorOptions(settings_.dtype).device(settings_.device));
    tensors.push_back(unit::views(*units_[unit], flat));
    for (std::size_t i = 0; i < tensors.back().size(); ++i) {
      tensors.back()[i] = tensors.back()[i].detach();
      tensors.back()[i].copy_(masters_[unit][i]);
    }
    if (settings_.weight_bits > 0) {
      const auto rounded = as_integers(tensors.back(), settings_.weight_bits);
      for (std::size_t i = 0; i < rounded.size(); ++i) tensors.back()[i].copy_(rounded[i]);
    }
    for (std::size_t i = 0; i < tensors.back().size(); ++i)
      tensors.back()[i].requires_grad_(units_[unit]->parameters()[i].trained);
  }
  return tensors;
}

Tensors Reference::added(const Tensors& leaf) const {
  if (settings_.gradient_bits == 0) return leaf;
  Tensors rounded;
  for (const auto& unit : leaf) rounded.push_back(as_integers(unit, settings_.gradient_bits));
  return rounded;
}

std::vector<at::Tensor> Reference::used(const Tensors& leaves, std::size_t unit) const {
  const bool widens = unit::computed_in(settings_.dtype, settings_.device.type()) != settings_.dtype;
  const std::vector<at::Tensor> tensors = widens ? widened(leaves[unit]) : leaves[unit];
  return settings_.merged != 0 ? merged(*units_[unit], tensors, settings_.merged) : tensors;
}

at::Tensor Reference::loss(const Tensors& leaves, const unit::Batch& batch, std::uint64_t stream) const {
  const unit::Batch here = batch.to(settings_.device);
  at::Tensor x, beside;
  const unit::ForwardContext context{.batch = here, .stream = stream, .beside = &beside};
  const unit::Autocast autocast(settings_.device.type(), settings_.autocast);  // backward is outside of it
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const int tied_to = units_[unit]->tied_to();
    std::vector<at::Tensor> borrowed;
    if (tied_to >= 0) borrowed = used(leaves, static_cast<std::size_t>(tied_to));
    x = units_[unit]->forward(x, used(leaves, unit), borrowed, context);
  }
  return x;
}

std::vector<at::Tensor> Reference::losses(const std::vector<Tensors>& leaves, const unit::Batch& batch,
                                          const std::vector<std::uint64_t>& streams) const {
  const Whole sequence(settings_.chunks);
  std::vector<unit::Batch> batches;
  for (std::int64_t chunk = 0; chunk < settings_.chunks; ++chunk)
    batches.push_back(cut(batch, chunk, settings_.chunks).to(settings_.device));
  std::vector<at::Tensor> x(batches.size()), beside(batches.size());
  const unit::Autocast autocast(settings_.device.type(), settings_.autocast);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const int tied_to = units_[unit]->tied_to();
    std::vector<std::vector<at::Tensor>> owned, borrowed;
    std::vector<unit::Chunk> chunks;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      owned.push_back(used(leaves[i], unit));
      borrowed.push_back(tied_to < 0 ? std::vector<at::Tensor>() : used(leaves[i], static_cast<std::size_t>(tied_to)));
      chunks.push_back({x[i], owned.back(), borrowed.back(), {batches[i], streams[i], true, nullptr, &beside[i]}});
    }
    x = units_[unit]->forward_chunks(chunks, sequence);
  }
  return x;
}

std::vector<Tensors> Reference::gradients(std::int64_t step, std::int64_t first, const unit::Batch& batch,
                                          ReferenceStep& result) {
  const bool divided = settings_.chunks > 1 && !settings_.undivided;
  std::vector<Tensors> leaves;  // of each chunk
  std::vector<std::uint64_t> streams;
  for (std::int64_t chunk = 0; chunk < (divided ? settings_.chunks : 1); ++chunk) {
    leaves.push_back(this->leaves());
    streams.push_back(unit::leaf_key(settings_.seed, step, first + chunk));
    for (auto& unit : leaves.back()) {
      for (at::Tensor& tensor : unit) {
        if (divided) tensor = tensor.detach().requires_grad_(tensor.requires_grad());
      }
    }
  }
  std::vector<at::Tensor> wanted;
  for (const Tensors& chunk : leaves) {
    for (const auto& unit : chunk) {
      for (const at::Tensor& tensor : unit) {
        if (tensor.requires_grad()) wanted.push_back(tensor);
      }
    }
  }
  std::vector<at::Tensor> x, scales;
  if (divided) {
    x = losses(leaves, batch, streams);
  } else if (settings_.apart) {
    for (const Document& document : documents(batch)) {
      const at::Tensor part = loss(leaves[0], document.batch, streams[0]) * (document.share * batch.weight.value_or(1));
      x = {x.empty() ? part : x[0] + part};
    }
  } else {
    x = {loss(leaves[0], batch, streams[0])};
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(settings_.chunks); ++i)
    result.leaf_losses[static_cast<std::size_t>(first) + i] = x[divided ? i : 0].item<float>();
  // A gradient that counts for several leaves counts once for each of them.
  const double leaves_of_one = divided ? 1 : static_cast<double>(settings_.chunks);
  for (const at::Tensor& loss : x) scales.push_back(at::full_like(loss, scale_.value() * leaves_of_one));
  const auto computed = torch::autograd::grad(x, wanted, scales);
  std::vector<Tensors> gradients;
  std::size_t next = 0;
  for (const Tensors& chunk : leaves) {
    gradients.emplace_back();
    for (const auto& unit : chunk) {
      gradients.back().emplace_back();
      for (const at::Tensor& tensor : unit)
        // Autograd adds to gradients that begin at 0, as after zero_grad(set_to_none=False): a -0 (in float16 what is
        // too small) becomes +0.
        gradients.back().back().push_back(
            tensor.requires_grad() ? computed[next++].to(at::kCPU).to(at::kFloat).add(0).contiguous() : at::Tensor());
    }
  }
  return gradients;
}

ReferenceStep Reference::compute(std::int64_t step, const BatchOf& batch, const LeafSeen& seen) {
  ReferenceStep result;
  result.leaf_losses.resize(static_cast<std::size_t>(leaves_));
  const std::int64_t chunks = settings_.chunks;
  std::vector<Tensors> newest;  // of a micro-batch, or of its chunks
  const auto leaf = [&](std::int64_t number) {
    const auto chunk = static_cast<std::size_t>(number % chunks);
    if (chunk == 0) newest = gradients(step, number, batch(number / chunks), result);
    const Tensors gradients = std::exchange(newest[chunk], {});
    if (seen && !settings_.undivided) seen(number, gradients);
    return added(gradients);
  };
  const std::int64_t each = settings_.undivided ? chunks : 1;
  // The tree over leaves, or whole micro-batches, [begin, begin + count).
  const std::function<Tensors(std::int64_t, std::int64_t)> tree = [&](std::int64_t begin, std::int64_t count) {
    if (count == 1) return leaf(begin * each);
    const std::int64_t half = left_half(count);
    const Tensors left = tree(begin, half);
    return sum(left, tree(begin + half, count - half));
  };
  result.sums = tree(0, leaves_ / each);
  const std::function<float(std::int64_t, std::int64_t)> loss = [&](std::int64_t begin, std::int64_t count) {
    if (count == 1) return result.leaf_losses[static_cast<std::size_t>(begin)];
    const std::int64_t half = left_half(count);
    return loss(begin, half) + loss(begin + half, count - half);
  };
  result.loss = loss(0, leaves_) / static_cast<float>(leaves_);

  result.loss_scale = scale_.value();
  result.scale = 1 / (static_cast<double>(leaves_) * scale_.value());
  result.grad_norm = std::sqrt(sum_of_squares(result.sums, units_)) * result.scale;
  // torch.nn.utils.clip_grad_norm_: times max_norm / (norm + 1e-6) where that is less than 1, or NaN.
  const double factor = settings_.max_grad_norm / (result.grad_norm + 1e-6);
  if (settings_.max_grad_norm > 0 && !(factor >= 1)) result.clip = static_cast<float>(factor);
  result.clipped_norm = result.grad_norm * result.clip;
  result.skipped = settings_.scales() && !std::isfinite(result.grad_norm);
  return result;
}

void Reference::update(const ReferenceStep& step, double learning_rate) {
  if (settings_.scales()) scale_.next(!step.skipped);
  if (step.skipped) return;
  for (std::size_t unit = 0; unit < masters_.size(); ++unit) {
    for (std::size_t i = 0; i < masters_[unit].size(); ++i) {
      if (!masters_[unit][i].requires_grad()) continue;
      masters_[unit][i].mutable_grad() =
          step.sums[unit][i].mul(static_cast<float>(step.scale)).mul(step.clip).to(masters_[unit][i].device());
    }
  }
  optimizer_->step(learning_rate);
  for (const auto& unit : masters_) {
    for (const at::Tensor& master : unit) master.mutable_grad() = at::Tensor();
  }
}

}  // namespace zs::verify
