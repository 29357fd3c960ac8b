// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoints/read.hpp"
#include "checkpoints/sums.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "tensorfile/torch.hpp"

namespace zs::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string_view bytes_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count) {
  const device::View part = device::view(tensor).part(begin, begin + count);
  return {part.as<const char>(), static_cast<std::size_t>(part.bytes())};
}

/// Writes the tensors that `add` makes of each state of which `holds` is true. Their values come from `gather`, which
/// is collective: rank 0 calls it for a state as the file grows, the others as often. The first value that `add` asks
/// for is the first that is written. No file without tensors.
template <typename Holds, typename Gather, typename Add>
void write_states(int rank, std::vector<zero::UnitState>& states, const std::string& path, const Holds& holds,
                  const Gather& gather, const Add& add) {
  tensorfile::Dict dict;
  at::Tensor whole;
  for (zero::UnitState& state : states) {
    if (!holds(state)) continue;
    if (rank != 0) {
      gather(state);
      continue;
    }
    bool first = true;
    add(state, dict, [&]() -> std::function<at::Tensor()> {
      return [&, first = std::exchange(first, false)] {
        if (first) whole = gather(state);
        return whole;
      };
    });
  }
  if (!dict.items.empty()) tensorfile::write_torch(path, dict);
}

/// Writes name -> tensor for every parameter, or for those that are trained, each unit's float32 given by `gather`.
void write_units(int rank, std::vector<zero::UnitState>& states, const std::string& path, bool trained,
                 const std::function<at::Tensor(zero::UnitState&)>& gather) {
  const auto holds = [&](const zero::UnitState& state) { return !trained || state.trained() > 0; };
  write_states(rank, states, path, holds, gather, [&](zero::UnitState& state, tensorfile::Dict& dict, auto gathered) {
    for (const auto& parameters : unit::tensors(state.unit())) {
      if (trained && !parameters[0]->trained) continue;
      dict.items.push_back({parameters[0]->name_in_files(), for_file(parameters, gathered())});
    }
  });
}

/// Writes name -> bytes for every matrix that is held in 4 bits; COLLECTIVE. Numbers alone do not say scales of 8 bits.
void write_packed(int rank, std::vector<zero::UnitState>& states, const std::string& path) {
  const auto holds = [](zero::UnitState& state) { return !state.parameters.packed().empty(); };
  const auto gather = [](zero::UnitState& state) { return state.parameters.packed().bytes(); };
  write_states(rank, states, path, holds, gather, [](zero::UnitState& state, tensorfile::Dict& dict, auto gathered) {
    const auto& parameters = state.unit().parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].packing == unit::Parameter::Packing::none) continue;
      const auto [begin, count] = state.parameters.packed().place(i);
      const auto produce = [begin, count, whole = gathered()](const tensorfile::Sink& sink) {
        sink(bytes_of(whole(), begin, count));
      };
      const auto size = static_cast<std::uint64_t>(count);
      dict.items.push_back({parameters[i].name, tensorfile::make_tensor(tensorfile::Dtype::u8, {count},
                                                                        tensorfile::Storage::produce(size, produce))});
    }
  });
}

/// A parameter's elements of a unit's flat buffer, from `begin` on.
struct Piece {
  const unit::Parameter* parameter;
  std::int64_t begin, count;
};
/// The part of a tensor of files that a slice of the buffer has: elements that follow each other there.
std::vector<Piece> pieces_in(comm::Slice slice, const std::vector<const unit::Parameter*>& parameters) {
  std::vector<Piece> pieces;
  for (const unit::Parameter* const parameter : parameters) {
    const auto [begin, end] = parameter->place().within(slice.begin, slice.end);
    if (begin < end) pieces.push_back({parameter, begin, end - begin});
  }
  return pieces;
}

/// Numbers of float32 behind each other, which the caller keeps.
tensorfile::Tensor joined(std::vector<std::string_view> parts) {
  std::uint64_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  const auto produce = [parts = std::move(parts)](const tensorfile::Sink& sink) {
    for (const std::string_view part : parts) sink(part);
  };
  return tensorfile::make_tensor(tensorfile::Dtype::f32, {static_cast<std::int64_t>(size / sizeof(float))},
                                 tensorfile::Storage::produce(size, produce));
}

