// SPDX-License-Identifier: Apache-2.0
#include "probefile/join.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::probefile {
namespace {

constexpr double kRounding = 0.05;  // between the gradients of two ranks that compute the same, relative

std::string runs_text(const Runs& runs) {
  std::string text;
  for (const auto& axis : runs) {
    text += '[';
    for (const auto& [begin, end] : axis) text += to_text(begin) + "-" + to_text(end) + ' ';
    text += ']';
  }
  return text;
}

/// NaN or infinity on several ranks are the same number.
bool repeated(double a, double b, double by) { return same_bits(a, b) || close_to(a, b, by); }

bool is_known_type(const std::string& dtype) {
  static const std::set<std::string> kTypes{"F64",    "F32",    "BF16", "F16",       "int64",
                                            "int32",  "int16",  "int8", "uint8",     "uint16",
                                            "uint32", "uint64", "bool", "complex64", "complex128"};
  return kTypes.contains(dtype) || dtype.starts_with("float8_");
}

void require_sound(const TensorRow& row) {
  if (!is_known_type(row.dtype)) throw Error(row.name + " is of the unknown type " + row.dtype);
  double size = 1;
  for (const std::int64_t extent : row.shape) {
    if (extent < 0) throw Error(row.name + " has a shape below 0");
    size *= static_cast<double>(extent);
  }
  if (size != static_cast<double>(row.total)) throw Error(row.name + " has another shape than its number of elements");
  if (row.squares < 0) throw Error(row.name + " has a sum of squares below 0");
  if (row.begin < 0 || row.count < 0 || row.count > row.total ||
      (row.count > 0 && !row.runs && row.begin > row.total - row.count))
    throw Error(row.name + " has a part outside of it");
  const bool finite = std::ranges::all_of(row.sketch, [](double sum) { return std::isfinite(sum); });
  if (std::isfinite(row.squares) && !finite) throw Error(row.name + " has a finite norm, and a sketch that is not");
  if (row.count == 0 && row.squares != 0) throw Error(row.name + " has a part without elements, and a norm");
  // Each sum is of the elements of one range, with signs: at most sqrt(elements x squares).
  double sums = 0;
  for (const double sum : row.sketch) sums += sum * sum;
  if (finite && sums > 8 * (static_cast<double>(row.count) * row.squares * (1 + 1e-6)) + 1e-280)
    throw Error(row.name + " has a sketch that its norm contradicts");
}

/// Whether the part has an element.
bool holds(const TensorRow& row, std::int64_t at) {
  if (!row.runs) return at >= row.begin && at < row.begin + row.count;
  for (std::size_t axis = row.shape.size(); axis-- > 0; at /= row.shape[axis]) {
    const std::int64_t place = at % row.shape[axis];
    if (std::ranges::none_of((*row.runs)[axis],
                             [&](const auto& run) { return place >= run.first && place < run.second; }))
      return false;
  }
  return true;
}

/// Throws Error if the part has other elements than it should.
void place_elements(Tensor& tensor, const TensorRow& row) {
  const std::int64_t count = std::min(row.total, kElements), every = spacing(row.total);
  if (row.runs && row.runs->size() != row.shape.size()) throw Error(row.name + " has elements of a slice of runs");
  tensor.elements.resize(static_cast<std::size_t>(count), std::nan(""));
  std::size_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!holds(row, i * every)) continue;
    if (next >= row.elements->values.size()) throw Error(row.name + " lacks an element");
    double& element = tensor.elements[static_cast<std::size_t>(i)];
    const double value = row.elements->values[next++];
    element = std::isnan(element) ? value : element + value;  // of a summand
  }
  if (next != row.elements->values.size()) throw Error(row.name + " has more elements than it should");
}

/// Throws Error if a parameter is in two groups, or is counted twice.
void require_once(const StepRow& row) {
  std::set<std::string> held, counted;
  for (const Group& group : row.groups) {
    for (const std::string& name : group.params) {
      if (!held.insert(name).second && !name.starts_with("unnamed"))
        throw Error(name + " is in two groups of the optimizer");
    }
  }
  for (const auto& [count, names] : row.counters) {
    for (const std::string& name : names) {
      if (!counted.insert(name).second && !name.starts_with("unnamed"))
        throw Error("steps of " + name + " are counted twice");
    }
  }
}

