// SPDX-License-Identifier: Apache-2.0
// The engine's interface to a model: a list of units (embedding, blocks, head), each with parameters in one flat
// buffer, and a forward that LibTorch can differentiate.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "unit/batch.hpp"
#include "unit/context.hpp"
#include "unit/expert_ranks.hpp"
#include "unit/parameter.hpp"
#include "unit/sequence.hpp"
#include "unit/tensor.hpp"

namespace zs::unit {

/// A tensor that files of other programs have besides a unit's parameters, and that may be ignored.
struct Extra {
  std::string suffix{};   ///< the end of its name
  std::string same_as{};  ///< only if it equals this parameter (a copy of a tied one); "": with any content
  std::string prefix{};   ///< the beginning of its name
};

/// Fills a part of a unit's flat buffer with initial values: values.size() elements from `begin` on.
using Beginning = std::function<void(std::size_t unit, std::int64_t begin, std::span<float> values)>;

/// The bytes of a matrix that is held in 4 bits, where a file has them; false: it has numbers.
using PackedBeginning = std::function<bool(std::size_t unit, std::size_t parameter, std::span<std::byte> bytes)>;

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
  /// Elements that are held in 4 bits: the last ones.
  std::int64_t packed() const { return packed_; }
  /// Index of the unit whose parameters forward reads as `borrowed` (a tied head), or -1.
  int tied_to() const { return tied_to_; }
  const std::vector<Extra>& extras() const { return extras_; }

  /// The unit's output from the one before it (undefined for the first); the last unit gives the mean loss per
  /// token, a scalar in float32. Must use every parameter that is trained.
  virtual at::Tensor forward(const at::Tensor& x, std::span<const at::Tensor> owned,
                             std::span<const at::Tensor> borrowed, const ForwardContext& context) const = 0;
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
  std::int64_t numel_ = 0, trained_ = 0, packed_ = 0;
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
