// SPDX-License-Identifier: Apache-2.0
#include "figure/gnuplot.hpp"

#include <gnuplot-iostream.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/shell.hpp"

namespace zs::figure {
namespace {

/// A gnuplot that stops early must be an error here, not the end of this process.
class NoBrokenPipe {
 public:
  NoBrokenPipe() { sigaction(SIGPIPE, nullptr, &old_), std::signal(SIGPIPE, SIG_IGN); }
  ~NoBrokenPipe() { sigaction(SIGPIPE, &old_, nullptr); }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  struct sigaction old_ = {};
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The part of gnuplot's complaint that says what is wrong, in one line.
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
  const TemporaryFolder scratch;
  const NoBrokenPipe guard;
  const std::string picture = scratch.file("picture"), words = scratch.file("words");
  std::FILE* const pipe = popen(
      ("exec gnuplot --default-settings >" + shell_quoted({picture}) + " 2>" + shell_quoted({words})).c_str(), "we");
  if (!pipe) throw Error("cannot start gnuplot: " + errno_text());
  const int copy = dup(fileno(pipe));
  std::FILE* const stream = copy < 0 ? nullptr : fdopen(copy, "w");
  if (stream) {
    Gnuplot gnuplot(stream);  // closes its copy; the status comes from pclose below
    gnuplot << script << std::flush;
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    throw Error("gnuplot is not installed: install the package gnuplot-nox, or draw with --terminal");
  }
  if (!stream || status != 0) throw Error("gnuplot failed: " + complaint(content(words)));
  std::string bytes = content(picture);
  if (bytes.empty()) throw Error("gnuplot drew nothing: " + complaint(content(words)));
  return bytes;
}

}  // namespace zs::figure
