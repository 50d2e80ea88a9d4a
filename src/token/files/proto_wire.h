// Reads Protocol Buffers' wire format, one field at a time, with bounds checks. The caller knows what the fields mean.
// Source: protobuf.dev, "Encoding".
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <kvasir/result.h>

namespace kvasir {

enum class ProtoWire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct ProtoField {
  std::uint32_t number = 0;
  ProtoWire wire = ProtoWire::kVarint;
  std::uint64_t value = 0;  ///< varint, fixed64 or fixed32
  std::string_view bytes;   ///< the content of kBytes
  std::string_view whole;   ///< the field's bytes in the message, tag included
};

/// Reads the fields of a message in order.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : message_(message) {}

  /// Returns the next field; nullopt at the end. Fails on a field that extends past the end, a number over 64 bits, an
  /// invalid field number or a group.
  Result<std::optional<ProtoField>> next() {
    if (at_ == message_.size()) return std::nullopt;
    const std::size_t begin = at_;
    ProtoField field;
    KVASIR_TRY(const std::uint64_t tag, varint());
    field.number = static_cast<std::uint32_t>(tag >> 3);
    if (tag >> 3 == 0 || tag >> 3 >= 1u << 29) return bad(begin, fmt::format("field number {}", tag >> 3));
    field.wire = static_cast<ProtoWire>(tag & 7);
    switch (field.wire) {
      case ProtoWire::kVarint: {
        KVASIR_TRY(field.value, varint());
        break;
      }
      case ProtoWire::kFixed64:
      case ProtoWire::kFixed32: {
        const std::size_t size = field.wire == ProtoWire::kFixed64 ? 8 : 4;
        if (size > message_.size() - at_) return cut_short(begin);
        std::memcpy(&field.value, message_.data() + at_, size);
        at_ += size;
        break;
      }
      case ProtoWire::kBytes: {
        KVASIR_TRY(const std::uint64_t size, varint());
        if (size > message_.size() - at_) return cut_short(begin);
        field.bytes = message_.substr(at_, static_cast<std::size_t>(size));
        at_ += static_cast<std::size_t>(size);
        break;
      }
      default:
        return bad(begin, fmt::format("wire type {}", tag & 7));
    }
    field.whole = message_.substr(begin, at_ - begin);
    return field;
  }

 private:
  Result<std::uint64_t> varint() {
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == message_.size()) return cut_short(begin);
      const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(message_[at_++]));
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return bad(begin, "a number over 64 bits");
  }

  static tl::unexpected<Error> bad(std::size_t at, const std::string& what) {
    return fail(Error::damaged, fmt::format("{} at byte {} of a protobuf message is not possible", what, at));
  }
  tl::unexpected<Error> cut_short(std::size_t at) const {
    return fail(Error::damaged,
                fmt::format("a protobuf message of {} bytes ends inside the field at byte {}", message_.size(), at));
  }

  std::string_view message_;
  std::size_t at_ = 0;
};

}  // namespace kvasir
