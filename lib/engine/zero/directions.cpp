// SPDX-License-Identifier: Apache-2.0
#include "zero/directions.hpp"

#include <algorithm>

#include "device/tensor.hpp"
#include "unit/arithmetic.hpp"

namespace zs::zero {
namespace {

/// The type in which this processor computes products of bfloat16.
at::ScalarType products_in(const at::Tensor& x) {
  return x.is_cpu() && unit::bfloat16_products().empty() ? at::kFloat : at::kBFloat16;
}

}  // namespace

Directions::Directions(Pool& pool, const Layout& layout, const std::string& unit)
    : group_(&pool.group()),
      layout_(layout),
      unit_(unit),
      memory_(pool.take(device::Type::bfloat16, layout.trained)),
      all_(memory_.view(device::Type::bfloat16, layout.trained)) {}

std::vector<Directions::Round> Directions::rounds(const std::vector<Matrix>& matrices) const {
  std::vector<Round> all;
  const std::vector<std::vector<Matrix>> owned = plan::owned(matrices, group_->size());
  for (std::size_t owner = 0; owner < owned.size(); ++owner) {
    all.resize(std::max(all.size(), owned[owner].size()), Round(owned.size()));
    for (std::size_t i = 0; i < owned[owner].size(); ++i) all[i][owner] = owned[owner][i];
  }
  return all;
}

/// What a rank updates of a matrix.
device::View Directions::common(const Matrix& matrix, int rank) const {
  const comm::Slice its = layout_.divided.optimizer_state ? comm::slice(layout_.trained, rank, group_->size())
                                                          : comm::Slice{0, layout_.trained};
  const std::int64_t begin = std::max(matrix.begin, its.begin), end = std::min(matrix.end(), its.end);
  return begin < end ? all_.part(begin, end) : all_.part(0, 0);
}

/// The parts of each owner's matrix; null if every rank has the whole of them.
comm::Work Directions::to_owners(const Round& round) const {
  if (group_->size() == 1 || !layout_.divided.optimizer_state) return nullptr;
  const int mine = group_->rank();
  std::vector<device::View> to, from;
  for (int rank = 0; rank < group_->size(); ++rank) {
    const bool here = rank == mine;
    to.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(rank)], mine));
    from.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(mine)], rank));
  }
  return group_->all_to_all(to, from, "directions of " + unit_ + " to their owners");
}

comm::Work Directions::from_owners(const Round& round) const {
  if (group_->size() == 1) return nullptr;
  const int mine = group_->rank();
  std::vector<device::View> to, from;
  for (int rank = 0; rank < group_->size(); ++rank) {
    const bool here = rank == mine;
    to.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(mine)], rank));
    from.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(rank)], mine));
  }
  return group_->all_to_all(to, from, "directions of " + unit_ + " from their owners");
}

void Directions::orthogonalise(const std::vector<Matrix>& matrices, int steps) {
  const at::NoGradGuard no_grad;
  const std::vector<Round> all = rounds(matrices);
  std::vector<comm::Work> coming, going;
  for (const Round& round : all) coming.push_back(to_owners(round));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (coming[i]) coming[i]->wait();
    const Matrix& mine = all[i][static_cast<std::size_t>(group_->rank())];
    if (mine.numel() > 0) {
      const at::Tensor there = device::tensor(all_.part(mine.begin, mine.end())).view({mine.rows, mine.columns});
      there.copy_(orthogonalised(there.clone(),
                                 steps));  // a copy begins at an aligned place,
                                           // wherever the matrix does
    }
    going.push_back(from_owners(all[i]));
  }
  for (const comm::Work& work : going) {
    if (work) work->wait();
  }
}

at::Tensor orthogonalised(const at::Tensor& matrix, int steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEpsilon = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = tall ? matrix.t() : matrix;
  // Its norm at most 1. Summed in float64: the order does not show in 16 bits.
  x = x.div(x.norm(2, at::kDouble).to(at::kBFloat16).clamp_min(kEpsilon));
  const at::ScalarType type = products_in(x);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor wide = x.to(type), gram = at::mm(wide, wide.t()).to(at::kBFloat16).to(type);
    const at::Tensor polynomial = at::addmm(gram, gram, gram, kB, kC).to(at::kBFloat16).to(type);
    x = at::addmm(wide, polynomial, wide, kA).to(at::kBFloat16);
  }
  return tall ? x.t() : x;
}

}  // namespace zs::zero
