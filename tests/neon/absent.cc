// Replaces what the Arm build leaves out: tokenizers and files other than GGUF return an error, io_uring is refused.
#include <kvasir/tokenizer.h>

#include "engine/gguf_tokenizer.h"
#include "format/llama2c.h"
#include "format/safetensors.h"
#include "format/uring_queue.h"
#include "token/tokenizer_impl.h"

namespace kvasir {
namespace {

auto absent() { return fail(Error::unsupported, "not in this build", "neon_receipts", "a GGUF file"); }

}  // namespace

Result<TensorDir> open_safetensors(const std::filesystem::path&) { return absent(); }
Result<Llama2cFile> open_llama2c(const std::filesystem::path&) { return absent(); }

std::optional<UringQueue> UringQueue::open() { return std::nullopt; }
bool UringQueue::read(int, uint64_t, std::byte*, size_t, uint64_t) { return false; }
UringQueue::Done UringQueue::wait() { return {}; }
void UringQueue::Close::operator()(io_uring*) const {}

bool has_tokenizer(const GgufMetadata&) { return false; }
Result<std::vector<Ignored>> unused_tokenizer_keys(const GgufMetadata&) { return std::vector<Ignored>(); }
Result<std::shared_ptr<const Tokenizer>> open_gguf_tokenizer(const std::filesystem::path&) { return absent(); }
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(const std::filesystem::path&) { return absent(); }
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_folder(const std::filesystem::path&) { return absent(); }
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_sentencepiece(const std::filesystem::path&) {
  return absent();
}
Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_llama2c(const std::filesystem::path&, int) { return absent(); }
int Tokenizer::vocab_size() const { return 0; }
std::string Tokenizer::piece(int) const { return {}; }
const std::vector<int>& Tokenizer::end_of_turn() const { return impl_->end_of_turn; }
const std::vector<Ignored>& Tokenizer::ignored() const { return impl_->ignored; }
bool Tokenizer::is_added(int) const { return false; }
Tokenizer::~Tokenizer() = default;

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), previous_(TokenModel::kMidText) {}
std::string StreamDecoder::push(int) { return {}; }
std::string StreamDecoder::finish() { return {}; }

}  // namespace kvasir
