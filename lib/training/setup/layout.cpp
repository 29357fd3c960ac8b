// SPDX-License-Identifier: Apache-2.0
// The batch of a step, and the number of steps.
#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "setup/choices.hpp"

namespace zs::setup {
namespace {

using config::setting;

/// The numbers of chunks that the heads of a model allow, joined by commas.
std::string allowed_chunks(const model::Model& model) {
  std::vector<std::int64_t> counts;
  for (std::int64_t chunks = 1; chunks <= model.num_heads; ++chunks) {
    if (unit::divides_heads(chunks, model.num_heads, model.num_key_value_heads)) counts.push_back(chunks);
  }
  return joined(counts, ", ", [](std::int64_t chunks) { return to_text(chunks); });
}

/// A step's batch over all ranks, train_batch_size, is batch_size x accumulation steps x ranks: what is not set of the
/// first two follows, as DeepSpeed has it. Micro-batches that ranks cannot share evenly are divided as evenly as they
/// can be.
void divide_batch(const config::Reading& config, Settings& s, std::int64_t whole) {
  constexpr auto kWhole = setting<"training.train_batch_size">;
  if (const config::Entry* const most = config.entry(setting<"training.max_gpu_batch_size">)) {
    throw Error(place_of(*config.entry(kWhole)) + " says how a batch is divided, and so does " + most->key + " (" +
                most->origin + "): leave one out, or set it to null");
  }
  const bool batch = config.given(setting<"training.batch_size">),
             steps = config.entry(setting<"training.gradient_accumulation_steps">) != nullptr;
  const int asked = s.micro_steps;
  const std::int64_t parts = std::int64_t{asked} * s.groups();
  if (!batch) s.batch_size = whole % parts == 0 ? whole / parts : 0;
  const bool divides = s.batch_size > 0 && whole % s.batch_size == 0 && whole / s.batch_size <= std::int64_t{1} << 30;
  if (divides) s.divide(whole / s.batch_size);
  if (divides && (!steps || s.micro_steps == asked)) return;
  const auto part = [](bool set, std::int64_t value) { return set ? to_text(value) : "?"; };
  throw Error(place_of(*config.entry(kWhole)) + " is " + to_text(whole) +
              ", and batch_size x gradient_accumulation_steps x ranks" +
              (s.sequence > 1 ? " / sequence_parallel" : "") + " is " + part(batch, s.batch_size) + " x " +
              part(steps, asked) + " x " + std::to_string(s.groups()) + ": no whole numbers make them equal" +
              (batch ? "" : "; with batch_size set ranks may have one micro-batch less than others"));
}

/// A rank's batch in accumulation steps: as many as max_gpu_batch_size makes of a larger batch, else as asked for.
void split_batch(const config::Reading& config, Settings& s) {
  s.batch_size = config[setting<"training.batch_size">];
  const auto steps = config[setting<"training.gradient_accumulation_steps">];
  s.micro_steps = static_cast<int>(steps.value_or(1));
  if (const auto whole = config[setting<"training.train_batch_size">]) return divide_batch(config, s, *whole);
  const auto most = config[setting<"training.max_gpu_batch_size">];
  if (!most || s.batch_size <= *most) return;
  if (s.batch_size % *most != 0) {
    throw Error(place_of(*config.entry(setting<"training.max_gpu_batch_size">)) + " must divide batch_size, " +
                to_text(s.batch_size));
  }
  const std::int64_t parts = s.batch_size / *most;
  const std::string whole = to_text(s.batch_size);
  s.batch_size = *most;
  const config::Entry* const asked = config.entry(setting<"training.gradient_accumulation_steps">);
  const bool goes_on = config.entry(setting<"training.max_gpu_batch_size">)->from == config::From::stored;
  if (goes_on && asked && asked->from == config::From::user) return;  // other ranks may continue the run
  s.micro_steps = static_cast<int>(parts);
  if (steps && *steps != parts) {
    s.notes.push_back(place_of(*config.entry(setting<"training.gradient_accumulation_steps">)) + " is " +
                      to_text(*steps) + ", and max_gpu_batch_size takes its place: batch_size " + whole + " is " +
                      to_text(parts) + " micro-batches of " + to_text(*most));
  }
}

/// How long to train: by steps, by epochs, or by both, whichever comes first.
void limit_steps(const config::Reading& config, Settings& s) {
  constexpr std::int64_t kUsualSteps = 100;
  const auto steps = config[setting<"training.max_steps">], epochs = config[setting<"training.num_epochs">];
  s.max_steps = steps.value_or(0);
  s.num_epochs = epochs.value_or(0);
  if (steps && s.max_steps == 0 && !epochs) s.num_epochs = 1;
  if (steps || epochs) return;
  s.max_steps = kUsualSteps;
  s.notes.push_back("max_steps is " + to_text(kUsualSteps) + ": neither max_steps nor num_epochs is set");
}

}  // namespace

void choose_experts(const config::Reading& config, Settings& s) {
  if (!model::has_experts(s.model.name)) return;
  constexpr auto kRanks = config::setting<"zero.expert_parallel">;
  s.experts = static_cast<int>(config[kRanks]);
  if (s.experts == 1) return;
  const auto refuse = [&](const std::string& why) { config::refuse(*config.entry(kRanks), why); };
  if (s.ranks % s.experts != 0)
    refuse("does not divide the " + std::to_string(s.ranks) + " ranks, which divide the experts");
  if (s.chunks > 1) refuse("sequences are computed in chunks: leave out one of the two");
  const model::Adaptation& how = s.model.adaptation;
  if (how.adapts() || !how.frozen.empty())
    refuse("experts are divided where all of them are trained: leave out adapters and --freeze");
  const zero::ZeroPlusPlus& zeropp = s.engine.zeropp;
  if (zeropp.secondary > 0 || zeropp.quantized_weights || zeropp.quantized_gradients)
    refuse("experts are divided without ZeRO++: leave out hpZ, qwZ and qgZ");
  for (const auto& unit : model::make(s.model).units) {
    if (unit->experts() % s.experts != 0)
      refuse("does not divide the " + to_text(unit->experts()) + " experts of a layer");
  }
}

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

void choose_steps(const config::Reading& config, Settings& s) {
  split_batch(config, s);
  limit_steps(config, s);
}

}  // namespace zs::setup
