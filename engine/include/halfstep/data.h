#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// Labelled samples in host memory, stored as bytes. The device normalises them and casts them to the input type.
struct HALFSTEP_API Dataset {
  std::string name{};                   ///< for display: the folder or file it was read from
  Shape sample_shape{};                 ///< of one sample, without the batch axis: {28, 28, 1}
  std::int64_t count = 0;               ///< number of samples
  std::uint32_t classes = 0;            ///< every label is below this
  std::vector<std::uint8_t> samples{};  ///< {count, sample_shape...}, row-major
  std::vector<std::uint32_t> labels{};  ///< {count}

  /// Bytes of one sample.
  std::int64_t sample_bytes() const { return elements(sample_shape); }
  /// Throws Error that names the mismatch unless the extents are positive, there are `count` samples and `count`
  /// labels, and every label is below `classes`. Every function that takes a Dataset calls this.
  void check() const;
  /// The first `limit` samples, or all if there are fewer. Throws Error if `limit` is not positive.
  Dataset take(std::int64_t limit) const;
};

/// Reads a pair of IDX files, gzipped or not. Images are unsigned bytes of shape {n, features}, {n, h, w} (read as {h,
/// w, 1}) or {n, h, w, c}. There is one label of one byte per image. `classes` bounds the labels; 0 means the largest
/// label plus one. Throws Error that names the file if it is missing, malformed, truncated or too long.
HALFSTEP_API Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                              std::uint32_t classes = 0);

enum class Split : std::uint8_t { train, test };

/// Reads the training or the test split of a data set laid out like MNIST. `folder` must contain exactly one pair of
/// files whose names contain "train" (or "t10k" or "test"), "images" or "labels", and "idx", as
/// train-images-idx3-ubyte.gz does.
HALFSTEP_API Dataset read_idx_folder(const std::filesystem::path& folder, Split split, std::uint32_t classes = 0);

/// Reads the training or the test split of CIFAR-10 in its binary layout from `folder`, or from its subfolder
/// cifar-10-batches-bin: data_batch_1.bin to data_batch_5.bin (fewer if the last ones are missing), or test_batch.bin.
/// Samples are {32, 32, 3}; there are 10 classes. Throws Error if a file is missing or truncated or a label is out of
/// range. The error names the file, and the image if it concerns one.
HALFSTEP_API Dataset read_cifar10(const std::filesystem::path& folder, Split split);

/// The 100 classes of CIFAR-100 (fine), or its 20 superclasses (coarse).
enum class Cifar100Labels : std::uint8_t { fine, coarse };

/// Likewise for CIFAR-100: train.bin or test.bin, from `folder` or its subfolder cifar-100-binary.
HALFSTEP_API Dataset read_cifar100(const std::filesystem::path& folder, Split split,
                                   Cifar100Labels labels = Cifar100Labels::fine);

/// Random augmentation of training images, applied on the device in the order of the members. The draws depend only on
/// the seed, the step and the index in the batch, so a resumed run sees the same images. Evaluation uses the unmodified
/// images. Everything is off by default.
struct Augmentation {
  /// Pixels of black padding on each side, before a random crop of the original size is taken.
  std::int64_t crop_padding = 0;
  float flip = 0;  ///< probability of a horizontal mirror
  /// Multiplies every pixel by one factor per image, drawn from 1 - brightness to 1 + brightness.
  float brightness = 0;
  /// Scales each pixel's difference from its own grey value, likewise by one factor per image (RGB images only).
  float saturation = 0;
  /// Rotates the hue by at most this fraction of the colour circle in either direction, from 0 to 0.5. One angle is
  /// drawn per image (RGB images only): Smith, "Color gamut transform pairs", 1978.
  float hue = 0;
  /// Scales each pixel's difference from the feed's mean, likewise. Values that these changes push out of byte range
  /// are clamped.
  float contrast = 0;
  /// Side in pixels of a square, centred on a random pixel, that is filled with the feed's mean, which is 0 after
  /// normalisation (DeVries and Taylor, "Improved regularization of convolutional neural networks with cutout", 2017).
  std::int64_t cutout = 0;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The index that fills unused places of a batch.
inline constexpr std::uint32_t no_sample = 0xFFFFFFFF;

/// Selects the samples of each batch. The result depends only on the seed and the step, so a run can resume at any
/// step.
class HALFSTEP_API BatchSampler {
 public:
  /// Shuffles every epoch in its own order, drawn from (seed, epoch). The samples after the last full batch are
  /// dropped. Throws Error unless 1 <= batch_size <= count < 2^32 - 1.
  static BatchSampler training(std::int64_t count, std::int64_t batch_size, std::uint64_t seed);
  /// Takes every sample once, in order; the last batch is padded with no_sample. Throws Error unless both are positive.
  static BatchSampler evaluation(std::int64_t count, std::int64_t batch_size);

  std::int64_t batches_per_epoch() const { return batches_; }
  std::int64_t batch_size() const { return batch_size_; }
  /// The epoch of batch `step`, counted from 0 over the whole run.
  std::int64_t epoch(std::int64_t step) const { return step / batches_; }
  /// The sample indices of batch `step`; valid until the next call.
  std::span<const std::uint32_t> batch(std::int64_t step);

 private:
  BatchSampler(std::int64_t count, std::int64_t batch_size, std::int64_t batches, std::uint64_t seed, bool shuffled);
  void shuffle(std::int64_t epoch);

  std::int64_t count_;
  std::int64_t batch_size_;
  std::int64_t batches_;
  std::uint64_t seed_;
  bool shuffled_;
  std::int64_t shuffled_epoch_ = -1;
  std::vector<std::uint32_t> order_;
};

}  // namespace halfstep
