// Hand-made vocabularies: what each part of a tokenizer.json does, and what is refused by name.
#include <functional>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <kvasir/tokenizer.h>

#include "tests/support/test_files.h"
#include "token/merge_queue.h"
#include "token/normalize.h"
#include "token/safe_cuts.h"

namespace kvasir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using token_test::JsonParts;
using token_test::TempFile;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;
using Ids = std::vector<int>;

Result<TokenizerPtr> load(std::string_view text) { return Tokenizer::from_json(TempFile(text).path()); }
Result<TokenizerPtr> load(const JsonParts& parts) { return load(parts.text()); }

Ids encode(const JsonParts& parts, std::string_view text, bool add_bos = true) {
  const auto tokenizer = load(parts);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  if (!tokenizer) return {};
  const auto ids = (*tokenizer)->encode(text, add_bos);
  EXPECT_TRUE(ids) << ids.error().message();
  return ids.value_or(Ids{});
}

std::string refusal(std::string_view text) {
  const auto tokenizer = load(text);
  return tokenizer ? "accepted" : tokenizer.error().message();
}
std::string refusal(const JsonParts& parts) { return refusal(parts.text()); }

std::string added(const std::string& content, int id, const std::string& more = "\"special\":true") {
  return R"({"id":)" + std::to_string(id) + R"(,"content":")" + content + R"(",)" + more + "}";
}

TEST(Bpe, MergesByRankThenLeftmost) {
  const JsonParts parts;
  EXPECT_THAT(encode(parts, "abc"), ElementsAre(5));
  EXPECT_THAT(encode(parts, "bcabb"), ElementsAre(6, 4, 1));
  EXPECT_THAT(encode(parts, "ab ab 12"), ElementsAre(4, 3, 4, 3, 9));
  EXPECT_THAT(encode(parts, ""), ElementsAre());
}

TEST(Bpe, MergesAsPairsAreTheSame) {
  JsonParts parts;
  parts.merges = R"([["a","b"],["b","c"],["ab","c"],["1","2"]])";
  EXPECT_THAT(encode(parts, "bcabc"), ElementsAre(6, 5));
}

