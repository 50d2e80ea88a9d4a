// Parses one GGUF file's header. The file's size bounds every allocation.
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "base/quote.h"
#include "format/gguf.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMaxNameBytes = 65535;  // the format's own limit for keys
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr int kMaxRank = 4;  // GGML_MAX_DIMS
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kLeastEntryBytes = 8 + 4 + 1;       // key length, type, value
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;  // name length, rank, type, offset
constexpr const char* kHint = "fetch the file again";

struct TensorType {
  uint32_t id;
  const char* name;
  int block_elems, block_bytes;
};

// Source: ggml-org/ggml, enum ggml_type and the block structures of ggml-common.h.
constexpr std::array kTensorTypes{
    TensorType{0, "F32", 1, 4},         TensorType{1, "F16", 1, 2},         TensorType{2, "Q4_0", 32, 18},
    TensorType{3, "Q4_1", 32, 20},      TensorType{6, "Q5_0", 32, 22},      TensorType{7, "Q5_1", 32, 24},
    TensorType{8, "Q8_0", 32, 34},      TensorType{9, "Q8_1", 32, 36},      TensorType{10, "Q2_K", 256, 84},
    TensorType{11, "Q3_K", 256, 110},   TensorType{12, "Q4_K", 256, 144},   TensorType{13, "Q5_K", 256, 176},
    TensorType{14, "Q6_K", 256, 210},   TensorType{15, "Q8_K", 256, 292},   TensorType{16, "IQ2_XXS", 256, 66},
    TensorType{17, "IQ2_XS", 256, 74},  TensorType{18, "IQ3_XXS", 256, 98}, TensorType{19, "IQ1_S", 256, 50},
    TensorType{20, "IQ4_NL", 32, 18},   TensorType{21, "IQ3_S", 256, 110},  TensorType{22, "IQ2_S", 256, 82},
    TensorType{23, "IQ4_XS", 256, 136}, TensorType{24, "I8", 1, 1},         TensorType{25, "I16", 1, 2},
    TensorType{26, "I32", 1, 4},        TensorType{27, "I64", 1, 8},        TensorType{28, "F64", 1, 8},
    TensorType{29, "IQ1_M", 256, 56},   TensorType{30, "BF16", 1, 2},       TensorType{34, "TQ1_0", 256, 54},
    TensorType{35, "TQ2_0", 256, 66},   TensorType{39, "MXFP4", 32, 17},    TensorType{40, "NVFP4", 64, 36},
    TensorType{41, "Q1_0", 128, 18},    TensorType{42, "Q2_0", 64, 18},
};

size_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

