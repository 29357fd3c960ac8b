// SPDX-License-Identifier: Apache-2.0
#include "figure/picture.hpp"

#include <gnuplot-iostream.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "figure/svg.hpp"

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

/// Text as a gnuplot string. In double quotes gnuplot would run text between backquotes; in single quotes only the
/// quote itself is special.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result + "'";
}

/// The terminal, and axes with the units of the scene. A point of gnuplot is a 72th of an inch.
std::string opening(const Scene& scene, const Theme& theme, Format format) {
  const double unit = pixels(theme), width = scene.width * unit, height = scene.height * unit;
  std::ostringstream out;
  const std::string font = " font " + quoted(theme.font + "," + zs::to_text(theme.font_size));
  if (format == Format::png) {
    const std::string scale = zs::to_text(theme.scale);
    out << "set terminal pngcairo noenhanced size " << std::lround(width * theme.scale) << ","
        << std::lround(height * theme.scale) << font << " fontscale " << scale << " linewidth " << scale
        << " pointscale " << scale;
  } else {
    out << "set terminal pdfcairo noenhanced size " << zs::to_text(width / 96) << "in," << zs::to_text(height / 96)
        << "in" << font << " fontscale 0.75 linewidth 0.75 pointscale 0.75";
  }
  out << " background " << quoted(theme.background)
      << "\nset encoding utf8\nunset border\nunset tics\nunset key\nset lmargin at screen 0\nset rmargin at screen 1\n"
         "set tmargin at screen 1\nset bmargin at screen 0\nset xrange [0:"
      << zs::to_text(scene.width) << "]\nset yrange [" << zs::to_text(scene.height)
      << ":0]\nset style textbox opaque noborder fillcolor rgb " << quoted(theme.background) << " margins 0.2,0.1\n";
  return out.str();
}

/// A text, which gnuplot draws above all else.
std::string label(const Mark& mark, const Theme& theme) {
  static constexpr std::array kAnchors = {" left", " center", " right"};
  // A label's anchor is the middle of its line, which is above the middle of a small letter.
  return "set label " + quoted(mark.text) + " at " + zs::to_text(mark.at[0].x) + "," + zs::to_text(mark.at[0].y) +
         kAnchors[static_cast<std::size_t>(mark.anchor)] + " front" + (mark.halo ? " boxed" : "") + " textcolor rgb " +
         quoted(colour(mark.ink, theme)) + " font " +
         quoted((mark.bold ? theme.font + ":Bold" : "") + "," + zs::to_text(theme.font_size * mark.size)) + "\n";
}

/// How `plot` draws a mark whose points are data.
std::string style(const Mark& mark, const Theme& theme) {
  const std::string ink = quoted(colour(mark.ink, theme));
  if (mark.shape == Mark::Shape::dot) return "1:2:3 with circles fillstyle solid noborder fillcolor rgb " + ink;
  if (mark.shape == Mark::Shape::area)
    return "1:2 with filledcurves closed fillstyle transparent solid " + zs::to_text(mark.opacity) +
           " noborder fillcolor rgb " + ink;
  std::string text = "1:2 with lines linewidth " + zs::to_text(mark.size * theme.line_width / 2);
  if (mark.dash > 0) text += " dashtype (" + zs::to_text(mark.dash) + "," + zs::to_text(mark.gap) + ")";
  // A transparent line is mixed with the paper: gnuplot's own transparency adds up where a line crosses itself.
  const Ink mixed = mark.ink;
  return text + " linecolor rgb " +
         quoted(mark.opacity < 1 ? faint(colour(mixed, theme), theme, mark.opacity) : colour(mixed, theme));
}

}  // namespace

std::optional<Format> format_named(const std::string& form) {
  if (form == "png") return Format::png;
  if (form == "svg") return Format::svg;
  if (form == "pdf") return Format::pdf;
  return {};
}

std::string picture(const Figure& figure, const Theme& theme, Format format) {
  const Scene drawn = scene(figure, theme);
  if (format == Format::svg) return svg_file(drawn, theme, drawable(figure).title);
  std::string bytes = run_gnuplot(script(drawn, theme, format));
  // How each format ends: a picture cut short (a full disk, a killed gnuplot) must not pass.
  const std::string tail = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 64));
  const bool whole = format == Format::png ? bytes.starts_with("\x89PNG") && tail.find("IEND") != std::string::npos
                                           : bytes.starts_with("%PDF") && tail.find("%%EOF") != std::string::npos;
  if (!whole) throw Error("gnuplot drew an incomplete picture (is the temporary folder full?)");
  return bytes;
}

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

std::string script(const Scene& scene, const Theme& theme, Format format) {
  std::string labels, data, parts, last;
  int count = 0;
  for (const Mark& mark : scene.marks) {
    if (mark.shape == Mark::Shape::text) {
      if (!mark.text.empty()) labels += label(mark, theme);
      continue;
    }
    const std::string now = style(mark, theme);
    // Consecutive marks with the same look are one part; a blank line begins the next line or area.
    const bool same = now == last && mark.shape != Mark::Shape::area;
    if (!same) {
      if (count > 0) data += "END_OF_DATA\n";
      const std::string name = "$m" + std::to_string(count++);
      data += name + " << END_OF_DATA\n";
      parts += (parts.empty() ? "" : ", \\\n  ") + name + " using " + now;
      last = now;
    } else if (mark.shape == Mark::Shape::line) {
      data += "\n";
    }
    for (const Point& point : mark.at) {
      data += zs::to_text(point.x) + " " + zs::to_text(point.y) +
              (mark.shape == Mark::Shape::dot ? " " + zs::to_text(mark.size) : "") + "\n";
    }
  }
  if (count > 0) data += "END_OF_DATA\n";
  return opening(scene, theme, format) + labels + data + "plot " + (parts.empty() ? "-1" : parts) + "\n";
}

}  // namespace zs::figure
