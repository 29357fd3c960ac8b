// SPDX-License-Identifier: Apache-2.0
#include "plot/gnuplot.hpp"

#include <gnuplot-iostream.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace zs::plot {
namespace {

namespace fs = std::filesystem;

/// A folder of one's own that goes with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "zs-plot-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw Error(pattern, 0, "cannot make a temporary folder: " + errno_text());
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

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

std::string quoted(const std::string& path) {
  std::string result = "'";
  for (const char c : path) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
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
  const Scratch scratch;
  const NoBrokenPipe guard;
  const std::string picture = scratch.file("picture"), words = scratch.file("words");
  std::FILE* const pipe =
      popen(("exec gnuplot --default-settings >" + quoted(picture) + " 2>" + quoted(words)).c_str(), "we");
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

}  // namespace zs::plot
