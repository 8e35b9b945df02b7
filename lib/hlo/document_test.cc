// Documents: what they look like, that they read back to the same bytes, and what is refused.
#include "tpu/hlo/document.h"

#include "llvm/Support/raw_ostream.h"
#include "testing.h"
#include "tpu/hlo/literal.h"

namespace tpu::hlo {
namespace {

std::string write(const Module& m, llvm::StringRef only = "") {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string error = complaint(writeDocument(m, os, only));
  return error.empty() ? text : error;
}

// y = all_reduce(negate(x)) over x, with an iota-like constant added, in stage spmd.
struct Sample : Main {
  Sample() {
    m.stage = Stage::kSpmd;
    m.name = "m";
    m.num_partitions = 4;
    m.target = "v5e:2x2";
    m.options = {{"mesh", "x=4"}};
    m.meshes.push_back({"mesh", {{"x", 4}}, {}, -1});
    Sharding s;
    s.mesh = MeshId(0);
    s.dims.resize(1);
    s.dims[0].axes.push_back({0, 1, 4});
    s.dims[0].open = true;
    ValueId x = arg(f32({2}));
    Port& port = m.funcs[0].arg_ports[0];
    port.sharding = m.internSharding(s);
    port.global_type = f32({8});
    port.name = m.internString("x");
    port.donated = true;
    m.value(x).sharding = port.sharding;
    ValueId sum = b.allReduce(b.unary(Opcode::negate, x), MeshId(0), {{0, 1, 4}}, Opcode::add);
    b.ints(ElementType::kS32, {1, -2});
    b.splat(f32({2}), -0.0);
    m.whys.push_back({m.value(sum).def, "reshard", OpId(), "t.py:1:1", "[{x}]", "[{}]", "because", ""});
    finish({sum});
  }
};

const char kSample[] = R"({"format":"tpu-ir","version":1,"stage":"spmd",
"name":"m",
"target":"v5e:2x2",
"partitions":4,
"replicas":1,
"entry":"main",
"attributes":[],
"options":[
{"name":"mesh","value":"x=4"}
],
"meshes":[
{"id":0,"name":"mesh","axes":["x"],"sizes":[4]}
],
"shardings":[
{"id":0,"mesh":0,"dims":[["x"]],"open":[true]}
],
"literals":[],
"funcs":[
{"fn":"main","private":false,"args":1,"results":1}
],
"ports":[
{"fn":"main","port":"arg","index":0,"name":"x","dtype":"f32","dims":[2],"global":[8],"sharding":0,"bytes":8,"donated":true,"loc":"t.py:1:1"},
{"fn":"main","port":"result","index":0,"dtype":"f32","dims":[2],"bytes":8}
],
"regions":[
{"op":1,"region":0,"args":[{"dtype":"f32","dims":[],"loc":"t.py:1:1"},{"dtype":"f32","dims":[],"loc":"t.py:1:1"}]}
],
"ops":[
{"id":0,"fn":"main","op":"negate","in":["a0"],"out":[{"dtype":"f32","dims":[2]}],"bytes":8,"loc":"t.py:1:1"},
{"id":1,"fn":"main","op":"all_reduce","in":["0"],"out":[{"dtype":"f32","dims":[2]}],"bytes":8,"attrs":{"axes":{"mesh":0,"axes":["x"]}},"group":4,"wire_bytes":12,"loc":"t.py:1:1"},
{"id":2,"fn":"main","parent":1,"region":0,"op":"add","in":["r1.0.0","r1.0.1"],"out":[{"dtype":"f32","dims":[]}],"bytes":4,"trips":1,"loc":"t.py:1:1"},
{"id":3,"fn":"main","parent":1,"region":0,"op":"return","in":["2"],"trips":1,"loc":"t.py:1:1"},
{"id":4,"fn":"main","op":"constant","out":[{"dtype":"s32","dims":[2]}],"bytes":8,"attrs":{"value":{"dense":[1,-2]}},"loc":"t.py:1:1"},
{"id":5,"fn":"main","op":"constant","out":[{"dtype":"f32","dims":[2]}],"bytes":8,"attrs":{"value":{"bits":"80000000"}},"loc":"t.py:1:1"},
{"id":6,"fn":"main","op":"return","in":["1"],"loc":"t.py:1:1"}
],
"whys":[
{"op":1,"code":"reshard","asked_at":"t.py:1:1","before":"[{x}]","after":"[{}]","reason":"because","remove_by":""}
]}
)";

TEST(Document, LooksAsDocumented) {
  Sample sample;
  EXPECT_EQ(sample.check(), "");
  EXPECT_EQ(write(sample.m), kSample);
}

TEST(Document, ReadsBackToTheSameBytes) {
  Module m = llvm::cantFail(readDocument(kSample, "d.json"));
  EXPECT_EQ(complaint(verify(m)), "");
  EXPECT_EQ(write(m), kSample);
  EXPECT_EQ(m.stage, Stage::kSpmd);
  EXPECT_TRUE(m.func(m.entry).arg_ports[0].donated);
}

TEST(Document, OneTableAlone) {
  Sample sample;
  EXPECT_EQ(write(sample.m, "meshes"), "{\"id\":0,\"name\":\"mesh\",\"axes\":[\"x\"],\"sizes\":[4]}\n");
  EXPECT_NE(write(sample.m, "rows").find("no table 'rows'"), std::string::npos);
}

