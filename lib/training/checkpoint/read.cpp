// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoints/sums.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;

/// state.json. Every number is asked for with the range that it can have; failures are errors with the path.
class StateFile {
 public:
  explicit StateFile(const std::string& folder) : path_(folder + "/accelerator_states/state.json") {
    try {
      json_ = nlohmann::json::parse(Input(path_).read_all());
    } catch (const nlohmann::json::exception& error) {
      throw Error(path_, 0, error.what());
    }
    if (text("format") != "zs-checkpoint 1") throw Error(path_, 0, "is of another format than this zs reads");
  }

  /// The value at a JSON pointer without its first slash: "sampler/seed".
  std::int64_t integer(const char* key, std::int64_t lowest, std::int64_t highest) const {
    const nlohmann::json& value = at(key);
    const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(highest)
                                                 : value.is_number_integer() && value.get<std::int64_t>() <= highest;
    if (!fits || value.get<std::int64_t>() < lowest) {
      throw Error(path_, 0,
                  std::string(key) + " is " + value.dump() + ", expected a whole number from " + to_text(lowest) +
                      " to " + to_text(highest));
    }
    return value.get<std::int64_t>();
  }
  double real(const char* key, double lowest) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number() || !(value.get<double>() >= lowest) || !std::isfinite(value.get<double>()))
      throw Error(path_, 0,
                  std::string(key) + " is " + value.dump() + ", expected a number of at least " + to_text(lowest));
    return value.get<double>();
  }
  std::string text(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_string()) throw Error(path_, 0, std::string(key) + " is " + value.dump() + ", expected a text");
    return value.get<std::string>();
  }
  /// An object of texts.
  std::map<std::string, std::string> texts(const std::string& key) const {
    std::map<std::string, std::string> texts;
    if (!at(key.c_str()).is_object())
      throw Error(path_, 0, key + " is " + at(key.c_str()).dump() + ", expected names with a text each");
    for (const auto& [name, value] : at(key.c_str()).items()) texts[name] = text((key + "/" + name).c_str());
    return texts;
  }
  bool has(const char* key) const { return json_.contains(nlohmann::json::json_pointer(std::string("/") + key)); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  nlohmann::json json_;

  const nlohmann::json& at(const char* key) const {
    const nlohmann::json::json_pointer place(std::string("/") + key);
    if (!json_.contains(place)) throw Error(path_, 0, std::string("has no ") + key);
    return json_.at(place);
  }
};

constexpr std::int64_t kMany = std::int64_t{1} << 40;  // steps, micro-batches, sequences: beyond it a file is damaged
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Progress read_progress(const StateFile& state) {
  Progress progress;
  progress.step = state.integer("step", 1, kMany);
  progress.leaves = state.integer("leaves", 1, 1 << 30);
  progress.batch_size = state.integer("batch_size", 1, 1 << 30);
  progress.seq_length = state.integer("seq_length", 1, 1 << 30);
  progress.seed = state.integer("sampler/seed", 0, kMost);
  progress.sampler_position = state.integer("sampler/position", 0, kMost);
  progress.learning_rate = state.real("learning_rate", 0);
  progress.dataset_sha256 = state.text("dataset_sha256");
  progress.arithmetic = state.texts("arithmetic");
  std::int64_t taken = 0;
  if (__builtin_mul_overflow(progress.leaves * progress.batch_size, progress.step, &taken) ||
      taken != progress.sampler_position) {
    throw Error(state.path(), 0,
                "sampler/position is " + to_text(progress.sampler_position) + ", which " + to_text(progress.step) +
                    " steps of " + to_text(progress.leaves) + " micro-batches of " + to_text(progress.batch_size) +
                    " sequences do not give");
  }
  return progress;
}

/// The counters of the engine, set from a checkpoint; the number of updates.
std::int64_t restore_counters(zero::Engine& engine, const StateFile& state) {
  const std::int64_t step = state.integer("step", 1, kMany), updates = state.integer("updates", 0, step);
  engine.restore(
      updates, {state.real("loss_scaler/scale", std::numeric_limits<double>::min()),
                state.integer("loss_scaler/iteration", 0, kMany), state.integer("loss_scaler/last_overflow", -1, kMany),
                state.integer("loss_scaler/skipped", 0, step),
                static_cast<int>(state.integer("loss_scaler/hysteresis", 0, 1 << 30))});
  return updates;
}

