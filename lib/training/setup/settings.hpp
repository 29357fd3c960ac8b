// SPDX-License-Identifier: Apache-2.0
// The settings of a training, from a configuration.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text.hpp"
#include "device/view.hpp"
#include "image/transform.hpp"
#include "kernel/kernels.hpp"
#include "model/model.hpp"
#include "setup/profiled_steps.hpp"
#include "setup/schedule.hpp"
#include "tracker/wandb.hpp"
#include "zero/engine.hpp"

namespace zs::config {
class Reading;
}

namespace zs::setup {

struct Settings : plan::Layout {
  bool tf32 = false;
  kernel::Scales float8{};         ///< of the factors of the blocks' products, which are rounded to 8 bits; or none
  std::string transport = "auto";  ///< for a GPU's memory between ranks
  bool calibrated = true;          ///< use the table of this GPU for matrix products, if there is one
  model::Settings model;
  std::string adapter;       ///< folder of peft with initial adapters, or ""
  bool initializes = false;  ///< init_type was given: a model's folder needs no weights
  zero::Settings engine;
  std::string backend;
  std::string method;  ///< as requested, or ""
  bool deepcompile = false, activation_checkpointing = false;
  bool keeps_attention = false;                       ///< --activation_checkpointing selective
  plan::Schedule passes;                              ///< empty: none
  std::int64_t gathered_elements = 0;                 ///< limit for gathered elements in passes
  bool has_budget = false;                            ///< both were given
  double memory = 0;                                  ///< limit for bytes of device memory of a rank
  std::shared_ptr<const plan::Profile> plan_profile;  ///< measured times of the plan's operations, or null
  zero::Strategy strategy() const {
    return {*this,
            activation_checkpointing,
            keeps_attention,
            passes,
            {gathered_elements, plan_profile, memory},
            batch_size * model.seq_length};
  }

  std::string dataset;
  std::string tokenizer;  ///< its path; "": bytes
  std::string text_key;   ///< of JSON Lines; "": text, in files with such names
  double dataset_percentage = 100;
  std::int64_t dataset_size = 0;
  data::HeldOut held_out;
  data::Packing packing = data::Packing::whole;
  data::TooLong too_long = data::TooLong::split;
  std::optional<chat::LossOn> loss_on{};  ///< for conversations
  image::Transform transform;             ///< for images; its size is the model's
  bool skip_bad_images = false;
  int num_workers = 1;  ///< threads that decode images

  std::int64_t batch_size = 1, eval_batch_size = 1;  ///< of one micro-batch
  std::int64_t num_epochs = 0, max_steps = 0;        ///< 0: no limit; not both
  Schedule schedule;
  std::int64_t eval_steps = 0, log_interval = 10, timing_warmup = 0, digest_every = 0;
  bool eval = false;
  std::string dump_logits;  ///< file for the logits of the last evaluation, or ""
  std::string output_dir, run_name;
  bool profile = false;                    ///< profile some steps
  ProfiledSteps profiled;                  ///< the requested ones
  std::string profile_dir;                 ///< folder for the traces; "": the run's
  std::optional<std::string> tensorboard;  ///< its folder, "" for the run's folder
  std::optional<tracker::WandbRun> wandb;  ///< as requested: without id, folder and generated name
  std::string probe;                       ///< folder for a probe in the format of zs_probe; "": none
  std::int64_t probe_every = 1;
  std::string probe_values;                    ///< "all", or steps joined by commas, whose values are kept; "": none
  std::optional<std::uint64_t> probe_perturb;  ///< a seed: moves each parameter by a unit in the last place
  std::string checkpoint;                      ///< folder to resume from, or ""
  std::int64_t save_steps = 0;                 ///< 0: only the final one
  bool save_final = true;
  std::string save_pretrained;    ///< folder for the trained model, or ""
  std::string checkpoint_format;  ///< other form of each checkpoint, one of checkpoints::kForms, or ""
  bool deterministic = true;      ///< use only operations with reproducible bits
  std::int64_t keep_last = 0;     ///< 0: all
  bool save_gradients = true;
  bool save_gradient_norms = false;  ///< of micro-batches, with the gradients
  bool may_be_done = false;  ///< the checkpoint may have all steps: the run was killed before it reported its result
  bool verbose = false;      ///< also log the effects of passes
  std::vector<std::string> notes;  ///< for the log: values that were chosen by default, or that never apply
};

/// The settings for `ranks` ranks, on GPUs or not; throws zs::Error if the configuration asks for something
/// unsupported. Reads a setting only where it has an effect: the rest is for Reading::require_read().
Settings settings(const config::Reading& config, int ranks, bool gpu = false);

}  // namespace zs::setup
