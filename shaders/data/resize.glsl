// Images are resized in two passes. data/resize_columns.comp finds, for each row of an image, the means of its pixels
// about each column of the resized image; data/resize_rows.glsl finds the means of these about each of its rows. One
// long sum over both axes would lose the last bits where a large image becomes a small one.
#ifndef HALFSTEP_RESIZE
#define HALFSTEP_RESIZE

// An image of bytes, and where the first pass leaves its means: a row for each of its rows, a pixel for each column of
// the resized image, and a quad for each four of its channels.
struct Source {
  uint first_byte;
  uint height;
  uint width;
  uint first_quad;
};

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

// Of pixel i, which counts only beside the sum of all weights.
float weight(Taps taps, int i) { return max(0.0, taps.reach - abs(float(i) + 0.5 - taps.centre)); }

#endif