const Codec* codec_of(std::string_view type) {
  std::string name(type);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return find_codec(name);
}

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  Result<GgufHeader> read() {
    KVASIR_TRY(const std::string_view magic, text(kMagic.size(), "the magic number"));
    if (magic != kMagic) return refuse("this is not a GGUF file: it does not start with \"GGUF\"");
    KVASIR_CHECK(version());
    KVASIR_TRY(const uint64_t tensors, number<uint64_t>("the number of tensors"));
    KVASIR_TRY(const uint64_t entries, number<uint64_t>("the number of metadata entries"));
    KVASIR_CHECK(check_count(entries, kLeastEntryBytes, "metadata entries"));
    KVASIR_CHECK(check_count(tensors, kLeastTensorBytes, "tensors"));
    header_.metadata.entries.reserve(entries);
    header_.metadata.index.reserve(entries);
    for (uint64_t i = 0; i < entries; ++i) KVASIR_CHECK(entry());
    KVASIR_TRY(const uint64_t alignment, this->alignment());
    header_.tensors.reserve(tensors);
    for (uint64_t i = 0; i < tensors; ++i) KVASIR_CHECK(tensor());
    KVASIR_CHECK(place(alignment));
    return std::move(header_);
  }

 private:
  tl::unexpected<Error> refuse(std::string what) const { return fail(Error::damaged, std::move(what), where_, kHint); }
  uint64_t left() const { return bytes_.size() - at_; }

  template <class T>
  Result<T> number(std::string_view what) {
    if (left() < sizeof(T)) return refuse(fmt::format("the file of {} bytes ends inside {}", bytes_.size(), what));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  Result<std::string_view> text(uint64_t length, std::string_view what) {
    if (length > left()) {
      return refuse(fmt::format("{} at byte {} has {} bytes, only {} are left", what, at_, length, left()));
    }
    const std::string_view view(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return view;
  }

  Result<std::string_view> string(std::string_view what, uint64_t most) {
    KVASIR_TRY(const uint64_t length, number<uint64_t>(what));
    if (length > most) return refuse(fmt::format("{} at byte {} has {} bytes, over {}", what, at_, length, most));
    return text(length, what);
  }

  Result<void> version() {
    KVASIR_TRY(header_.version, number<uint32_t>("the version"));
    if (header_.version == 2 || header_.version == 3) return {};
    if ((header_.version & 0xFFFF) == 0 && header_.version != 0) {
      return fail(Error::unsupported, "a big-endian GGUF file", where_, "the little-endian file of the same model");
    }
    return fail(Error::unsupported, fmt::format("GGUF version {} is not supported", header_.version), where_,
                "a file of version 2 or 3; older ones are converted with llama.cpp");
  }

  Result<void> check_count(uint64_t count, uint64_t least_bytes, std::string_view what) const {
    if (count <= left() / least_bytes) return {};
    return refuse(fmt::format("{} {} do not fit the {} bytes that follow", count, what, left()));
  }

  Result<void> entry() {
    const size_t start = at_;
    KVASIR_TRY(const std::string_view key, string("a metadata key", kMaxNameBytes));
    if (key.empty()) return refuse(fmt::format("the metadata key at byte {} is empty", start));
    KVASIR_TRY(GgufValue value, this->value(key));
    const size_t slot = header_.metadata.entries.size();
    if (!header_.metadata.index.emplace(key, slot).second) {
      return refuse(fmt::format("the metadata key {} is there twice", in_quotes(key)));
    }
    header_.metadata.entries.emplace_back(key, std::move(value));
    return {};
  }

  Result<GgufType> type(std::string_view key) {
    KVASIR_TRY(const uint32_t type, number<uint32_t>("a value's type"));
    if (type <= static_cast<uint32_t>(GgufType::f64)) return static_cast<GgufType>(type);
    return refuse(fmt::format("the metadata key {} has a value of unknown type {}", in_quotes(key), type));
  }

  Result<GgufValue> value(std::string_view key) {
    GgufValue value;
    KVASIR_TRY(value.type, type(key));
    if (value.type == GgufType::array) {
      KVASIR_CHECK(array(key, value, 1));
    } else if (value.type == GgufType::string) {
      KVASIR_TRY(const std::string_view text, string("a metadata string", bytes_.size()));
      value.bytes = std::as_bytes(std::span(text));
    } else {
      KVASIR_TRY(value.bytes, skip(scalar_bytes(value.type), key));
    }
    return value;
  }

  Result<std::span<const std::byte>> skip(uint64_t bytes, std::string_view key) {
    if (bytes > left()) {
      return refuse(fmt::format("the value of {} has {} bytes, only {} are left", in_quotes(key), bytes, left()));
    }
    const auto view = bytes_.subspan(at_, bytes);
    at_ += bytes;
    return view;
  }

  Result<void> array(std::string_view key, GgufValue& value, int depth) {
    KVASIR_TRY(value.element, type(key));
    KVASIR_TRY(value.count, number<uint64_t>("an array's length"));
    const size_t start = at_;
    const bool nested = value.element == GgufType::array;
    if (nested && depth == kMaxArrayDepth) {
      return refuse(fmt::format("the arrays of {} are nested over {} deep", in_quotes(key), kMaxArrayDepth));
    }
    const uint64_t least = nested ? 12 : value.element == GgufType::string ? 8 : scalar_bytes(value.element);
    KVASIR_CHECK(check_count(value.count, least, fmt::format("elements of {}", in_quotes(key))));
    if (value.element == GgufType::string) {
      value.strings.reserve(value.count);
      for (uint64_t i = 0; i < value.count; ++i) {
        KVASIR_TRY(const std::string_view text, string("an array's string", bytes_.size()));
        value.strings.push_back(text);
      }
    } else if (nested) {
      for (uint64_t i = 0; i < value.count; ++i) {
        GgufValue inner;
        KVASIR_CHECK(array(key, inner, depth + 1));
      }
    } else {
      at_ += value.count * least;
    }
    value.bytes = bytes_.subspan(start, at_ - start);
    return {};
  }

  Result<uint64_t> alignment() const {
    KVASIR_TRY(const auto given, header_.metadata.get_int("general.alignment"));
    const int64_t alignment = given.value_or(32);  // the format's default
    if (alignment >= 8 && static_cast<uint64_t>(alignment) <= kMaxAlignment &&
        std::has_single_bit(static_cast<uint64_t>(alignment)))
      return static_cast<uint64_t>(alignment);
    return refuse(
        fmt::format("general.alignment is {}, which is not a power of two in 8..{}", alignment, kMaxAlignment));
  }

  Result<void> tensor() {
    TensorInfo info;
    KVASIR_TRY(const std::string_view name, string("a tensor's name", kMaxNameBytes));
    if (name.empty()) return refuse(fmt::format("the tensor before byte {} has no name", at_));
    info.name = name;
    KVASIR_TRY(const uint32_t rank, number<uint32_t>("a tensor's rank"));
    if (rank < 1 || rank > kMaxRank) {
      return refuse(fmt::format("tensor {} has {} dimensions, 1 to {} are possible", in_quotes(name), rank, kMaxRank));
    }
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      KVASIR_TRY(const int64_t dim, number<int64_t>("a tensor's dimension"));
      if (dim < 1 || __builtin_mul_overflow(elements, dim, &elements)) {
        return refuse(fmt::format("dimension {} of tensor {} is {}, which no file can hold", i, in_quotes(name), dim));
      }
      info.shape.insert(info.shape.begin(), dim);  // the file lists the fastest dimension first
    }
    KVASIR_TRY(const uint32_t type, number<uint32_t>("a tensor's type"));
    KVASIR_TRY(info.offset, number<uint64_t>("a tensor's offset"));
    KVASIR_CHECK(set_type(type, elements, info));
    header_.tensors.push_back(std::move(info));
    return {};
  }

  Result<void> set_type(uint32_t id, int64_t elements, TensorInfo& info) const {
    const auto known =
        std::find_if(kTensorTypes.begin(), kTensorTypes.end(), [&](const auto& t) { return t.id == id; });
    if (known == kTensorTypes.end()) {
      info.dtype = fmt::format("type {}", id);
      return {};
    }
    if (info.shape.back() % known->block_elems != 0) {
      return refuse(fmt::format("tensor {} has rows of {} elements, which are no whole blocks of {} ({})",
                                in_quotes(info.name), info.shape.back(), known->block_elems, known->name));
    }
    info.dtype = known->name;
    info.codec = codec_of(known->name);
    const auto blocks = static_cast<uint64_t>(elements / known->block_elems);
    if (__builtin_mul_overflow(blocks, static_cast<uint64_t>(known->block_bytes), &info.bytes)) {
      return refuse(fmt::format("tensor {} has {} elements, which no file can hold", in_quotes(info.name), elements));
    }
    return {};
  }

  // Blocks of a type without a known name have an unknown size: such a tensor extends to the next one, so that the file
  // can still be shown.
  void stretch_unknown(uint64_t room) {
    std::vector<uint64_t> offsets{room};
    for (const TensorInfo& info : header_.tensors) offsets.push_back(info.offset);
    std::sort(offsets.begin(), offsets.end());
    for (TensorInfo& info : header_.tensors) {
      if (!info.dtype.starts_with("type ") || info.offset > room) continue;
      const auto next = std::upper_bound(offsets.begin(), offsets.end(), info.offset);
      info.bytes = next == offsets.end() ? 0 : std::min(*next, room) - info.offset;
    }
  }

  // Checks the offsets, which count from the first aligned byte after the header, and makes them count from the file's
  // start.
  Result<void> place(uint64_t alignment) {
    const uint64_t start = (at_ + alignment - 1) / alignment * alignment;
    const uint64_t room = bytes_.size() > start ? bytes_.size() - start : 0;
    stretch_unknown(room);
    for (TensorInfo& info : header_.tensors) {
      if (info.offset % alignment != 0) {
        return refuse(fmt::format("tensor {} starts at offset {}, which is no multiple of {}", in_quotes(info.name),
                                  info.offset, alignment));
      }
      if (info.offset > room || info.bytes > room - info.offset) {
        return refuse(fmt::format("tensor {} has {} bytes at offset {}, the file has {} bytes of data",
                                  in_quotes(info.name), info.bytes, info.offset, room));
      }
      info.offset += start;
    }
    return check_overlap();
  }

  Result<void> check_overlap() const {
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& info : header_.tensors) order.push_back(&info);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->offset + order[i - 1]->bytes <= order[i]->offset) continue;
      return refuse(fmt::format("tensors {} and {} overlap", in_quotes(order[i - 1]->name), in_quotes(order[i]->name)));
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t at_ = 0;
  GgufHeader header_;
};

