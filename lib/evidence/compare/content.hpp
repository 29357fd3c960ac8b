// SPDX-License-Identifier: Apache-2.0
// What files of tensors hold, by name: the weights of a checkpoint or of a Hugging Face folder, gradients, optimizer
// states, and files of torch.save or safetensors of anyone's.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::compare {

struct Leaf {
  std::string name;                                     ///< nested names joined by points: "optimizer.state.0.exp_avg"
  std::variant<tensorfile::Tensor, std::string> value;  ///< a value that is no tensor is told as text
};

/// What two files hold.
struct Contents {
  std::vector<Leaf> a, b;
  bool documents = false;                           ///< JSON: a name that one side lacks leaves it undecided
  std::vector<std::string> unread_a{}, unread_b{};  ///< names of what a file holds beside its weights
};

/// Everything in the files `a` and `b`, in their order. Two files of torch.save are taken with all that they hold; of
/// others, and of one of each kind, the weights. Two files of JSON are taken with all their values, but who wrote them,
/// and the layout, which decides no bit. Throws Error, located, at any defect.
Contents contents(const std::string& a, const std::string& b);

/// A part of a tensor that was cut over ranks, and where in it the part begins.
struct Part {
  std::string name;  ///< "exp_avg.transformer.wte.weight"
  std::int64_t begin = 0;
  tensorfile::Tensor tensor;
};

/// The moments in the files optimizer_RANK.pt of a folder accelerator_states, by name and begin. Empty where it has no
/// such files. Throws Error at one of another form, at two files that have the same elements, and at elements between
/// two parts, or of the checkpoint's weights, that no file has.
std::vector<Part> optimizer_parts(const std::string& folder);

/// Whether a file is one of torch.save (also of the time before PyTorch 1.6) or safetensors, or an index of such, by
/// its first bytes and its name.
bool holds_tensors(const std::string& path);

/// The files of a folder that can be compared, relative to it: gradients, weights, optimizer states, in the order in
/// which a step makes them; then what is written of the model and of the training, in JSON. The parts of optimizer
/// states are told as "accelerator_states", the weights that open_state_dict() chooses as "", any others by name.
std::vector<std::string> files_of(const std::string& folder);

/// What else such a folder holds, which is not compared: a tokenizer, a README.
std::vector<std::string> others_of(const std::string& folder);

}  // namespace zs::compare
