# SPDX-License-Identifier: Apache-2.0
# The loaded engine that forks for the suites' trainings (tests/warm/engine.cpp): what a fork gets and does is what a start
# gets and does. A small program stands for the engine.
setup_file() {
  load helper
  cd "$BATS_FILE_TMPDIR"
  mkdir b b-warm
  cat >told.c <<'END'
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
extern char** environ;
static int with(const char* name, int value) { return printf("%s %d\n", name, value); }
int main(int argc, char** argv) {
  if (getenv("PARENT")) return printf("%d\n", getppid()), 0;
  for (int i = 0; i < argc; ++i) printf("argument %s\n", argv[i]);
  for (char** e = environ; *e; ++e) if (strncmp(*e, "ZS_WARM", 7)) printf("variable %s\n", *e);
  char text[5000];
  printf("folder %s\n", getcwd(text, 4000));
  with("mask", umask(0)), with("priority", getpriority(PRIO_PROCESS, 0)), with("usr2 ignored", signal(SIGUSR2, SIG_DFL) == SIG_IGN);
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set), with("processors", CPU_COUNT(&set)), with("first", CPU_ISSET(0, &set));
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, 0, &blocked), with("usr1 blocked", sigismember(&blocked, SIGUSR1));
  for (int f = 0; f < 100; ++f) {
    char link[50];
    sprintf(link, "/proc/self/fd/%d", f);
    const ssize_t n = readlink(link, text, 4000);
    if (n > 0) printf("file %d %.*s\n", f, (int)n, text);
  }
  while (fgets(text, sizeof text, stdin)) printf("read %s", text);
  fflush(stdout), fprintf(stderr, "an error\n");
  if (getenv("SLEEP")) fclose(fopen("sleeps", "w")), sleep(900);
  if (getenv("DIE")) raise(atoi(getenv("DIE")));
  return argc;
}
END
  gcc told.c -o b/engine
  cp "$BUILD/warm/engine" b-warm/engine
  export ZS_WARM_ENGINE=$BATS_FILE_TMPDIR/sockets
  mkdir sockets
  serve
}
teardown_file() { rm -rf "$BATS_FILE_TMPDIR/sockets"; }

serve() {
  LD_PRELOAD=$BUILD/warm/warm.so b/engine </dev/null >log 2>&1 3>&- &
  echo $! >server
  await test -S "$ZS_WARM_ENGINE/engine"
}

setup() {
  load helper
  cd "$BATS_FILE_TMPDIR"
  export ZS_WARM_ENGINE=$PWD/sockets
  [ -S sockets/engine ] || serve
}

parent() { PARENT=1 "$@"; }  # the server is that of a fork

@test "warm: arguments, environment, folder, files, mask, priority, signals and processors are the client's; so is its end" {
  [ "$(parent b-warm/engine)" = "$(cat server)" ]
  mkdir -p "a folder"
  told() {
    (cd "a folder" && umask 027 && trap '' USR2 && exec 7<../told.c &&
      status=0 && A="b
c" nice -n 3 taskset -c 0 bash -c 'exec -a zs-x "$0" "${@}"' "../$1/engine" one '' "two words" <../words >../out 2>../err || status=$?
      echo "status $status" >>../out)
    grep -v '^variable _=\|^argument [^o]*engine$' out
    cat err
  }
  echo words >words
  told b >cold
  told b-warm >warm
  diff cold warm
  grep -qx 'usr2 ignored 1' warm
  grep -qx 'file 7 .*/told.c' warm
  grep -qx 'status 4' warm
  run -143 env DIE=15 b-warm/engine </dev/null
}

@test "warm: a signal reaches the fork, which dies with its client" {
  for signal in TERM KILL; do
    rm -f sleeps
    SLEEP=1 b-warm/engine >out </dev/null 3>&- &
    client=$!
    await test -e sleeps
    fork=$(ps -o pid= --ppid "$(cat server)" | tail -n 1)
    kill -$signal $client
    status=0
    wait $client || status=$?
    [ $status = $([ $signal = TERM ] && echo 143 || echo 137) ]
    await none_runs $fork
  done
}

@test "warm: a start that a fork would not be is a start" {
  served() { [ "$(parent "$@")" = "$(cat server)" ]; }
  served b-warm/engine
  for way in "env OMP_NUM_THREADS=2" "env -u OMP_NUM_THREADS" "env ATEN_CPU_CAPABILITY=default" "env LD_PRELOAD=$BUILD/warm/none.so" "env ZS_MARK=1" \
    "env SLURM_JOB_ID=1" "env -u ZS_WARM_ENGINE" "env ZS_WARM_ENGINE=$PWD/none" "prlimit --nofile=1000" "prlimit --as=9000000000"; do
    # shellcheck disable=SC2086
    ! served $way b-warm/engine || complain "$way: served"
  done
  verdict
}

@test "warm: an engine that was built again is started, and the server of the old one ends" {
  [ "$(parent b-warm/engine)" = "$(cat server)" ]
  old=$(cat server)
  printf '#!/bin/sh\necho new\n' >new
  chmod +x new
  mv b/engine old
  mv new b/engine
  [ "$(b-warm/engine)" = new ]
  await none_runs "$old"
  mv old b/engine
  rm -f sockets/engine
  [ "$(parent b-warm/engine)" != "$old" ]
}

@test "warm: zs-train and zs-verify have the same digests, output and errors" {
  [ -x "$BUILD/engine" ] || skip "the engine is not built: make all"
  mkdir -p "$BUILD-warm" real
  for tool in zs-train zs-verify warm/engine; do [ "$BUILD/$tool" -ef "$BUILD-warm/${tool##*/}" ] || ln -f "$BUILD/$tool" "$BUILD-warm/"; done
  export ZS_WARM_ENGINE=$PWD/real
  LD_PRELOAD=$BUILD/warm/warm.so "$BUILD/engine" </dev/null >log 2>&1 3>&- &
  server=$!
  await test -S real/engine
  both() {  # both RANKS COMMAND...: the words that do not change with time are the same
    for way in cold warm; do
      rm -rf out
      [ $way = cold ] || local PATH=$BUILD-warm:$PATH
      mpirun --oversubscribe --bind-to none -n "$1" "${@:2}" >said 2>&1 || echo "status $?" >>said
      sed -E 's/[0-9.]+ ?(s|ms|GB\/s|tokens\/s)\b//g' said | grep -E '^(state_digest|verdict|step|stage|status|zs-)|Loss: ' | sed 's/ sync:.*//' >said.$way
    done
    [ -s said.warm ]
    diff said.cold said.warm || complain "${*:2}"
  }
  both 1 zs-train --model_name tiny --num_layers 1 --seq_length 32 --max_steps 2 --output_dir out
  both 2 zs-train --model_name tiny --num_layers 1 --seq_length 32 --max_steps 2 --zero_stage 3 --output_dir out
  both 2 zs-verify --num_layers 1 --seq_length 16 --iterations 2 --zero_stage 2
  both 2 zs-train --model_name tiny-mixtral --expert_parallel 2 --batch_size 1 --train_batch_size 3
  [ "$(cut -d' ' -f16,17 "/proc/$server/stat")" != "0 0" ]
  rm -r real
  verdict
}
