// The .npy header: a magic, a version, and a Python dict padded to a multiple of 64 bytes.
#include "base/npy.h"

#include <bit>
#include <string>

#include <fmt/format.h>

#include "base/files.h"

namespace kvasir {
namespace {

static_assert(std::endian::native == std::endian::little, "the data is written as it lies in memory");

constexpr size_t kPrefixBytes = 10;  // magic 6, version 2, header length 2
constexpr size_t kMaxRank = 32;      // NumPy's own limit; keeps the header length in 16 bits

std::string header_of(const std::vector<int64_t>& shape) {
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : shape) dict += fmt::format("{}, ", dim);
  dict += "), }";
  dict.resize((kPrefixBytes + dict.size() + 1 + 63) / 64 * 64 - kPrefixBytes - 1, ' ');
  dict += '\n';
  std::string header = {'\x93', 'N', 'U', 'M', 'P', 'Y', '\x01', '\x00'};
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace

Result<void> write_npy_f32(const std::filesystem::path& path, std::span<const float> data, std::vector<int64_t> shape) {
  int64_t product = 1;
  for (const int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) product = -1;
  if (product != static_cast<int64_t>(data.size()) || shape.size() > kMaxRank)
    return fail(Error::bad_argument,
                fmt::format("{} values do not fill a shape [{}]", data.size(), fmt::join(shape, ", ")), path.string());
  KVASIR_TRY(AtomicFile file, AtomicFile::create(path));
  const std::string header = header_of(shape);
  KVASIR_CHECK(file.write(std::as_bytes(std::span(header))));
  KVASIR_CHECK(file.write(std::as_bytes(data)));
  return file.commit();
}

}  // namespace kvasir