// The quadratic textbook loop: find the best pair, merge it, start over.
Ids slow_merge(Ids ids, const std::function<std::optional<MergeTarget>(int, int)>& lookup) {
  while (true) {
    std::optional<MergeTarget> best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto target = lookup(ids[i], ids[i + 1]);
      if (target && (!best || target->priority < best->priority)) {
        best = target;
        at = i;
      }
    }
    if (!best) return ids;
    ids[at] = best->id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(Bpe, HeapEqualsTheTextbookLoop) {
  std::mt19937 random(5);
  MergeQueue queue;
  for (int round = 0; round < 200; ++round) {
    // Random rules over 3 letters; equal priorities are common on purpose.
    std::map<std::pair<int, int>, MergeTarget> rules;
    for (int made = 3; made < 30; ++made) {
      const std::pair<int, int> pair{static_cast<int>(random() % static_cast<unsigned>(made)),
                                     static_cast<int>(random() % static_cast<unsigned>(made))};
      rules.emplace(pair, MergeTarget{static_cast<std::uint32_t>(random() % 8), made});
    }
    const auto lookup = [&](int left, int right) -> std::optional<MergeTarget> {
      const auto it = rules.find({left, right});
      return it == rules.end() ? std::nullopt : std::optional(it->second);
    };
    Ids text(random() % 60);
    for (int& id : text) id = static_cast<int>(random() % 3);
    Ids merged;
    queue.clear();
    for (const int id : text) queue.add(id, 1);
    queue.merge([&](const auto& left, const auto& right) { return lookup(left.id, right.id); });
    queue.for_each([&](const auto& symbol) { merged.push_back(symbol.id); });
    ASSERT_EQ(merged, slow_merge(text, lookup)) << "round " << round;
  }
}

// Random vocabularies over 4 letters in which many pairs of letters occur in no piece.
TEST(Bpe, TakingWordsApartChangesNothing) {
  std::mt19937 random(43);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> pieces = {"a", "b", "c", "d"};
    std::map<std::string, int> ids = {{"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}};
    std::map<std::pair<int, int>, MergeTarget> rules;
    std::string merges;
    for (std::uint32_t rank = 0; rank < 12; ++rank) {
      const int left = static_cast<int>(random() % pieces.size());
      const int right = static_cast<int>(random() % pieces.size());
      const std::string whole = pieces[static_cast<std::size_t>(left)] + pieces[static_cast<std::size_t>(right)];
      const auto [it, fresh] = ids.emplace(whole, static_cast<int>(pieces.size()));
      if (fresh) pieces.push_back(whole);
      rules.insert_or_assign({left, right}, MergeTarget{rank, it->second});
      merges += (rank > 0 ? ",[\"" : "[\"") + pieces[static_cast<std::size_t>(left)] + "\",\"" +
                pieces[static_cast<std::size_t>(right)] + "\"]";
    }
    JsonParts parts;
    parts.vocab.clear();
    for (const auto& [piece, id] : ids) {
      parts.vocab += (parts.vocab.empty() ? "{\"" : ",\"") + piece + "\":" + std::to_string(id);
    }
    parts.vocab += "}";
    parts.merges = "[" + merges + "]";
    const auto tokenizer = load(parts).value();
    const auto lookup = [&](int left, int right) -> std::optional<MergeTarget> {
      const auto it = rules.find({left, right});
      return it == rules.end() ? std::nullopt : std::optional(it->second);
    };
    for (int i = 0; i < 20; ++i) {
      std::string text(random() % 40, 'a');
      Ids symbols;
      for (char& c : text) symbols.push_back((c = static_cast<char>('a' + random() % 4)) - 'a');
      ASSERT_EQ(tokenizer->encode(text).value(), slow_merge(symbols, lookup)) << text;
    }
  }
}

TEST(Seams, PairsOfNeighboursMayJoin) {
  Seams seams;
  seams.add("ab\u00E9");
  seams.add("c\xFF");
  EXPECT_TRUE(seams.may_join('a', 'b'));
  EXPECT_TRUE(seams.may_join('b', 0xE9));
  EXPECT_TRUE(seams.may_join('c', Seams::first("\xFF").code));
  int joined = 0;
  for (char32_t left = 0; left < 500; ++left) {
    for (char32_t right = 0; right < 500; ++right) joined += seams.may_join(left, right) ? 1 : 0;
  }
  EXPECT_LE(joined, 10);
}

TEST(Bpe, BytesWithoutATokenBecomeUnkOrAnErrorWithTheOffset) {
  JsonParts parts;
  const auto strict = load(parts).value();
  EXPECT_THAT(strict->encode("ab z").error().what, testing::AllOf(HasSubstr("0x7A"), HasSubstr("offset 3")));
  parts.model_extra = R"("type":"BPE","unk_token":"c")";
  EXPECT_THAT(encode(parts, "azzb"), ElementsAre(0, 2, 2, 1));
  EXPECT_EQ(load(parts).value()->unk(), 2);
  parts.model_extra = R"("type":"BPE","unk_token":"c","fuse_unk":true)";
  EXPECT_THAT(encode(parts, "azzb"), ElementsAre(0, 2, 1));
}

TEST(Bpe, IgnoreMergesTakesAWholeWordFirst) {
  JsonParts parts;
  parts.vocab = R"({"a":0,"b":1,"c":2,"ab":4,"cab":5})";
  parts.merges = R"(["a b"])";
  EXPECT_THAT(encode(parts, "cab"), ElementsAre(2, 4));
  parts.model_extra = R"("type":"BPE","ignore_merges":true)";
  EXPECT_THAT(encode(parts, "cab"), ElementsAre(5));
}

TEST(Pretokenize, DigitsSplitsAndByteLevelInSequence) {
  JsonParts parts;
  parts.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
      {"type":"ByteLevel","add_prefix_space":false}]})";
  EXPECT_THAT(encode(parts, "ab12"), ElementsAre(4, 7, 8));
  parts.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"Regex":"b"},"behavior":"Isolated","invert":false},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  EXPECT_THAT(encode(parts, "abc12"), ElementsAre(0, 1, 2, 9));
  // Without a regex a space does not split the text; no merge here crosses the space, and "12" still merges.
  parts.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
  EXPECT_THAT(encode(parts, "ab 12"), ElementsAre(4, 3, 9));
}

