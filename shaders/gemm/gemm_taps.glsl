// The segments of k, and which of them a tile has. A convolution's are taps. Its data gradient takes the positions
// whose taps reach a pixel: with a stride, the pixels of one phase (the remainders of their coordinates) are reached by
// the same taps, so A's rows are in order of phases, and a tile has rows of one phase and only those taps (IN_PHASES).
#ifndef HALFSTEP_GEMM_TAPS
#define HALFSTEP_GEMM_TAPS

#if defined(OPERANDS_patches_row) || defined(OPERANDS_patches_col)
#define TAPS
#elif defined(OPERANDS_pixels_row) || defined(OPERANDS_planes_row)
#define LINES
#endif

// Segments in a row of taps, or in an image, where pipelines are for just so many, so that no division is left; or 0.
#ifndef HAS_IN_ROW
const int IN_ROW = 0;
#endif

// A segment of k.
struct Segment {
  int index;
  ivec2 place;  // the tap that it is, {row, column}, or the line of positions, {image, row}
  ivec2 shift;  // of a tap: its pixel, from that of a position
};

#ifdef TAPS
// Of the tile, where IN_PHASES: the first tap and its shift, and how many there are, in each axis.
ivec2 first_tap;
ivec2 first_shift;
ivec2 tap_count;

// Fewer than strides, if there are fewer pixels.
ivec2 phases() { return min(stride, c_image); }
int phase_rows() { return rows / (phases().x * phases().y); }

// From one tap to the next: taps, and pixels.
ivec2 tap_stride() { return IN_PHASES ? ivec2(TAP_STRIDE_Y, TAP_STRIDE_X) : ivec2(1); }
ivec2 shift_stride() { return IN_PHASES ? tap_stride() * tap_step / stride : tap_step; }

// Finds the first tap that reaches pixel `pixel` along an axis; none: tap_count is 0.
void place_taps(int axis, int pixel, int taps) {
  int apart = tap_stride()[axis];
  int s = stride[axis];
  int at = pixel + offset[axis];
  int tap = 0;
  // Their remainders repeat after tap_stride().
  while (tap < min(apart, taps) && (at + tap * tap_step[axis]) / s * s != at + tap * tap_step[axis]) tap++;
  bool found = tap < min(apart, taps);
  first_tap[axis] = found ? tap : 0;
  first_shift[axis] = (at + first_tap[axis] * tap_step[axis]) / s;
  tap_count[axis] = found ? (taps - tap + apart - 1) / apart : 0;
}

void place_taps(int phase) {
  int row = phase / phases().y;
  place_taps(0, row, segments / kernel_width);
  place_taps(1, phase - row * phases().y, kernel_width);
}

Segment segment_of(ivec2 tap, ivec2 shift) {
  // A tile without taps reads some, and adds no products.
  return Segment(min(tap.x * kernel_width + tap.y, segments - 1), tap, shift);
}

Segment segment_at(int index) {
  int in_row = IN_PHASES ? max(tap_count.y, 1) : IN_ROW > 0 ? IN_ROW : kernel_width;
  ivec2 place = ivec2(index / in_row, 0);
  place.y = index - place.x * in_row;
  ivec2 shift = place * shift_stride();
  place *= tap_stride();
  return IN_PHASES ? segment_of(first_tap + place, first_shift + shift) : segment_of(place, shift);
}

// The one `count` segments later, in the same row of taps or the first of the next. Without a division, which software
// drivers make for each lane.
Segment segment_after(Segment segment, int count) {
  ivec2 start = IN_PHASES ? first_tap : ivec2(0);
  ivec2 start_shift = IN_PHASES ? first_shift : ivec2(0);
  ivec2 tap = segment.place + ivec2(0, count * tap_stride().y);
  ivec2 shift = segment.shift + ivec2(0, count * shift_stride().y);
  bool in_row = tap.y < kernel_width;
  tap = in_row ? tap : ivec2(tap.x + tap_stride().x, start.y);
  shift = in_row ? shift : ivec2(shift.x + shift_stride().x, start_shift.y);
  return segment_of(tap, shift);
}

// That, where it is known to be in the same row: what depends on the row need not be found again.
Segment segment_beside(Segment segment, int count) {
  return segment_of(segment.place + ivec2(0, count * tap_stride().y),
                    segment.shift + ivec2(0, count * shift_stride().y));
}

int tile_segments() { return IN_PHASES ? tap_count.x * tap_count.y : segments; }

#else

Segment segment_at(int index) {
#ifdef LINES
  int in_image = IN_ROW > 0 ? IN_ROW : grid.x;
  int image_number = index / in_image;
  return Segment(index, ivec2(image_number, index - image_number * in_image), ivec2(0));
#else
  return Segment(index, ivec2(0), ivec2(0));
#endif
}

// The one `count` segments later, in the same image or at the start of the next. Without a division, as above.
Segment segment_after(Segment segment, int count) {
  segment.index += count;
#ifdef LINES
  bool in_image = segment.place.y + count < grid.x;
  segment.place = in_image ? segment.place + ivec2(0, count) : ivec2(segment.place.x + 1, 0);
#endif
  return segment;
}

// That, where it is known to be in the same image.
Segment segment_beside(Segment segment, int count) {
  return Segment(segment.index + count, segment.place + ivec2(0, count), ivec2(0));
}

int tile_segments() { return segments; }
#endif

#endif
