// SPDX-License-Identifier: Apache-2.0
// The engine's interface to a model: a list of units (embedding, blocks, head), each with parameters in one flat
// buffer, and a forward that LibTorch can differentiate.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unit/expert_ranks.hpp"
#include "unit/sequence.hpp"
#include "unit/tensor.hpp"

namespace zs::unit {

/// Elements [begin, end) of a unit's flat buffer.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  /// The intersection; its size is 0 if they have nothing in common.
  Range within(std::int64_t from, std::int64_t to) const;
};

/// One parameter tensor: its range in the unit's flat buffer (row-major, no padding), its initial values, and whether
/// it is trained. Trained parameters come first in the buffer: gradients, optimizer state, reductions and the gathers
/// after an update cover only the first part.
struct Parameter {
  enum class Init { normal, uniform, zeros, ones };
  /// Whether it is the weight of a product, and its layout.
  enum class Product { none, out_in, in_out };
  std::string name{};  ///< the name in Hugging Face's state_dict
  std::vector<std::int64_t> shape{};
  Init init = Init::normal;
  double mean = 0, std = 0;  ///< for normal; a uniform one is between mean - std and mean + std
  bool decay = true;         ///< false for biases and norms, which can be excluded from weight decay
  std::int64_t offset = 0;   ///< elements from the start of the flat buffer; set by Unit
  std::string stack{};       ///< files have it as row `row` of `rows` of this tensor; "": as a tensor of its name
  std::int64_t row = 0, rows = 1;
  std::string other_name{};  ///< an alternative name in files of other programs, or ""
  std::string keys{};        ///< the keys of config.json that determine its shape: "vocab_size, n_embd"
  bool head = false;         ///< of a task's head: a folder of the model for another task lacks it, or has another
  Product product = Product::none;
  int float8_scale = -1;     ///< of a product that --fp8 rounds: the unit's weights with the same number share a scale
  bool trained = true;       ///< false: frozen at its initial values
  bool added = false;        ///< of an adapter: files of the model lack it
  int adapter = -1;          ///< of a product: index of its lora_A among the unit's parameters, before lora_B
  double adapter_scale = 0;  ///< factor of their product
  bool expert = false;       ///< of an expert
  std::int64_t idle = 0;     ///< numbers of it that a token does not meet, on average over the experts

  std::int64_t numel() const;
  Range place() const { return {offset, offset + numel()}; }
  /// Its tensor in files: the name, and the shape.
  const std::string& name_in_files() const { return stack.empty() ? name : stack; }
  std::vector<std::int64_t> shape_in_files() const;
  /// Its first element in that tensor.
  std::int64_t begin_in_files() const { return row * numel(); }
};

/// The documents of packed samples, which do not see each other; empty if each sample is one.
struct Documents {
  std::vector<std::int64_t> begins{};  ///< each one's first token in the B*T tokens of a micro-batch; ascending from 0
  at::Tensor positions{};              ///< int64 [B, T]: the position of each token in its document

  explicit operator bool() const { return !begins.empty(); }
};

/// One micro-batch: the input of the first unit, and the targets of the last one.
/// For a language model int64 [B, T], B samples of T tokens, the targets one
/// token later; for a classifier of images float32 [B, 3, S, S], and int64 [B].
struct Batch {
  at::Tensor inputs, targets;
  /// Set if negative targets are padding, which the loss ignores: the factor of the mean over the others, so that the
  /// mean of all micro-batches is the mean over all counted targets.
  std::optional<float> weight{};
  Documents documents{};   ///< a document does not cross samples
  std::int64_t first = 0;  ///< position of the first tokens in their samples; of a chunk more than 0
  /// For a chunk with `weight`: int64 [B], the tokens of each of its samples before the padding behind the last target.
  /// Undefined for whole samples, whose targets say it.
  at::Tensor lengths{};
  std::int64_t samples() const { return inputs.size(0); }
  Batch to(const at::Device& device) const;
  /// Chunk `number` of `chunks` equal ones of each sample, as a micro-batch: with the positions of its tokens, and with
  /// the beginnings of documents in the whole samples. REQUIRES: chunks divides the tokens of a sample.
  Batch chunk(std::int64_t number, std::int64_t chunks) const;
};

/// Documents with these first tokens, in consecutive samples of `length`.
Documents documents(std::vector<std::int64_t> begins, std::int64_t samples, std::int64_t length);

