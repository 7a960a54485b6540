#include "../pointwise_kernels.inl"
#include "../delta_kernels.inl"
#include "../attention_kernels.inl"
