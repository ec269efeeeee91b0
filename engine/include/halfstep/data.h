#pragma once

#include <halfstep/tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// The types that the elements of a data set are stored in.
enum class ElementType : std::uint8_t { u8, u16, u32, f32 };

/// "u8", "u16", "u32" or "f32".
HALFSTEP_API std::string_view name(ElementType type);

/// Bytes of one element.
HALFSTEP_API std::int64_t bytes(ElementType type);

/// A C++ type that has an ElementType.
template <typename T>
concept Element = std::same_as<T, std::uint8_t> || std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t> ||
    std::same_as<T, float>;

template <Element T>
constexpr ElementType element_type() {
  if constexpr (std::same_as<T, std::uint8_t>) return ElementType::u8;
  if constexpr (std::same_as<T, std::uint16_t>) return ElementType::u16;
  if constexpr (std::same_as<T, std::uint32_t>) return ElementType::u32;
  return ElementType::f32;
}

/// One tensor of every sample of a Dataset: features, token ids, a mask, labels.
struct HALFSTEP_API Field {
  std::string name{};
  ElementType type = ElementType::u8;
  Shape shape{};            ///< of one sample, without the batch axis; {} is a scalar
  std::uint32_t bound = 0;  ///< of integers: every value is below this; 0: not known
  /// The elements, in this machine's byte order and aligned to their size.
  std::span<const std::byte> data{};
  /// Keeps `data` alive: the vector or the memory-mapped file that it lies in. Null: the caller does. A memory-mapped
  /// file must not change.
  std::shared_ptr<const void> owner{};
  std::int64_t first = 0;  ///< index in `data` of sample 0's first element
  /// Elements from one sample's first to the next one's. 0: samples lie one after the other, and fill `data` to its
  /// end. Less than a sample has: samples overlap, as windows of a text may.
  std::int64_t stride = 0;

  /// A field that owns its values: {count, shape...}, row-major.
  template <Element T>
  static Field own(std::string name, Shape shape, std::vector<T> values, std::uint32_t bound = 0) {
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    const std::span<const std::byte> data = std::as_bytes(std::span(*kept));
    return {std::move(name), element_type<T>(), std::move(shape), bound, data, std::move(kept)};
  }
  /// A field of values that the caller keeps, unchanged, as long as any Dataset has the field.
  template <Element T>
  static Field borrow(std::string name, Shape shape, std::span<const T> values, std::uint32_t bound = 0) {
    return {std::move(name), element_type<T>(), std::move(shape), bound, std::as_bytes(values)};
  }

  /// Elements from one sample to the next.
  std::int64_t step() const { return stride > 0 ? stride : elements(shape); }
  /// The samples that `data` has room for. Throws Error unless the extents are positive and `data` consists of whole,
  /// aligned elements, and of whole samples if they lie one after the other.
  std::int64_t count() const;
  /// Throws Error unless there are `count` samples and every integer is below `bound`.
  void check(std::int64_t count) const;
};

/// Samples in host memory. Images with labels are stored in `samples` and `labels`, as bytes and words; any other
/// tensors of a sample, with these or without, are `fields`. The device normalises bytes and casts them to the input's
/// type; see Feed.
struct HALFSTEP_API Dataset {
  std::string name{};                   ///< for display: the folder or file it was read from
  Shape sample_shape{};                 ///< of one of `samples`, without the batch axis: {28, 28, 1}
  std::int64_t count = 0;               ///< number of samples
  std::uint32_t classes = 0;            ///< every label is below this
  std::vector<std::uint8_t> samples{};  ///< {count, sample_shape...}, row-major
  std::vector<std::uint32_t> labels{};  ///< {count}
  std::vector<Field> fields{};          ///< each of `count` samples, under names that differ

  /// A set of `fields`, with as many samples as they have. Throws Error if check() would, or if there are none.
  static Dataset of(std::string name, std::vector<Field> fields);

