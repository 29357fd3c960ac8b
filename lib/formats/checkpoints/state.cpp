// SPDX-License-Identifier: Apache-2.0
#include "checkpoints/state.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::checkpoints {
namespace {

using tensorfile::Shape;
using tensorfile::Storage;
using tensorfile::Tensor;

std::int64_t product(const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

bool covers(const Whole& whole) {
  return whole.pieces.size() == 1 && whole.pieces[0].at.empty() && whole.pieces[0].begin == 0 &&
         whole.pieces[0].tensor.count() == whole.count();
}

bool has_boxes(const Whole& whole) {
  return std::ranges::any_of(whole.pieces, [](const Piece& piece) { return !piece.at.empty(); });
}

std::vector<const Piece*> in_order(const Whole& whole) {
  std::vector<const Piece*> order;
  for (const Piece& piece : whole.pieces) order.push_back(&piece);
  std::ranges::stable_sort(order, [](const Piece* a, const Piece* b) { return a->begin < b->begin; });
  return order;
}

/// Gives the rows of a box: the first element in the whole, and in the box, and how many.
template <class Row>
void for_each_row(const Shape& shape, const Piece& piece, Row row) {
  const Shape& box = piece.tensor.shape;
  const std::int64_t count = product(box);
  if (count == 0) return;
  const std::size_t last = box.size() - 1;
  const Shape strides = tensorfile::row_major(shape);
  Shape index(box.size(), 0);
  for (std::int64_t from = 0; from < count; from += box[last]) {
    std::int64_t to = 0;
    for (std::size_t d = 0; d < box.size(); ++d) to += (piece.at[d] + index[d]) * strides[d];
    row(to, from, box[last]);
    for (std::size_t d = last; d-- > 0;) {
      if (++index[d] < box[d]) break;
      index[d] = 0;
    }
  }
}

/// Boxes: which of them touch, and whether all together are as many as the whole.
std::string box_defect(const Whole& whole) {
  std::int64_t sum = 0;
  std::vector<Piece> boxes = whole.pieces;
  std::erase_if(boxes, [](const Piece& piece) { return piece.at.empty() && piece.tensor.count() == 0; });
  for (const Piece& piece : boxes) {
    if (piece.at.empty()) return "is cut in two ways, in " + piece.file + " and elsewhere";
    for (std::size_t d = 0; d < whole.shape.size(); ++d) {
      if (piece.at[d] < 0 || piece.tensor.shape[d] > whole.shape[d] - piece.at[d])
        return "a part in " + piece.file + " is outside of the shape " + tensorfile::to_text(whole.shape);
    }
    sum += piece.tensor.count();
  }
  std::erase_if(boxes, [](const Piece& piece) { return piece.tensor.count() == 0; });
  std::ranges::sort(boxes, [](const Piece& a, const Piece& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t k = i + 1; k < boxes.size(); ++k) {
      if (boxes[k].at[0] >= boxes[i].at[0] + boxes[i].tensor.shape[0]) break;
      bool touch = true;
      for (std::size_t d = 0; d < whole.shape.size(); ++d) {
        touch = touch && boxes[i].at[d] < boxes[k].at[d] + boxes[k].tensor.shape[d] &&
                boxes[k].at[d] < boxes[i].at[d] + boxes[i].tensor.shape[d];
      }
      if (touch)
        return "two files have the part at " + tensorfile::to_text(boxes[k].at) + ": " + boxes[i].file + ", " +
               boxes[k].file;
    }
  }
  if (sum < whole.count())
    return to_text(whole.count() - sum) + " of " + to_text(whole.count()) + " elements are in no file";
  return "";
}

}  // namespace

std::int64_t Whole::count() const { return product(shape); }

View view_of(const Tensor& tensor) {
  Shape strides = tensor.strides;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (tensor.shape[d] == 1) strides[d] = 0;  // of one index it says nothing
  }
  return {tensor.storage.get(), tensor.dtype, tensor.offset, tensor.shape, strides};
}

Whole whole(const Tensor& tensor, const std::string& file, int rank) {
  return {tensor.dtype, tensor.shape, {{tensor, 0, {}, rank, file}}};
}

void add_box(Whole& into, Piece piece) {
  const Shape& box = piece.tensor.shape;
  std::size_t d = 0;
  while (d < box.size() && box[d] == 1) ++d;
  bool run = true;  // after the first dimension of more than one index, all dimensions are whole
  for (std::size_t k = d + 1; k < box.size(); ++k) run = run && box[k] == into.shape[k] && piece.at[k] == 0;
  bool inside = true;
  for (std::size_t k = 0; k < box.size(); ++k)
    inside = inside && piece.at[k] >= 0 && box[k] <= into.shape[k] - piece.at[k];
  if (inside && (run || piece.tensor.count() == 0)) {
    const Shape strides = tensorfile::row_major(into.shape);
    for (std::size_t k = 0; k < box.size(); ++k) piece.begin += piece.at[k] * strides[k];
    piece.at.clear();
  }
  into.pieces.push_back(std::move(piece));
}

