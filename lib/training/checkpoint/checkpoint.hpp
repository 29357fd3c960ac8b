// SPDX-License-Identifier: Apache-2.0
// A training's state in a folder that appears whole or not at all, and that any number of ranks and any stage can go on
// from: tensors are stored by parameter name and canonical offset, not by rank.
//
//   pytorch_model.bin       float32 parameters, name -> tensor (torch.load reads it)
//   gradients.pt            the step's mean gradient before clipping, name -> tensor; not with --save_gradients false
//   gradient_norms.pt       of each micro-batch of that step: parameter -> norms of its gradient by leaf; with
//                           --save_gradient_norms, and not where a signal asked for the checkpoint
//   config.json             the model, with Hugging Face's keys
//   adapter_config.json     its adapters, with peft's, where it has some
//   accelerator_states/     state.json, and optimizer_RANK.pt: each rank's part of what the optimizer keeps
//   SHA256SUMS              of all these; loading verifies it (so does sha256sum -c)
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "checkpoint/norms.hpp"
#include "comm/group.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// What a training needs to know beside the engine's tensors. Whoever resumes must have the same leaves, batch, data
/// and seed, or its steps are not those of the undisturbed run.
struct Progress {
  std::int64_t step = 0;        ///< steps done
  std::int64_t leaves = 0;      ///< micro-batches of a step: ranks x accumulation steps
  std::int64_t batch_size = 0;  ///< sequences of a micro-batch
  std::int64_t seq_length = 0;
  std::int64_t seed = 0;
  std::int64_t sampler_position = 0;  ///< sequences taken so far
  double learning_rate = 0;           ///< of the last step: for readers; it follows from the step
  /// What other programs go on with; zs takes its own settings.
  double next_learning_rate = 0;  ///< of the step that comes next
  std::string dataset_sha256;
  /// The settings that decide how numbers are rounded, by their names in the table of attributes; of some, where an
  /// earlier zs wrote it.
  std::map<std::string, std::string> arithmetic{};
};

/// What stands beside the tensors of a model.
struct ModelFiles {
  std::string config;     ///< the text of config.json
  std::string adapter{};  ///< that of adapter_config.json; "" where the model has no adapters
};

/// Accumulation steps with which so many ranks take the steps of `progress`; throws zs::Error, with the remedy, where
/// they cannot share them.
std::int64_t micro_steps(const Progress& progress, const std::string& folder, int ranks);

/// Writes a checkpoint beside its final place and moves it there when all of it is on disk. All calls are COLLECTIVE;
/// every rank writes its part at the same time. A writer that is dropped before commit() leaves nothing.
class Writer {
 public:
  /// `folder` is the final name, "RUN/checkpoint_100".
  Writer(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Between reduction and update (zero::Observer::reduced).
  void gradients();
  /// After gradients(): the norms of the step's micro-batches.
  void gradient_norms(MicroBatchNorms& norms);
  /// After the update. A checkpoint of that name that is there already is replaced. Throws comm::SharedError, and
  /// leaves no checkpoint, where the ranks do not have the same parameters, progress and number of threads.
  void commit(const Progress& progress);

 private:
  comm::Group& group_;
  zero::Engine& engine_;
  std::string folder_, temporary_;

  void seal();
};

/// What a checkpoint's state.json says, which can be: nothing where it holds weights alone (a folder from elsewhere).
/// Throws zs::Error, located.
std::optional<Progress> peek(const std::string& folder);

/// Sets the engine's parameters, and, where the checkpoint has them and the engine trains, its moments and counters; as
/// peek() otherwise.
/// Throws zs::Error, located, at a file that is missing, damaged or not listed, at weights of another model, and where
/// ranks read another content. COLLECTIVE.
std::optional<Progress> load(comm::Group& group, zero::Engine& engine, const std::string& folder);

/// Writes the parameters as Hugging Face's from_pretrained loads them: model.safetensors, config.json, and copies of
/// the tokenizer's files in the folder `tokenizer`, or "" for none. Of a model with adapters it writes these alone, as
/// peft's from_pretrained loads them: adapter_model.safetensors, adapter_config.json. Throws zs::Error, located.
/// REQUIRES: prepare_pretrained(). COLLECTIVE.
void save_pretrained(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model,
                     const std::string& tokenizer);
/// Makes the folder for that. Throws zs::Error where it cannot be made, or holds weights in other files, which loaders
/// would take for the same model. COLLECTIVE.
void prepare_pretrained(comm::Group& group, const std::string& folder);

/// The newest checkpoint_STEP of a run's folder, else its final_checkpoint; "" where there is neither.
std::string latest(const std::string& run_folder);

/// Removes what writers that were killed left in a run's folder; a checkpoint that one was about to replace comes back.
/// REQUIRES: nobody writes there.
void remove_leftovers(const std::string& run_folder);

/// Removes all but the newest `keep` checkpoint_STEP folders.
void prune(const std::string& run_folder, std::int64_t keep);

}  // namespace zs::checkpoint
