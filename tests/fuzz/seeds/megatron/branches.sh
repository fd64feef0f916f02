#!/bin/bash
set -e
TS=`date +%s`
CUR="$( cd "$( dirname "$0" )" && pwd )"
if [ -z ${MP_AC_LAYERS} ];then
    MP_AC_LAYERS=1
fi
SIZE=16B; TP=2; AC=sel
if [ $SIZE = 236B ]; then
L=60
moe_options=" \
    --num-experts 160"
elif [ $SIZE = 16B ]; then
L=27
moe_options=" \
    --num-experts 64 \
    --moe-router-topk 6"
fi
OV=$(( ($TP > 1) ? 1 : 0 ))
o="\
  --overlap-grad-reduce"
if [ $OV -eq 1 ]; then
 o="--overlap-grad-reduce"
fi
case $AC in
 full|all) ac="--recompute-granularity full";;
 sel*)
   ac="--recompute-activations"
   ;;
 *) ac="";;
esac
[[ $TP -gt 1 ]] && sp="--sequence-parallel"
[ "$TP" = 1 ] && sp="" || X=y
if docker ps; then Z=1; else Z=2; fi
if [ -n "${WANDB}" ]; then A+=(--wandb); fi
cat <<EOT > cfg
{ "a": "it's" --not-me }
EOT
run_cmd="torchrun --nproc_per_node $((4 * TP)) pretrain.py
 ${o} $moe_options --num-layers ${L} ${ac} $sp ${NOTSET}"
run_cmd="$run_cmd | tee log"
eval ${run_cmd} --hidden-size 64 --num-attention-heads 4 --seq-length 64 --vocab-size 99 --global-batch-size 16
