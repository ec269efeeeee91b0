// A sum of many terms in two levels: terms are added up in runs, and the runs' sums in a second sum. Added one by one,
// ten million terms of one size would lose three digits, since each is rounded to the unit of a sum that has grown large.
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
