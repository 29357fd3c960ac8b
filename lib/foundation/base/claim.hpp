// SPDX-License-Identifier: Apache-2.0
// Protects inputs from being overwritten. Tools claim their output paths before they start to work; files are
// identified by device and inode, so that symbolic and hard links count as the same file.
#pragma once
#include <string>

namespace zs {

/// Claims the file `path`, or the files in the folder `path`, as the output of `by` ("--output"); "-" is stdout. A
/// claimed file can no longer be opened as an input. Throws Error if it was opened as one before.
void claim_output(const std::string& path, const std::string& by);

/// Throws Error if the file `path` cannot be written because its folder is missing or not writable: before hours of
/// computation, not after. `path` may be a device or a pipe; "-" is stdout.
void require_place(const std::string& path, const std::string& by);

/// Like require_place(), for a folder. It and its parents may still have to be created.
void require_folder(const std::string& path, const std::string& by);

/// Notes that the open file is read, under this name. Throws Error if it is claimed. Every opening of a user's file
/// (Input, Mapping) calls it; files that zs reads in order to replace them go through read_regular().
void note_input(int file, const std::string& name);

/// Throws Error if the file `path`, about to be replaced, is in a claimed folder and has been read.
void check_output(const std::string& path);

}  // namespace zs
