// SPDX-License-Identifier: Apache-2.0
// A training of anyone's as a run of the registry: started, watched, recorded to its end.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "parse/log.hpp"

namespace zs::recording {

struct Recording {
  std::vector<std::string> command;
  config::Config config;     ///< as configuration() has it
  std::string registry;      ///< the registry's folder
  parse::Options reading{};  ///< how its log is read
  double timeout = 0;        ///< s without a byte printed until its ranks are asked where they are; 0: never
  bool end_hang = true;      ///< then it is ended, else waited for
  std::function<void(const std::string&)> tell;  ///< for the person at the terminal; called by any thread
  std::function<void(const std::string&)> warn;  ///< likewise
};

/// Runs the command; the exit status that a shell would have of it: 127 where there is no such command (then there is
/// no run), 126 where it cannot be started, 128 + signal where one has ended it. Throws Error where the run cannot be
/// registered: then nothing was started.
int record(const Recording& recording);

}  // namespace zs::recording
