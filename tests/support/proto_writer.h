// Writes small SentencePiece models for tests: the few fields that matter, as protobuf. Test code only.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::token_test {

inline void put_varint(std::string& out, unsigned long value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

inline std::string varint_field(unsigned number, unsigned long value) {
  std::string out;
  put_varint(out, number << 3);
  put_varint(out, value);
  return out;
}

inline std::string bytes_field(unsigned number, std::string_view bytes) {
  std::string out;
  put_varint(out, number << 3 | 2);
  put_varint(out, bytes.size());
  return out.append(bytes);
}

inline std::string float_field(unsigned number, float value) {
  std::string out;
  put_varint(out, number << 3 | 5);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  return out.append(raw, sizeof raw);
}

struct ProtoPiece {
  std::string piece;
  float score = 0;
  unsigned type = 1;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
};

struct ProtoParts {
  std::vector<ProtoPiece> pieces;
  std::string trainer = varint_field(3, 2);                          // BPE
  std::string normalizer = varint_field(3, 1) + varint_field(4, 0);  // a space first, no space removed
  std::string more;

  std::string text() const {
    std::string out;
    for (const ProtoPiece& piece : pieces) {
      out += bytes_field(1, bytes_field(1, piece.piece) + float_field(2, piece.score) + varint_field(3, piece.type));
    }
    return out + bytes_field(2, trainer) + bytes_field(3, normalizer) + more;
  }
};

}  // namespace kvasir::token_test