template <class T>
T load(std::span<const std::byte> bytes, uint64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Calls f with element i of `bytes` as its own C++ type; returns false if the type is not a number.
template <class F>
bool with_number(GgufType type, std::span<const std::byte> bytes, uint64_t i, const F& f) {
  switch (type) {
    case GgufType::u8:
      return f(load<uint8_t>(bytes, i)), true;
    case GgufType::i8:
      return f(load<int8_t>(bytes, i)), true;
    case GgufType::u16:
      return f(load<uint16_t>(bytes, i)), true;
    case GgufType::i16:
      return f(load<int16_t>(bytes, i)), true;
    case GgufType::u32:
      return f(load<uint32_t>(bytes, i)), true;
    case GgufType::i32:
      return f(load<int32_t>(bytes, i)), true;
    case GgufType::u64:
      return f(load<uint64_t>(bytes, i)), true;
    case GgufType::i64:
      return f(load<int64_t>(bytes, i)), true;
    case GgufType::f32:
      return f(load<float>(bytes, i)), true;
    case GgufType::f64:
      return f(load<double>(bytes, i)), true;
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return false;
}

template <class T>
Result<std::optional<T>> wanted(const GgufValue* value, std::optional<T> read, std::string_view key, const char* what) {
  if (value == nullptr || read) return read;
  return fail(Error::damaged, fmt::format("the metadata key {} holds {} {}, expected {}", in_quotes(key),
                                          value->type == GgufType::array ? "an" : "a value of type",
                                          gguf_type_name(value->type), what));
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                    "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<size_t>(type)];
}

std::optional<uint32_t> gguf_tensor_type(std::string_view name) {
  for (const TensorType& type : kTensorTypes)
    if (type.name == name) return type.id;
  return std::nullopt;
}

std::optional<int64_t> GgufValue::as_int() const {
  std::optional<int64_t> out;
  with_number(type, bytes, 0, [&](auto number) {
    if constexpr (std::is_integral_v<decltype(number)>)
      if (std::in_range<int64_t>(number)) out = static_cast<int64_t>(number);
  });
  return out;
}

std::optional<double> GgufValue::as_number() const {
  std::optional<double> out;
  with_number(type, bytes, 0, [&](auto number) { out = static_cast<double>(number); });
  return out;
}

std::optional<bool> GgufValue::as_bool() const {
  if (type != GgufType::boolean) return std::nullopt;
  return bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::as_string() const {
  if (type != GgufType::string) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<std::vector<double>> GgufValue::as_numbers() const {
  if (type != GgufType::array || scalar_bytes(element) == 0 || element == GgufType::boolean) return std::nullopt;
  std::vector<double> out(count);
  for (uint64_t i = 0; i < count; ++i)
    with_number(element, bytes, i, [&](auto number) { out[i] = static_cast<double>(number); });
  return out;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto it = index.find(key);
  return it == index.end() ? nullptr : &entries[it->second].second;
}

Result<std::optional<int64_t>> GgufMetadata::get_int(std::string_view key) const {
  const GgufValue* value = find(key);
  return wanted(value, value ? value->as_int() : std::nullopt, key, "an integer");
}
Result<std::optional<double>> GgufMetadata::get_number(std::string_view key) const {
  const GgufValue* value = find(key);
  return wanted(value, value ? value->as_number() : std::nullopt, key, "a number");
}
Result<std::optional<bool>> GgufMetadata::get_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  return wanted(value, value ? value->as_bool() : std::nullopt, key, "true or false");
}
Result<std::optional<std::string_view>> GgufMetadata::get_string(std::string_view key) const {
  const GgufValue* value = find(key);
  return wanted(value, value ? value->as_string() : std::nullopt, key, "a string");
}

Result<GgufHeader> parse_gguf_header(std::span<const std::byte> bytes, const std::string& where) {
  try {
    return HeaderReader(bytes, where).read();
  } catch (const std::exception& e) {  // out of memory
    return fail(Error::no_room, e.what(), where);
  }
}

}  // namespace kvasir
