// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>

#include "base/claim.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/mapped.hpp"
#include "base/text.hpp"
#include "cli/engine.hpp"
#include "cli/form.hpp"
#include "cli/progress.hpp"

namespace zs::cli {
namespace {

/// The outputs of every tool: what --output names, and options whose row says so.
void claim_outputs(const Args& args) {
  require_form(args);
  for (const Option& option : args.command().options) {
    if (option.name != "output" && !option.writes) continue;
    const std::string path = args.peek(option.name);
    if (path.empty()) continue;
    // Rank 0 writes; other hosts may have no such folder.
    if (option.value == "FILE" && launched_rank() == 0) require_place(path, "--" + option.name);
    claim_output(path, "--" + option.name);
  }
}

/// Answers the requests that every tool takes; true if it was one.
bool answered(const Command& command, const std::vector<std::string>& words, const Hooks& hooks) {
  if (words.empty()) return false;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    const bool whole = word == "--help=all" || (i + 1 < words.size() && words[i + 1] == "all");
    if (word == "--help" || word == "--help=all" || word == "-h") return print(help_text(command, whole)), true;
    if (word == "--version")
      return print(command.name + " " + version() + (hooks.build ? " " + hooks.build() : "") + "\n"), true;
  }
  if (words[0] == "--completion") return print(completion(command)), true;  // make install
  if (words[0] == "--man" && words.size() == 2)
    return print(man_page(command, Input(words[1]).read_all())), true;  // make man
  return false;
}

/// A standard stream that the caller has closed (>&-) fails at its first use, and no file that is opened gets its
/// number.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

const char* tool = "";  // the name, for the handler

/// A read of a mapped file that another program has cut short. Nothing can be unwound from here.
extern "C" void report_cut_file(int signal, siginfo_t* info, void*) {
  const char* const path = mapped_file(info->si_addr);
  if (!path) {  // not ours: it comes again, and ends the process
    std::signal(signal, SIG_DFL);
    return;
  }
  for (const char* const part : {tool, ": ", path, ": was cut short by another program while it was read\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(static_cast<int>(Status::failed));
}

/// Replaces signals by better errors: a file that may not grow (ulimit -f) is a failed write.
void set_signals(const Command& command) {
  tool = command.name.c_str();
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_sigaction = report_cut_file;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

int run(const Command& command, int argc, char** argv, const Body& body, const Hooks& hooks) {
  hold_standard_streams();
  set_signals(command);
  show_reading();
  Status status = Status::failed;
  const auto say = [&](const std::string& text) {
    const std::string place = hooks.place ? hooks.place() : "";
    std::fflush(stdout);
    tell(command, place + text);
  };
  bool failed = true;
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (answered(command, words, hooks)) {
      status = Status::done;
    } else {
      const Args args = Args::parse(command, words);
      claim_outputs(args);
      status = body(args);
    }
    std::cout.flush();
    if (std::fflush(stdout) != 0 || !std::cout) throw Error("stdout", 0, "write: " + errno_text());
    failed = false;
  } catch (const UsageError& error) {
    say(std::string(error.what()) + " (see " + command.name + " --help)");
  } catch (const NoData& error) {
    say(error.what());
    status = Status::inconclusive;
    failed = false;
  } catch (const std::bad_alloc&) {
    say("out of memory");
  } catch (const std::exception& error) {
    say(error.what());
  }
  if (!failed) return static_cast<int>(status);
  if (hooks.after) hooks.after();
  return static_cast<int>(Status::failed);
}

FaultSink fault_printer(const Command& command, std::int64_t& count) {
  return [&command, &count](const Fault& fault) {
    ++count;
    tell(command, located(fault.path, fault.line, fault.what));
  };
}

void tell(const Command& command, const std::string& text) {
  ProgressLine().clear();
  std::fputs((command.name + ": " + printable(text) + "\n").c_str(), stderr);
}

void warn(const Command& command, const std::string& text) { tell(command, "warning: " + text); }

}  // namespace zs::cli
