// Tests errors and limits of templates, and which bytes of the output are marked as data.
// tests/golden/compare_templates.py compares the output with Jinja's.
#include "chat/jinja/template.h"

#include <gmock/gmock.h>

namespace kvasir::jinja {
namespace {

using Json = nlohmann::ordered_json;

Result<Rendered> render(std::string_view source, const Json& context = Json::object()) {
  KVASIR_TRY(const Template made, Template::parse(source));
  return made.render(context, 0);
}

// Returns the text with the data in brackets.
std::string marked(std::string_view source, const Json& context) {
  const auto rendered = render(source, context);
  if (!rendered) return "error: " + rendered.error().message();
  std::string out;
  size_t at = 0;
  for (const TextSpan& span : rendered->data) {
    out += rendered->text.substr(at, span.begin - at) + "[" + rendered->text.substr(span.begin, span.end - span.begin) +
           "]";
    at = span.end;
  }
  return out + rendered->text.substr(at);
}

Error error_of(std::string_view source, const Json& context = Json::object()) {
  const auto rendered = render(source, context);
  EXPECT_FALSE(rendered) << source;
  return rendered ? Error{} : rendered.error();
}

TEST(JinjaTemplate, DataIsMarkedWhereverItGoes) {
  const Json x = {{"x", "ab c"}, {"l", {"p", "q"}}, {"d", {{"k", "v\n"}}}};
  EXPECT_EQ(marked("<{{ x }}>", x), "<[ab c]>");
  EXPECT_EQ(marked("{{ '<' + x[1:] ~ '>' }}", x), "<[b c]>");
  EXPECT_EQ(marked("{{ x|upper }}{{ x.split()[1] }}", x), "[AB Cc]");
  EXPECT_EQ(marked("{{ x|replace('b', '-') }}", x), "[a]-[ c]");
  EXPECT_EQ(marked("{{ l|join(', ') }}", x), "[p], [q]");
  EXPECT_EQ(marked("{{ d|tojson }}", x), R"({"[k]": "[v\n]"})");
  EXPECT_EQ(marked("{{ '%s!' % x }}{{ '{}?'.format(x) }}", x), "[ab c]![ab c]?");
  EXPECT_EQ(marked("{{ d }}", x), R"({'[k]': '[v\n]'})");
  EXPECT_EQ(marked("{% set y %}.{{ x }}{% endset %}{% macro m(a) %}{{ a }};{% endmacro %}{{ m(y) }}", x), ".[ab c];");
  EXPECT_EQ(marked("{{ x|length }}{{ x == 'ab c' }}{{ 'b' in x }}", x), "4TrueTrue");
  EXPECT_EQ(marked("{% for c in x %}{{ c|trim }}{% endfor %}", {{"x", "é ü"}}), "[éü]");
}

TEST(JinjaTemplate, RolesAndSpecialTokensAreTheTemplates) {
  const Json context = {{"messages", {{{"role", "user"}, {"content", "hi"}}, {{"role", "<|x|>"}, {"content", "yo"}}}},
                        {"bos_token", "<s>"}};
  EXPECT_EQ(marked("{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", context),
            "<s><|user|>[hi]<|[<|x|>]|>[yo]");
}

TEST(JinjaTemplate, ErrorsNameTheLine) {
  EXPECT_EQ(error_of("a\n{% if x %}").kind, Error::damaged);
  EXPECT_EQ(error_of("a\n{{ x ").where, "line 2");
  EXPECT_EQ(error_of("a\n\n{% include 'b' %}").message(),
            "line 3: the tag 'include' is not supported in a chat template");
  EXPECT_EQ(error_of("a\n{{ 1|nosuch }}").message(), "line 2: the filter 'nosuch' is not supported in a chat template");
  EXPECT_EQ(error_of("{{ 1 is nosuch }}").kind, Error::unsupported);
  const Error undefined = error_of("\n{{ x.y }}");
  EXPECT_EQ(undefined.message(), "line 2: 'x' is undefined");
  const Error raised = error_of("{{ raise_exception('roles must alternate') }}");
  EXPECT_EQ(raised.what, "roles must alternate");
  EXPECT_EQ(raised.where, "raise_exception");
}

TEST(JinjaTemplate, ANamespaceInsideItselfIsWrittenOnce) {
  EXPECT_EQ(marked("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", {}),
            "<Namespace {'a': <Namespace {...}>}>");
}

TEST(JinjaTemplate, LimitsEndWhatWouldNotEnd) {
  const auto is_limit = [](std::string_view source) { return error_of(source).kind == Error::too_long; };
  EXPECT_TRUE(is_limit("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"));
  EXPECT_TRUE(is_limit(
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"));
  EXPECT_TRUE(is_limit("{{ 'a' * 99999999999 }}"));
  EXPECT_TRUE(is_limit("{{ '%99999999999d' % 1 }}"));
  EXPECT_TRUE(is_limit("{{ 'a'.center(9999999999) }}"));
  EXPECT_TRUE(is_limit("{{ 'a'|indent(9999999999) }}"));
  EXPECT_TRUE(is_limit("{% for i in range(3000) %}{{ 'a' * 2000 }}{% endfor %}"));
  EXPECT_TRUE(is_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"));
  EXPECT_TRUE(is_limit("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"));
  EXPECT_TRUE(is_limit("{{ 9223372036854775807 + 1 }}"));
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("not ", ""), std::pair("-", "")}) {
    std::string deep = "{{ ", after;
    for (int i = 0; i < 100000; ++i) deep += open, after += close;
    EXPECT_TRUE(is_limit(deep + "1" + after + " }}")) << open;
  }
  std::string chain = "{{ x";
  for (int i = 0; i < 100000; ++i) chain += ".a";
  EXPECT_TRUE(is_limit(chain + " }}"));
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "{% if x %}";
  EXPECT_TRUE(is_limit(blocks));
  std::string sum = "{{ 0";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  EXPECT_EQ(render(sum + " }}")->text, "5000");
}

TEST(JinjaTemplate, NothingOfARenderingIsLeft) {
  const auto made = Template::parse(
      "{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}");
  ASSERT_TRUE(made);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(made->render(Json::object(), 0)->text, "3");
}

}  // namespace
}  // namespace kvasir::jinja
