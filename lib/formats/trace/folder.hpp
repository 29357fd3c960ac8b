// SPDX-License-Identifier: Apache-2.0
// Reads the traces of a training: one file per rank.
#pragma once
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace zs::trace {

struct Reading {
  bool with_last_step = false;      ///< as prepare()
  bool whole_microseconds = false;  ///< as read()
};

/// The traces in files, prepared, by rank. Faults are those of read(), and also
/// two traces of one rank, kernels that begin before their launch, and operators
/// that end after their caller (the clock went back). Throws Error as read().
std::vector<Trace> read_all(const std::vector<std::string>& files, const Reading& how, const FaultSink& faults);

}  // namespace zs::trace