TEST(Pretokenize, StagesAfterByteLevelSeeTheSpellingOfBytes) {
  JsonParts parts;
  // Falcon's order. U+00B2 is the bytes C2 B2, spelled "Â" and "²"; the second is a digit to the stage that comes
  // after.
  parts.vocab = R"({"Â":0,"²":1,"Â²":2,"1":3,"11":4,"!":5,"!!":6})";
  parts.merges = R"(["Â ²","1 1","! !"])";
  parts.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Punctuation","behavior":"Contiguous"},
      {"type":"ByteLevel","add_prefix_space":false},{"type":"Digits","individual_digits":false},
      {"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated","invert":false}]})";
  EXPECT_THAT(encode(parts, "\u00B2"), ElementsAre(0, 1));
  EXPECT_THAT(encode(parts, "1111!!"), ElementsAre(4, 3, 3, 6));
}

TEST(Pretokenize, EmptyMatchesCutAndEnd) {
  JsonParts parts;
  parts.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[
      {"type":"Split","pattern":{"Regex":"(?=c)|x*"},"behavior":"Isolated"},
      {"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  EXPECT_THAT(encode(parts, "abc"), ElementsAre(0, 1, 2));
}

TEST(Pretokenize, PrefixSpaceOncePerText) {
  JsonParts parts;
  parts.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true})";
  EXPECT_THAT(encode(parts, "ab"), ElementsAre(3, 4));
  EXPECT_THAT(encode(parts, " ab"), ElementsAre(3, 4));
}

TEST(AddedTokens, LongestFirstAndStripped) {
  JsonParts parts;
  parts.added = "[" + added("<x>", 10) + "," + added("<x>ab", 11) + "," + added("<l>", 12, R"("lstrip":true)") + "," +
                added("<r>", 13, R"("rstrip":true)") + "," + added("c", 2) + "]";
  EXPECT_THAT(encode(parts, "ab<x>ab<x>a"), ElementsAre(4, 11, 10, 0));
  EXPECT_THAT(encode(parts, "a \u2003<l> b"), ElementsAre(0, 12, 3, 1));
  EXPECT_THAT(encode(parts, "a <r> \n<l>b"), ElementsAre(0, 3, 13, 12, 1));
  EXPECT_THAT(encode(parts, "abc"), ElementsAre(4, 2));
  const auto tokenizer = load(parts).value();
  EXPECT_EQ(tokenizer->vocab_size(), 14);
  EXPECT_TRUE(tokenizer->is_special(10));
  EXPECT_FALSE(tokenizer->is_special(12));
  EXPECT_EQ(tokenizer->decode(Ids{10, 0}).value(), "<x>a");
}

TEST(AddedTokens, SingleWordsStandAlone) {
  JsonParts parts;
  parts.added = "[" + added("bc", 20, R"("single_word":true,"special":true)") + "]";
  parts.vocab = R"({"a":0,"b":1,"c":2,"Ġ":3,"-":4,"_":5,"1":6,"Ã":7,"©":8,"Ì":9,"\u0123":10})";
  parts.merges = "[]";
  EXPECT_THAT(encode(parts, "bc"), ElementsAre(20));
  EXPECT_THAT(encode(parts, "-bc bc-"), ElementsAre(4, 20, 3, 20, 4));
  EXPECT_THAT(encode(parts, "abc"), ElementsAre(0, 1, 2));
  EXPECT_THAT(encode(parts, "bc1"), ElementsAre(1, 2, 6));
  EXPECT_THAT(encode(parts, "_bc"), ElementsAre(5, 1, 2));
  EXPECT_THAT(encode(parts, "\u00E9bc"), ElementsAre(7, 8, 1, 2));
  EXPECT_THAT(encode(parts, "bcbc -bc"), ElementsAre(1, 2, 1, 2, 3, 4, 20));
}

