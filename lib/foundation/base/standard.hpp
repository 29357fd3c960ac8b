// SPDX-License-Identifier: Apache-2.0
// The standard headers that most sources use, precompiled for sources without LibTorch: parsing them is half the work
// of compiling a small source. A source still includes what it uses.
#ifndef ZS_BASE_STANDARD_HPP  // not #pragma once: a precompiled header is a main file
#define ZS_BASE_STANDARD_HPP
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#endif
