# SPDX-License-Identifier: Apache-2.0
# Optimizer state and parameters in host memory and on a disk: the same bits, also after a kill and a resume. Full disks.
# shellcheck disable=SC2154 # stderr is of bats' run
setup() {
  load helper
  warm
  load digests
  cd "$BATS_TEST_TMPDIR"
  SMALL=(--model_name tiny --num_layers 2 --seq_length 32 --output_dir runs)
  NVME=(--zero_stage 3 --offload_device nvme --offload_param nvme --nvme_path nvme)
}

digest() { sed -n 's/^state_digest: //p' "$1"; }
value() { sed -n "s/^run: $1=//p" "$2"; }

@test "offload: no bit changes on two ranks, and device memory falls as the formula says" {
  two=(mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" --max_steps 4 --save_final false)
  "${two[@]}" --zero_stage 3 >none
  "${two[@]}" --zero_stage 3 --offload_device cpu >state
  "${two[@]}" "${NVME[@]}" >all
  "${two[@]}" "${NVME[@]}" --deepcompile --activation_checkpointing >compiled
  [ "$(digest none)" = "$(digest state)" ]
  [ "$(digest none)" = "$(digest all)" ]
  [ "$(digest none)" = "$(digest compiled)" ]
  parameters=$(value model.parameters none)
  [ "$(($(value ideal_state_bytes none) - $(value ideal_state_bytes state)))" = $((8 * parameters / 2)) ]
  [ "$(($(value ideal_state_bytes none) - $(value ideal_state_bytes all)))" = $((12 * parameters / 2)) ]
  bytes() { sed -n 's/.* state_bytes: \([0-9]*\).*/\1/p' "$1"; }
  (($(bytes state) < $(bytes none)))
  (($(bytes all) < $(bytes state)))
  [ -z "$(ls -A nvme)" ]
}

@test "offload: of a share the rest stays on the device: the same bits, counted bytes, and any share resumes another" {
  one=(mpirun --oversubscribe -n 2 zs-train "${SMALL[@]}" --zero_stage 3 --log_interval 1 --save_final false)
  "${one[@]}" --max_steps 6 >none
  parameters=$(value model.parameters none) before=-1
  for ratio in 0 0.3 0.7 1; do
    "${one[@]}" --max_steps 6 --offload_device cpu --offload_ratio $ratio >share
    [ "$(digest none)" = "$(digest share)" ] || complain "$ratio: $(digest share)"
    less=$(($(value ideal_state_bytes none) - $(value ideal_state_bytes share)))
    # Half of the largest unit, the embedding: two of three parts of this model.
    awk -v less=$less -v ratio=$ratio -v all=$((8 * parameters / 2)) 'BEGIN { off = less / all - ratio; exit !(off * off <= 1 / 9) }' || complain "$ratio: $less of $((8 * parameters / 2))"
    [ "$less" -gt "$before" ] || complain "$ratio: $less after $before"
    before=$less
  done
  [ "$before" = $((8 * parameters / 2)) ]
  "${one[@]}" --max_steps 3 --save_steps 3 --offload_device nvme --nvme_path nvme --offload_ratio 0.7 --output_dir part >/dev/null
  "${one[@]}" --max_steps 6 --resume_from part/2*/checkpoint_3 --offload_device cpu --offload_ratio 0.3 >again
  [ "$(digest none)" = "$(digest again)" ] || complain "resumed: $(digest again)"
  verdict
}

@test "offload: zs-verify proves it step by step, in every number format" {
  for options in "--zero_stage 1 --offload_device cpu --offload_ratio 0.5" "--zero_stage 2 --offload_device nvme" "--zero_stage 3 --offload_device nvme --offload_param cpu" \
    "--zero_stage 3 --offload_param nvme --bf16 --rtol 0 --atol 0" "--zero_stage 2 --offload_device cpu --fp16 --rtol 0 --atol 0 --set training.initial_scale_power=8" \
    "--zero_stage 3 --offload_device nvme --amp"; do
    disk=
    if [[ $options == *nvme* ]]; then disk="--nvme_path nvme"; fi
    verified "${options// /}" 2 "--num_layers 1 --iterations 3 $disk $options"
  done
  run -0 all_exact 6
}

@test "offload: a training that is killed leaves nothing on the disk, and goes on to the bits of an undisturbed one" {
  cold  # the process that is killed is the one that trains
  zs-train "${SMALL[@]}" --max_steps 40 --save_final false --zero_stage 0 --output_dir other >whole
  zs-train "${SMALL[@]}" "${NVME[@]}" --max_steps 40 --save_steps 2 --keep_last 3 >log 2>err 3>&- &
  trainer=$!
  await compgen -G 'runs/2*/checkpoint_[4-9]' >/dev/null
  kill -KILL $trainer
  wait $trainer || true
  [ -z "$(ls -A nvme)" ]
  zs-train --resume "$(basename runs/2*/)" --registry runs --offload_param cpu >again
  [ "$(digest again)" = "$(digest whole)" ]
}

@test "offload: a folder that cannot be, and a disk that is full, end the training with the unit named" {
  echo x >file
  run -2 --separate-stderr zs-train "${SMALL[@]}" --max_steps 2 --zero_stage 2 --offload_device nvme --nvme_path file
  [[ $stderr == "zs-train: file: no"* ]] || complain "$stderr"
  mkdir small
  mount -t tmpfs -o size=3m zs-small small 2>/dev/null || skip "needs the right to mount"
  run -2 --separate-stderr zs-train "${SMALL[@]}" --max_steps 2 --zero_stage 2 --offload_device nvme --nvme_path small
  umount small
  [[ $stderr =~ ^"zs-train: small: the optimizer state of "[a-z0-9._]+" that is offloaded there: no room: No space left on device"$ ]] || complain "$stderr"
  verdict
}

@test "offload: a block that the disk loses, swaps or tears ends the training, and says which unit's and how" {
  for fault in "stale:it is stale: write 2 of 3" "swapped:it is swapped with the optimizer state of h.0" \
    "torn:it is torn: its bytes have another checksum than when they were stored"; do
    run -2 --separate-stderr zs-verify --num_layers 2 --iterations 4 "${NVME[@]}" --inject_fault "2:${fault%%:*}:h.1"
    [[ $stderr == *"nvme: the optimizer state of h.1 that is offloaded there: it is not what was stored: ${fault#*:}" ]] || complain "$fault: $stderr"
  done
  run -2 --separate-stderr mpirun --oversubscribe -n 2 zs-verify --num_layers 2 --iterations 4 --zero_stage 3 --offload_param nvme --nvme_path nvme \
    --inject_fault 3:torn:h.0:1
  [[ $stderr == *"rank 1 on "*"the parameters of h.0 that is offloaded there: it is not what was stored: it is torn"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-verify --num_layers 2 --zero_stage 2 --offload_device cpu --inject_fault 2:torn:h.0
  [[ $stderr == *"'torn' is a fault of a disk, and no state is on a disk: set --offload_device nvme"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-verify --num_layers 2 --zero_stage 2 --offload_device nvme --nvme_path nvme --offload_ratio 0 --inject_fault 2:torn:h.0
  [[ $stderr == *"the optimizer state of h.0 is not on the disk: --offload_ratio leaves it on the device; name another unit"* ]] || complain "$stderr"
  run -2 --separate-stderr zs-verify --num_layers 2 "${NVME[@]}" --inject_fault 2:torn:h.7
  [[ $stderr == *"no unit 'h.7', did you mean h."* ]] || complain "$stderr"
  verdict
}