TEST(AddedTokens, GapsInTheIdsHaveNoPiece) {
  JsonParts parts;
  parts.added = "[" + added("<x>", 20) + "]";
  const auto tokenizer = load(parts).value();
  EXPECT_EQ(tokenizer->vocab_size(), 21);
  EXPECT_THAT(tokenizer->decode(Ids{15}).error().what, HasSubstr("15"));
  EXPECT_EQ(tokenizer->token_text(15), "");
}

TEST(PostProcessor, BosExactlyOnce) {
  JsonParts parts;
  parts.added = "[" + added("<s>", 10) + "]";
  const std::string single = R"([{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}])";
  const std::string specials = R"({"<s>":{"id":"<s>","ids":[10],"tokens":["<s>"]}})";
  parts.post_processor =
      R"({"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing","single":)" + single +
      R"(,"pair":[],"special_tokens":)" + specials + "}]}";
  EXPECT_THAT(encode(parts, "ab"), ElementsAre(10, 4));
  EXPECT_THAT(encode(parts, "<s>ab"), ElementsAre(10, 4));
  EXPECT_THAT(encode(parts, ""), ElementsAre(10));
  EXPECT_THAT(encode(parts, "ab", false), ElementsAre(4));
  EXPECT_EQ(load(parts).value()->bos(), 10);
}

TEST(PostProcessor, WhatItCannotHonourIsRefused) {
  JsonParts parts;
  const auto with = [&](const std::string& single, const std::string& specials) {
    parts.post_processor =
        R"({"type":"TemplateProcessing","single":)" + single + R"(,"special_tokens":)" + specials + "}";
    return refusal(parts);
  };
  const std::string text = R"({"Sequence":{"id":"A"}})";
  const std::string token = R"({"SpecialToken":{"id":"<e>"}})";
  EXPECT_THAT(with("[" + text + "," + token + "]", "{}"), HasSubstr("<e>"));
  EXPECT_THAT(with("[" + token + "," + text + "]", R"({"<e>":{"ids":[99]}})"), HasSubstr("99"));
  EXPECT_THAT(with("[" + token + "," + text + "]", "{}"), HasSubstr("ids"));
  EXPECT_THAT(with("[]", "{}"), HasSubstr("leaves the text out"));
  EXPECT_EQ(with("[" + text + "]", "{}"), "accepted");
}

TEST(Refused, UnknownPartsAreNamed) {
  const auto with = [](std::string JsonParts::*part, const std::string& value) {
    JsonParts parts;
    parts.*part = value;
    return refusal(parts);
  };
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"Lowercase"})"), HasSubstr("Lowercase"));
  EXPECT_THAT(with(&JsonParts::normalizer, R"({"type":"Sequence","normalizers":[{"type":"NFKC"}]})"),
              HasSubstr("NFKC"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, R"({"type":"Metaspace"})"), HasSubstr("Metaspace"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, "null"), HasSubstr("pre_tokenizer"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, R"({"type":"Digits"})"), HasSubstr("ByteLevel"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer, R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Removed"})"),
              HasSubstr("Removed"));
  EXPECT_THAT(with(&JsonParts::pre_tokenizer,
                   R"({"type":"Split","pattern":{"Regex":"a"},"behavior":"Isolated","invert":true})"),
              HasSubstr("invert true"));
  EXPECT_THAT(with(&JsonParts::decoder, R"({"type":"Metaspace"})"), HasSubstr("Metaspace"));
  EXPECT_THAT(with(&JsonParts::decoder, "null"), HasSubstr("decoder"));
  EXPECT_THAT(with(&JsonParts::post_processor, R"({"type":"BertProcessing"})"), HasSubstr("BertProcessing"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"WordPiece")"), HasSubstr("WordPiece"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"BPE","byte_fallback":true)"), HasSubstr("byte_fallback"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"BPE","end_of_word_suffix":"</w>")"), HasSubstr("</w>"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"BPE","dropout":0.1)"), HasSubstr("dropout"));
  EXPECT_THAT(with(&JsonParts::model_extra, R"("type":"BPE","unk_token":"zz")"), HasSubstr("zz"));
  const std::string unigram = R"({"model":{"type":"Unigram","vocab":[["a",-1.5],["b",[[2]]]]}})";
  EXPECT_THAT(refusal(unigram), HasSubstr("Unigram"));
}