std::string defect(const Whole& whole) {
  for (const Piece& piece : whole.pieces) {
    if (piece.tensor.dtype != whole.dtype)
      return "is of " + std::string(name_of(whole.dtype)) + ", but of " + std::string(name_of(piece.tensor.dtype)) +
             " in " + piece.file;
  }
  if (has_boxes(whole)) return box_defect(whole);
  std::int64_t end = 0;
  std::string last;
  for (const Piece* const piece : in_order(whole)) {
    const std::int64_t count = piece->tensor.count();
    if (count == 0) continue;
    if (piece->begin < end)
      return "two files have elements " + to_text(piece->begin) + " to " +
             to_text(std::min(end, piece->begin + count) - 1) + ": " + last + ", " + piece->file;
    if (piece->begin > end) return "no file has elements " + to_text(end) + " to " + to_text(piece->begin - 1);
    end += count, last = piece->file;
  }
  if (end < whole.count()) return "no file has elements " + to_text(end) + " to " + to_text(whole.count() - 1);
  if (end > whole.count())
    return "files have " + to_text(end) + " elements, expected " + to_text(whole.count()) + ", the last in " + last;
  return "";
}

Tensor joined(const Whole& whole, std::string_view name) {
  if (const std::string what = defect(whole); !what.empty()) throw Error(name, 0, what);
  if (covers(whole) && whole.pieces[0].tensor.contiguous()) {
    Tensor tensor = whole.pieces[0].tensor;
    tensor.shape = whole.shape, tensor.strides = tensorfile::row_major(whole.shape);
    return tensor;
  }
  std::string bytes;
  if (has_boxes(whole)) {
    const std::size_t size = size_of(whole.dtype);
    bytes.resize(whole.bytes());
    for (const Piece& piece : whole.pieces) {
      if (piece.tensor.count() == 0) continue;
      std::string box(piece.tensor.byte_count(), '\0');
      read_raw(piece.tensor, box);
      for_each_row(whole.shape, piece, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
        std::memcpy(bytes.data() + static_cast<std::size_t>(to) * size,
                    box.data() + static_cast<std::size_t>(from) * size, static_cast<std::size_t>(count) * size);
      });
      piece.tensor.storage->forget();
    }
  } else {
    bytes.reserve(whole.bytes());
    for (const Piece* const piece : in_order(whole)) {
      tensorfile::stream(piece->tensor, [&](std::string_view part) { bytes.append(part); });
      piece->tensor.storage->forget();
    }
  }
  return make_tensor(whole.dtype, whole.shape, Storage::own(std::move(bytes)));
}

std::string joined_bytes(const Whole& whole, std::string_view name) {
  std::string bytes;
  bytes.reserve(whole.bytes());
  tensorfile::stream(joined(whole, name), [&](std::string_view part) { bytes.append(part); });
  return bytes;
}

Tensor streamed(const Whole& whole, std::string_view name) {
  if (const std::string what = defect(whole); !what.empty()) throw Error(name, 0, what);
  const auto produce = [whole, place = std::string(name)](const tensorfile::Sink& sink) {
    if (has_boxes(whole)) return tensorfile::stream(joined(whole, place), sink);
    for (const Piece* const piece : in_order(whole)) {
      tensorfile::stream(piece->tensor, sink, place);
      piece->tensor.storage->forget();
    }
  };
  return make_tensor(whole.dtype, whole.shape, Storage::produce(whole.bytes(), produce));
}

Parameter& State::parameter(const std::string& name) {
  const auto [found, fresh] = places_.emplace(name, parameters.size());
  if (fresh) parameters.push_back({name});
  return parameters[found->second];
}

const Parameter* State::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &parameters[found->second];
}

void State::fault(const std::string& place, const std::string& what) { faults.push_back(located(place, 0, what)); }

bool State::attempt(const std::function<void()>& part) {
  try {
    part();
    return true;
  } catch (const Error& error) {
    return faults.emplace_back(error.what()), false;
  }
}

void State::sort(const std::vector<std::string>& names) {
  std::vector<Parameter> sorted;
  for (const std::string& name : names) sorted.push_back(std::move(parameters[places_.at(name)]));
  parameters = std::move(sorted);
  for (std::size_t i = 0; i < names.size(); ++i) places_[names[i]] = i;
}

std::string bare(std::string name) {
  for (const std::string_view word :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_forward_module."}) {
    for (std::size_t at = 0; (at = name.find(word)) != std::string::npos;) name.erase(at, word.size());
  }
  return name;
}

std::string common_word(const std::vector<std::string>& names) {
  const std::string word = names.empty() ? "" : names.front().substr(0, names.front().find('.') + 1);
  return std::ranges::all_of(names, [&](const std::string& name) { return name.starts_with(word); }) ? word : "";
}

std::string_view kind_of(std::string_view fact) { return fact.substr(0, fact.find('.')); }

}  // namespace zs::checkpoints
