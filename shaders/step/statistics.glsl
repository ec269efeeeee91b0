// A row of statistics, as words; must match step/statistics.h. Floats that are compared are stored as integers in the
// same order (common/math.glsl) until the rows are merged.
#ifndef HALFSTEP_STATISTICS
#define HALFSTEP_STATISTICS

const int SMALLEST = 0;
const int LARGEST = 1;
const int SUM = 2;  // of finite magnitudes, of those from 2^48 on apart, times SHRUNK each; see step/norm.glsl
const int SUM_OF_LARGE = 3;
const int SQUARES = 4;  // the sums of squares of step/norm.glsl: of small, medium and large numbers
const int SQUARES_OF_LARGE = 6;
const int ZEROS = 7;
const int SUBNORMALS = 8;  // of f16
const int LARGE = 9;       // 65504 or above, and finite
const int INFINITIES = 10;
const int NANS = 11;
const int BIN_0 = 12;      // counts per exponent from FIRST_EXPONENT on; the first and last bin include all beyond
const int BINS = 64;
const int FIRST_EXPONENT = -40;
const int ROW_WORDS = BIN_0 + BINS;
const int SCALE = ROW_WORDS;  // in the report: the scale that the tensor is stored with

const int LAST_INT = 0x7fffffff;

// The initial value of a word, for a row without values.
int empty_word(int word) {
  if (word == SMALLEST) return LAST_INT;
  return word == LARGEST ? -LAST_INT : 0;
}

#endif
