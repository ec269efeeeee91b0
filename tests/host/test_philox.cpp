#include <doctest/doctest.h>

#include "base/philox.h"

using halfstep::process::philox4x32;
using Words = std::array<std::uint32_t, 4>;

// The known answers of the authors' Random123 library for philox4x32 with ten rounds.
TEST_CASE("Philox gives its published answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("A seed's two halves are the key, the low one first") {
  CHECK(halfstep::process::philox_key(0x0123456789abcdef) == std::array<std::uint32_t, 2>{0x89abcdef, 0x01234567});
}
