// SPDX-License-Identifier: Apache-2.0
#include "recording/environment.hpp"

#include <filesystem>
#include <sstream>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "config/foreign.hpp"
#include "recording/command.hpp"

namespace zs::recording {
namespace {

namespace fs = std::filesystem;

constexpr double kWait = 20;  // s, for each program

bool is_python(const std::string& word) {
  const std::string name = fs::path(word).filename().string();
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

/// The interpreter in a script's first line: "#!/opt/venv/bin/python3", "#!/usr/bin/env python3"; "" if it is not
/// Python.
std::string interpreter(const std::string& path) {
  std::string line;
  if (!is_file(path)) return "";
  try {
    std::string text(4096, '\0');
    Input script(path);
    text.resize(script.read(text.data(), text.size()));
    line = text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "";
  }
  if (!line.starts_with("#!")) return "";
  std::istringstream words(line.substr(2));
  for (std::string word; words >> word;) {
    if (is_python(word)) return word.find('/') == std::string::npos ? program_path(word) : word;
  }
  return "";
}

/// Lines "KEY VALUE", then an empty one and NAME==VERSION lines. Imports nothing but Python's own.
constexpr const char* kAsk = R"(
import sys
sys.path.pop(0)
import importlib.metadata, importlib.util, re
print("python", sys.version.split()[0])
found = {}
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    if name: found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), one.version)
spec = importlib.util.find_spec("torch")
if spec and spec.submodule_search_locations:
    try:
        text = open(spec.submodule_search_locations[0] + "/version.py").read()
        print("torch", re.search(r"__version__ = '([^']+)'", text).group(1))
        cuda = re.search(r"^cuda[^=]*= '([^']+)'", text, re.M)
        if cuda: print("cuda", cuda.group(1))
    except (OSError, AttributeError):
        pass
for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"):
    if name in found:
        print("nccl", found[name])
        break
for name in ("deepspeed", "accelerate", "transformers", "megatron-core", "lightning", "trl"):
    if name in found: print(name, found[name])
print()
for name in sorted(found): print(name + "==" + found[name])
)";

void add_python(const std::string& python, const std::string& folder, registry::Fields& fields) {
  const std::string answer = printed_by({python, "-c", kAsk}, kWait);
  if (answer.empty()) return;
  const std::size_t gap = answer.find("\n\n");
  for (const std::string& line : lines_of(answer.substr(0, gap))) {
    const std::size_t blank = line.find(' ');
    const std::string key = line.substr(0, blank);
    const bool known = key == "python" || key == "torch" || key == "cuda" || key == "nccl";
    registry::set(fields, known ? key : "package." + key, line.substr(blank + 1));
  }
  const std::string packages = gap == std::string::npos ? "" : answer.substr(gap + 2) + "\n";
  if (packages.empty()) return;
  registry::set(fields, "packages", sha256(packages));
  write_file(folder + "/packages.txt", packages);
}

void add_revision(const std::string& folder, registry::Fields& fields) {
  const std::vector<std::string> git = {"git", "--no-optional-locks"};
  const auto ask = [&](std::vector<std::string> words) {
    words.insert(words.begin(), git.begin(), git.end());
    return printed_by(words, kWait);
  };
  const std::string commit = ask({"rev-parse", "HEAD"});
  if (commit.empty()) return;
  registry::set(fields, "commit", commit);
  registry::set(fields, "revision", ask({"describe", "--always", "--dirty", "--tags"}));
  if (const std::string diff = ask({"diff", "--no-ext-diff", "--no-textconv", "HEAD"}); !diff.empty()) {
    registry::set(fields, "git_diff", sha256(diff + "\n"));
    write_file(folder + "/revision.diff", without_tokens(diff) + "\n");
  }
}

}  // namespace

std::string python_of(const std::vector<std::string>& typed) {
  const std::vector<std::string> command = config::words_of_shell(typed);
  for (const std::string& word : command) {
    if (is_python(word)) return program_path(word);
  }
  for (const std::string& word : command) {
    if (word.starts_with("-")) continue;
    const std::string path = program_path(word);
    if (const std::string python = path.empty() ? "" : interpreter(path); !python.empty()) return python;
  }
  return "";
}

registry::Fields environment(const std::vector<std::string>& command, const std::string& folder) {
  registry::Fields fields;
  // A full disk costs the file; what is known is recorded all the same, or that fails too.
  const auto try_to = [](const auto& work) {
    try {
      work();
    } catch (const std::exception&) {
    }
  };
  try_to([&] { add_revision(folder, fields); });
  if (const std::string python = python_of(command); !python.empty())
    try_to([&] { add_python(python, folder, fields); });
  return fields;
}

}  // namespace zs::recording
