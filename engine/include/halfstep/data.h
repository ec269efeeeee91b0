#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// Labelled samples in host memory, as bytes; the device normalises and casts them.
struct HALFSTEP_API Dataset {
  std::string name{};                   ///< for people: the folder or file it came from
  Shape sample_shape{};                 ///< of one sample, without the batch: {28, 28, 1}
  std::int64_t count = 0;               ///< number of samples
  std::uint32_t classes = 0;            ///< every label is below this
  std::vector<std::uint8_t> samples{};  ///< {count, sample_shape...}, row-major
  std::vector<std::uint32_t> labels{};  ///< {count}

  /// Bytes of one sample.
  std::int64_t sample_bytes() const { return elements(sample_shape); }
  /// Throws Error, naming what disagrees, unless the extents are positive, there are count samples and count labels,
  /// and every label is below `classes`. Whatever takes a Dataset calls this.
  void check() const;
  /// The first `limit` samples, or all where there are no more. Throws Error if `limit` is not positive.
  Dataset take(std::int64_t limit) const;
};

/// Reads a pair of IDX files, gzipped or not: images of unsigned bytes, {n, features}, {n, h, w} (taken as {h, w, 1})
/// or {n, h, w, c}, and as many labels of one byte. `classes` bounds the labels; 0 takes the largest label plus one.
/// Throws Error that names the file for whatever is missing, malformed, truncated or too long.
HALFSTEP_API Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                              std::uint32_t classes = 0);

enum class Split : std::uint8_t { train, test };

/// Reads the training or the test half of a set in the form of MNIST: the one pair of files in `folder` whose names
/// have "train" (or "t10k" or "test"), "images" or "labels", and "idx" in them, as train-images-idx3-ubyte.gz does.
HALFSTEP_API Dataset read_idx_folder(const std::filesystem::path& folder, Split split, std::uint32_t classes = 0);

/// Reads the training or the test half of CIFAR-10 in its binary layout from `folder`, or from cifar-10-batches-bin in
/// it: data_batch_1.bin to data_batch_5.bin (fewer where the last are missing), or test_batch.bin. Samples are
/// {32, 32, 3}; there are 10 classes. Throws Error that names the file, and the image where there is one, for whatever
/// is missing, truncated or labelled with another class.
HALFSTEP_API Dataset read_cifar10(const std::filesystem::path& folder, Split split);

/// The 100 classes of CIFAR-100, or the 20 groups that they fall into.
enum class Cifar100Labels : std::uint8_t { fine, coarse };

/// The same for CIFAR-100: train.bin or test.bin, from `folder` or from cifar-100-binary in it.
HALFSTEP_API Dataset read_cifar100(const std::filesystem::path& folder, Split split,
                                   Cifar100Labels labels = Cifar100Labels::fine);

/// What is done to an image at random each time that it is trained on, in this order, on the device. What is drawn
/// depends on the seed, the step and the place in the batch alone, so that a resumed run sees the same images;
/// evaluation sees the images as they are. Everything is off unless asked for.
struct Augmentation {
  /// Pixels of black put about the image before a window of its size is taken from anywhere in it.
  std::int64_t crop_padding = 0;
  float flip = 0;  ///< probability of mirroring left and right
  /// Each pixel is multiplied by a factor from 1 - brightness to 1 + brightness, one for the whole image.
  float brightness = 0;
  /// Likewise its distance from its own grey (images of three channels, red, green and blue).
  float saturation = 0;
  /// Its hue is turned by at most this share of the colour circle either way, from 0 to 0.5, by one angle for the whole
  /// image (likewise): Smith, "Color gamut transform pairs", 1978.
  float hue = 0;
  /// Likewise its distance from the feed's mean. What leaves the range of a byte by these is clamped.
  float contrast = 0;
  /// Side in pixels of a square about a random pixel that takes the feed's mean, which is 0 once normalised (DeVries
  /// and Taylor, "Improved regularization of convolutional neural networks with cutout", 2017).
  std::int64_t cutout = 0;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// Fills the places of a batch that no sample is left for.
inline constexpr std::uint32_t no_sample = 0xFFFFFFFF;

/// Which samples make up each batch: a function of the seed and the step alone, so that a run can be taken up anywhere.
class HALFSTEP_API BatchSampler {
 public:
  /// Every epoch in an order of its own, drawn from (seed, epoch); what is left over after the last full batch is
  /// dropped. Throws Error unless 1 <= batch_size <= count < 2^32 - 1.
  static BatchSampler training(std::int64_t count, std::int64_t batch_size, std::uint64_t seed);
  /// In order, every sample once; the last batch is filled up with no_sample. Throws Error unless both are positive.
  static BatchSampler evaluation(std::int64_t count, std::int64_t batch_size);

  std::int64_t batches_per_epoch() const { return batches_; }
  std::int64_t batch_size() const { return batch_size_; }
  /// The epoch that batch `step` of all batches ever, from 0, belongs to.
  std::int64_t epoch(std::int64_t step) const { return step / batches_; }
  /// The samples of batch `step`; valid until the next call.
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