TEST(Refused, PatternsThatAreWrongOrMeanSomethingElse) {
  const auto with = [](const std::string& pattern) {
    JsonParts parts;
    parts.pre_tokenizer =
        R"({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated","pattern":{"Regex":")" + pattern +
        R"("}},{"type":"ByteLevel","use_regex":false,"add_prefix_space":false}]})";
    return refusal(parts);
  };
  EXPECT_THAT(with("(a"), HasSubstr("(a"));
  EXPECT_THAT(with("\\\\C"), HasSubstr("\\C"));
  EXPECT_THAT(with("[a[bc]]"), HasSubstr("nests"));
  EXPECT_THAT(with("[a&&b]"), HasSubstr("nests"));
  EXPECT_EQ(with("[^\\\\s\\\\S\\\\[]+"), "accepted");
}

TEST(Refused, CatastrophicPatternsGiveUpWithAnError) {
  JsonParts parts;
  parts.pre_tokenizer = R"re({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated",
      "pattern":{"Regex":"(?:a|a|aa)+[bc]"}},{"type":"ByteLevel","use_regex":false,"add_prefix_space":false}]})re";
  EXPECT_THAT(load(parts).value()->encode(std::string(200, 'a')).error().what, HasSubstr("pattern"));
}

TEST(Refused, IdsAndMergesThatContradict) {
  const auto with = [](const std::string& vocab, const std::string& merges, const std::string& tokens) {
    JsonParts parts;
    parts.vocab = vocab;
    parts.merges = merges;
    parts.added = tokens;
    return refusal(parts);
  };
  EXPECT_THAT(with(R"({"a":0,"b":0})", "[]", "[]"), HasSubstr("twice"));
  EXPECT_THAT(with(R"({"a":0,"a":1})", "[]", "[]"), HasSubstr("two ids"));
  EXPECT_THAT(with(R"({"a":-1})", "[]", "[]"), HasSubstr("-1"));
  EXPECT_THAT(with(R"({"a":18446744073709551615})", "[]", "[]"), HasSubstr("outside"));
  EXPECT_THAT(with(R"({"a":1100000})", "[]", "[]"), HasSubstr("1100000"));
  EXPECT_THAT(with(R"({"a":1.5})", "[]", "[]"), HasSubstr("not an integer"));
  EXPECT_THAT(with(R"({"a":"0"})", "[]", "[]"), HasSubstr("not an integer"));
  EXPECT_THAT(with(R"({"a":{}})", "[]", "[]"), HasSubstr("not an id"));
  EXPECT_THAT(with(R"({"a":0,"aa":1})", R"(["a a","a x"])", "[]"), HasSubstr("merge 2"));
  EXPECT_THAT(with(R"({"a":0})", R"(["a a"])", "[]"), HasSubstr("result"));
  EXPECT_THAT(with(R"({"a":0,"":1})", R"(["a "])", "[]"), HasSubstr("empty half"));
  EXPECT_THAT(with(R"({"a":0})", R"(["aa"])", "[]"), HasSubstr("merge 1"));
  EXPECT_THAT(with(R"({"a":0})", R"([["a"]])", "[]"), HasSubstr("1 parts"));
  EXPECT_THAT(with(R"({"a":0})", R"([["a","a","a"]])", "[]"), HasSubstr("3 parts"));
  EXPECT_THAT(with(R"({"a":0})", R"([["a",["a"]]])", "[]"), HasSubstr("merge 1"));
  EXPECT_THAT(with(R"({"a":0})", R"([{"a":1}])", "[]"), HasSubstr("merge 1"));
  EXPECT_THAT(with(R"({"a":0})", R"([7])", "[]"), HasSubstr("merge 1"));
  EXPECT_THAT(with(R"({"a":0})", "[]", "[" + added("a", 1) + "]"), HasSubstr("two ids"));
  EXPECT_THAT(with(R"({"a":0})", "[]", "[" + added("x", 0) + "]"), HasSubstr("twice"));
  EXPECT_THAT(with(R"({"a":0})", "[]", "[" + added("", 1) + "]"), HasSubstr("0 bytes"));
  EXPECT_THAT(with(R"({"a":0})", "[]", "[" + added("x", 2000000) + "]"), HasSubstr("2000000"));
  EXPECT_THAT(with(R"({"a":0})", "[]", "[5]"), HasSubstr("content"));
}

