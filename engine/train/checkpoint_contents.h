#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/graph.h>

#include <cstddef>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace halfstep {

/// The tensors of a checkpoint as they came off the device. They are put into the file's types and order of axes when
/// it is written.
struct Checkpoint::Contents {
  struct Values {
    std::string name;  ///< in the file, here and below
    DType dtype = DType::f32;
    Shape shape;  ///< in the order of the model's axes
    Axes stored;  ///< the file's order of these
    std::vector<float> values;
  };
  struct Raw {
    std::string name;
    std::string dtype;  ///< "U32" or "F32"
    std::vector<std::byte> bytes;
  };

  std::vector<Values> values{};
  std::vector<Raw> raw{};  ///< of one axis
  io::Metadata metadata{};

  /// What a file of it holds.
  io::SafetensorsFile file() const;
};

namespace train {

/// Whether a file's metadata says that it is a checkpoint, of any version of Halfstep's format.
bool is_checkpoint(const io::Metadata& metadata);

}  // namespace train

}  // namespace halfstep
