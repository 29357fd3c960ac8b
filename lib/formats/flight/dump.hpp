// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's Flight Recorder: each rank's recent collectives, written when NCCL's watchdog times out or on
// request.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace zs::flight {

/// A collective that a rank has entered.
struct Collective {
  std::int64_t number = 0;  ///< within its group, from 1
  std::string name{};       ///< "all_reduce"
  std::string sizes{};      ///< of the input: "[1024]", "[[2, 4], [8]]"
  std::string types{};      ///< "Float"
  std::string place{};      ///< the calling line of the training: "train.py:16 in step"; "" if unknown
  bool completed = false;
};

struct Dump {
  int rank = -1;
  std::map<std::string, std::vector<int>> groups{};  ///< the ranks of each group by name
  std::map<std::string, std::map<std::int64_t, Collective>>
      collectives{};  ///< by group and number; without point-to-point operations
};

/// Reads a dump: a pickle or JSON. Its rank is the number at the end of the file name. Throws Error, located.
Dump read_dump(const std::string& path);
/// Reads all files of a folder whose names end with a number, by rank. A file that is not a dump is a fault. Throws
/// Error if there is no dump.
std::vector<Dump> read_dumps(const std::string& folder, const FaultSink& faults);

/// The conclusion from the dumps of all ranks.
struct Finding {
  bool stuck = false;      ///< a rank is missing or differs in a collective, or no rank completed one
  std::string sentence{};  ///< which rank, in which collective, where
};

/// The first collective, by group and number, that some ranks of its group did not enter, or entered as another
/// collective or with another size or type; else one that no rank completed.
Finding explain(const std::vector<Dump>& dumps);

}  // namespace zs::flight
