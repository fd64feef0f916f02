#!/bin/bash
# 175B parameters on 1,024 GPUs: 8-way tensor, 16-way pipeline, 8-way data parallelism.
TP=8
PP=16
MODEL=(
    --num-layers 96 --hidden-size 12288 --num-attention-heads 96
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 51199
    --make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer
)
torchrun --nproc_per_node 8 --nnodes 128 pretrain_gpt.py "${MODEL[@]}" \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
    --num-layers-per-virtual-pipeline-stage 2 --sequence-parallel \
    --micro-batch-size 1 --global-batch-size 1536 --bf16 \
    --recompute-activations --use-distributed-optimizer --overlap-grad-reduce \
    --lr 6e-5 --min-lr 6e-6
