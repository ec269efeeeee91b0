#include <halfstep/data.h>
#include <halfstep/image_folder.h>

#include "c/handles.h"

namespace halfstep::c {

ElementType element_of(hs_element element) {
  switch (element) {
    case HS_ELEMENT_U8:
      return ElementType::u8;
    case HS_ELEMENT_U16:
      return ElementType::u16;
    case HS_ELEMENT_U32:
      return ElementType::u32;
    case HS_ELEMENT_F32:
      return ElementType::f32;
  }
  fail("field", "expected a value of hs_element, got " + std::to_string(static_cast<int>(element)));
}

Field field_of(const hs_field& field) {
  Field result;
  result.name = text(field.name, "a field's name");
  result.type = element_of(field.type);
  result.shape = shape_of(field.shape);
  result.bound = field.bound;
  result.data = list(static_cast<const std::byte*>(field.data), field.bytes, "a field's data");
  return result;
}

Source source_of(const hs_source& given) {
  const hs_source read = c::read(&given, "source");
  if (read.fill == nullptr) fail("source", "expected a function that fills batches, got NULL");
  Source source;
  source.name = text_or(read.name, "source");
  source.count = read.count;
  for (const hs_field& field : list(read.fields, read.field_count, "fields")) {
    if (field.data != nullptr) fail("source", "expected fields without data, got some in '" + source.name + "'");
    source.fields.push_back(field_of(field));
  }
  source.fill = [fill = read.fill, user = read.user](const SourceBatch& batch) {
    std::vector<void*> room;
    std::vector<std::size_t> bytes;
    for (const std::span<std::byte> part : batch.room) {
      room.push_back(part.data());
      bytes.push_back(part.size());
    }
    hs_source_batch filled{};
    filled.number = batch.number;
    filled.indices = batch.indices.empty() ? nullptr : batch.indices.data();
    const Field& first = batch.fields.front();
    filled.samples = bytes.front() / static_cast<std::size_t>(elements(first.shape) * halfstep::bytes(first.type));
    filled.fields = room.size();
    filled.room = room.data();
    filled.room_bytes = bytes.data();
    if (const int code = fill(user, &filled); code != 0) {
      fail(ErrorCode::bad_file, "source",
           "its function returned " + std::to_string(code) + " for batch " + std::to_string(batch.number));
    }
  };
  return source;
}

namespace {

hs_dataset* handle_of(Dataset set) {
  return new hs_dataset{std::make_shared<const Dataset>(std::move(set))};
}

Split split_of(hs_split_of_data split) {
  if (split != HS_TRAIN && split != HS_TEST) {
    fail("dataset", "expected HS_TRAIN or HS_TEST, got " + std::to_string(static_cast<int>(split)));
  }
  return split == HS_TRAIN ? Split::train : Split::test;
}

/// Memory for a field's elements, of the alignment that a vector of the widest has.
Field copied(Field field) {
  auto kept = std::make_shared<std::vector<std::uint32_t>>((field.data.size() + 3) / 4);
  if (!field.data.empty()) std::memcpy(kept->data(), field.data.data(), field.data.size());
  field.data = std::as_bytes(std::span(*kept)).first(field.data.size());
  field.owner = std::move(kept);
  return field;
}

}  // namespace
}  // namespace halfstep::c

using namespace halfstep;
using namespace halfstep::c;

hs_status hs_dataset_borrow(const char* name, const hs_field* fields, size_t count, hs_dataset** set) {
  return created(set, [&] {
    std::vector<Field> read;
    for (const hs_field& field : list(fields, count, "fields")) read.push_back(field_of(field));
    return handle_of(Dataset::of(text_or(name, "data"), std::move(read)));
  });
}

hs_status hs_dataset_copy(const char* name, const hs_field* fields, size_t count, hs_dataset** set) {
  return created(set, [&] {
    std::vector<Field> read;
    for (const hs_field& field : list(fields, count, "fields")) read.push_back(copied(field_of(field)));
    return handle_of(Dataset::of(text_or(name, "data"), std::move(read)));
  });
}

hs_status hs_dataset_idx(const char* folder, hs_split_of_data split, hs_dataset** set) {
  return created(set, [&] { return handle_of(read_idx_folder(path_of(folder, "a folder"), split_of(split))); });
}

hs_status hs_dataset_cifar10(const char* folder, hs_split_of_data split, hs_dataset** set) {
  return created(set, [&] { return handle_of(read_cifar10(path_of(folder, "a folder"), split_of(split))); });
}

hs_status hs_dataset_cifar100(const char* folder, hs_split_of_data split, int coarse_labels, hs_dataset** set) {
  return created(set, [&] {
    const Cifar100Labels labels = coarse_labels != 0 ? Cifar100Labels::coarse : Cifar100Labels::fine;
    return handle_of(read_cifar100(path_of(folder, "a folder"), split_of(split), labels));
  });
}

hs_status hs_dataset_images(const hs_device* device, const char* folder, int64_t height, int64_t width,
                            int64_t channels, hs_dataset** set) {
  return created(set, [&] {
    ImageFolderOptions options;
    options.height = height;
    options.width = width;
    options.channels = channels;
    return handle_of(read_image_folder(given(device, "a device").device, path_of(folder, "a folder"), options).data);
  });
}

hs_status hs_dataset_tokens(const char* file, hs_element type, int64_t length, uint32_t vocabulary, hs_dataset** set) {
  return created(set, [&] {
    TokenWindows windows;
    windows.type = element_of(type);
    windows.length = length;
    windows.vocabulary = vocabulary;
    return handle_of(read_tokens(path_of(file, "a file"), windows));
  });
}

hs_status hs_dataset_take(const hs_dataset* set, int64_t limit, hs_dataset** taken) {
  return created(taken, [&] { return handle_of(given(set, "a data set").set->take(limit)); });
}

int64_t hs_dataset_count(const hs_dataset* set) {
  return set == nullptr ? 0 : set->set->count;
}

void hs_dataset_free(hs_dataset* set) {
  delete set;
}
