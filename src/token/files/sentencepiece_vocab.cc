// Reads the bytes twice. First a bounds-checked parser here checks everything and keeps what libsentencepiece does not
// report; then libsentencepiece reads the checked fields and returns the pieces, scores and kinds. Source of the field
// numbers: google/sentencepiece src/sentencepiece_model.proto.
#include "token/files/sentencepiece_vocab.h"

#include <sentencepiece_processor.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "token/files/proto_wire.h"
#include "token/utf8.h"

namespace kvasir {
namespace {

// Ten times the largest files and vocabularies in use.
constexpr std::size_t kMaxModelBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxPieces = std::size_t{1} << 22;
// sentencepiece's own limit, since 0.2.1.
constexpr std::size_t kMaxPieceBytes = 8000;

constexpr const char* kOtherFormat = "use another format of the same model: GGUF or tokenizer.json";

constexpr std::uint64_t kModelTypeBpe = 2;
constexpr std::uint64_t kTypeNormal = 1;
constexpr std::uint64_t kTypeUserDefined = 4;
constexpr std::uint64_t kTypeByte = 6;

struct ProtoPiece {
  std::string_view piece;
  float score = 0;
  std::uint64_t type = kTypeNormal;
};

// The fields of a ModelProto that are used here, with the defaults of its definition.
struct ModelProto {
  std::vector<ProtoPiece> pieces;
  std::uint64_t model_type = 1;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  bool has_charsmap = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string checked;  // the bytes of fields 1 to 3 in the file, and nothing else
};

tl::unexpected<Error> wrong_type(const char* where, const ProtoField& field) {
  return fail(Error::damaged,
              fmt::format("field {} of {} has wire type {}", field.number, where, static_cast<int>(field.wire)));
}

struct Wanted {
  std::uint32_t number;
  ProtoWire wire;
};

// Calls read(field) for every wanted field. Fails if a wanted field has another wire type.
template <class Read>
Result<void> each_field(std::string_view message, const char* where, std::initializer_list<Wanted> all,
                        const Read& read) {
  ProtoReader reader(message);
  while (true) {
    KVASIR_TRY(const auto field, reader.next());
    if (!field) return {};
    for (const Wanted& wanted : all) {
      if (wanted.number != field->number) continue;
      if (wanted.wire != field->wire) return wrong_type(where, *field);
      KVASIR_CHECK(read(*field));
    }
  }
}

Result<ProtoPiece> read_piece(std::string_view message) {
  ProtoPiece piece;
  KVASIR_CHECK(each_field(message, "a piece",
                          {{1, ProtoWire::kBytes}, {2, ProtoWire::kFixed32}, {3, ProtoWire::kVarint}},
                          [&](const ProtoField& field) -> Result<void> {
                            if (field.number == 1) piece.piece = field.bytes;
                            if (field.number == 2)
                              piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
                            if (field.number == 3) piece.type = field.value;
                            return {};
                          }));
  return piece;
}

Result<void> check_piece(const ProtoPiece& piece, std::size_t id) {
  const auto refuse = [&](const std::string& what) {
    return fail(Error::damaged, fmt::format("piece {} ({}) {}", id, quote(piece.piece), what), {},
                "fetch the file again");
  };
  if (piece.piece.empty()) return refuse("is empty");
  if (piece.piece.size() >= kMaxPieceBytes) return refuse(fmt::format("has {} bytes", piece.piece.size()));
  if (piece.piece.find('\0') != std::string_view::npos) return refuse("has a zero byte");
  if (!std::isfinite(piece.score)) return refuse("has a score that is not finite");
  if (piece.type < kTypeNormal || piece.type > kTypeByte) return refuse(fmt::format("is of type {}", piece.type));
  if (piece.type == kTypeByte && !spelled_byte(piece.piece)) return refuse("is a byte piece that spells no byte");
  return {};
}

Result<void> read_trainer_spec(std::string_view message, ModelProto& model) {
  return each_field(message, "trainer_spec",
                    {{3, ProtoWire::kVarint}, {24, ProtoWire::kVarint}, {35, ProtoWire::kVarint}},
                    [&](const ProtoField& field) -> Result<void> {
                      if (field.number == 3) model.model_type = field.value;
                      if (field.number == 24) model.whitespace_as_suffix = field.value != 0;
                      if (field.number == 35) model.byte_fallback = field.value != 0;
                      return {};
                    });
}

Result<void> read_normalizer_spec(std::string_view message, ModelProto& model) {
  return each_field(message, "normalizer_spec",
                    {{2, ProtoWire::kBytes}, {3, ProtoWire::kVarint}, {4, ProtoWire::kVarint}, {5, ProtoWire::kVarint}},
                    [&](const ProtoField& field) -> Result<void> {
                      if (field.number == 2) model.has_charsmap = !field.bytes.empty();
                      if (field.number == 3) model.add_dummy_prefix = field.value != 0;
                      if (field.number == 4) model.remove_extra_whitespaces = field.value != 0;
                      if (field.number == 5) model.escape_whitespaces = field.value != 0;
                      return {};
                    });
}

Result<void> add_piece(std::string_view message, ModelProto& model) {
  if (model.pieces.size() == kMaxPieces) return fail(Error::unsupported, fmt::format("over {} pieces", kMaxPieces));
  KVASIR_TRY(const ProtoPiece piece, read_piece(message));
  KVASIR_CHECK(check_piece(piece, model.pieces.size()));
  model.pieces.push_back(piece);
  return {};
}

Result<ModelProto> read_model(std::string_view bytes) {
  ModelProto model;
  const auto read = [&](const ProtoField& field) {
    model.checked.append(field.whole);
    if (field.number == 1) return add_piece(field.bytes, model);
    return field.number == 2 ? read_trainer_spec(field.bytes, model) : read_normalizer_spec(field.bytes, model);
  };
  constexpr ProtoWire kMessage = ProtoWire::kBytes;
  KVASIR_CHECK(each_field(bytes, "the model", {{1, kMessage}, {2, kMessage}, {3, kMessage}}, read));
  if (model.pieces.empty())
    return fail(Error::damaged, "no pieces", {}, "give the .model file of a SentencePiece tokenizer");
  return model;
}

// Refuses settings that would change ids and are not supported.
Result<void> refuse_unknown(const ModelProto& model) {
  const auto refuse = [](std::string what) {
    return fail(Error::unsupported, what + " is not supported", {}, kOtherFormat);
  };
  if (model.model_type != kModelTypeBpe) {
    constexpr const char* kNames[] = {"UNIGRAM", "BPE", "WORD", "CHAR"};
    const bool named = model.model_type >= 1 && model.model_type <= 4;
    return refuse(
        fmt::format("model_type {}", named ? kNames[model.model_type - 1] : std::to_string(model.model_type)));
  }
  if (model.has_charsmap) return refuse("a normalizer with a precompiled_charsmap");
  if (model.whitespace_as_suffix) return refuse("treat_whitespace_as_suffix");
  if (model.remove_extra_whitespaces) return refuse("remove_extra_whitespaces");
  if (!model.escape_whitespaces) return refuse("escape_whitespaces = false");
  return {};
}

PieceKind kind_of(const sentencepiece::SentencePieceProcessor& processor, int id, std::uint64_t type) {
  if (processor.IsUnknown(id)) return PieceKind::kUnknown;
  if (processor.IsControl(id)) return PieceKind::kControl;
  if (processor.IsByte(id)) return PieceKind::kByte;
  if (processor.IsUnused(id)) return PieceKind::kUnused;
  return type == kTypeUserDefined ? PieceKind::kUserDefined : PieceKind::kNormal;
}

}  // namespace

Result<SpmTables> read_sentencepiece_vocab(std::string_view bytes) {
  if (bytes.size() > kMaxModelBytes) {
    return fail(Error::unsupported,
                fmt::format("{} bytes are over the limit of {} for a .model", bytes.size(), kMaxModelBytes));
  }
  KVASIR_TRY(const ModelProto model, read_model(bytes));
  KVASIR_CHECK(refuse_unknown(model));
  SpmTables tables;
  const auto count = static_cast<std::int64_t>(model.pieces.size());
  tables.vocabulary.reserve(model.pieces.size(), bytes.size());
  for (const ProtoPiece& piece : model.pieces) {
    KVASIR_CHECK(tables.vocabulary.add(piece.piece, tables.vocabulary.size(), count));
  }
  sentencepiece::SentencePieceProcessor processor;
  const auto status = processor.LoadFromSerializedProto(model.checked);
  if (!status.ok())
    return fail(Error::damaged, fmt::format("libsentencepiece: {}", status.error_message()), {},
                "fetch the file again");
  if (processor.GetPieceSize() != count) {
    return fail(Error::damaged,
                fmt::format("libsentencepiece reads {} pieces where there are {}", processor.GetPieceSize(), count));
  }
  for (int id = 0; id < tables.vocabulary.size(); ++id) {
    if (processor.IdToPiece(id) != tables.vocabulary.piece(id)) {
      return fail(Error::damaged, fmt::format("libsentencepiece reads piece {} otherwise than this program", id));
    }
    tables.scores.push_back(processor.GetScore(id));
    tables.kinds.push_back(kind_of(processor, id, model.pieces[static_cast<std::size_t>(id)].type));
    if (tables.kinds.back() == PieceKind::kUnknown) tables.unk = id;
  }
  if (processor.bos_id() >= 0) tables.prefix = {processor.bos_id()};
  tables.fuse_unk = true;
  tables.byte_fallback = model.byte_fallback;
  tables.space_before = model.add_dummy_prefix ? SpaceBefore::kEvery : SpaceBefore::kNever;
  return tables;
}

}  // namespace kvasir
