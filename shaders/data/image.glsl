// Images of unsigned bytes with interleaved channels and unpadded rows. The including shader declares the buffer, four
// bytes per word: `buffer Bytes { uint words[]; }`.
#ifndef HALFSTEP_IMAGE
#define HALFSTEP_IMAGE

struct Image {
  uint first_byte;
  uint height;
  uint width;
  uint channels;
};

float byte_at(uint i) { return float((words[i >> 2] >> ((i & 3u) * 8u)) & 0xFFu); }

// Four channels of a pixel, in the range 0 to 255. A single channel is copied to all of them.
vec4 pixel(Image image, uint y, uint x, uvec4 channel) {
  uint base = image.first_byte + (y * image.width + x) * image.channels;
  uvec4 c = min(channel, uvec4(image.channels - 1u));
  return vec4(byte_at(base + c.x), byte_at(base + c.y), byte_at(base + c.z), byte_at(base + c.w));
}

#endif