  /// Bytes of one of `samples`.
  std::int64_t sample_bytes() const { return elements(sample_shape); }
  /// Every tensor of a sample: "samples" {sample_shape...} of u8 and "labels" {} of u32, if there are any, then
  /// `fields`. The first two refer to this set's memory.
  std::vector<Field> all_fields() const;
  /// Throws Error that names the mismatch unless the extents are positive, there are `count` samples and `count`
  /// labels, every label is below `classes`, and every field agrees (Field::check). `samples` and `labels` may both be
  /// empty if there are fields, and labels alone may be. Every function that takes a Dataset calls this.
  void check() const;
  /// The first `limit` samples, or all if there are fewer. Fields are shared, not copied. Throws Error if `limit` is
  /// not positive.
  Dataset take(std::int64_t limit) const;
};

/// A batch that a Source is to fill.
struct HALFSTEP_API SourceBatch {
  /// Counted from 0 over the whole run, the part before a checkpoint included; of N ranks, each is given one of N
  /// consecutive ones.
  std::int64_t number = 0;
  /// Of a Source with a count: the sample for each place of the batch. Empty otherwise.
  std::span<const std::uint32_t> indices{};
  std::span<const Field> fields{};  ///< Source::fields
  /// For each of them, room for the batch's samples, one after the other. What it contains before is not specified, and
  /// all of it is used.
  std::vector<std::span<std::byte>> room{};

  /// The room for elements of a field. Throws Error if there is no such field, or if its elements are no T.
  template <Element T>
  std::span<T> values(std::size_t field) const {
    const std::span<std::byte> found = room_for(field, element_type<T>());
    return {reinterpret_cast<T*>(found.data()), found.size() / sizeof(T)};  // NOLINT: aligned to 16 bytes
  }

 private:
  std::span<std::byte> room_for(std::size_t field, ElementType type) const;
};

/// Training samples that the application makes as they are needed: reads from a database, decodes, generates.
struct HALFSTEP_API Source {
  std::string name{};  ///< in errors
  /// Samples of an epoch, from which BatchSampler::training draws the indices of each batch. 0: unbounded. Then there
  /// are no epochs, and a run resumed from a checkpoint continues with the batch of the same number.
  std::int64_t count = 0;
  std::vector<Field> fields{};  ///< name, type, shape and bound of each; without data
  /// Fills a batch. Called on the loader's thread, one of the trainer's own, for one batch after the other in the order
  /// of their numbers, up to three batches ahead of step(). It may block: then step() waits (HostCosts::waits_for_batch
  /// counts this). The trainer's destructor and load() wait until it returns. Must not call the trainer. It depends on
  /// the number and the indices alone if a resumed run is to continue as an uninterrupted one would; load() asks for
  /// batches again. If it throws, or an integer is not below its bound, step() throws Error, once the batches before it
  /// were used, and from then on until load().
  std::function<void(const SourceBatch& batch)> fill{};

  /// Throws Error unless there is a function and at least one field, whose names differ and whose extents are positive.
  void check() const;
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

/// Reads an array that NumPy saved (.npy, versions 1 to 3, C order): its first axis is that of samples, the others are
/// `shape`. Bytes, |u1 and |b1, and <u2, <u4 and <f4 are memory-mapped where they are aligned; then the file must not
/// change as long as the field exists. <i4 and <i8 are converted to u32. `name` and `bound` are the field's. Throws
/// Error that names the file if it is no such array, of another type, truncated or too long, or has an integer that u32
/// cannot represent.
HALFSTEP_API Field read_npy(const std::filesystem::path& file, std::string name, std::uint32_t bound = 0);

/// How a text of tokens is cut into the samples of a set.
struct TokenWindows {
  ElementType type = ElementType::u16;  ///< of the file's tokens: u16 or u32
  std::int64_t length = 0;              ///< tokens of a sample
  std::uint32_t vocabulary = 0;         ///< every token is below this, which is checked; 0: not known
  std::int64_t stride = 0;  ///< tokens from one sample to the next; 0: `length`; 1: samples begin at every token
};

/// Memory-maps a file of nothing but tokens in this machine's byte order, for a language model to predict each next
/// token: a set with the fields "tokens" {length} and "targets" {length}, which is the same text one token later.
/// Training draws windows in random order, as it does samples. Nothing is copied; the file must not change as long as
/// the set exists. Throws Error if it cannot be read, has a fraction of a token, a token beyond the vocabulary, or less
/// than one window and a token.
HALFSTEP_API Dataset read_tokens(const std::filesystem::path& file, const TokenWindows& windows);

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

/// Selects the samples of each batch. The result depends only on the seed and the step, so a run can resume at any
/// step. Moving one copies it.
class HALFSTEP_API BatchSampler {
 public:
  BatchSampler(const BatchSampler&) = default;
  BatchSampler& operator=(const BatchSampler&) = default;
  ~BatchSampler() = default;

