#!/bin/bash
# examples/llama/train_llama3_8b_h100_fp8.sh, shortened
TP_SIZE=2
CP_SIZE=1
LAYERS="32"
MODEL_ARGS=(
    --use-mcore-models
    --num-layers "$LAYERS"   # as published
    --hidden-size 4096 --ffn-hidden-size=14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --kv-channels 128 --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 1000000 --normalization RMSNorm
    --swiglu --disable-bias-linear --untie-embeddings-and-output-weights
    --tokenizer-type NullTokenizer --vocab-size 128255
)
torchrun --nproc_per_node 8 --nnodes ${NUM_NODES:-2} pretrain_gpt.py \
    "${MODEL_ARGS[@]}" \
    --micro-batch-size 1 --global-batch-size 128 --bf16 --fp8-format hybrid --fp8-recipe delayed \
    --tensor-model-parallel-size $TP_SIZE --context-parallel-size ${CP_SIZE} --sequence-parallel \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --recompute-granularity full --recompute-method block --recompute-num-layers 4 \
    --lr 1.5e-4 --new-option-of-a-fork 3