/// Ranks of a host check the files in turns: another host may see other files under the same name.
void verify_all(comm::Group& group, const std::string& folder) {
  std::int64_t before = 0, together = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (group.host(rank) != group.host(group.rank())) continue;
    before += rank < group.rank();
    ++together;
  }
  comm::together(group, "checking of " + folder, [&] {
    std::int64_t turn = 0;
    for (const auto& [file, digest] : checkpoints::require_files(folder)) {
      if (turn++ % together == before) checkpoints::require_sum(folder, file, digest);
    }
  });
}

/// One tensor's moment in the files of a checkpoint: parts, which must hold each element once.
class Parts {
 public:
  /// The memory for elements of a unit's flat buffer, from `begin` on, of one parameter.
  using Into = std::function<std::span<float>(std::int64_t begin, std::int64_t count)>;
  /// Copies the overlap of one stored part with this rank's part of the parameters of the tensor.
  void copy(const tensorfile::Value& root, const std::string& moment,
            const std::vector<const unit::Parameter*>& parameters, comm::Slice owned, const Into& into,
            const std::string& path) {
    const std::string& name = parameters.front()->name_in_files();
    const std::int64_t numel = std::ssize(parameters) * parameters.front()->numel();
    const tensorfile::Value* const dict = root.find(moment);
    const tensorfile::Value* const value = dict ? dict->find(name) : nullptr;
    if (!value) return;
    const tensorfile::Tensor* const tensor = value->get<tensorfile::Tensor>();
    const tensorfile::Value* const offsets = root.find("offset");
    const tensorfile::Value* const offset = offsets ? offsets->find(name) : nullptr;
    if (!tensor || !offset) throw Error(path, 0, moment + " of " + name + " is malformed");
    const std::int64_t from = offset->integer(path), count = tensor->count();
    if (from < 0 || count > numel || from > numel - count) {
      throw Error(path, 0,
                  moment + " of " + name + " has " + to_text(count) + " elements from " + to_text(from) +
                      " on, which its " + to_text(numel) + " do not hold");
    }
    parts_.push_back({from, from + count});
    for (const unit::Parameter* const parameter : parameters) {
      const std::int64_t shift = parameter->offset - parameter->begin_in_files();  // from the tensor to the buffer
      const auto [begin, end] =
          parameter->place().within(from + shift, from + count + shift).within(owned.begin, owned.end);
      if (begin < end) tensorfile::read_f32(*tensor, begin - shift - from, into(begin, end - begin));
    }
  }

  /// Throws unless the parts are the elements from 0 to `numel`, each once.
  void require_whole(std::int64_t numel, const std::string& name, const std::string& states) {
    std::sort(parts_.begin(), parts_.end(), [](comm::Slice a, comm::Slice b) { return a.begin < b.begin; });
    std::int64_t end = 0;
    for (const comm::Slice part : parts_) {
      if (part.begin < end)
        throw Error(states, 0, "two files have the optimizer state of the same elements of " + name);
      if (part.begin > end) break;
      end = part.end;
    }
    if (parts_.empty())
      throw Error(states, 0,
                  "there is no optimizer state of " + name + ": a rank's file is missing, or it was frozen (--freeze)");
    if (end != numel)
      throw Error(states, 0, "the optimizer state of " + name + " is not complete: a rank's file is missing");
  }

 private:
  std::vector<comm::Slice> parts_;
};

/// Throws if a checkpoint belongs to another optimizer, whose state this one cannot use.
void require_optimizer(const zero::Engine& engine, const StateFile& state) {
  const std::string_view ours = optimizer::description(engine.settings().optimizer.kind).name;
  const std::string theirs = state.text("optimizer/name");
  if (theirs != ours)
    throw Error(state.path(), 0,
                "optimizer is " + theirs + ", and this training has " + std::string(ours) + ": use --optimizer " +
                    theirs + ", or begin with the weights alone (zs-checkpoint convert --to hf)");
}

