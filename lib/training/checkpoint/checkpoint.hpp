// SPDX-License-Identifier: Apache-2.0
// Checkpoints: a training's state in a folder that appears whole or not at all. Any number of ranks and any stage can
// resume from it: tensors are stored by parameter name and canonical offset, not by rank.
//
//   pytorch_model.bin       float32 parameters, name -> tensor (torch.load reads it)
//   gradients.pt            the step's mean gradient before clipping, name -> tensor; not with --save_gradients false
//   gradient_norms.pt       of each micro-batch of that step: parameter -> norms of its gradient by leaf; with
//                           --save_gradient_norms, and not if a signal asked for the checkpoint
//   config.json             the model, with Hugging Face's keys
//   adapter_config.json     its adapters, with peft's keys, if it has some
//   accelerator_states/     state.json, and optimizer_RANK.pt: each rank's part of the optimizer's state
//   FORM/                   the same in another form, with --checkpoint_format FORM
//   SHA256SUMS              of all these; loading verifies it (so does sha256sum -c)
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "checkpoint/norms.hpp"
#include "comm/group.hpp"
#include "state/convert.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// The training's state besides the engine's tensors. A resumed training must have the same leaves, batch, data and
/// seed; otherwise its steps differ from the steps of an undisturbed run.
struct Progress {
  std::int64_t step = 0;        ///< steps done
  std::int64_t leaves = 0;      ///< micro-batches per step: ranks x accumulation steps
  std::int64_t batch_size = 0;  ///< sequences per micro-batch
  std::int64_t seq_length = 0;
  std::int64_t seed = 0;
  std::int64_t sampler_position = 0;  ///< sequences taken so far
  double learning_rate = 0;           ///< of the last step: for readers only; it follows from the step
  /// For other programs that resume from it; zs uses its own settings.
  double next_learning_rate = 0;  ///< of the next step
  std::string dataset_sha256;
  /// The settings that affect rounding, by their names in the table of attributes.
  std::map<std::string, std::string> arithmetic{};
};

/// The files of a model besides its tensors.
struct ModelFiles {
  std::string config;          ///< the text of config.json
  std::string adapter{};       ///< that of adapter_config.json; "" if the model has no adapters
  std::string preprocessor{};  ///< that of preprocessor_config.json; "" if the model takes no images
};

/// Writes a checkpoint under a temporary name and renames it when all of it is on disk. All calls are COLLECTIVE; every
/// rank writes its part at the same time. A writer that is destroyed before commit() leaves nothing.
class Writer {
 public:
  /// `folder` is the final name, "RUN/checkpoint_100". With `other`, rank 0 also converts the written checkpoint to
  /// that form, into the subfolder of its name.
  Writer(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model,
         const std::optional<checkpoints::Form>& other = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Call it between reduction and update (zero::Observer::reduced).
  void gradients();
  /// Call it after gradients(): the norms of the step's micro-batches.
  void gradient_norms(MicroBatchNorms& norms);
  /// Call it after the update. Replaces an existing checkpoint of that name. Throws comm::SharedError, and leaves no
  /// checkpoint, if the ranks differ in parameters, progress or number of threads.
  void commit(const Progress& progress);

 private:
  comm::Group& group_;
  zero::Engine& engine_;
  std::string folder_, temporary_;
  std::optional<checkpoints::Form> other_;

  void write_sums();
  void seal();
};

/// The content of a checkpoint's state.json; nothing if the folder holds only weights (of another program). Throws
/// zs::Error, located.
std::optional<Progress> peek(const std::string& folder);

/// Sets the engine's parameters and, if the checkpoint has them and the engine trains, its moments and counters;
/// returns as peek(). Throws zs::Error, located, at a file that is missing, damaged or not listed, at weights of
/// another model, and if ranks read different content. COLLECTIVE.
std::optional<Progress> load(comm::Group& group, zero::Engine& engine, const std::string& folder);

/// Writes the parameters as Hugging Face's from_pretrained loads them: model.safetensors, its other files, and copies
/// of the tokenizer's files in the folder `tokenizer`, or "" for none. For a model with adapters it writes only these,
/// as peft's from_pretrained loads them: adapter_model.safetensors, adapter_config.json. Throws zs::Error, located.
/// REQUIRES: prepare_pretrained(). COLLECTIVE.
void save_pretrained(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model,
                     const std::string& tokenizer);
/// Creates the folder for that. Throws zs::Error if it cannot be created, or has weights in other files, which loaders
/// would read as the same model. COLLECTIVE.
void prepare_pretrained(comm::Group& group, const std::string& folder);

}  // namespace zs::checkpoint