TEST(Refused, EveryTruncationAndNothingCrashes) {
  const std::string whole = JsonParts().text();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "accepted") << length;
  }
  EXPECT_EQ(refusal(whole), "accepted");
}

TEST(Refused, MutatedFilesNeverCrash) {
  JsonParts parts;
  parts.added = "[" + added("<x>", 10) + "]";
  const std::string whole = parts.text();
  std::mt19937 random(9);
  constexpr std::string_view kBytes = "[]{}\",:0519-etfn\\ a\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = kBytes[random() % kBytes.size()];
    if (const auto tokenizer = load(text)) (void)(*tokenizer)->encode("ab12 abc<x>\xFF");
  }
}

TEST(Refused, DeepNesting) {
  JsonParts parts;
  parts.normalizer = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(refusal(parts), HasSubstr("64 deep"));
  EXPECT_THAT(refusal(R"({"model":{"type":"Unigram","vocab":[)" + std::string(100, '[')), HasSubstr("64 deep"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
}

TEST(SlowRefused, AMillionAddedTokens) {
  JsonParts parts;
  parts.added = R"([{"id":99,"content":"<>"})";
  for (int count = 1; count < 1000000; ++count) parts.added += R"(,{"id":99,"content":"<>"})";
  parts.added += "]";
  EXPECT_THAT(refusal(parts), HasSubstr("too many added tokens"));
}

TEST(AddedTokens, ManyAreFoundAsFastAsFew) {
  JsonParts parts;
  parts.added = "[";
  for (int id = 0; id < 20000; ++id) {
    parts.added += (id > 0 ? "," : "") + added("<" + std::to_string(id) + ">", 100 + id);
  }
  parts.added += "]";
  const auto tokenizer = load(parts).value();
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "a<" + std::to_string(i * 7 % 20000) + ">";
  const auto ids = tokenizer->encode(text).value();
  ASSERT_EQ(ids.size(), 40000u);
  EXPECT_EQ(ids[3], 107);
  EXPECT_EQ(tokenizer->decode(ids).value(), text);
}

TEST(Bpe, MergesThatNameEachOtherEnd) {
  JsonParts parts;
  parts.vocab = R"({"a":0,"aa":1,"aaa":2,"aaaa":3})";
  parts.merges = R"(["aa aa","aaa a","a aaa","aa a","a aa","a a","a a","aaa a"])";
  EXPECT_THAT(encode(parts, "aaaaaaa"), ElementsAre(2, 3));
  EXPECT_EQ(encode(parts, std::string(100000, 'a')).size(), 33333u);
}

TEST(Normalize, Nfc) {
  EXPECT_EQ(to_nfc("plain").value(), "plain");
  EXPECT_EQ(to_nfc("e\u0301").value(), "\u00E9");
  EXPECT_EQ(to_nfc("\u212B").value(), "\u00C5");
  EXPECT_EQ(to_nfc("a\u0323\u0307 a\u0307\u0323").value(), "\u1EA1\u0307 \u1EA1\u0307");
  EXPECT_EQ(to_nfc("\u1100\u1161\u11A8").value(), "\uAC01");
  EXPECT_EQ(to_nfc("\u0958").value(), "\u0915\u093C");  // excluded from composition
  EXPECT_EQ(to_nfc(std::string("\0e\u0301", 4)).value(), std::string("\0\u00E9", 3));
}

TEST(Normalize, ManyMarksTakeLinearithmicTime) {
  std::string marks = "a";
  for (int i = 0; i < 100000; ++i) marks += "\u0307\u0323";  // above, then below: each pair in the wrong order
  const std::string sorted = to_nfc(marks).value();
  EXPECT_EQ(sorted.substr(0, 5), "\u1EA1\u0323");
  EXPECT_EQ(to_nfc(sorted).value(), sorted);
}

}  // namespace
}  // namespace kvasir
