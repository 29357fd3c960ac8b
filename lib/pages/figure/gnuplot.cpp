// SPDX-License-Identifier: Apache-2.0
#include "figure/gnuplot.hpp"

#include <gnuplot-iostream.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "base/error.hpp"
#include "base/process.hpp"

namespace zs::figure {
namespace {

/// The part of gnuplot's complaint that describes the error, in one line.
std::string complaint(const std::string& text) {
  std::istringstream lines(text);
  std::string line, last;
  while (std::getline(lines, line)) {
    const std::size_t start = line.find_first_not_of(" \t^");
    if (start != std::string::npos) last = line.substr(start);
  }
  return last.empty() ? "it gave no reason" : last;
}

}  // namespace

std::string run_gnuplot(const std::string& script) {
  Program program{{"gnuplot", "--default-settings"}};
  program.input = [&](std::FILE* stream) {
    // gnuplot-iostream closes the stream that it is given.
    Gnuplot gnuplot(::fdopen(::dup(::fileno(stream)), "w"));
    gnuplot << script << std::flush;
  };
  program.captured = true;
  Ended ended = run(program);
  if (ended.status == 127)
    throw Error("gnuplot is not installed: install the package gnuplot-nox, or draw with --terminal");
  if (ended.status != 0) throw Error("gnuplot failed: " + complaint(ended.errors));
  if (ended.output.empty()) throw Error("gnuplot drew nothing: " + complaint(ended.errors));
  return std::move(ended.output);
}

}  // namespace zs::figure
