// What the C programs of tests/bindings expect; what is not so ends the program.
#ifndef EXPECT_H
#define EXPECT_H

#include <halfstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(int true_, const char *what, const char *reason) {
  if (true_) return;
  fprintf(stderr, "not so: %s (%s)\n", what, reason);
  exit(1);
}
#define EXPECT(condition) expect((condition) != 0, #condition, "")
/// A call of halfstep.h.
#define OK(call) expect((call) == HS_OK, #call, hs_error_text())
/// The call fails with the status, and its text has the part.
#define FAILS(call, status, part) \
  expect((call) == (status) && strstr(hs_error_text(), part) != NULL, #call, hs_error_text())

#endif