void load_optimizer(zero::Engine& engine, const std::string& folder, std::int64_t updates) {
  const std::string states = folder + "/accelerator_states";
  std::vector<std::pair<std::string, tensorfile::Value>> roots;
  for (const std::string& file : checkpoints::files(states)) {
    if (file.ends_with(".pt")) roots.emplace_back(states + "/" + file, tensorfile::read_torch(states + "/" + file));
  }
  for (std::size_t unit = 0; unit < engine.states().size(); ++unit) {
    const zero::UnitState& state = engine.states()[unit];
    const comm::Slice owned = state.owned();
    const zero::Slots& slots = engine.optimizer(unit).slots();
    std::vector<at::Tensor> into;
    for (int slot = 0; slot < optimizer::kMostStates; ++slot) into.push_back(at::zeros({slots.count(slot)}));
    for (const auto& parameters : unit::tensors(state.unit())) {
      const unit::Parameter& first = *parameters.front();
      if (!first.trained) continue;
      int slot = 0;
      for (const std::string_view name : optimizer::states(engine.rule(unit, first))) {
        const auto here = [&](std::int64_t begin, std::int64_t count) {
          return device::floats(into[static_cast<std::size_t>(slot)])
              .subspan(static_cast<std::size_t>(slots.place(slot, begin - owned.begin)),
                       static_cast<std::size_t>(count));
        };
        Parts parts;
        for (const auto& [path, root] : roots) parts.copy(root, std::string(name), parameters, owned, here, path);
        parts.require_whole(std::ssize(parameters) * first.numel(), first.name_in_files(), states);
        ++slot;
      }
    }
    engine.optimizer(unit).restore(into, updates);
  }
}

/// Sets what is held in 4 bits: to the bytes of this training's checkpoint, or of a model's file, else to its numbers.
void load_packed(zero::Engine& engine, const std::string& folder, const Weights& weights) {
  std::optional<tensorfile::StateDict> bytes;
  if (fs::exists(folder + kPackedFile)) bytes.emplace(tensorfile::open_state_dict(folder + kPackedFile));
  for (std::size_t unit = 0; unit < engine.states().size(); ++unit) {
    engine.states()[unit].parameters.packed().set(
        [&](std::int64_t begin, std::span<float> values) { weights.read(unit, begin, values); },
        [&](std::size_t index, std::span<std::byte> into) {
          const unit::Parameter& parameter = engine.units()[unit]->parameters()[index];
          const tensorfile::Tensor* const found = bytes ? bytes->find(parameter.name) : nullptr;
          if (!found || found->byte_count() != into.size()) return weights.packed(unit, parameter, into);
          tensorfile::read_raw(*found, {reinterpret_cast<char*>(into.data()), into.size()});
          return true;
        });
  }
}

/// The list of checksums, or its replacement if a checkpoint has none.
std::string content_of(const std::string& folder, bool ours) {
  return ours ? Input(folder + "/SHA256SUMS").read_all() : "no state of zs";
}

}  // namespace

std::optional<Progress> peek(const std::string& folder) {
  if (!fs::exists(folder)) throw Error(folder, 0, "there is no such checkpoint");
  if (!has_state(folder)) return {};
  return read_progress(StateFile(folder));
}

std::optional<Progress> load(comm::Group& group, zero::Engine& engine, const std::string& folder) {
  const bool ours = has_state(folder);
  std::string content;
  comm::together(group, "reading of " + folder, [&] { content = content_of(folder, ours); });
  comm::require_same(group, {{"its list of checksums", sha256(content)}}, folder);
  if (ours) verify_all(group, folder);
  std::optional<Weights> weights;
  comm::together(group, "loading of " + folder,
                 [&] { weights.emplace(engine.units(), folder, ": it is a checkpoint of another model"); });
  if (!ours) weights->check(group);  // of ours all bytes were compared
  std::optional<Progress> progress;
  comm::together(group, "loading of " + folder, [&] {
    for (std::size_t unit = 0; unit < engine.states().size(); ++unit) {
      engine.states()[unit].set_parameters(
          [&](std::int64_t begin, std::span<float> values) { weights->read(unit, begin, values); });
    }
    load_packed(engine, folder, *weights);
    progress = peek(folder);
    if (!progress || !engine.trains()) return;
    const StateFile state(folder);
    require_optimizer(engine, state);
    load_optimizer(engine, folder, restore_counters(engine, state));
  });
  return progress;
}

}  // namespace zs::checkpoint
