// SPDX-License-Identifier: Apache-2.0
// What a training is made of, from a configuration.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text.hpp"
#include "device/view.hpp"
#include "image/transform.hpp"
#include "model/model.hpp"
#include "setup/profiled_steps.hpp"
#include "setup/schedule.hpp"
#include "tracker/wandb.hpp"
#include "zero/engine.hpp"

namespace zs::config {
class Reading;
}

namespace zs::setup {

struct Settings {
  int ranks = 1;
  bool tf32 = false;
  bool float8 = false;             ///< factors of the blocks' products are rounded to 8 bits, by one scale a matrix
  std::string transport = "auto";  ///< of a GPU's memory between ranks
  bool calibrated = true;          ///< matrix products by the table of this GPU, where there is one
  model::Settings model;
  std::string adapter;       ///< folder of peft with adapters to begin with, or ""
  bool initializes = false;  ///< init_type was asked for: a model's folder needs no weights
  zero::Settings engine;
  int stage = 0;
  std::string backend;
  std::string method;  ///< as it was asked for, or ""
  int micro_steps = 1;
  bool deepcompile = false, activation_checkpointing = false;
  plan::Schedule passes;                              ///< empty: none
  std::int64_t gathered_elements = 0;                 ///< what passes may keep gathered
  bool has_budget = false;                            ///< both were asked for
  double memory = 0;                                  ///< bytes of device memory that a rank may fill
  std::shared_ptr<const plan::Profile> plan_profile;  ///< what was measured of the plan's operations, or null
  zero::Strategy strategy() const {
    return {stage, micro_steps, activation_checkpointing, passes, {gathered_elements, plan_profile, memory}};
  }

  std::string dataset;
  std::string tokenizer;  ///< its path; "": bytes
  std::string text_key;   ///< of JSON Lines; "": text, of files named so
  double dataset_percentage = 100;
  std::int64_t dataset_size = 0;
  data::HeldOut held_out;
  data::Packing packing = data::Packing::whole;
  data::TooLong too_long = data::TooLong::split;
  std::optional<chat::LossOn> loss_on{};  ///< of conversations
  image::Transform transform;             ///< of images; its size is the model's
  bool skip_bad_images = false;
  int num_workers = 1;  ///< threads that decode images

  std::int64_t batch_size = 1, eval_batch_size = 1;  ///< of one micro-batch
  std::int64_t num_epochs = 0, max_steps = 0;        ///< 0: no limit; not both
  Schedule schedule;
  std::int64_t eval_steps = 0, log_interval = 10, timing_warmup = 0, digest_every = 0;
  bool eval = false;
  std::string dump_logits;  ///< file for those of the last evaluation, or ""
  std::string output_dir, run_name;
  bool profile = false;                    ///< profile some steps
  ProfiledSteps profiled;                  ///< those asked for
  std::string profile_dir;                 ///< folder for the traces; "": the run's
  std::optional<std::string> tensorboard;  ///< its folder, "" for the run's own
  std::optional<tracker::WandbRun> wandb;  ///< as asked for: without id, folder and a name of its own
  std::string probe;                       ///< folder for what zs_probe.py records of a PyTorch training; "": none
  std::int64_t probe_every = 1;
  std::string probe_values;     ///< "all", or steps joined by commas; "": of none the values are kept
  std::string checkpoint;       ///< folder to go on from, or ""
  std::int64_t save_steps = 0;  ///< 0: none but the final one
  bool save_final = true;
  std::string save_pretrained;  ///< folder for the trained model, or ""
  bool deterministic = true;    ///< only operations that repeat their bits
  std::int64_t keep_last = 0;   ///< 0: all
  bool save_gradients = true;
  bool save_gradient_norms = false;  ///< of micro-batches, with the gradients
  bool may_be_done = false;  ///< the checkpoint may have all steps: of a run that was killed before it said its result
  bool verbose = false;      ///< what passes did is for the log too
  std::vector<std::string> notes;  ///< what was chosen because nothing was asked for, or never comes, for the log
};

/// "float32", "bfloat16" or "float16".
std::string dtype_name(at::ScalarType dtype);

/// The same of autocast; "none" where it is off.
std::string autocast_name(const Settings& settings);

/// What matrix products are made of: the name of the type, "tf32", or "float8".
std::string matrix_format(const Settings& settings);

/// The settings for `ranks` ranks, on GPUs or not; throws zs::Error where the configuration asks for what zs does not
/// do
/// ("not supported yet"). Reads a setting only where it has an effect: what is left is for Reading::require_read().
Settings settings(const config::Reading& config, int ranks, bool gpu = false);

/// The settings of an evaluation, where there is one.
void choose_evaluation(const config::Reading& config, Settings& settings);

/// Settles what the device of the ranks decides: where forward runs, and what passes may keep gathered there.
void place_on(Settings& settings, const device::Device& device);

}  // namespace zs::setup
