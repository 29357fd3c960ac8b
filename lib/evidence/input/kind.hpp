// SPDX-License-Identifier: Apache-2.0
// What things are: a file by its first bytes, through compression; a folder by the names in it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zs::input {

enum class Kind {
  stream,       ///< standard input, a pipe, a device: known once it is read
  records,      ///< metric records or a summary, as text
  hdf5,         ///< metric records or a summary, in HDF5
  tracked,      ///< TensorBoard's event file, W&B's run file
  trace,        ///< of PyTorch's profiler
  profile,      ///< what the operations of a step took: profile.json
  tensors,      ///< of torch.save or safetensors, or an index of such
  tokens,       ///< a token file with llm.c's header
  picture,      ///< PNG, JPEG
  text,         ///< any other: a log, a configuration, a table
  empty,        ///< a file of 0 bytes
  unknown,      ///< bytes that are no text, of no form that zs knows
  results,      ///< the results folder of an experiment
  run,          ///< the folder of a run
  probe,        ///< what zs_probe.py recorded
  traces,       ///< a folder with traces
  checkpoint,   ///< a folder with tensors that zs-verify compares: zs's, Hugging Face's
  foreign,      ///< a checkpoint of another layout: DeepSpeed's, PyTorch's distributed ones, a trainer's
  checkpoints,  ///< a folder of checkpoints
  registry,     ///< a folder of runs
  trackers,     ///< a folder with runs of W&B or TensorBoard
  logs,         ///< a folder with logs
  nothing,      ///< a folder without any of these
};

/// "a profiler trace": what a sentence says after "is".
std::string_view name(Kind kind);

/// What a path is. A file is one thing; a folder is all that its names say, what it is first and foremost in front.
/// A file whose content is packed is what it holds. Throws Error where there is none and where it cannot be read.
std::vector<Kind> kinds_of(const std::string& path);

/// A checkpoint in a folder of such, by its name: "checkpoint_100", "checkpoint-100", "step-100", "iter_0000100",
/// "global_step100", "epoch_1", "final_checkpoint".
struct Checkpoint {
  std::int64_t step = 0;  ///< INT64_MAX for the final one
  std::string path;
};
/// The checkpoints in a folder by step, the final one last.
std::vector<Checkpoint> checkpoints_in(const std::string& folder);

/// Whether a folder has a file that only checkpoints of Accelerate, FSDP and Hugging Face's Trainer have.
bool is_trainers(const std::string& folder);

/// The traces in a folder: its *.pt.trace.json(.gz, .zst), or where it has none the *.json that begin as traces do.
std::vector<std::string> traces_in(const std::string& folder);

/// The files of a folder that may be logs or records by their names, beside the *.log that parse::jobs_in() takes.
std::vector<std::string> like_logs(const std::string& folder);

}  // namespace zs::input
