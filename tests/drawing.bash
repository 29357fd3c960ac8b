# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# no_pictures: puts a program in the place of gnuplot that draws one empty picture, for tests that look at no picture: to draw takes
# longer than all else of a report. pictures: from here on gnuplot draws.
no_pictures() {
  mkdir "$BATS_TEST_TMPDIR.drawing"
  printf '%s\n' '#!/bin/sh' 'cat >/dev/null' 'printf "\211PNG IEND"' >"$BATS_TEST_TMPDIR.drawing/gnuplot"
  chmod +x "$BATS_TEST_TMPDIR.drawing/gnuplot"
  PATH=$BATS_TEST_TMPDIR.drawing:$PATH
}
pictures() { rm "$BATS_TEST_TMPDIR.drawing/gnuplot"; }
