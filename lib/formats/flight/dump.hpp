// SPDX-License-Identifier: Apache-2.0
// What PyTorch's Flight Recorder wrote of each rank's collectives: when NCCL's watchdog met a time limit, or when it
// was asked.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace zs::flight {

/// A collective that a rank has entered.
struct Collective {
  std::int64_t number = 0;  ///< in its group, from 1
  std::string name{};       ///< "all_reduce"
  std::string sizes{};      ///< of what goes in: "[1024]", "[[2, 4], [8]]"
  std::string types{};      ///< "Float"
  std::string place{};      ///< the line of the training that called it: "train.py:16 in step"; "" where none is known
  bool completed = false;
};

/// A rank's dump.
struct Dump {
  int rank = -1;
  std::map<std::string, std::vector<int>> groups{};  ///< ranks by name of the group
  std::map<std::string, std::map<std::int64_t, Collective>>
      collectives{};  ///< by group and number; point to point left out
};

/// Reads a dump: a pickle or JSON. Its rank is the number that ends the file's name. Throws Error, located.
Dump read_dump(const std::string& path);
/// All files of a folder whose names end with a number, by rank. What is no dump is a fault. Throws Error where there
/// is no dump.
std::vector<Dump> read_dumps(const std::string& folder, const FaultSink& faults);

/// What the dumps of a training's ranks say together.
struct Finding {
  bool stuck = false;      ///< a rank is missing or differs in a collective, or nobody got out of one
  std::string sentence{};  ///< which rank, in which collective, where
};

/// The first collective, by group and number, that not every rank of its group entered, or that is another one, or of
/// another size or type, on some; else one that no rank completed.
Finding explain(const std::vector<Dump>& dumps);

}  // namespace zs::flight
