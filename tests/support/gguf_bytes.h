// Builds GGUF files byte by byte, valid and invalid ones. Test code only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/gguf.h"

namespace kvasir::gguf_test {

/// Little-endian bytes, field by field.
struct Bytes {
  std::string data;

  template <class T>
  Bytes& number(T value) {
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Bytes& string(std::string_view text) {
    number<uint64_t>(text.size());
    data += text;
    return *this;
  }
  Bytes& key(std::string_view name, GgufType type) { return string(name).number(static_cast<uint32_t>(type)); }
  template <class T>
  Bytes& entry(std::string_view name, GgufType type, T value) {
    return key(name, type).number(value);
  }
  Bytes& text_entry(std::string_view name, std::string_view text) { return key(name, GgufType::string).string(text); }
  Bytes& array(std::string_view name, GgufType element, uint64_t count) {
    return key(name, GgufType::array).number(static_cast<uint32_t>(element)).number(count);
  }
  Bytes& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    string(name).number(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  Bytes& data_section(size_t bytes, size_t alignment = 32) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    data.append(bytes, '\x11');
    return *this;
  }
};

/// The start of every file.
inline Bytes head(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
  Bytes b;
  b.data = "GGUF";
  return b.number(version).number(tensors).number(entries);
}

}  // namespace kvasir::gguf_test
