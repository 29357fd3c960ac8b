// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T tokens, C chunks and blocks, D numbers of a head.
#include "zero/sequence.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "device/tensor.hpp"

namespace zs::zero {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using Variables = torch::autograd::variable_list;

/// The columns of a part that are a block's.
struct Columns {
  std::int64_t begin, width;
};
Columns columns(std::int64_t block, std::int64_t heads, std::int64_t chunks, std::int64_t D) {
  return {unit::first_head(block, heads, chunks) * D, unit::heads_of_block(heads, chunks) * D};
}

/// Both directions as nodes of autograd, which sees tensors in a TensorList and in no vector: the gradient of one is
/// the other.
struct Moves {
  const SharedSequence* sequence;
  std::vector<std::int64_t> heads;
  void keep(AutogradContext& in) const {
    in.saved_data["sequence"] = reinterpret_cast<std::int64_t>(sequence);
    in.saved_data["heads"] = heads;
  }
  static Moves kept(AutogradContext& in) {
    return {reinterpret_cast<const SharedSequence*>(in.saved_data["sequence"].toInt()),
            in.saved_data["heads"].toIntVector()};
  }
};

template <auto kForward, auto kBackward>
struct Node : torch::autograd::Function<Node<kForward, kBackward>> {
  static Variables forward(AutogradContext* ctx, const at::TensorList& tensors, const Moves& moves) {
    moves.keep(*ctx);
    return (moves.sequence->*kForward)(tensors.vec(), moves.heads);
  }
  static Variables backward(AutogradContext* ctx, const Variables& gradients) {
    const Moves moves = Moves::kept(*ctx);
    Variables results = (moves.sequence->*kBackward)(gradients, moves.heads);
    results.emplace_back();  // of the moves
    return results;
  }
};
using ToBlocks = Node<&SharedSequence::to_blocks, &SharedSequence::to_chunks>;
using ToChunks = Node<&SharedSequence::to_chunks, &SharedSequence::to_blocks>;

/// Visits the regions that go to a rank, or come from it, one after another.
class Regions {
 public:
  explicit Regions(Tensor buffer) : all_(std::move(buffer)) {}
  Tensor next(std::int64_t B, std::int64_t T, std::int64_t width) {
    const std::int64_t begin = std::exchange(at_, at_ + B * T * width);
    return all_.narrow(0, begin, at_ - begin).view({B, T, width});
  }

 private:
  Tensor all_;
  std::int64_t at_ = 0;
};

}  // namespace

std::vector<device::View> SharedSequence::regions(device::Buffer& buffer, std::int64_t count, device::Type type) const {
  const std::int64_t others = group_->size() - 1, bytes = others * count * device::size(type);
  if (buffer.bytes() < bytes) {
    buffer.reset();
    buffer = group_->allocate(bytes);
  }
  std::vector<device::View> views;
  const device::View whole = buffer.view(type, others * count);
  for (std::int64_t rank = 0, at = 0; rank < group_->size(); ++rank) {
    const std::int64_t size = rank == group_->rank() ? 0 : count;
    views.push_back(whole.part(at, at + size));
    at += size;
  }
  return views;
}

std::vector<Tensor> SharedSequence::to_blocks(const std::vector<Tensor>& chunks,
                                              std::span<const std::int64_t> heads) const {
  const at::NoGradGuard no_grad;
  const std::size_t parts = heads.size();
  const std::int64_t C = this->chunks(), B = chunks[0].size(0), T = chunks[0].size(1);
  std::vector<Tensor> blocks;
  std::int64_t count = 0;  // numbers that two ranks bring each other
  for (std::size_t i = 0; i < own() * parts; ++i) {
    const std::int64_t H = heads[i % parts], width = columns(0, H, C, chunks[i % parts].size(2) / H).width;
    blocks.push_back(at::empty({B, C * T, width}, chunks[0].options()));
    count += own_ * B * T * width;
  }
  // Every region that `owner` has of the blocks and `holder` of the chunks.
  const auto each = [&](int owner, int holder, const auto& visit) {
    for (std::size_t block = 0; block < own(); ++block) {
      for (std::size_t part = 0; part < parts; ++part) {
        const Tensor& chunk = chunks[part];
        const Columns range =
            columns(owner * own_ + static_cast<std::int64_t>(block), heads[part], C, chunk.size(2) / heads[part]);
        for (std::size_t chunk = 0; chunk < own(); ++chunk)
          visit(block, part, chunk, range, (holder * own_ + static_cast<std::int64_t>(chunk)) * T);
      }
    }
  };
  const int me = group_->rank();
  each(me, me, [&](std::size_t block, std::size_t part, std::size_t chunk, Columns range, std::int64_t token) {
    blocks[block * parts + part]
        .narrow(1, token, T)
        .copy_(chunks[chunk * parts + part].narrow(2, range.begin, range.width));
  });
  const auto planted = [&] {
    if (swaps_ < 0 || swaps_-- > 0) return blocks;
    const std::int64_t half = blocks[0].size(2) / 2;
    blocks[0].copy_(at::cat({blocks[0].narrow(2, half, half), blocks[0].narrow(2, 0, half)}, 2));
    return blocks;
  };
  if (group_->size() == 1) return planted();
  const device::Type type = device::type_of(chunks[0].scalar_type());
  const std::vector<device::View> to = regions(sent_, count, type), from = regions(received_, count, type);
  for (int rank = 0; rank < group_->size(); ++rank) {
    if (rank == me) continue;
    Regions regions(device::tensor(to[static_cast<std::size_t>(rank)]));
    each(rank, me, [&](std::size_t, std::size_t part, std::size_t chunk, Columns range, std::int64_t) {
      regions.next(B, T, range.width).copy_(chunks[chunk * parts + part].narrow(2, range.begin, range.width));
    });
  }
  group_->all_to_all(to, from, "all-to-all of heads")->wait();
  for (int rank = 0; rank < group_->size(); ++rank) {
    if (rank == me) continue;
    Regions regions(device::tensor(from[static_cast<std::size_t>(rank)]));
    each(me, rank, [&](std::size_t block, std::size_t part, std::size_t, Columns range, std::int64_t token) {
      blocks[block * parts + part].narrow(1, token, T).copy_(regions.next(B, T, range.width));
    });
  }
  return planted();
}

