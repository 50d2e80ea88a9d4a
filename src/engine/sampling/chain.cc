// The chain: which samplers exist, which run in which order, and the final choice. Each sampler has a file of its own.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvasir/sampling.h>

#include "base/float_env.h"
#include "base/philox.h"
#include "engine/sampling/sampler.h"

namespace kvasir {

#define KVASIR_ENTRY(name) extern const Sampler sampler_##name;
#include "generated/samplers.inc"
#undef KVASIR_ENTRY

namespace {

constexpr float kMostBias = 10000;

std::span<const Sampler* const> all_samplers() {
  static const std::vector<const Sampler*> list = [] {
#define KVASIR_ENTRY(name) &sampler_##name,
    std::vector<const Sampler*> entries{
#include "generated/samplers.inc"
    };
#undef KVASIR_ENTRY
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Sampler* a, const Sampler* b) { return a->place < b->place; });
    return entries;
  }();
  return list;
}

Result<const Sampler*> find_sampler(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Sampler* sampler : all_samplers()) {
    if (sampler->info.name == name) return sampler;
    names.push_back(sampler->info.name);
  }
  return fail(Error::bad_argument, fmt::format("\"{}\" is not a sampler", name), "SamplingParams::samplers",
              fmt::format("{}", fmt::join(names, ", ")));
}

Result<std::vector<const Sampler*>> chain_of(const SamplingParams& p) {
  const auto all = all_samplers();
  if (p.samplers.empty()) return std::vector<const Sampler*>(all.begin(), all.end());
  std::vector<const Sampler*> named, chain;
  for (const std::string& name : p.samplers) {
    KVASIR_TRY(const Sampler* sampler, find_sampler(name));
    if (std::find(named.begin(), named.end(), sampler) != named.end())
      return fail(Error::bad_argument, fmt::format("\"{}\" is named twice", name), "SamplingParams::samplers");
    named.push_back(sampler);
  }
  for (const Sampler* sampler : all)
    if (sampler->always && std::find(named.begin(), named.end(), sampler) == named.end()) chain.push_back(sampler);
  chain.insert(chain.end(), named.begin(), named.end());
  return chain;
}

Result<void> check_range(const SamplingParams& p, const SamplerParam& param) {
  const double value = value_of(p, param);
  const bool fits = value >= param.least && value <= param.greatest && (!param.whole || value == std::trunc(value));
  if (fits) return {};
  return fail(Error::bad_argument, fmt::format("{} is out of range", value),
              fmt::format("SamplingParams::{}", param.name), fmt::format("{}..{}", param.least, param.greatest));
}

bool is_extra(std::string_view name) {
  for (const SamplerInfo& sampler : samplers())
    for (const SamplerParam& param : sampler.params)
      if (param.name == name) return std::holds_alternative<std::monostate>(param.field);
  return false;
}

}  // namespace

Constraint::~Constraint() = default;
bool Constraint::done() const { return false; }

double uniform(const SamplingParams& p, const SampleContext& c, Draw draw) {
  const auto bits = philox4x32(
      {static_cast<uint32_t>(c.position), static_cast<uint32_t>(c.choice), static_cast<uint32_t>(draw), 0}, p.seed);
  const uint64_t mantissa = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return static_cast<double>(mantissa) * 0x1p-53;
}

double value_of(const SamplingParams& p, const SamplerParam& param) {
  if (const auto* whole = std::get_if<int SamplingParams::*>(&param.field)) return p.**whole;
  if (const auto* real = std::get_if<double SamplingParams::*>(&param.field)) return p.**real;
  const auto it = p.more.find(std::string(param.name));
  return it == p.more.end() ? param.preset : it->second;
}

void set_value(SamplingParams& p, const SamplerParam& param, double value) {
  if (const auto* whole = std::get_if<int SamplingParams::*>(&param.field))
    p.** whole = static_cast<int>(value);
  else if (const auto* real = std::get_if<double SamplingParams::*>(&param.field))
    p.** real = value;
  else
    p.more[std::string(param.name)] = value;
}

std::span<const SamplerInfo> samplers() {
  static const std::vector<SamplerInfo> list = [] {
    std::vector<SamplerInfo> infos;
    for (const Sampler* sampler : all_samplers()) infos.push_back(sampler->info);
    return infos;
  }();
  return list;
}

Result<void> check_sampling(const SamplingParams& p) {
  for (const SamplerInfo& sampler : samplers())
    for (const SamplerParam& param : sampler.params) KVASIR_CHECK(check_range(p, param));
  for (const auto& [name, value] : p.more)
    if (!is_extra(name))
      return fail(Error::bad_argument, fmt::format("no sampler has a parameter \"{}\"", name), "SamplingParams::more");
  for (const auto& [id, bias] : p.logit_bias)
    if (id < 0 || !(bias <= kMostBias))
      return fail(Error::bad_argument, fmt::format("a bias of {} for token {}", bias, id), "SamplingParams::logit_bias",
                  fmt::format("token ids from 0 on, biases up to {}", kMostBias));
  return chain_of(p).map([](const auto&) {});
}

Result<int> sample(std::span<const float> logits, const SamplingParams& p, const SampleContext& context) {
  const FloatEnv env;
  KVASIR_TRY(Candidates candidates, Candidates::of(logits));
  KVASIR_TRY(const auto chain, chain_of(p));
  for (const Sampler* sampler : chain)
    if (sampler->edits || p.temperature > 0) KVASIR_CHECK(sampler->apply(candidates, p, context));
  if (!(p.temperature > 0)) return candidates.best();
  return candidates.draw(uniform(p, context, Draw::token));
}

}  // namespace kvasir
