// A row of statistics, as words; must match step/statistics.h. Floats that are compared are stored as integers in the
// same order (common/math.glsl) until the rows are merged.
#ifndef HALFSTEP_STATISTICS
#define HALFSTEP_STATISTICS

const int SMALLEST = 0;
const int LARGEST = 1;
const int SUM = 2;  // of magnitudes, of finite numbers only
const int SQUARES_OF_LARGE = 5;  // from 3 on: the sums of squares of step/norm.glsl
const int ZEROS = 6;
const int SUBNORMALS = 7;  // of f16
const int LARGE = 8;       // 65504 or above, and finite
const int INFINITIES = 9;
const int NANS = 10;
const int FIRST_BAD = 11;  // index of the first infinity or NaN; LAST_INT if there is none
const int BIN_0 = 12;      // counts per exponent from FIRST_EXPONENT on; the first and last bin include all beyond
const int BINS = 64;
const int FIRST_EXPONENT = -40;
const int ROW_WORDS = BIN_0 + BINS;
const int SCALE = ROW_WORDS;  // in the report: the scale that the tensor is stored with

const int LAST_INT = 0x7fffffff;

// The initial value of a word, for a row without values.
int empty_word(int word) {
  if (word == SMALLEST || word == FIRST_BAD) return LAST_INT;
  return word == LARGEST ? -LAST_INT : 0;
}

#endif
