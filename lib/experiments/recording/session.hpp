// SPDX-License-Identifier: Apache-2.0
// Records any program's training as a run of the registry, from its start to its end.
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
  double timeout = 0;        ///< s without output after which its ranks are asked where they are; 0: never
  bool end_hang = true;      ///< then end it, else keep waiting
  std::function<void(const std::string&)> tell;  ///< for the person at the terminal; called from any thread
  std::function<void(const std::string&)> warn;  ///< same
};

/// Runs the command; returns the exit status of a shell: 127 if the command does not exist (then there is no run), 126
/// if it cannot be started, 128 + signal if a signal ended it. Throws Error if the run cannot be registered: then
/// nothing was started.
int record(const Recording& recording);

}  // namespace zs::recording
