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
  std::vector<Round> schedule;
  const std::vector<std::vector<Matrix>> owned = plan::owned(matrices, group_->size());
  for (std::size_t owner = 0; owner < owned.size(); ++owner) {
    schedule.resize(std::max(schedule.size(), owned[owner].size()), Round(owned.size()));
    for (std::size_t i = 0; i < owned[owner].size(); ++i) schedule[i][owner] = owned[owner][i];
  }
  return schedule;
}

/// The elements of a matrix that a rank updates.
device::View Directions::common(const Matrix& matrix, int rank) const {
  const comm::Slice updated = layout_.divided.optimizer_state ? comm::slice(layout_.trained, rank, group_->size())
                                                              : comm::Slice{0, layout_.trained};
  const std::int64_t begin = std::max(matrix.begin, updated.begin), end = std::min(matrix.end(), updated.end);
  return begin < end ? all_.part(begin, end) : all_.part(0, 0);
}

/// Between each owner and the ranks that update parts of its matrix: to the owner, or from it.
comm::Work Directions::exchange(const Round& round, bool to_owners) const {
  const int mine = group_->rank();
  std::vector<device::View> of_others, local;  // this rank's part of others' matrices; each rank's part of its matrix
  for (int rank = 0; rank < group_->size(); ++rank) {
    const bool here = rank == mine;
    of_others.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(rank)], mine));
    local.push_back(here ? all_.part(0, 0) : common(round[static_cast<std::size_t>(mine)], rank));
  }
  const std::string what = "directions of " + unit_ + (to_owners ? " to their owners" : " from their owners");
  return to_owners ? group_->all_to_all(of_others, local, what) : group_->all_to_all(local, of_others, what);
}

void Directions::orthogonalise(const std::vector<Matrix>& matrices, int steps) {
  const at::NoGradGuard no_grad;
  const std::vector<Round> schedule = rounds(matrices);
  std::vector<comm::Work> coming, going;
  if (group_->size() > 1 && layout_.divided.optimizer_state) {  // else each rank has all of them
    for (const Round& round : schedule) coming.push_back(exchange(round, /*to_owners=*/true));
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (!coming.empty()) coming[i]->wait();
    const Matrix& mine = schedule[i][static_cast<std::size_t>(group_->rank())];
    if (mine.numel() > 0) {
      const at::Tensor matrix = device::tensor(all_.part(mine.begin, mine.end())).view({mine.rows, mine.columns});
      // A copy begins at an aligned place, wherever the matrix does.
      matrix.copy_(orthogonalised(matrix.clone(), steps));
    }
    if (group_->size() > 1) going.push_back(exchange(schedule[i], /*to_owners=*/false));
  }
  for (const comm::Work& work : going) work->wait();
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
