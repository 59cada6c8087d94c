#!/bin/sh
# The runs of docs/first-results.md: first-results.sh RUNS SEED NAME…   (NAME: a preset without "-10m", or window-64)
# Needs the corpus "slimpajama" (imported as first-results.md says). SACCADE: the program; DEVICE: cuda, cuda:1, cpu.
set -e
saccade=${SACCADE:-build/release/saccade} device=${DEVICE:-cuda} runs=$1 seed=$2
presets=$(dirname "$0")/../resources/presets
shift 2
for name in "$@"; do
  preset=$name
  set --
  case $name in
    window-64) preset=transformer-pp; set -- --set architecture.window=64 ;;
    top1-chunk-*) set -- --set architecture.chunk=32 ;;
  esac
  [ -e "$runs/$name-seed$seed" ] && continue
  "$saccade" train "$presets/$preset-10m.json" -o "$runs/$name-seed$seed" "$@" \
    --set "name=$name" --set data.corpus=slimpajama --set 'data.train=["web"]' \
    --set 'data.ood=["arxiv","github","stack","books","wiki"]' --set data.tokenizer=bpe:4096 --set data.sequence_length=512 \
    --set training.steps=1000 --set training.batch_tokens=32768 --set training.learning_rate=0.001 --set training.warmup_steps=200 \
    --set training.evaluate_every=100 --set training.probe_every=500 --set training.checkpoint_every=1000 \
    --set "training.seed=$seed" --set "device=$device" ${EXTRA:-}
done
