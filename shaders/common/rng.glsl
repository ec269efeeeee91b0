// Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Four random words
// for a counter and a key. A draw depends on its purpose, never on the thread.
#ifndef HALFSTEP_RNG
#define HALFSTEP_RNG
#extension GL_EXT_control_flow_attributes : require

uvec4 philox4x32(uvec4 counter, uvec2 key) {
  [[unroll]] for (int round = 0; round < 10; round++) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, counter.x, high0, low0);
    umulExtended(0xCD9E8D57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

// The noise stream of a draw, so that two uses never share numbers. Stream 1 is the weights' (state/parameters.h);
// streams from 2^31 on are hashes of tensors' names.
const uint STREAM_AUGMENTATION = 2u;
const uint STREAM_MOMENT_ROUNDING = 3u;

// Noise for the four elements of a quad, in attempted step `step`.
uvec4 quad_noise(uvec2 seed, uvec2 step, uint stream, uint quad) {
  return philox4x32(uvec4(quad, stream, step.x, step.y), seed);
}

#endif
