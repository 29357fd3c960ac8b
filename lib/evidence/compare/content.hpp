// SPDX-License-Identifier: Apache-2.0
// The content of tensor files by name: weights of a checkpoint or of a Hugging Face folder, gradients, optimizer
// states, and any file of torch.save or safetensors.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::compare {

struct Leaf {
  std::string name;                                     ///< nested names joined by dots: "optimizer.state.0.exp_avg"
  std::variant<tensorfile::Tensor, std::string> value;  ///< a value that is no tensor is converted to text
};

/// The content of two files.
struct Contents {
  std::vector<Leaf> a, b;
  bool documents = false;                           ///< JSON: a name that one side lacks makes the result inconclusive
  std::vector<std::string> unread_a{}, unread_b{};  ///< names of a file's content besides its weights
};

/// Everything in the files `a` and `b`, in order. Two files of torch.save are read completely; of others, and of a
/// mixed pair, only the weights. Two JSON files are read completely, except for the writer and the layout, which
/// decides no bit. Throws Error, located, at any defect.
Contents contents(const std::string& a, const std::string& b);

/// A part of a tensor that was divided among ranks, and the position where it begins.
struct Part {
  std::string name;  ///< "exp_avg.transformer.wte.weight"
  std::int64_t begin = 0;
  tensorfile::Tensor tensor;
};

/// The moments in the files optimizer_RANK.pt of a folder accelerator_states, by name and begin. Empty if it has no
/// such files. Throws Error if a file has another form, if two files have the same elements, and if no file has some
/// elements between two parts or of the checkpoint's weights.
std::vector<Part> optimizer_parts(const std::string& folder);

/// Whether a file is one of torch.save (also from before PyTorch 1.6) or safetensors, or an index of such, by its first
/// bytes and its name.
bool holds_tensors(const std::string& path);

/// The files of a folder that can be compared, relative to it: gradients, weights, optimizer states, in the order in
/// which a step computes them; then the JSON files about the model and the training. The parts of optimizer states are
/// listed as "accelerator_states", the weights that open_state_dict() chooses as "", any others by name.
std::vector<std::string> files_of(const std::string& folder);

/// The other files of such a folder, which are not compared: a tokenizer, a README.
std::vector<std::string> others_of(const std::string& folder);

}  // namespace zs::compare
