// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::setup {
namespace {

using config::setting;

/// The numbers of chunks that the heads of a model allow, joined by commas.
std::string allowed_chunks(const model::Model& model) {
  std::vector<std::int64_t> all;
  for (std::int64_t chunks = 1; chunks <= model.num_heads; ++chunks) {
    if (unit::divides_heads(chunks, model.num_heads, model.num_key_value_heads)) all.push_back(chunks);
  }
  return joined(all, ", ", [](std::int64_t chunks) { return to_text(chunks); });
}

}  // namespace

void choose_sequences(const config::Reading& config, Settings& s) {
  constexpr auto kRanks = setting<"zero.sequence_parallel">;
  constexpr auto kChunks = setting<"zero.sequence_chunks">;
  s.sequence = static_cast<int>(config[kRanks]);
  const auto asked = config[kChunks];
  s.chunks = static_cast<int>(asked.value_or(s.sequence));
  if (s.chunks == 1 && s.sequence == 1) return;
  const auto refuse = [&](bool chunks, const std::string& why) {
    config::refuse(chunks && asked ? *config.entry(kChunks) : *config.entry(kRanks), why);
  };
  if (s.ranks % s.sequence != 0)
    refuse(false, "does not divide the " + std::to_string(s.ranks) + " ranks, which share each sequence");
  if (s.chunks % s.sequence != 0)
    refuse(true, "sequence_parallel " + std::to_string(s.sequence) +
                     " does not divide it: all ranks have the same number of chunks");
  if (model::takes_images(s.model.name))
    refuse(true, "model " + s.model.name + " takes images, whose patches all see each other: leave it out");
  if (s.model.seq_length % s.chunks != 0)
    refuse(true,
           "does not divide the " + to_text(s.model.seq_length) + " tokens of a sequence: choose another --seq_length");
  const model::Model model = model::make(s.model);
  if (!unit::divides_heads(s.chunks, model.num_heads, model.num_key_value_heads))
    refuse(true, "its " + std::to_string(s.chunks) + " chunks do not divide the heads of " + model.name + ", " +
                     to_text(model.num_heads) + " of queries and " + to_text(model.num_key_value_heads) +
                     " of keys and values: --sequence_chunks may be " + allowed_chunks(model));
  if (s.engine.zeropp.quantized_gradients)
    refuse(true, "gradients that travel as 4 bits are of whole sequences: leave out zero_quantized_gradients");
  if (s.float8 != kernel::Scales::none) refuse(true, "products of 8 bits are of whole sequences: leave out --fp8");
}

}  // namespace zs::setup
