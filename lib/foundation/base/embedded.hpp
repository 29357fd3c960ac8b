// SPDX-License-Identifier: Apache-2.0
// Files of the repository as bytes of the program: a copied tool needs no other file.
#pragma once

/// Defines `const char* const name`, which a header declares: a line break, the content of FILE, by its path in the
/// repository, and a NUL. The Makefile has a rule for the source that does this: it depends on the file, and is
/// compiled by itself.
#define ZS_EMBEDDED(name, file)                                                                                  \
  asm(".pushsection .rodata\n.globl zs_" #name "\n.hidden zs_" #name "\nzs_" #name ": .byte 10\n.incbin \"" file \
      "\"\n.byte 0\n.popsection");                                                                               \
  extern "C" __attribute__((visibility("hidden"))) const char zs_##name[];                                       \
  const char* const name = zs_##name
