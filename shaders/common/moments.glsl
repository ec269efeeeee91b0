// The mean of some rows of a quad of columns, and the sum of squared differences from it.
#ifndef HALFSTEP_MOMENTS
#define HALFSTEP_MOMENTS

struct Moments {
  float rows;
  vec4 mean;
  vec4 squares;
};
const Moments NO_MOMENTS = Moments(0.0, vec4(0.0), vec4(0.0));

// Merges two sets of moments; Chan, Golub and LeVeque 1979. The mean of no rows is no mean: the square of how far it is
// away may be infinite, and times 0 NaN.
Moments merged(Moments a, Moments b) {
  float rows = a.rows + b.rows;
  float share = b.rows / max(rows, 1.0);
  vec4 difference = mix(vec4(0.0), b.mean - a.mean, bvec4(a.rows * b.rows > 0.0));
  return Moments(rows, mix(b.mean, a.mean, bvec4(a.rows > 0.0)) + difference * share,
                 a.squares + b.squares + difference * difference * (a.rows * share));
}

#endif