  /// Shuffles every epoch in its own order, drawn from (seed, epoch). The samples after the last full batch are
  /// dropped. Throws Error unless 1 <= batch_size <= count < 2^32 - 1.
  static BatchSampler training(std::int64_t count, std::int64_t batch_size, std::uint64_t seed);
  /// Takes every sample once, in order. Samples left after the last full batch fill batches evenly: each batch repeats
  /// a number of samples that divides the batch size, as many of those left as possible, so that a mean over the batch
  /// is the mean over these samples. Throws Error unless both are positive, and `batch_size` is below 2^32.
  static BatchSampler evaluation(std::int64_t count, std::int64_t batch_size);
  /// The same samples of every epoch, in batches of samples of one bucket: `buckets` has the number of each sample's.
  /// The epoch's samples are sorted by bucket, in the order drawn within each, and cut into batches. Those left after a
  /// bucket's last full batch are in one batch with samples of larger buckets, so each sample is drawn as often as
  /// without buckets. Then the batches are shuffled, drawn from (seed, epoch) too. Throws Error as above.
  static BatchSampler training(std::vector<std::uint32_t> buckets, std::int64_t batch_size, std::uint64_t seed);
  /// Likewise for an evaluation: every sample once, sorted by bucket.
  static BatchSampler evaluation(std::vector<std::uint32_t> buckets, std::int64_t batch_size);

  std::int64_t batches_per_epoch() const { return batches_; }
  std::int64_t batch_size() const { return batch_size_; }
  /// The epoch of batch `step`, counted from 0 over the whole run.
  std::int64_t epoch(std::int64_t step) const { return step / batches_; }
  /// The sample indices of batch `step`; valid until the next call.
  std::span<const std::uint32_t> batch(std::int64_t step);
  /// The number of different samples in batch `step`. This, batch() and bucket() throw Error for a negative step.
  std::int64_t samples(std::int64_t step) const;
  /// The largest bucket of the samples of batch `step`; 0 if there are no buckets.
  std::uint32_t bucket(std::int64_t step);

 private:
  /// Different samples of a batch, in order.
  struct Range {
    std::int64_t first;
    std::int64_t count;
  };
  BatchSampler(std::int64_t count, std::int64_t batch_size, std::uint64_t seed, bool shuffled);
  void shuffle(std::int64_t epoch);
  void sort_by_bucket(std::int64_t samples);
  void place_rest();
  Range evaluated(std::int64_t step) const;

  std::int64_t count_;
  std::int64_t batch_size_;
  std::int64_t batches_;
  std::vector<Range> rest_;  ///< of an evaluation: the samples of each batch after the last full one
  std::uint64_t seed_;
  bool shuffled_;
  std::int64_t shuffled_epoch_ = -1;
  std::vector<std::uint32_t> order_;    ///< of an epoch of training, or with buckets of an evaluation
  std::vector<std::uint32_t> batch_;    ///< of an evaluation: the current batch
  std::vector<std::uint32_t> buckets_;  ///< of each sample; empty: none
  std::vector<std::uint32_t> turns_;    ///< with buckets: the order of an epoch's batches
};

}  // namespace halfstep
