// SPDX-License-Identifier: Apache-2.0
// The forms of dumps: one row of a table for each. Recognizes and reads them.
#pragma once
#include <string>
#include <string_view>

#include "rolloutfile/dump.hpp"

namespace zs::rolloutfile {

/// How a file holds its rows.
enum class Container {
  lines,    ///< a JSON object a line
  torch,    ///< torch.save: a dict with a list of samples
  pickle,   ///< a pickled batch of padded rows
  msgpack,  ///< arrays of packed micro-batches
  hdf5      ///< flat datasets
};

/// The keys of a row; nullptr: this form lacks the value.
struct Form {
  const char* system;
  const char* begins;  ///< a file's name begins so
  const char* ends;    ///< and ends so
  const char* mark;    ///< bytes among the first of a file
  Container container;
  const char* ids;
  const char* prompt;    ///< the prompt's token ids, where `ids` are the completion's
  const char* response;  ///< the number of the completion's tokens
  const char* mask;
  const char *gen, *train, *ref, *entropy, *version;
  const char* lacks;  ///< what to switch on if a side is missing
};

/// The form of a file by its name and its first bytes (64 KiB); nullptr for anything but a dump with token ids.
const Form* form_of(const std::string& path, std::string_view bytes);
/// Whether a folder has dumps, in itself or in the folders that the systems make in it.
bool has_dumps(const std::string& folder);
/// For a dump of text alone: which system's it is and how to make it write log-probabilities; "" for anything else.
std::string text_alone(const std::string& path);

/// Reads a file, or all dumps of a folder. Throws Error, located, for a damaged one, and for one without any
/// log-probability.
Dump read(const std::string& path);

}  // namespace zs::rolloutfile