/// Throws Error if a rank has what its optimizer got of a parameter, and lists it in no group. Groups of older
/// recorders list no parameters.
void require_listed(const StepRow& row) {
  std::set<std::string> listed;
  for (const Group& group : row.groups) listed.insert(group.params.begin(), group.params.end());
  if (listed.empty() && !row.groups.empty()) return;
  for (const TensorRow& tensor : row.tensors) {
    const bool moved = tensor.name.starts_with("grad/") || tensor.name.starts_with("direction/");
    if (moved && !listed.contains(tensor.name.substr(tensor.name.find('/') + 1)))
      throw Error(tensor.name + " is there, and no group of this rank's optimizer lists it");
  }
}

}  // namespace

void Join::head(const HeadRow& row, int rank) {
  if (row.version != 2) throw Error("is of a version that this zs-verify does not know");
  auto& known = run_.heads[rank];
  if (rank == 0 && known.empty()) {
    run_.id = row.id, run_.torch = row.torch, run_.layout = row.layout, run_.framework = row.framework;
  }
  for (const auto& [name, others] : row.tied) run_.ties[name] = others;
  run_.frozen.insert(row.frozen.begin(), row.frozen.end());
  run_.loose.insert(row.loose.begin(), row.loose.end());
  for (const auto& [name, axis] : row.axes) {
    if (axis.size() != 2 || axis[1] < 0 || axis[1] >= axis[0])
      throw Error("has an axis without a size and a place on it");
    run_.axes[name] = axis[0];
  }
  known.push_back(row);
}

void Join::start(StartRow row, int rank) {
  current_ = -1 - row.start;
  if (row.counted) {
    if (row.start == 0 && *row.counted != 0)
      run_.faults.push_back("start: rank " + std::to_string(rank) + " counts " + to_text(*row.counted) +
                            " steps before the first");
    const auto [known, added] = run_.counted.emplace(row.start, *row.counted);
    if (known->second != *row.counted)
      run_.faults.push_back("start: rank " + std::to_string(rank) + " counts " + to_text(*row.counted) +
                            " steps, another rank " + to_text(known->second));
  }
  if (stages_.emplace(rank, "").second && are_of_stage(run_.starts[row.start], row.tensors, rank))
    stages_[rank] = "stage" + to_text(stage_of(rank)) + ".";
  tensors(run_.starts[row.start], row.tensors, rank, "", "start");
  current_ = 0;
}

void Join::step(Step& step, StepRow row, int rank) {
  const std::string where = "step " + to_text(row.step);
  const std::string values =
      row.values ? folder_ + "/" + std::filesystem::path(*row.values).filename().string() : std::string();
  current_ = row.step;
  tensors(step.tensors, row.tensors, rank, values, where);
  current_ = 0;
  std::set<std::tuple<std::int64_t, std::int64_t, std::string>> seen;
  for (const TensorRow& local : row.locals) {
    if (!local.by || !local.micro || *local.by < 0 || *local.micro < 0 || *local.by > 1 << 20 || *local.micro > 1 << 20)
      throw Error("a micro-batch's gradient of " + local.name + " has no number of its rank and micro-batch");
    const int by = static_cast<int>(*local.by), micro = static_cast<int>(*local.micro);
    if (!seen.emplace(by, micro, local.name).second)
      throw Error("the gradient of " + local.name + " of micro-batch " + std::to_string(micro) + " is there twice");
    const auto share = step.by.try_emplace(rank, by).first;
    share->second =
        std::min(share->second, by);  // parts of a parameter that ranks share have the number that they share
    int at = by;                      // summands of a share are numbered behind all ranks, here as by zs_probe
    while (is_other(step.locals[{at, micro}].tensors, local, rank)) at += run_.ranks;
    Contribution& into = step.locals[{at, micro}];
    into.by = at, into.micro = micro;
    if (into.samples.empty() && static_cast<std::size_t>(micro) < row.batch.size())
      into.samples = row.batch[static_cast<std::size_t>(micro)];
    add(into.tensors, local, rank, "", where + ", micro-batch " + std::to_string(micro));
  }
  for (const TensorRow& one : row.outputs) output(step.outputs, one, rank, where);
  require_once(row);
  require_listed(row);
  for (const std::string& text : row.unseen) run_.unseen.push_back(text);
  for (Group& group : row.groups) {
    for (std::string& name : group.params) name = name_of(name, rank);
  }
  for (auto& [count, names] : row.counters) {
    for (std::string& name : names) name = name_of(name, rank);
  }
  row.tensors.clear(), row.locals.clear(), row.outputs.clear();
  step.ranks.emplace(rank, std::move(row));
}

/// For one sample: several ranks hold the same, or parts that only they can join.
void Join::output(Tensors& into, const TensorRow& row, int rank, const std::string& where) {
  const std::string name = row.name + "/" + row.sample;
  Tensors one;
  add(one, row, rank, "", where + ": output of");
  const Tensor& made = one.all().front().second;
  const Tensor* const known = into.find(name);
  if (!known)
    into.at(name) = made;
  else if (!known->same(made) || known->pieces.empty() || known->pieces.front().rank == rank)
    run_.parted.insert(row.name);
}

