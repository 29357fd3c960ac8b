// SPDX-License-Identifier: Apache-2.0
// Detects what a path is: a file by its first bytes, through compression; a folder by the names in it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs::input {

enum class Kind {
  stream,       ///< standard input, a pipe, a device: unknown until it is read
  records,      ///< metric records or a summary, as text
  hdf5,         ///< metric records or a summary, in HDF5
  tracked,      ///< TensorBoard's event file, W&B's run file
  trace,        ///< of PyTorch's profiler
  execution,    ///< of PyTorch's ExecutionTraceObserver, which has no times
  profile,      ///< times of the operations of a step: profile.json
  tensors,      ///< of torch.save or safetensors, or an index of such
  tokens,       ///< a token file with llm.c's header
  picture,      ///< PNG, JPEG
  text,         ///< any other: a log, a configuration, a table
  empty,        ///< a file of 0 bytes
  unknown,      ///< binary content in no format that zs knows
  results,      ///< the results folder of an experiment
  run,          ///< the folder of a run
  probe,        ///< a recording of zs_probe or zs-train
  rollout,      ///< log-probabilities of a generator or a trainer: a file, a folder of them
  traces,       ///< a folder with traces
  checkpoint,   ///< of zs, Hugging Face, DeepSpeed, PyTorch's distributed ones, a trainer
  checkpoints,  ///< a folder of checkpoints
  registry,     ///< a folder of runs
  trackers,     ///< a folder with runs of W&B or TensorBoard
  logs,         ///< a folder with logs
  nothing,      ///< a folder without any of these
};

/// "a profiler trace": the words for a sentence after "is".
std::string_view name(Kind kind);

/// The kinds of a path. A file has one kind; a folder has all kinds that its names indicate, the main one first. A
/// compressed file has the kind of its content. Throws Error if it does not exist or cannot be read.
std::vector<Kind> kinds_of(const std::string& path);

/// Whether a path exists, and its main kind is this one.
bool is(const std::string& path, Kind kind);

/// The traces in a folder: its *.pt.trace.json(.gz, .zst), or without these the *.json files that begin like traces.
std::vector<std::string> traces_in(const std::string& folder);

/// The files of a folder that may be logs or records by their names, besides the *.log that parse::jobs_in() takes.
std::vector<std::string> like_logs(const std::string& folder);

}  // namespace zs::input
