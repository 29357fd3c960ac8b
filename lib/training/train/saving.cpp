// SPDX-License-Identifier: Apache-2.0
#include "train/saving.hpp"

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/foreign.hpp"
#include "comm/agree.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "model/peft.hpp"
#include "setup/describe.hpp"
#include "setup/preprocessor.hpp"
#include "setup/signals.hpp"

namespace zs::train {
Saving::Saving(comm::Group& group, zero::Engine& engine, const Settings& settings, const model::Model& model,
               const std::string& folder)
    : group_(group),
      engine_(engine),
      settings_(settings),
      folder_(comm::broadcast(group, folder, 0, "agreement on the run's folder")),
      model_folder_(model.folder),
      files_{model.config_json,
             settings.model.adaptation.adapts() ? model::peft_json(model, settings.model.adaptation) : "",
             model.takes_images() ? setup::preprocessor_json(settings.transform) : ""},
      other_(checkpoint::form_of(settings.checkpoint_format, group, engine)) {}

std::string Saving::name(std::int64_t step, bool last) const {
  return folder_ + (last && settings_.save_final ? "/final_checkpoint" : "/checkpoint_" + to_text(step));
}

void Saving::before(std::int64_t step, std::int64_t steps, zero::Observer seen) {
  const bool last = step == steps;
  zero::Observer observer{.leaf = seen.leaf};
  norms_.reset();
  if (settings_.save_gradient_norms && due(step, last)) {
    norms_.emplace(group_, engine_);
    observer.leaf = [this, also = seen.leaf](int unit, int micro) {
      norms_->add(unit, micro);
      if (also) also(unit, micro);
    };
  }
  if (settings_.save_gradients) {
    // Whether to stop is agreed on while the gradients are there, so that every checkpoint has them.
    observer.reduced = [this, step, last, seen = std::move(seen.reduced)] {
      if (seen) seen();
      for (const int asked : comm::exchange_values(group_, int{setup::stop_asked()}, "agreement on going on"))
        stopping_ = stopping_ || asked;
      if (due(step, last) || stopping_) write_gradients(step, last);
    };
  } else {
    observer.reduced = std::move(seen.reduced);
    observer.stop = setup::stop_asked;
  }
  engine_.observe(std::move(observer));
}

void Saving::write_gradients(std::int64_t step, bool last) {
  writer_ = std::make_unique<checkpoint::Writer>(group_, engine_, name(step, last), files_, other_);
  writer_->gradients();
  if (norms_) writer_->gradient_norms(*norms_);
}

void Saving::after(const checkpoint::Progress& progress, bool last) {
  engine_.observe({});
  if (last && !settings_.save_pretrained.empty())
    checkpoint::save_pretrained(group_, engine_, settings_.save_pretrained, files_, model_folder_);
  if (!due(progress.step, last) && !stopping_) return;
  if (!writer_)
    writer_ = std::make_unique<checkpoint::Writer>(group_, engine_, name(progress.step, last), files_, other_);
  writer_->commit(progress);
  writer_.reset();
  if (group_.rank() == 0 && settings_.keep_last > 0) checkpoint::prune(folder_, settings_.keep_last);
}

void require_same(const checkpoint::Progress& progress, const Settings& settings, int ranks,
                  const std::string& dataset_sha256) {
  const std::string anew = "begin another run from its weights, --model_name " + settings.checkpoint;
  const auto differs = [&](const std::string& what, auto then, auto now, const std::string& remedy) {
    if (then == now) return;
    throw Error(settings.checkpoint, 0,
                "was made with " + what + " " + to_text(std::int64_t{then}) + ", not " + to_text(std::int64_t{now}) +
                    ": " + remedy + ", or " + anew);
  };
  plan::Layout needed{.ranks = settings.groups()};
  needed.divide(progress.leaves);
  differs("micro-batches a step", progress.leaves, settings.micro_batches(),
          needed.short_ranks > 0 ? "use --train_batch_size " + to_text(progress.leaves * progress.batch_size)
                                 : "on " + std::to_string(ranks) + " ranks use --gradient_accumulation_steps " +
                                       std::to_string(needed.micro_steps));
  differs("batch_size", progress.batch_size, settings.batch_size, "use --batch_size " + to_text(progress.batch_size));
  differs("seq_length", progress.seq_length, settings.model.seq_length,
          "use --seq_length " + to_text(progress.seq_length));
  differs("seed", progress.seed, static_cast<std::int64_t>(settings.engine.seed),
          "use --seed " + to_text(progress.seed));
  if (progress.dataset_sha256 != dataset_sha256) {
    const auto chooses = [](const attribute::Attribute& row) {
      return row.through == "dataset_sha256" && config::known(row.key) && !config::known(row.key)->options.empty();
    };
    const auto option = [](const attribute::Attribute* row) {
      return "--" + std::string(words_of(config::known(row->key)->options).front());
    };
    throw Error(settings.checkpoint, 0,
                "was made with other samples: " + settings.dataset + " has changed, or one of these options has: " +
                    joined(attribute::filtered(chooses), ", ", option) + ": use what it had, or " + anew);
  }
  // Another arithmetic goes another way from here on, and would be one run with the steps before.
  std::vector<std::string> names;
  for (const auto& [name, then] : progress.arithmetic) names.push_back(name);
  attribute::Facts now = chosen_arithmetic(settings);
  for (const std::string& name : attribute::in_order(names)) {
    const std::string& then = progress.arithmetic.at(name);
    const attribute::Attribute* const row = attribute::find(name);
    if (!row || !now.contains(name) || now[name] == then) continue;
    const config::Known* const setting = config::known(row->key);
    throw Error(settings.checkpoint, 0,
                "was made with " + name + " " + then + ", not " + now[name] + ": " +
                    (setting ? "use " + config::as_option(*setting, then) + ", or " : "") + anew);
  }
}

}  // namespace zs::train