/// This rank's part of the optimizer's state: the rank's slice of each unit, cut at tensors' borders, by name.
tensorfile::Dict optimizer_state(zero::Engine& engine, std::vector<std::vector<at::Tensor>>& keep) {
  std::map<std::string_view, tensorfile::Dict> named;
  tensorfile::Dict offset;
  for (std::size_t unit = 0; unit < engine.states().size(); ++unit) {
    const zero::UnitState& state = engine.states()[unit];
    zero::Optimizer& optimizer = engine.optimizer(unit);
    const comm::Slice owned = state.owned(), mine = state.slice();
    std::vector<at::Tensor>& values = keep.emplace_back(optimizer.states());
    for (at::Tensor& slot : values) slot = slot.to(at::kCPU);
    for (const auto& parameters : unit::tensors(state.unit())) {
      const std::vector<Piece> pieces = pieces_in(mine, parameters);
      if (pieces.empty()) continue;
      const unit::Parameter& first = *pieces.front().parameter;
      int slot = 0;
      for (const std::string_view name : optimizer::states(engine.rule(unit, first))) {
        std::vector<std::string_view> parts;
        for (const Piece& piece : pieces) {
          const std::int64_t place = optimizer.slots().place(slot, piece.begin - owned.begin);
          parts.push_back(bytes_of(values[static_cast<std::size_t>(slot)], place, piece.count));
        }
        named[name].items.push_back({first.name_in_files(), joined(std::move(parts))});
        ++slot;
      }
      offset.items.push_back({first.name_in_files(), pieces.front().begin - first.offset + first.begin_in_files()});
    }
  }
  tensorfile::Dict dict;
  for (const std::string_view name : optimizer::kept_names(optimizer::description(engine.settings().optimizer.kind)))
    dict.items.push_back({std::string(name), named[name]});
  dict.items.push_back({"offset", offset});
  return dict;
}

/// The optimizer's settings, with the keys of a parameter group in PyTorch.
nlohmann::ordered_json optimizer_json(const zero::Engine& engine, const Progress& progress) {
  const optimizer::Settings& chosen = engine.settings().optimizer;
  const optimizer::Description& row = optimizer::description(chosen.kind);
  nlohmann::ordered_json json = {{"name", row.name}, {"lr", progress.next_learning_rate}};
  if (optimizer::reads(row, "beta1")) json["betas"] = {chosen.beta1, chosen.beta2};
  if (optimizer::reads(row, "epsilon")) json["eps"] = chosen.epsilon;
  if (optimizer::reads(row, "momentum")) json["momentum"] = chosen.momentum;
  json["weight_decay"] = chosen.weight_decay;
  if (engine.settings().decay_all) return json;
  json["no_decay"] = nlohmann::ordered_json::array();
  for (const auto& unit : engine.units()) {
    for (const auto& parameters : unit::tensors(*unit)) {
      if (!parameters[0]->decay) json["no_decay"].push_back(parameters[0]->name_in_files());
    }
  }
  return json;
}

std::string state_json(const comm::Group& group, const zero::Engine& engine, const Progress& progress) {
  const zero::LossScaler::State scaler = engine.scaler().state();
  const nlohmann::ordered_json json = {
      {"format", "zs-checkpoint 1"},
      {"step", progress.step},
      {"updates", engine.updates()},
      {"leaves", progress.leaves},
      {"batch_size", progress.batch_size},
      {"seq_length", progress.seq_length},
      {"sampler", {{"seed", progress.seed}, {"position", progress.sampler_position}}},
      {"random", {{"seed", progress.seed}, {"streams", "keyed by seed, step, leaf and unit"}}},
      {"learning_rate", progress.learning_rate},
      {"optimizer", optimizer_json(engine, progress)},
      {"dataset_sha256", progress.dataset_sha256},
      {"arithmetic", progress.arithmetic},
      {"world_size", group.size()},
      {"zero_stage", engine.plan().shape.stage},
      {"loss_scaler",
       {{"scale", scaler.scale},
        {"iteration", scaler.iteration},
        {"last_overflow", scaler.last_overflow},
        {"skipped", scaler.skipped},
        {"hysteresis", scaler.hysteresis}}}};
  return json.dump(2) + "\n";
}

}  // namespace

Writer::Writer(comm::Group& group, zero::Engine& engine, const std::string& folder, const ModelFiles& model,
               const std::optional<checkpoints::Form>& other)
    : group_(group), engine_(engine), folder_(folder), other_(other) {
  // No other process has this name: another training in the same folder cannot mix with it. The run's folder is not
  // made: it may have been removed.
  const fs::path path(folder);
  const std::string name = "." + path.filename().string() + ".tmp." + host_name() + "-" + std::to_string(::getpid());
  temporary_ = comm::broadcast(group, (path.parent_path() / name).string(), 0, "making of " + folder);
  comm::together(group, "making of " + folder, [&] {
    if (group_.rank() != 0) return;
    std::error_code failure;
    fs::remove_all(temporary_, failure);
    for (const char* const part : {"", "/accelerator_states"}) {
      fs::create_directory(temporary_ + part, failure);
      if (failure) throw Error(temporary_ + part, 0, failure.message());
    }
    write_file(temporary_ + "/config.json", model.config);
    if (!model.adapter.empty()) write_file(temporary_ + "/adapter_config.json", model.adapter);
    if (!model.preprocessor.empty()) write_file(temporary_ + "/preprocessor_config.json", model.preprocessor);
  });
}

