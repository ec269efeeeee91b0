// Images of unsigned bytes, a pixel's channels together and rows without padding. The including shader declares the
// bytes they lie in, four a word: `buffer Bytes { uint words[]; }`.
#ifndef HALFSTEP_IMAGE
#define HALFSTEP_IMAGE

struct Image {
  uint first_byte;
  uint height;
  uint width;
  uint channels;
};

float byte_at(uint i) { return float((words[i >> 2] >> ((i & 3u) * 8u)) & 0xFFu); }

// Four channels of a pixel, as 0 to 255. An image of one channel has it in all of them.
vec4 pixel(Image image, uint y, uint x, uvec4 channel) {
  uint base = image.first_byte + (y * image.width + x) * image.channels;
  uvec4 c = min(channel, uvec4(image.channels - 1u));
  return vec4(byte_at(base + c.x), byte_at(base + c.y), byte_at(base + c.z), byte_at(base + c.w));
}

// The pixels of one axis that make up one of a resized image: a triangle about its centre, as wide as a pixel of the
// larger of the two images on either side. Enlarging, this is bilinear interpolation between pixels' centres; making
// smaller, it leaves no pixel out.
struct Taps {
  float centre;
  float reach;
  int first;
  int last;
};

Taps taps(uint place, uint places, uint pixels) {
  float ratio = float(pixels) / float(places);
  float centre = (float(place) + 0.5) * ratio;
  float reach = max(ratio, 1.0);
  int first = max(int(ceil(centre - reach - 0.5)), 0);
  int last = min(int(floor(centre + reach - 0.5)), int(pixels) - 1);
  return Taps(centre, reach, first, last);
}

float weight(Taps taps, int i) { return max(0.0, 1.0 - abs(float(i) + 0.5 - taps.centre) / taps.reach); }

// The mean of a row's pixels about `columns`.
vec4 row_pixel(Image image, uint row, Taps columns, uvec4 channel) {
  vec4 sum = vec4(0.0);
  float total = 0.0;
  for (int column = columns.first; column <= columns.last; column++) {
    float w = weight(columns, column);
    sum += w * pixel(image, row, uint(column), channel);
    total += w;
  }
  return sum / total;
}

// The same for pixel {y, x} of the image made {height, width} large. Row by row: one long sum would lose the last bits
// where a large image becomes a small one.
vec4 resized_pixel(Image image, uint y, uint x, uint height, uint width, uvec4 channel) {
  Taps rows = taps(y, height, image.height);
  Taps columns = taps(x, width, image.width);
  vec4 sum = vec4(0.0);
  float total = 0.0;
  for (int row = rows.first; row <= rows.last; row++) {
    float w = weight(rows, row);
    sum += w * row_pixel(image, uint(row), columns, channel);
    total += w;
  }
  return sum / total;
}

#endif
