// SPDX-License-Identifier: Apache-2.0
// What unit tests of light folders begin with, precompiled.
#ifndef ZS_TESTS_DOCTEST_HPP  // not #pragma once: a precompiled header is a main file
#define ZS_TESTS_DOCTEST_HPP
#include <doctest/doctest.h>

#include "base/standard.hpp"

#endif
