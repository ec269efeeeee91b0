#include "samples/watch/plot.h"

#include <halfstep/halfstep.h>

#include <nlohmann/json.hpp>

#include <span>
#include <utility>

namespace samples {

Plot::Plot(std::filesystem::path file, const std::vector<Record>& before) : file_(std::move(file)) {
  for (const Record& record : before) curves_.add(record);
}

void Plot::write(const Record& record) {
  curves_.add(record);
  const auto now = std::chrono::steady_clock::now();
  const bool due = record["kind"] == "evaluation" || record["kind"] == "end" || now - drawn_ > std::chrono::seconds(30);
  if (!due) return;
  drawn_ = now;
  const std::string picture = draw_panels(curves_.title(), curves_.subtitle(), curves_.panels(),
                                          file_.extension() == ".png" ? png_drawing : svg_drawing);
  const halfstep::Bytes parts[] = {std::as_bytes(std::span(picture))};
  halfstep::write_atomically(file_, parts);
}

}  // namespace samples