TEST(Document, LargeConstantsStandInTheirTable) {
  Main f;
  std::vector<int64_t> values(5000, 7);
  values[1] = 8;
  ValueId big = f.b.ints(ElementType::kS32, values);
  OpId again = f.b.create(Opcode::constant, {}, {f.b.typeId(big)});
  f.m.setLiteral(again, f.m.findAttr(f.m.value(big).def, AttrKey::value)->literal);
  f.finish({big});
  std::string text = write(f.m);
  EXPECT_NE(
      text.find("\"literals\":[\n{\"id\":0,\"dtype\":\"s32\",\"dims\":[5000],\"base64\":\"BwAAAAgAAAAH"),
      std::string::npos);
  EXPECT_NE(text.find("\"value\":{\"literal\":0}"), std::string::npos);
  Module m = llvm::cantFail(readDocument(text, "d.json"));
  EXPECT_EQ(m.numLiterals(), 1u);
  EXPECT_EQ(write(m), text);
}

TEST(Document, TripsMultiply) {
  Main f;
  ValueId zero = f.b.scalarInt(ElementType::kS32, 0), three = f.b.scalarInt(ElementType::kS32, 3);
  RegionId outer = f.b.region();
  OpId loop = f.b.create(Opcode::while_, {zero}, {f.s32({})});
  for (bool cond : {true, false}) {
    RegionId region = f.b.addRegion(loop);
    ValueId i = f.m.addArg(region, f.s32({}), f.b.loc);
    f.b.atEnd(region);
    f.b.yield(
        {cond ? f.b.compare(Comparison::kLt, i, three) : f.b.add(i, f.b.scalarInt(ElementType::kS32, 1))});
  }
  f.b.atEnd(outer);
  f.finish({});
  EXPECT_NE(write(f.m).find("\"op\":\"add\",\"in\":[\"r2.1.0\",\"5\"],\"out\":[{\"dtype\":\"s32\",\"dims\":[]"
                            "}],\"bytes\":4,\"trips\":3"),
            std::string::npos);
}

// The refusal of the sample with one text replaced by another.
std::string damaged(llvm::StringRef from, llvm::StringRef to) {
  std::string text = kSample;
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos) << from.str();
  text.replace(at, from.size(), to.str());
  auto m = readDocument(text, "d.json");
  if (m) return complaint(verify(*m));
  std::string all;
  for (const Diagnostic& d : takeDiagnostics(m.takeError())) all += d.loc + ": " + d.text;
  return all;
}

TEST(Document, MistakesAreRefusedAtTheirPlace) {
  EXPECT_NE(damaged("\"op\":\"negate\"", "\"op\":\"negat\"").find("d.json:29:1: unknown operation 'negat'"),
            std::string::npos);
  EXPECT_NE(damaged("\"bytes\":8,\"loc\"", "\"byts\":8,\"loc\"").find("byts"), std::string::npos);
  EXPECT_NE(damaged("\"in\":[\"a0\"]", "\"in\":[\"a1\"]").find("'a1' names no value that is known here"),
            std::string::npos);
  EXPECT_NE(damaged("\"in\":[\"0\"]", "\"in\":[\"6\"]").find("'6' names no value that is known here"),
            std::string::npos);
  for (const char* id : {"9223372036854775807", "-9223372036854775808", "-1", "4294967295"}) {
    EXPECT_NE(damaged("\"in\":[\"0\"]", "\"in\":[\"" + std::string(id) + "\"]").find("names no value"),
              std::string::npos);
    EXPECT_NE(damaged("\"sharding\":0", "\"sharding\":" + std::string(id)).find("id of a sharding"),
              std::string::npos);
  }
  EXPECT_NE(damaged("\"dims\":[2]", "\"dims\":[-2]").find("expected a size"), std::string::npos);
  EXPECT_NE(damaged("\"sharding\":0", "\"sharding\":7").find("expected the id of a sharding"),
            std::string::npos);
  EXPECT_NE(damaged("\"dense\":[1,-2]", "\"dense\":[1]").find("constant of 1 elements where its type has 2"),
            std::string::npos);
  EXPECT_NE(damaged("{\"axes\":{", "{\"axles\":{").find("unknown attribute 'axles'"), std::string::npos);
  EXPECT_NE(damaged("\"args\":1", "\"args\":2").find("states 2 arguments"), std::string::npos);
  EXPECT_NE(damaged("\"stage\":\"spmd\"", "\"stage\":\"llo\"").find("llo"), std::string::npos);
  EXPECT_NE(damaged("\"version\":1", "\"version\":9").find("9"), std::string::npos);
  EXPECT_NE(damaged("\"region\":0,\"args\"", "\"region\":1,\"args\"").find("region"), std::string::npos);
  EXPECT_EQ(damaged("\"dims\":[2],\"global\"", "\"dims\":[3],\"global\""),
            "argument 0 holds f32[3] per device, its sharding of f32[8] gives f32[2]");
}

TEST(Document, NoDamageBringsTheReaderDown) {
  llvm::StringRef text = kSample;
  uint64_t state = 99;
  auto next = [&](uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  const std::string kBytes = "\"{}[]:,-0123456789arx.e\n";
  for (size_t round = 0; round < text.size() + 4000; ++round) {
    std::string bad = text.take_front(std::min(round, text.size())).str();
    if (round >= text.size())
      for (uint64_t edits = 1 + next(3); edits > 0; --edits)
        bad[next(bad.size())] = kBytes[next(kBytes.size())];
    auto m = readDocument(bad, "d.json");
    if (!m)
      llvm::consumeError(m.takeError());
    else
      llvm::consumeError(verify(*m));
  }
}

}  // namespace
}  // namespace tpu::hlo
