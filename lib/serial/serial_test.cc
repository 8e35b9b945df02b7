// JSON in and out: exact numbers, positions, unknown fields, frames, hostile input.
#include <chrono>
#include <cmath>

#include "gtest/gtest.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"

namespace tpu {
namespace {

Diagnostic diagnosticOf(llvm::Error e) { return takeDiagnostics(std::move(e)).at(0); }
JsonDoc parse(std::string text) { return llvm::cantFail(JsonDoc::parse("f.json", std::move(text))); }

TEST(Json, NumbersAreExact) {
  JsonDoc d = parse(R"([9223372036854775807,-9223372036854775808,18446744073709551615,1.5,-0.0,1e22,"nan",true,null])");
  std::vector<JsonValue> v;
  for (JsonValue e : d.root().elements()) v.push_back(e);
  ASSERT_EQ(v.size(), 9u);
  EXPECT_EQ(v[0].asInt(), INT64_MAX);
  EXPECT_EQ(v[1].asInt(), INT64_MIN);
  EXPECT_EQ(v[2].asUint(), UINT64_MAX);
  EXPECT_FALSE(v[2].asInt());
  EXPECT_EQ(v[3].asDouble(), 1.5);
  EXPECT_TRUE(std::signbit(*v[4].asDouble()));
  EXPECT_EQ(v[5].asDouble(), 1e22);
  EXPECT_TRUE(std::isnan(*v[6].asDouble()));
  EXPECT_EQ(v[7].asBool(), true);
  EXPECT_TRUE(v[8].isNull());
}

TEST(Json, ValuesKnowTheirPlace) {
  JsonDoc d = parse("{\"a\":1,\n \"b\\\"c\": [12, -3.5e2,true ,null],\n\"s\":\"x\\\\\",\"o\":{}}");
  JsonValue r = d.root();
  EXPECT_EQ(r.loc(), "f.json:1:1");
  EXPECT_EQ(r.find("a")->loc(), "f.json:1:6");
  JsonValue list = *r.find("b\"c");
  EXPECT_EQ(list.loc(), "f.json:2:10");
  std::vector<std::string> locs;
  for (JsonValue v : list.elements()) locs.push_back(v.loc());
  EXPECT_EQ(locs, (std::vector<std::string>{"f.json:2:11", "f.json:2:15", "f.json:2:22", "f.json:2:28"}));
  EXPECT_EQ(r.find("s")->loc(), "f.json:3:5");
  EXPECT_EQ(r.find("o")->size(), 0u);
  EXPECT_EQ(r.size(), 4u);
  EXPECT_EQ(parse("17").root().loc(), "f.json:1:1");
}

TEST(Json, RefusesWhatIsNotJson) {
  struct {
    const char *text, *loc, *part;
  } cases[] = {{"{\"a\":[1,2", "f.json:1:10", "ends too early"},
               {"{\"a\":1,\"b", "f.json:1:10", "ends too early"},
               {"{\n\"a\":1,}", "f.json:2:7", "malformed JSON"},
               {"{} x", "f.json:1:4", "malformed"},
               {"{\"a\":01}", "f.json:1:8", "malformed"},
               {"\"\xff\"", "f.json:1:2", "malformed"}};
  for (const auto& c : cases) {
    llvm::Expected<JsonDoc> d = JsonDoc::parse("f.json", c.text);
    ASSERT_FALSE(d) << c.text;
    Diagnostic g = diagnosticOf(d.takeError());
    EXPECT_EQ(g.code, Code::kBadJson);
    EXPECT_EQ(g.loc, c.loc) << c.text;
    EXPECT_NE(g.text.find(c.part), std::string::npos) << g.text;
  }
  llvm::Expected<JsonDoc> deep = JsonDoc::parse("f", std::string(1'000'000, '['));
  EXPECT_NE(diagnosticOf(deep.takeError()).text.find("nesting deeper"), std::string::npos);
}

TEST(Json, AnyPrefixAndAnyDamageIsSafe) {
  std::string text = R"({"format":"tpu-ir","rows":[{"id":1,"f":-1.5e-3,"s":"a\u00e9\n","t":[true,false,null]}]})";
  for (size_t i = 0; i <= text.size(); ++i) {
    llvm::Expected<JsonDoc> prefix = JsonDoc::parse("f", text.substr(0, i));
    if (!prefix) llvm::consumeError(prefix.takeError());
    for (int bit = 0; i < text.size() && bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      llvm::Expected<JsonDoc> d = JsonDoc::parse("f", damaged);
      if (!d) {
        llvm::consumeError(d.takeError());
        continue;
      }
      for (JsonMember m : d->root().members()) EXPECT_FALSE(m.value.loc().empty());
    }
  }
}

TEST(Json, ReadsTensOfMegabytesPerSecond) {
  std::string text = "[";
  for (int i = 0; i < 100'000; ++i)
    text += R"({"id":17,"fn":"main","op":"all_gather","in":["a0"],"dtype":"bf16","local":[512,512],"loc":"ff.py:9:24"},)";
  text += "{}]";
  double megabytes = static_cast<double>(text.size()) / 1e6;
  auto start = std::chrono::steady_clock::now();
  JsonDoc d = parse(std::move(text));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(d.root().size(), 100'001u);
  RecordProperty("megabytes_per_second", std::to_string(megabytes / seconds));
  std::printf("%.0f MB/s\n", megabytes / seconds);
}

TEST(Fields, ReadInAnyOrder) {
  JsonDoc d = parse(R"({"b":"x","a":1,"list":[1,2,3],"n":null,"t":true})");
  FieldReader r(d.root(), "row");
  llvm::SmallVector<int64_t> list;
  EXPECT_EQ(r.requiredInt("a"), 1);
  EXPECT_EQ(r.requiredString("b"), "x");
  EXPECT_TRUE(r.requiredInts("list", &list));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(r.optionalInt("n", 7), 7);
  EXPECT_EQ(r.optionalInt("absent", 8), 8);
  EXPECT_TRUE(r.optionalBool("t", false));
  EXPECT_FALSE(r.finish());
}

TEST(Fields, ProblemsAreNamedWithTheirPlace) {
  struct {
    const char *text, *loc, *part;
    Code code;
  } cases[] = {{R"({"a":1,"b":"x","zz":3})", "f.json:1:16", "unknown field \"zz\"", Code::kUnknownField},
               {R"({"a":1,"b":"x","a":3})", "f.json:1:16", "stands twice", Code::kBadField},
               {R"({"a":"1","b":"x"})", "f.json:1:6", "expected an integer, found a string", Code::kBadField},
               {R"({"a":99,"b":"x"})", "f.json:1:6", "99 is not in 0..9", Code::kBadField},
               {R"({"a":1})", "f.json:1:1", "without the field \"b\"", Code::kBadField},
               {R"([1])", "f.json:1:1", "expected an object", Code::kBadField}};
  for (const auto& c : cases) {
    JsonDoc d = parse(c.text);
    FieldReader r(d.root(), "row");
    r.requiredInt("a", 0, 9);
    r.requiredString("b");
    Diagnostic g = diagnosticOf(r.finish());
    EXPECT_EQ(g.code, c.code) << c.text;
    EXPECT_EQ(g.loc, c.loc) << c.text;
    EXPECT_NE(g.text.find(c.part), std::string::npos) << g.text;
  }
}

std::string written(llvm::StringRef only = "") {
  std::string text;
  llvm::raw_string_ostream os(text);
  DocumentWriter w(os, "spmd", only);
  w.field("target").string("v5e:4x2");
  w.beginTable("ops");
  w.row().beginObject().field("id", 0).field("x", 0.1).endObject();
  w.row().beginObject().field("id", 1).field("x", -0.0).key("l").ints({1, 2}).endObject();
  w.endTable();
  w.beginTable("none");
  w.endTable();
  llvm::Error e = w.finish();
  return e ? takeDiagnostics(std::move(e)).at(0).text : text;
}

TEST(Document, OneRowPerLine) {
  EXPECT_EQ(written(),
            "{\"format\":\"tpu-ir\",\"version\":1,\"stage\":\"spmd\",\n\"target\":\"v5e:4x2\",\n\"ops\":[\n"
            "{\"id\":0,\"x\":0.1},\n{\"id\":1,\"x\":-0.0,\"l\":[1,2]}\n],\n\"none\":[]}\n");
  EXPECT_EQ(written("ops"), "{\"id\":0,\"x\":0.1}\n{\"id\":1,\"x\":-0.0,\"l\":[1,2]}\n");
  EXPECT_EQ(written("none"), "");
  EXPECT_EQ(written("opz"), "no table 'opz' in this document; its tables are ops, none");
}

TEST(Document, StageIsFoundWhereverItStands) {
  EXPECT_EQ(stageOf(R"({"format":"tpu-ir","version":1,"stage":"llo",)"), "llo");
  EXPECT_EQ(stageOf(" {\n  \"ops\": [{\"stage\": \"x\"}, \"}\\\"\"],\n  \"name\": \"stage\",\n  \"stage\" : \"bundles\"}"), "bundles");
  EXPECT_EQ(stageOf(R"({"stage":{"a":"b"},"c":"d"})"), "");
  EXPECT_EQ(stageOf(R"({"stage":1,"c":"d"})"), "");
  EXPECT_EQ(stageOf(R"({"name":"cut \)"), "");
  EXPECT_EQ(stageOf("module { \"stage\":\"llo\" }"), "");
}

TEST(Document, HeadersAreChecked) {
  JsonDoc d = parse(written());
  EXPECT_EQ(llvm::cantFail(readDocumentHeader(d, {"hlo", "spmd"})).stage, "spmd");
  Diagnostic g = diagnosticOf(readDocumentHeader(d, {"bundles"}).takeError());
  EXPECT_EQ(g.code, Code::kWrongStage);
  EXPECT_EQ(g.text, "this is a document of stage 'spmd'; needed is 'bundles': tpu-schedule makes 'bundles'");
  d = parse(R"({"format":"tpu-ir","version":2,"stage":"spmd"})");
  g = diagnosticOf(readDocumentHeader(d, {"spmd"}).takeError());
  EXPECT_EQ(g.code, Code::kNewerVersion);
  EXPECT_EQ(g.text, "the document has version 2, this tool reads up to version 1");
  for (const char* bad : {"{}", "[]", "3", R"({"format":"x"})", R"({"format":"tpu-ir"})",
                          R"({"format":"tpu-ir","version":1})", R"({"format":"tpu-ir","version":0,"stage":"spmd"})"}) {
    d = parse(bad);
    EXPECT_EQ(diagnosticOf(readDocumentHeader(d, {"spmd"}).takeError()).code, Code::kBadField) << bad;
  }
}

TEST(Writer, StringsAreValidAndReadBack) {
  std::string text;
  llvm::raw_string_ostream os(text);
  JsonWriter(os).string("a\"\\\n\x01\xc3\xa9\xff/");
  EXPECT_EQ(text, "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd/\"");
  EXPECT_EQ(parse(text).root().asString(), "a\"\\\n\x01\xc3\xa9\xef\xbf\xbd/");
}

TEST(Writer, DoublesReadBackToTheSameBits) {
  for (double v : {0.1, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 12345678901234567890.0, -3.0, 1e-7, HUGE_VAL}) {
    std::string text;
    llvm::raw_string_ostream os(text);
    JsonWriter(os).beginArray().number(v).endArray();
    JsonDoc d = parse(text);
    EXPECT_EQ((*d.root().elements().begin()).asDouble(), v) << text;
  }
}

TEST(Base64, BothWays) {
  std::vector<uint8_t> bytes;
  for (int n = 0; n < 20; ++n) {
    std::string text = encodeBase64(bytes);
    EXPECT_EQ(decodeBase64(text), bytes);
    bytes.push_back(static_cast<uint8_t>(n * 37));
  }
  EXPECT_EQ(encodeBase64({'M', 'a'}), "TWE=");
  EXPECT_FALSE(decodeBase64("TWE"));
  EXPECT_FALSE(decodeBase64("T*E="));
}

}  // namespace
}  // namespace tpu
