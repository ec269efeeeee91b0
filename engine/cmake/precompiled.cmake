# halfstep_precompiled(TARGET HEADERS...): what nearly every file of the target includes is read once. Every file still
# includes what it uses: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON, as in the presets debug and asan, builds without.
function(halfstep_precompiled target)
  target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <cstdint> <filesystem> <functional> <map> <memory>
                            <optional> <span> <string> <string_view> <vector> <fmt/format.h> ${ARGN})
endfunction()
