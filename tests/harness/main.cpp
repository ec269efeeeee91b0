#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "vk/validation.h"

// Under HALFSTEP_VALIDATION, one message of the validation layer fails the program.
int main(int argc, char** argv) {
  const int result = doctest::Context(argc, argv).run();
  const std::size_t messages = halfstep::vk::validation_messages().size();
  if (messages > 0) fmt::print(stderr, "{} messages of the validation layer\n", messages);
  return messages > 0 ? 1 : result;
}