Writer::~Writer() {
  std::error_code ignored;
  if (group_.rank() == 0 && !temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void Writer::gradients() {
  const auto scale = static_cast<float>(engine_.gradient_scale());
  write_units(group_.rank(), engine_.states(), temporary_ + "/gradients.pt", /*trained=*/true,
              [&](zero::UnitState& state) { return state.gather_gradient().mul_(scale); });
}

void Writer::gradient_norms(MicroBatchNorms& norms) {
  const std::vector<std::vector<double>> rows = norms.gathered();
  if (group_.rank() != 0) return;
  tensorfile::Dict dict;
  auto next = rows.begin();
  for (const zero::UnitState& state : engine_.states()) {
    for (const auto& parameters : unit::tensors(state.unit())) {
      if (!parameters[0]->trained) continue;
      const std::string_view bytes(reinterpret_cast<const char*>(next->data()), next->size() * sizeof(double));
      dict.items.push_back({parameters[0]->name_in_files(),
                            tensorfile::make_tensor(tensorfile::Dtype::f64, {static_cast<std::int64_t>(next->size())},
                                                    tensorfile::Storage::borrow(bytes))});
      ++next;
    }
  }
  tensorfile::write_torch(temporary_ + "/gradient_norms.pt", dict);
}

void Writer::commit(const Progress& progress) {
  char name[64];
  std::snprintf(name, sizeof name, "/accelerator_states/optimizer_%05d.pt", group_.rank());
  std::vector<std::vector<at::Tensor>> keep;
  tensorfile::write_torch(temporary_ + name, optimizer_state(engine_, keep));
  device::Hash parameters;
  const auto gather = [&](zero::UnitState& state) {
    at::Tensor whole = state.gather_parameters();
    parameters.add(device::view(whole));
    return whole;
  };
  write_units(group_.rank(), engine_.states(), temporary_ + "/pytorch_model.bin", /*trained=*/false, gather);
  write_packed(group_.rank(), engine_.states(), temporary_ + kPackedFile);
  // Compares state that may differ between ranks since the start. It takes no more messages than the wait for all
  // ranks.
  const zero::LossScaler::State scaler = engine_.scaler().state();
  comm::require_same(group_,
                     {{"the step", to_text(progress.step)},
                      {"the number of updates", to_text(engine_.updates())},
                      {"the place in the data", to_text(progress.sampler_position)},
                      {"the learning rate", to_text(progress.learning_rate)},
                      {"the loss scale", to_text(scaler.scale)},
                      {"the number of threads", to_text(std::int64_t{at::get_num_threads()})},
                      {"the parameters (their hash)", parameters.text()}},
                     "writing of " + folder_);
  comm::together(group_, "sealing of " + folder_, [&] {
    if (group_.rank() != 0) return;
    write_file(temporary_ + "/accelerator_states/state.json", state_json(group_, engine_, progress));
    seal();
  });
  temporary_.clear();
}

/// Adds the sums of the files that have none.
void Writer::write_sums() {
  const std::string path = temporary_ + "/" + checkpoints::kSums;
  std::map<std::string, std::string> sums;
  if (fs::exists(path)) sums = checkpoints::read_sums(temporary_);
  for (const std::string& file : checkpoints::files(temporary_)) {
    if (file != checkpoints::kSums && !sums.contains(file))
      sums[file] = sha256(Mapping::open(temporary_ + "/" + file)->bytes());
  }
  std::string text;
  for (const auto& [file, sum] : sums) text += sum + "  " + file + "\n";
  write_file(path, text);
}

void Writer::seal() {
  write_sums();
  if (other_) {  // made from the written checkpoint, independent of memory
    state::convert(checkpoints::read(temporary_), temporary_ + "/" + other_->name, *other_);
    write_sums();
  }
  sync_folder(temporary_ + "/accelerator_states");
  sync_folder(temporary_);
  const fs::path parent = fs::path(folder_).parent_path();
  std::error_code failure;
  if (fs::exists(folder_)) {
    const fs::path old = parent / ("." + fs::path(folder_).filename().string() + ".old");
    fs::remove_all(old, failure);
    fs::rename(folder_, old);
    fs::rename(temporary_, folder_);
    fs::remove_all(old, failure);
  } else {
    fs::rename(temporary_, folder_);
  }
  sync_folder(parent.empty() ? "." : parent.string());
}

}  // namespace zs::checkpoint