/// The context of a forward besides its inputs. Random streams depend on the leaf and the unit, not on the rank.
struct ForwardContext {
  const Batch& batch;
  std::uint64_t stream = 0;      ///< key of (seed, step, leaf)
  bool training = true;          ///< false disables dropout
  at::Tensor* logits = nullptr;  ///< if not null, the last unit stores the logits of its loss, [B, T, V] or [B, L]
  /// A running sum next to the output, float32 and differentiable: a unit gets the sum of the units before it,
  /// undefined for the first ones, and may add a term. Null: this forward has no such sum.
  at::Tensor* beside = nullptr;

  /// The ranks among which the unit's experts are divided: `own` are this rank's, once for each leaf. Null: `own` are
  /// all, once.
  const ExpertRanks* experts = nullptr;

  std::span<const std::int64_t> document_begins() const { return batch.documents.begins; }
};

/// The arguments of a forward of one chunk.
struct Chunk {
  at::Tensor x;
  std::span<const at::Tensor> own, borrowed;
  ForwardContext context;
};

/// A tensor that files of other programs have besides a unit's parameters, and that may be ignored.
struct Extra {
  std::string suffix{};   ///< the end of its name
  std::string same_as{};  ///< only if it equals this parameter (a copy of a tied one); "": with any content
  std::string prefix{};   ///< the beginning of its name
};

/// Fills a part of a unit's flat buffer with initial values: values.size() elements from `begin` on.
using Beginning = std::function<void(std::size_t unit, std::int64_t begin, std::span<float> values)>;

/// Immutable; forward gets the tensors of its parameters, views of a flat buffer in parameters() order.
class Unit {
 public:
  Unit(std::string name, std::vector<Parameter> parameters, int tied_to = -1, std::vector<Extra> extras = {});
  virtual ~Unit() = default;

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::int64_t numel() const { return numel_; }
  /// Elements of those that are trained: the first ones of the flat buffer.
  std::int64_t trained() const { return trained_; }
  /// Index of the unit whose parameters forward reads as `borrowed` (a tied head), or -1.
  int tied_to() const { return tied_to_; }
  const std::vector<Extra>& extras() const { return extras_; }

  /// The unit's output from the one before it (undefined for the first); the last unit gives the mean loss per
  /// token, a scalar in float32. Must use every parameter that is trained.
  virtual at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> own, std::span<const at::Tensor> borrowed,
                             const ForwardContext& context) const = 0;
  /// The same of the chunks of a micro-batch that this rank has. By default each is computed alone, as a unit may whose
  /// tokens do not see each other. COLLECTIVE: of the ranks that share the sequences.
  virtual std::vector<at::Tensor> forward_chunks(std::span<const Chunk> chunks, const Sequence& sequence) const;
  /// The number of experts, or 0. All have the same number of parameters, stored one expert after another, so that
  /// ranks can divide them.
  virtual std::int64_t experts() const { return 0; }
  /// Experts [begin, end) as a unit, which computes where others have the rest. REQUIRES: experts().
  virtual std::unique_ptr<Unit> part(std::int64_t /*begin*/, std::int64_t /*end*/) const { return nullptr; }
  /// Numbers of a token that go to experts and come back in a forward, where they are divided.
  virtual std::int64_t routed() const { return 0; }
  /// Numbers of a token that Sequence::attend() moves in a forward of this unit, with this number of chunks.
  virtual std::int64_t exchanged(std::int64_t /*chunks*/) const { return 0; }

 private:
  std::string name_;
  std::vector<Parameter> parameters_;
  std::int64_t numel_ = 0, trained_ = 0;
  int tied_to_;
  std::vector<Extra> extras_;
};

using Units = std::vector<std::unique_ptr<Unit>>;

/// Parameters of all units together, and the trained ones among them.
std::int64_t numel(const Units& units);
std::int64_t trained(const Units& units);
/// Parameters that a token does not meet: of the experts that it is not sent to.
std::int64_t idle(const Unit& unit);
std::int64_t idle(const Units& units);

/// Views of `flat` (numel elements), one per parameter, in parameters() order; they share its storage.
std::vector<at::Tensor> views(const Unit& unit, const at::Tensor& flat);
/// The view of one parameter.
at::Tensor view(const Parameter& parameter, const at::Tensor& flat);

/// The unit's tensors as files have them, each by its parameters: one, or those that are stacked in it, by row.
std::vector<std::vector<const Parameter*>> tensors(const Unit& unit);

/// Fills a part of a unit's flat buffer, from element `begin` on, with its initial values for `seed`: those that the
/// whole has there, whatever the part. Draws only the parameters in it.
void initialise(const Unit& unit, std::uint64_t seed, std::int64_t begin, std::span<float> values);

}  // namespace zs::unit