std::vector<Tensor> SharedSequence::to_chunks(const std::vector<Tensor>& blocks,
                                              std::span<const std::int64_t> heads) const {
  const at::NoGradGuard no_grad;
  const std::size_t parts = heads.size();
  const std::int64_t C = this->chunks(), B = blocks[0].size(0), T = blocks[0].size(1) / C;
  std::vector<Tensor> chunks;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < own() * parts; ++i) {
    const std::int64_t H = heads[i % parts], width = blocks[i % parts].size(2);
    chunks.push_back(at::empty({B, T, width / unit::heads_of_block(H, C) * H}, blocks[0].options()));
    count += own_ * B * T * width;
  }
  const int me = group_->rank();
  const device::Type type = device::type_of(blocks[0].scalar_type());
  std::vector<device::View> to, from;
  if (group_->size() > 1) {
    to = regions(sent_, count, type), from = regions(received_, count, type);
    for (int rank = 0; rank < group_->size(); ++rank) {
      if (rank == me) continue;
      Regions regions(device::tensor(to[static_cast<std::size_t>(rank)]));
      for (const Tensor& block : blocks) {
        for (std::int64_t chunk = rank * own_; chunk < (rank + 1) * own_; ++chunk)
          regions.next(B, T, block.size(2)).copy_(block.narrow(1, chunk * T, T));
      }
    }
    group_->all_to_all(to, from, "all-to-all of tokens")->wait();
  }
  // The last block first, as autograd adds up what comes from several.
  for (int rank = group_->size() - 1; rank >= 0; --rank) {
    std::vector<Tensor> regions;  // block by block, part by part, chunk by chunk
    Regions received(rank == me ? Tensor() : device::tensor(from[static_cast<std::size_t>(rank)]));
    for (const Tensor& block : blocks) {
      for (std::int64_t chunk = me * own_; chunk < (me + 1) * own_; ++chunk)
        regions.push_back(rank == me ? block.narrow(1, chunk * T, T) : received.next(B, T, block.size(2)));
    }
    for (std::size_t i = regions.size(); i-- > 0;) {
      const std::size_t chunk = i % own(), part = i / own() % parts;
      const std::int64_t block = rank * own_ + static_cast<std::int64_t>(i / own() / parts), H = heads[part];
      const std::int64_t D = regions[i].size(2) / unit::heads_of_block(H, C);
      const Columns range = columns(block, H, C, D);
      const Tensor place = chunks[chunk * parts + part].narrow(2, range.begin, range.width);
      const bool last = block + 1 == C || unit::first_head(block + 1, H, C) * D != range.begin;
      last ? place.copy_(regions[i]) : place.add_(regions[i]);
    }
  }
  return chunks;
}

std::vector<Tensor> SharedSequence::attend(const std::vector<std::vector<Tensor>>& parts,
                                           std::span<const std::int64_t> heads, const Attend& attend) const {
  Variables flat;
  for (const auto& part : parts) flat.insert(flat.end(), part.begin(), part.end());
  const Variables blocks = ToBlocks::apply(at::TensorList(flat), Moves{this, {heads.begin(), heads.end()}});
  Variables attended;
  for (std::size_t block = 0; block < own(); ++block) {
    const auto first = blocks.begin() + static_cast<std::ptrdiff_t>(block * heads.size());
    attended.push_back(attend(block, {first, first + static_cast<std::ptrdiff_t>(heads.size())}));
  }
  // The results of the blocks have the same number of heads as the queries.
  return ToChunks::apply(at::TensorList(attended), Moves{this, {heads.front()}});
}

std::vector<Tensor> SharedSequence::of_all(const std::vector<Tensor>& local) const {
  if (group_->size() == 1) return local;
  const Tensor mine = at::stack(local).detach().to(at::kCPU);
  std::vector<Tensor> chunks;
  for (const std::vector<float>& values :
       group_->all_gather(std::span<const float>(device::floats(mine)), "exchange of the sums of all chunks")) {
    const Tensor of_rank = at::empty_like(mine);
    std::ranges::copy(values, device::floats(of_rank).begin());
    for (const Tensor& chunk : of_rank.unbind(0)) chunks.push_back(chunk.to(local[0].device()));
  }
  return chunks;
}

}  // namespace zs::zero
