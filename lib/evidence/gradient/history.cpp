// SPDX-License-Identifier: Apache-2.0
#include "gradient/history.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "base/number.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::gradient {
namespace {

constexpr std::size_t kHistoryPiece = 1 << 16;  // elements: two pieces stay in the second cache
constexpr std::int64_t kHeld = 1 << 22;         // elements of a file that may stay in memory

/// Measures a tensor, and its inner product with `before` if given.
Measure measure(const tensorfile::Tensor& tensor, const tensorfile::Tensor* before, double& product) {
  Measure result;
  const std::int64_t count = tensor.count();
  std::vector<float> piece(std::min<std::size_t>(kHistoryPiece, static_cast<std::size_t>(count))),
      other(before ? piece.size() : 0);
  for (std::int64_t first = 0; first < count; first += static_cast<std::int64_t>(piece.size())) {
    const auto size = std::min(piece.size(), static_cast<std::size_t>(count - first));
    const std::span<float> now(piece.data(), size);
    tensorfile::read_f32(tensor, first, now);
    result.add(now);
    if (before) {
      const std::span<float> then(other.data(), size);
      tensorfile::read_f32(*before, first, then);
      product += dot(now, then);
    }
    if ((first + static_cast<std::int64_t>(size)) % kHeld != 0) continue;
    tensor.storage->forget();
    if (before) before->storage->forget();
  }
  return result;
}

[[noreturn]] void refuse(const tensorfile::StateDict& file, const std::string& what) {
  throw Error(file.path(), 0, what + ": they are of different models");
}

/// Throws unless `file` has a tensor of that name and shape, as the `first` file has.
void require_tensor(const tensorfile::StateDict& file, const std::string& name, const tensorfile::Shape& shape,
                    const std::string& first) {
  const tensorfile::Tensor* const tensor = file.find(name);
  if (!tensor) refuse(file, "has no " + name + ", unlike " + first);
  if (tensor->shape == shape) return;
  refuse(file, name + " has the shape " + tensorfile::to_text(tensor->shape) + ", in " + first + " " +
                   tensorfile::to_text(shape));
}

/// Throws unless `file` has the tensors of `history`.
void require_same_model(const History& history, const tensorfile::StateDict& file, const std::string& first) {
  for (std::size_t i = 0; i < history.names.size(); ++i)
    require_tensor(file, history.names[i], history.shapes[i], first);
  const auto more = std::find_if(file.entries().begin(), file.entries().end(), [&](const auto& entry) {
    return std::ranges::find(history.names, entry.name) == history.names.end();
  });
  if (more != file.entries().end()) refuse(file, "has " + more->name + ", unlike " + first);
}

/// Measures one tensor of a file. Throws Error with the file's path.
Measure measure(const tensorfile::StateDict& file, const std::string& name, const tensorfile::Tensor* before,
                double& product) {
  const tensorfile::Tensor& tensor = file.at(name);
  try {
    tensor.storage->verify();
    Measure result = measure(tensor, before, product);
    tensor.storage->forget();
    return result;
  } catch (const Error& error) {
    const std::string what = error.what();
    throw what.starts_with(file.path()) ? Error(what) : Error(file.path(), 0, name + ": " + what);
  }
}

void measure(const History& history, const tensorfile::StateDict& file, const tensorfile::StateDict* before,
             Checkpoint& checkpoint) {
  for (const std::string& name : history.names) {
    const tensorfile::Tensor* const earlier = before ? &before->at(name) : nullptr;
    double product = 0;
    checkpoint.tensors.push_back(measure(file, name, earlier, product));
    if (!earlier) continue;
    earlier->storage->forget();
    checkpoint.tensor_dots.push_back(product);
  }
  for (const Layer& layer : history.layers) {
    Measure sum;
    double product = 0;
    for (const std::size_t tensor : layer.tensors) {
      sum.add(checkpoint.tensors[tensor]);
      if (before) product += checkpoint.tensor_dots[tensor];
    }
    checkpoint.whole.add(sum);
    checkpoint.layers.push_back(sum);
    if (before) checkpoint.layer_dots.push_back(product);
  }
}

/// Reads the norms of the micro-batches next to the gradients, if they were saved.
void read_norms(const History& history, Checkpoint& checkpoint) {
  const std::filesystem::path path = std::filesystem::path(checkpoint.source.path).parent_path() / "gradient_norms.pt";
  if (!std::filesystem::exists(path)) return;
  const tensorfile::StateDict file = tensorfile::open_state_dict(path.string());
  file.verify();
  for (const std::string& name : history.names) {
    const tensorfile::Tensor& norms = file.at(name);
    const auto count = static_cast<std::size_t>(norms.count());
    if (norms.dtype != tensorfile::Dtype::f64 || norms.shape.size() != 1 || count == 0 ||
        (checkpoint.micro_batches > 0 && checkpoint.micro_batches != count))
      throw Error(path.string(), 0,
                  name + " has the shape " + tensorfile::to_text(norms.shape) +
                      ": expected a float64 for each micro-batch, of each tensor as many");
    checkpoint.micro_batches = count;
    std::vector<double> values(count);
    tensorfile::read_raw(norms, {reinterpret_cast<char*>(values.data()), count * sizeof(double)});
    checkpoint.tensor_squares.push_back(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  }
  for (const Layer& layer : history.layers) {
    double sum = 0;
    for (const std::size_t tensor : layer.tensors) sum += checkpoint.tensor_squares[tensor];
    checkpoint.layer_squares.push_back(sum);
  }
}

}  // namespace

Noise noise(std::size_t micro_batches, double squares, const Measure& mean) {
  if (micro_batches < 2 || mean.count == 0 || !std::isfinite(squares) || mean.non_finite() > 0) return {kNan, kNan};
  const auto count = static_cast<double>(micro_batches);
  // All elements together; what rounding leaves below 0 is 0.
  const double trace = std::max(0.0, (squares - count * mean.squares) / (count - 1));
  const double signal = mean.squares - trace / count;  // the mean itself has a share of the noise
  return {trace / static_cast<double>(mean.count), trace == 0   ? 0
                                                   : signal > 0 ? trace / signal
                                                                : std::numeric_limits<double>::infinity()};
}

Noise History::layer_noise(std::size_t checkpoint, std::size_t layer) const {
  const Checkpoint& at = checkpoints[checkpoint];
  return gradient::noise(at.micro_batches, at.micro_batches ? at.layer_squares[layer] : 0, at.layers[layer]);
}

Noise History::tensor_noise(std::size_t checkpoint, std::size_t tensor) const {
  const Checkpoint& at = checkpoints[checkpoint];
  return gradient::noise(at.micro_batches, at.micro_batches ? at.tensor_squares[tensor] : 0, at.tensors[tensor]);
}

Noise History::noise(std::size_t checkpoint) const {
  const Checkpoint& at = checkpoints[checkpoint];
  return gradient::noise(at.micro_batches, std::accumulate(at.tensor_squares.begin(), at.tensor_squares.end(), 0.0),
                         at.whole);
}

double History::place(std::size_t checkpoint) const {
  return static_cast<double>(by_step ? *checkpoints[checkpoint].source.step
                                     : static_cast<std::int64_t>(checkpoint) + 1);
}

std::string History::when(std::size_t checkpoint) const {
  const Source& source = checkpoints[checkpoint].source;
  return by_step ? "step " + to_text(*source.step) : source.path;
}

double History::layer_cosine(std::size_t checkpoint, std::size_t layer) const {
  if (checkpoint == 0) return std::numeric_limits<double>::quiet_NaN();
  return gradient::cosine(checkpoints[checkpoint].layer_dots[layer], checkpoints[checkpoint].layers[layer].norm(),
                          checkpoints[checkpoint - 1].layers[layer].norm());
}

double History::tensor_cosine(std::size_t checkpoint, std::size_t tensor) const {
  if (checkpoint == 0) return std::numeric_limits<double>::quiet_NaN();
  return gradient::cosine(checkpoints[checkpoint].tensor_dots[tensor], checkpoints[checkpoint].tensors[tensor].norm(),
                          checkpoints[checkpoint - 1].tensors[tensor].norm());
}

double History::cosine(std::size_t checkpoint) const {
  if (checkpoint == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto& dots = checkpoints[checkpoint].layer_dots;
  return gradient::cosine(std::accumulate(dots.begin(), dots.end(), 0.0), checkpoints[checkpoint].whole.norm(),
                          checkpoints[checkpoint - 1].whole.norm());
}

History read(const Sources& sources, const std::function<void(std::size_t done)>& progress) {
  History history;
  history.subject = sources.subject;
  history.without = sources.without;
  std::optional<tensorfile::StateDict> before;
  for (const Source& source : sources.found) {
    if (progress) progress(history.checkpoints.size());
    tensorfile::StateDict file = tensorfile::open_state_dict(source.path);
    if (!before) {
      for (const auto& entry : file.entries()) {
        history.names.push_back(entry.name);
        history.shapes.push_back(entry.tensor.shape);
      }
      history.layers = layers(history.names);
    } else {
      require_same_model(history, file, sources.found.front().path);
    }
    Checkpoint checkpoint;
    checkpoint.source = source;
    measure(history, file, before ? &*before : nullptr, checkpoint);
    read_norms(history, checkpoint);
    history.checkpoints.push_back(std::move(checkpoint));
    before = std::move(file);
  }
  history.by_step = true;
  std::optional<std::int64_t> last;
  for (const Checkpoint& checkpoint : history.checkpoints) {
    history.by_step = history.by_step && checkpoint.source.step && (!last || *checkpoint.source.step > *last);
    last = checkpoint.source.step;
  }
  return history;
}

}  // namespace zs::gradient
