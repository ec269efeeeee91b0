// A sum of many terms in two levels: runs of terms are summed, then the sums of the runs. Plain accumulation of ten
// million equal terms would lose three digits, since each addition is rounded to the unit of a large sum.
#ifndef HALFSTEP_LONG_SUM
#define HALFSTEP_LONG_SUM

struct LongSum {
  vec4 runs;
  vec4 run;
  uint terms;  // of the run
};

const LongSum EMPTY_SUM = LongSum(vec4(0.0), vec4(0.0), 0u);
const uint RUN_TERMS = 128u;

void add_term(inout LongSum sum, vec4 term) {
  sum.run += term;
  sum.terms++;
  if (sum.terms == RUN_TERMS) {
    sum.runs += sum.run;
    sum.run = vec4(0.0);
    sum.terms = 0u;
  }
}

vec4 value_of(LongSum sum) { return sum.runs + sum.run; }

#endif