void Join::tensors(Tensors& into, const std::vector<TensorRow>& rows, int rank, const std::string& values,
                   const std::string& where) {
  std::set<std::string> names;
  for (const TensorRow& row : rows) {
    if (!names.insert(row.name).second) throw Error(row.name + " is there twice");
    add(into, row, rank, values, where);
  }
}

void Join::add(Tensors& into, const TensorRow& row, int rank, const std::string& values, const std::string& where) {
  require_sound(row);
  std::string name = name_of(row.name, rank);
  const std::string what = where + ": " + name;
  Tensor::Piece piece{"", row.begin, row.count, !row.runs, row.digest.bits, rank, values, "", row.squares};
  piece.key = piece.contiguous ? to_text(piece.begin) + "+" + to_text(piece.count) : runs_text(*row.runs);
  const bool summand = row.by && !row.micro;  // ranks have the terms of a sum each
  if (summand) {
    piece.place = std::exchange(piece.key, piece.key + ", summand " + to_text(*row.by));
    piece.contiguous = false, piece.values.clear();
  }
  if (name.starts_with("buffer/")) {  // of each rank: statistics of its own samples
    const std::string mine = name + " of rank ";
    const Tensor* const known = into.find(name);
    bool apart = known && !known->pieces.empty() && known->pieces.front().digest != piece.digest;
    if (apart) into.rename(name, mine + std::to_string(known->pieces.front().rank));
    for (int other = 0; other < rank; ++other) apart |= into.find(mine + std::to_string(other)) != nullptr;
    if (apart) name = mine + std::to_string(rank);
  }
  Tensor& joined = into.at(name);
  Tensor& tensor = is_copy(joined, piece, row) ? copies_[{current_, name}][stage_of(rank)] : joined;
  if (tensor.dtype.empty()) tensor.dtype = row.dtype, tensor.total = row.total, tensor.shape = row.shape;
  if (tensor.total != row.total || tensor.dtype != row.dtype || tensor.shape != row.shape)
    throw Error(what + " has another size, shape or type on another rank");
  if (tensor.sketch.empty()) tensor.sketch.assign(row.sketch.size(), 0);
  if (tensor.sketch.size() != row.sketch.size()) throw Error(what + " has a sketch of another size on another rank");
  if (piece.count == 0) return;
  for (const Tensor::Piece& known : tensor.pieces) {
    if (known.key == piece.key) {  // another copy of it
      if (known.digest != piece.digest && current_ != 0)
        run_.replicas[{current_, name}] = {known.rank, rank, row.sketch};
      const bool sole = tensor.pieces.size() == 1 && known.digest == piece.digest;
      bool apart = known.digest != piece.digest || (sole && !repeated(tensor.squares, row.squares, 1e-12));
      for (std::size_t i = 0; sole && i < row.sketch.size(); ++i)
        apart |= std::fabs(tensor.sketch[i] - row.sketch[i]) > 1e-9 * std::sqrt(tensor.squares * 8);
      if (apart)
        run_.faults.push_back(what + " differs between rank " + std::to_string(known.rank) + " and rank " +
                              std::to_string(rank));
      tensor.copies += !apart;
      return;
    }
    if (known.contiguous && piece.contiguous && piece.begin < known.begin + known.count &&
        known.begin < piece.begin + piece.count)
      throw Error(what + ": the parts of rank " + std::to_string(known.rank) + " and rank " + std::to_string(rank) +
                  " overlap");
  }
  tensor.digest += piece.digest;
  tensor.set += row.set.bits, tensor.rows += row.rows.bits, tensor.cols += row.cols.bits;
  for (std::size_t i = 0; i < row.sketch.size(); ++i) tensor.sketch[i] += row.sketch[i];
  if (summand) {
    tensor.summands |= !tensor.pieces.empty();
    tensor.squares = 0;
    for (const double sum : tensor.sketch) tensor.squares += sum * sum / 8;  // which it is on average
  } else {
    tensor.squares += row.squares;
  }
  if (!summand || std::ranges::none_of(tensor.pieces, [&](const auto& known) { return known.place == piece.place; }))
    tensor.held += piece.count;
  if (row.elements) place_elements(tensor, row);
  if (tensor.held > tensor.total) throw Error(what + ": its parts overlap");
  tensor.pieces.push_back(std::move(piece));
  compare_copies(joined, name, what);
}

