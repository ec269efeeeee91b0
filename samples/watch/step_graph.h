#pragma once

#include <halfstep/halfstep.h>

#include <filesystem>

namespace samples {

/// Writes a step as a graph of its dispatches, in the form that the file's name ends in. All have phases, shapes, bytes
/// and types; operators that were fused are framed together.
///
/// - .svg: a picture. Forward runs down the left column, backward up the middle one, the update down the right one. The
///   colour is the type of the results.
/// - .dot: for graphviz.
/// - .json: the "rows" of the log's record of operators (see operators_record).
void write_step_graph(const std::filesystem::path& file, const halfstep::PlannedStep& step);

}  // namespace samples
