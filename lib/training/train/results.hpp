// SPDX-License-Identifier: Apache-2.0
// What a training writes for others: its part of one JSON object with the results of several methods, and its initial
// weights and batches.
#pragma once
#include <string>

#include "setup/batches.hpp"
#include "train/trainer.hpp"

namespace zs::train {

using setup::Settings;

/// The name of a training there: its method, or the one that follows from its stage, backend and offload.
std::string method_name(const Settings& settings);

/// Throws zs::Error where write_results() would.
void require_results(const std::string& path);

/// Writes the results of a method into the file, replacing its earlier ones; other methods keep theirs. Throws
/// zs::Error if it is a folder, or exists and is not a JSON object.
void write_results(const std::string& path, const std::string& method, const Outcome& outcome,
                   const metric::Table& records);

// Writes the initial weights and the batches of a training, for another program to repeat it.

using setup::Batches;

/// Writes DIR/pytorch_model.bin, which torch.load reads: the float32 initial weights of a training, by their Hugging
/// Face names. They come from `begin` or, if it is null, from the units by the seed. Creates the folder. Throws
/// zs::Error.
void save_initial(const std::string& folder, const unit::Units& units, std::uint64_t seed,
                  const unit::Beginning& begin);

/// Writes an HDF5 file with every micro-batch in the order of the summation tree: the int64 arrays `tokens` and
/// `targets` of [steps, leaves, batch_size, seq_length], or of images the float32 array `pixels` of [steps, leaves,
/// batch_size, 3, size, size] and `targets` of [steps, leaves, batch_size]. Throws zs::Error.
void dump_batches(const std::string& path, Batches& batches, std::int64_t steps, std::int64_t leaves);

}  // namespace zs::train