/// The name of a parameter, or PLACE/PARAMETER, with the stage of a rank whose names are those of its stage.
std::string Join::name_of(const std::string& name, int rank) const {
  std::string made = without(name, run_.prefix);
  if (const auto stage = stages_.find(rank); stage != stages_.end())
    made.insert(made.find('/') == std::string::npos ? 0 : made.find('/') + 1, stage->second);
  return made;
}

/// Whether a rank's stage of a pipeline counts its layers by itself: all of its parameters have the names of another
/// stage's, which one seed may have begun alike; or half of them, and some are other ones. Stages share few parameters.
bool Join::are_of_stage(const Tensors& start, const std::vector<TensorRow>& rows, int rank) const {
  std::size_t all = 0, shared = 0;
  bool apart = false;
  for (const TensorRow& row : rows) {
    if (!row.name.starts_with("param/")) continue;
    ++all;
    const Tensor* const known = start.find(without(row.name, run_.prefix));
    if (!known || known->pieces.empty() || stage_of(known->pieces.front().rank) == stage_of(rank)) continue;
    ++shared;
    apart |= known->shape != row.shape || std::ranges::any_of(known->pieces, [&](const Tensor::Piece& piece) {
               return piece.begin == row.begin && piece.count == row.count && piece.digest != row.digest.bits;
             });
  }
  return all > 1 && (shared == all || (apart && 2 * shared >= all));
}

/// Whether a rank's whole gradient of a micro-batch is another one, by more than rounding, than that of a rank with the
/// same number. Then the training itself sums them, for example for norms under sequence parallelism.
bool Join::is_other(const Tensors& tensors, const TensorRow& row, int rank) const {
  const Tensor* const known = tensors.find(name_of(row.name, rank));
  if (!known || known->pieces.size() != 1 || known->pieces.front().count != known->total || row.runs ||
      row.count != row.total || known->digest == row.digest.bits || known->sketch.size() != row.sketch.size())
    return false;
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < row.sketch.size(); ++i) {
    distance += (known->sketch[i] - row.sketch[i]) * (known->sketch[i] - row.sketch[i]);
    size += known->sketch[i] * known->sketch[i] + row.sketch[i] * row.sketch[i];
  }
  return distance > kRounding * kRounding * size;
}

/// The stage of a pipeline that a rank is in.
std::int64_t Join::stage_of(int rank) const {
  for (const char* const name : {"pipeline", "pp"}) {
    const auto& axes = run_.heads.at(rank).back().axes;
    if (const auto axis = axes.find(name); axis != axes.end()) return axis->second[1];
  }
  return 0;
}

/// Whether a part belongs to a copy that another stage than that of the first part cuts by itself: of a tied parameter.
bool Join::is_copy(const Tensor& joined, const Tensor::Piece& piece, const TensorRow& row) const {
  if (current_ == 0 || joined.pieces.empty() || piece.count == 0 || !piece.contiguous) return false;
  const Tensor::Piece& first = joined.pieces.front();
  return first.contiguous && (first.count < row.total || piece.count < row.total) &&
         stage_of(first.rank) != stage_of(piece.rank);
}

/// Compares the copies whose parts are all there.
void Join::compare_copies(Tensor& joined, const std::string& name, const std::string& what) {
  const auto copies = copies_.find({current_, name});
  if (copies == copies_.end() || !joined.whole()) return;
  std::erase_if(copies->second, [&](const auto& one) {
    const Tensor& copy = one.second;
    if (!copy.whole()) return false;
    if (copy.same(joined)) {
      joined.copies += static_cast<int>(copy.pieces.size());
      return true;
    }
    const int first = joined.pieces.front().rank, second = copy.pieces.front().rank;
    run_.replicas[{current_, name}] = {first, second, copy.sketch};
    run_.faults.push_back(what + " differs between rank " + std::to_string(first) + " and rank " +
                          std::to_string(second));
    return true;
  });
}

void Join::settle() {
  for (const auto& [key, copies] : copies_) {
    for (const auto& [stage, copy] : copies)
      run_.faults.push_back((key.first > 0 ? "step " + to_text(key.first) : "start") + ": of " + key.second + " " +
                            to_text(copy.held) + " of " + to_text(copy.total) + " elements are there in stage " +
                            to_text(stage));
  }
}

