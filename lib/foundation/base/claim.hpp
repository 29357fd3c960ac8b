// SPDX-License-Identifier: Apache-2.0
// No output is an input. What the user names for output is claimed before anything is done; files are known by device
// and inode, so that links of both kinds lead to the same one.
#pragma once
#include <string>

namespace zs {

/// Says that `by` ("--output") is to replace the file `path`, or files in the folder `path`; "-" is stdout. From then
/// on a file that is claimed cannot be opened as an input. Throws Error where it has been one already.
void claim_output(const std::string& path, const std::string& by);

/// Throws Error where no file `path` can be written, because its folder is not there or not the caller's: what is
/// computed for hours is told so before. A device or a pipe may stand there, "-" is stdout.
void require_place(const std::string& path, const std::string& by);

/// The same of a folder, which may be made, with those above it.
void require_folder(const std::string& path, const std::string& by);

/// Notes that the open file is read, under this name. Throws Error where it is claimed. Every opening of a user's file
/// (Input, Mapping) calls it; what zs reads of its own files in order to replace them is read by read_regular().
void note_input(int file, const std::string& name);

/// Throws Error where the file `path`, which is about to be replaced, lies in a claimed folder and has been read.
void check_output(const std::string& path);

}  // namespace zs