void Join::complete(std::int64_t number, Step& step) {
  const StepRow& first = step.ranks.begin()->second;
  step.computed = first.computed.value_or("");
  for (const auto& [rank, row] : step.ranks) {
    if (row.only != first.only)
      run_.faults.push_back("step " + to_text(number) + ": rank " + std::to_string(rank) +
                            " has other places than rank 0");
    if (row.computed && step.computed.empty()) step.computed = *row.computed;  // a stage of a pipeline without forward
    if (row.computed && *row.computed != step.computed)
      run_.faults.push_back("step " + to_text(number) + ": rank " + std::to_string(rank) + " computes in " +
                            *row.computed + ", another in " + step.computed);
  }
  scalars(number, step);
  groups(number, step);
  for (const auto& [name, tensor] : step.tensors.all()) {
    if (!tensor.whole() && !name.starts_with("begin"))  // of which a rank writes what has changed
      run_.faults.push_back("step " + to_text(number) + ": of " + name + " " + to_text(tensor.held) + " of " +
                            to_text(tensor.total) + " elements are there");
  }
}

void Join::differ(std::int64_t number, Step& step, const std::string& what) {
  step.contradictions.push_back(what);
  run_.faults.push_back("step " + to_text(number) + ": " + what);
}

void Join::scalars(std::int64_t number, Step& step) {
  std::set<int> of_rank_0;  // ranks that hold parts of what rank 0 holds, so that their numbers are the same
  const auto names = [](const StepRow& row) {
    std::set<std::string> params;
    for (const Group& group : row.groups) params.insert(group.params.begin(), group.params.end());
    return params;
  };
  const StepRow& first = step.ranks.begin()->second;
  const auto mine = names(first);
  for (const auto& [rank, row] : step.ranks) {
    const auto theirs = names(row);
    const bool alike = mine == theirs;
    for (const auto& [key, value] : row.scalars) {
      if (key == "norm_squares") {  // a norm whose ranks have a share each
        step.scalars["norm"] = std::sqrt(step.scalars["norm"] * step.scalars["norm"] + value);
        continue;
      }
      const auto [known, added] = step.scalars.emplace(key, value.value);
      if (!added && alike && !row.scalars.contains("norm_squares") && !repeated(known->second, value, 1e-5))
        differ(number, step,
               key + " is " + to_text(value.value) + " on rank " + std::to_string(rank) + ", " +
                   to_text(known->second) + " on another");
      if (alike && !first.scalars.contains(key))
        run_.faults.push_back("step " + to_text(number) + ": rank " + std::to_string(rank) + " has " + key +
                              ", rank 0 has not");
    }
    for (const auto& [key, value] : first.scalars) {
      if (alike && !row.scalars.contains(key))
        run_.faults.push_back("step " + to_text(number) + ": rank 0 has " + key + ", rank " + std::to_string(rank) +
                              " has not");
    }
  }
}

void Join::groups(std::int64_t number, Step& step) {
  std::map<std::string, std::pair<int, std::size_t>> holder;  // of each parameter: rank and group
  for (const auto& [rank, row] : step.ranks) {
    std::vector<std::size_t> place(row.groups.size());
    for (std::size_t i = 0; i < row.groups.size(); ++i) {
      const Group& group = row.groups[i];
      const bool known = !group.params.empty() && rank != step.ranks.begin()->first;
      auto same = std::ranges::find_if(step.groups, [&](const Group& other) {
        return known && other.options == group.options && other.optimizer == group.optimizer;
      });
      if (group.params.empty() && rank != step.ranks.begin()->first) {  // of an older recorder: by its number
        same = i < step.groups.size() ? step.groups.begin() + static_cast<std::ptrdiff_t>(i) : step.groups.end();
        if (same != step.groups.end() && same->options != group.options)
          differ(number, step,
                 "group " + std::to_string(i) + " of rank " + std::to_string(rank) +
                     " has other options than that of rank 0");
      }
      place[i] = static_cast<std::size_t>(same - step.groups.begin());
      if (same == step.groups.end()) step.groups.push_back(group);
      for (const std::string& name : group.params) {
        const auto [at, added] = holder.emplace(name, std::pair{rank, place[i]});
        auto& params = step.groups[place[i]].params;
        if (added) {
          if (std::ranges::find(params, name) == params.end()) params.push_back(name);
        } else if (at->second.second != place[i] && at->second.first != rank &&
                   step.groups[at->second.second].options != group.options) {
          differ(number, step,
                 "rank " + std::to_string(rank) + " updates " + name + " with other options than rank " +
                     std::to_string(at->second.first));
        } else if (at->second.second != place[i] && at->second.first != rank &&
                   step.groups[at->second.second].optimizer != group.optimizer) {
          differ(number, step,
                 "rank " + std::to_string(rank) + " updates " + name + " by " + group.optimizer + ", rank " +
                     std::to_string(at->second.first) + " by " + step.groups[at->second.second].optimizer);
        }
      }
    }
  }
}

}  // namespace zs::probefile
