// Reads the `bundles` document. Errors stand at line and column of the document.
#include <algorithm>

#include "label_names.h"
#include "llvm/ADT/StringMap.h"
#include "tpu/asm/assembly.h"
#include "tpu/asm/check.h"
#include "tpu/asm/object.h"
#include "tpu/asm/program_document.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"

namespace tpu::assembly {
namespace {

std::optional<isa::Space> spaceOf(llvm::StringRef name) {
  for (int i = 0; i <= static_cast<int>(isa::Space::kHost); ++i)
    if (name == isa::spaceName(static_cast<isa::Space>(i))) return static_cast<isa::Space>(i);
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const JsonDoc& doc) : doc_(doc) {}

  llvm::Expected<isa::Program> run() {
    if (auto header = readDocumentHeader(doc_, {"bundles"}); !header) return header.takeError();
    if (llvm::Error error = head()) return error;
    if (llvm::Error error = checkProgram(p_, *chip_, [&](uint32_t bundle, int insn) {
          return insn < 0 ? rows_[bundle].loc() : insnLoc(bundle, insn);
        })) {
      Diagnostic d = takeDiagnostics(std::move(error))[0];
      if (d.loc.empty()) d.loc = doc_.name().str();
      return fail(std::move(d));
    }
    return std::move(p_);
  }

 private:
  llvm::Error failAt(JsonValue value, const llvm::Twine& text, Code code = Code::kBadField) const {
    return fail(code, value.loc(), text);
  }

  llvm::Error head() {
    FieldReader r(doc_.root(), "bundles document");
    ignoreHeader(&r);
    p_.target = r.requiredString("target").str();
    const auto chip = r.required("chip");
    p_.devices = r.requiredInt("devices", 1, 1 << 24);
    llvm::SmallVector<int64_t, 0> order;
    r.requiredInts("device_order", &order);
    p_.device_order.assign(order.begin(), order.end());
    options(r);
    if (llvm::Error error = amounts(r)) return error;
    const auto args = r.requiredArray("args"), results = r.requiredArray("results"),
               buffers = r.requiredArray("buffers"), constants = r.requiredArray("constants");
    p_.device_table_words = r.requiredInt("device_table_words", 0, 1 << 20);
    const auto table = r.requiredArray("device_table"), locs = r.requiredArray("locs"),
               labels = r.requiredArray("labels"), kernels = r.requiredArray("kernels"),
               bundles = r.requiredArray("bundles");
    if (llvm::Error error = r.finish()) return error;
    auto parsed = target::chipFromJson(*chip);
    if (!parsed) return parsed.takeError();
    p_.chip_json = parsed->json;
    chip_ = std::move(*parsed);
    if (llvm::Error error = eachRow(args, [&](JsonValue row) { return port(row, &p_.args.emplace_back()); }))
      return error;
    if (llvm::Error error =
            eachRow(results, [&](JsonValue row) { return port(row, &p_.results.emplace_back()); }))
      return error;
    if (llvm::Error error = eachRow(buffers, [&](JsonValue row) { return buffer(row); })) return error;
    if (llvm::Error error = eachRow(constants, [&](JsonValue row) { return constant(row); })) return error;
    if (llvm::Error error = eachRow(table, [&](JsonValue row) { return deviceRow(row); })) return error;
    if (llvm::Error error = eachRow(locs, [&](JsonValue row) { return location(row); })) return error;
    if (llvm::Error error = eachRow(labels, [&](JsonValue row) { return label(row); })) return error;
    if (llvm::Error error = eachRow(kernels, [&](JsonValue row) { return kernel(row); })) return error;
    return eachRow(bundles, [&](JsonValue row) { return bundle(row); });
  }

  template <class F>
  static llvm::Error eachRow(JsonValue::Range rows, F&& f) {
    for (const JsonValue row : rows)
      if (llvm::Error error = f(row)) return error;
    return llvm::Error::success();
  }

  void options(FieldReader& r) {
    for (const JsonValue pair : r.requiredArray("options")) {
      std::vector<std::string> texts;
      for (const JsonValue item : pair.elements())
        if (const auto text = item.asString()) texts.push_back(text->str());
      if (texts.size() != 2 || pair.size() != 2) return r.bad("options", "an option is [name, value]");
      p_.options.emplace_back(texts[0], texts[1]);
    }
  }

  llvm::Error amounts(FieldReader& r) {
    const auto memory = r.required("memory"), required = r.required("required");
    if (!memory || !required) return r.finish();
    FieldReader m(*memory, "memory");
    p_.hbm_bytes = m.requiredInt("hbm", 0);
    p_.vmem_bytes = m.requiredInt("vmem", 0);
    p_.smem_bytes = m.requiredInt("smem", 0);
    if (llvm::Error error = m.finish()) return error;
    FieldReader q(*required, "required");
    p_.required_flops_bf16 = q.requiredInt("flops", 0);
    p_.required_hbm_bytes = q.requiredInt("hbm_bytes", 0);
    p_.required_ici_bytes = q.requiredInt("ici_bytes", 0);
    return q.finish();
  }

  static void readSpace(FieldReader& r, isa::Space* out) {
    const llvm::StringRef name = r.requiredString("space");
    if (!r.ok()) return;
    if (const auto space = spaceOf(name))
      *out = *space;
    else
      r.bad("space", "unknown memory '" + name + "'; known are hbm, vmem, smem, cmem, host");
  }

  static void readLayout(FieldReader& r, isa::Layout* out) {
    const auto value = r.required("layout");
    if (!value) return;
    llvm::SmallVector<int64_t, 2> pair;
    if (value->asString() == llvm::StringRef("dense")) {
      *out = isa::Layout{true, 8, 1};
    } else if (value->readInts(&pair) && pair.size() == 2 && pair[0] > 0 && pair[0] <= 1024 && pair[1] > 0 &&
               pair[1] <= 32) {
      *out = isa::Layout{false, static_cast<int>(pair[0]), static_cast<int>(pair[1])};
    } else {
      r.bad("layout", "expected \"dense\" or [tile rows, packing]");
    }
  }

  static void readShards(FieldReader& r, isa::SignaturePort* port) {
    for (const JsonValue dim : r.optionalArray("shards")) {
      auto& factors = port->shards.emplace_back();
      for (const JsonValue factor : dim.elements()) {
        llvm::SmallVector<int64_t, 2> pair;
        if (!factor.readInts(&pair) || pair.size() != 2) return r.bad("shards", "a factor is [stride, size]");
        factors.push_back({pair[0], pair[1]});
      }
    }
  }

  llvm::Error port(JsonValue row, isa::SignaturePort* port) {
    FieldReader r(row, "signature row");
    port->name = r.requiredString("name").str();
    const llvm::StringRef dtype = r.requiredString("dtype");
    const auto element = parseElementType(dtype);
    if (r.ok() && !element) r.bad("dtype", "unknown element type '" + dtype + "'");
    port->element = element.value_or(ElementType::kF32);
    r.requiredInts("global", &port->global_dims);
    r.requiredInts("local", &port->local_dims);
    readShards(r, port);
    readLayout(r, &port->layout);
    readSpace(r, &port->space);
    port->address = r.requiredInt("address", 0);
    port->alias = static_cast<int>(r.optionalInt("alias", -1, -1, INT32_MAX));
    port->loc = r.optionalString("loc").str();
    return r.finish();
  }

  llvm::Error buffer(JsonValue row) {
    isa::PlacedBuffer& b = p_.buffers.emplace_back();
    FieldReader r(row, "buffer row");
    b.name = r.requiredString("name").str();
    readSpace(r, &b.space);
    b.address = r.requiredInt("address", 0);
    b.bytes = r.requiredInt("bytes", 0);
    b.real_bytes = r.requiredInt("real_bytes", 0);
    b.loc = r.optionalString("loc").str();
    return r.finish();
  }

  llvm::Error constant(JsonValue row) {
    isa::Constant& c = p_.constants.emplace_back();
    FieldReader r(row, "constant row");
    readSpace(r, &c.space);
    c.address = r.requiredInt("address", 0);
    if (const auto encoded = r.optional("base64")) {
      auto bytes = decodeBase64(encoded->asString().value_or("?"));
      if (bytes)
        c.bytes = std::move(*bytes);
      else
        r.bad("base64", "not base64");
    } else {
      const auto word = static_cast<uint32_t>(r.requiredInt("splat", 0, UINT32_MAX));
      const int64_t words = r.requiredInt("words", 0, int64_t{1} << 32);
      c.bytes.resize(r.ok() ? static_cast<size_t>(words) * 4 : 0);
      for (size_t i = 0; i < c.bytes.size(); ++i) c.bytes[i] = static_cast<uint8_t>(word >> (8 * (i % 4)));
    }
    return r.finish();
  }

  llvm::Error deviceRow(JsonValue row) {
    if (static_cast<int64_t>(row.size()) != p_.device_table_words)
      return failAt(row, "a row of the device table has " + llvm::Twine(p_.device_table_words) + " words");
    for (const JsonValue word : row.elements()) {
      const auto value = word.asInt();
      if (!value || *value < 0 || *value > UINT32_MAX) return failAt(word, "expected a 32-bit word");
      p_.device_table.push_back(static_cast<uint32_t>(*value));
    }
    return llvm::Error::success();
  }

  llvm::Error location(JsonValue row) {
    const auto text = row.asString();
    if (!text) return failAt(row, "expected a location string");
    p_.locs.push_back(text->str());
    return llvm::Error::success();
  }

  llvm::Error label(JsonValue row) {
    FieldReader r(row, "label row");
    const auto pc = static_cast<uint32_t>(r.requiredInt("pc", 0, UINT32_MAX));
    const llvm::StringRef name = r.requiredString("name");
    if (llvm::Error error = r.finish()) return error;
    if (!labels_.try_emplace(name, pc).second)
      return failAt(row, "label '" + name + "' is defined twice", Code::kBadLabel);
    p_.label_at.emplace_back(pc, name.str());
    return llvm::Error::success();
  }

  llvm::Error kernel(JsonValue row) {
    isa::CodeRange& range = p_.ranges.emplace_back();
    FieldReader r(row, "kernel row");
    range.name = r.requiredString("name").str();
    range.begin = static_cast<uint32_t>(r.requiredInt("begin", 0, UINT32_MAX));
    range.end = static_cast<uint32_t>(r.requiredInt("end", 0, UINT32_MAX));
    return r.finish();
  }

  llvm::Error bundle(JsonValue row) {
    const auto pc = static_cast<uint32_t>(p_.bundles.size());
    isa::Bundle& bundle = p_.bundles.emplace_back();
    rows_.push_back(row);
    FieldReader r(row, "bundle row");
    if (r.requiredInt("pc") != pc && r.ok())
      r.bad("pc", "the rows are numbered from 0 without gaps; this is row " + llvm::Twine(pc));
    r.ignore("kernel");  // follows from the table of kernels
    for (const JsonValue text : r.requiredArray("insns"))
      if (llvm::Error error = instruction(text, bundle)) return error;
    if (const auto loc = r.optional("loc")) numbers(r, "loc", *loc, bundle, &isa::PlacedInstruction::loc);
    if (const auto op = r.optional("op")) numbers(r, "op", *op, bundle, &isa::PlacedInstruction::op);
    if (llvm::Error error = r.finish()) return error;
    orderBySlot(bundle);
    return llvm::Error::success();
  }

  // One number for all instructions, or one each.
  static void numbers(FieldReader& r, llvm::StringRef key, JsonValue value, isa::Bundle& bundle,
                      uint32_t isa::PlacedInstruction::*member) {
    auto valid = [](std::optional<int64_t> n) { return n && *n >= 0 && *n <= UINT32_MAX; };
    if (valid(value.asInt())) {
      for (isa::PlacedInstruction& placed : bundle.insns)
        placed.*member = static_cast<uint32_t>(*value.asInt());
      return;
    }
    if (!value.isArray() || value.size() != bundle.insns.size())
      return r.bad(key, "expected one number, or one for each instruction");
    size_t i = 0;
    for (const JsonValue item : value.elements()) {
      if (!valid(item.asInt())) return r.bad(key, "expected one number, or one for each instruction");
      bundle.insns[i++].*member = static_cast<uint32_t>(*item.asInt());
    }
  }

  llvm::Error instruction(JsonValue value, isa::Bundle& bundle) {
    const auto text = value.asString();
    if (!text) return failAt(value, "expected an instruction as a string");
    names_.clear();
    auto insn = isa::parse(
        *text, [&](size_t offset) { return inside(value, offset); }, &names_);
    if (!insn) return insn.takeError();
    for (int i = 0; i < insn->num_operands; ++i)
      if (insn->operands[i].kind == isa::Operand::kLabel) {
        auto bundle_number = target(value, names_[0]);
        if (!bundle_number) return bundle_number.takeError();
        insn->operands[i].imm = *bundle_number;
      }
    bundle.insns.push_back({*insn, 0, 0});
    return llvm::Error::success();
  }

  // The place of a character of a string (instructions need no escapes).
  static std::string inside(JsonValue value, size_t offset) {
    const std::string loc = value.loc();
    const auto [place, column] = llvm::StringRef(loc).rsplit(':');
    uint64_t n = 0;
    column.getAsInteger(10, n);
    return (place + ":" + llvm::Twine(n + 1 + offset)).str();
  }

  llvm::Expected<uint32_t> target(JsonValue value, llvm::StringRef name) const {
    if (const auto bundle = localLabelBundle(name)) return *bundle;
    const auto it = labels_.find(name);
    if (it != labels_.end()) return it->second;
    return failAt(value, "label '" + name + "' is not defined", Code::kBadLabel);
  }

  // The string of instruction `insn` of a bundle, which may have stood in another order.
  std::string insnLoc(uint32_t bundle, int insn) const {
    std::vector<std::pair<isa::Slot, JsonValue>> texts;
    const auto insns = rows_[bundle].find("insns");
    for (const JsonValue text : insns->elements()) {
      std::vector<std::string> names;
      texts.emplace_back(isa::info(llvm::cantFail(isa::parse(*text.asString(), "", &names)).op).slot, text);
    }
    std::stable_sort(texts.begin(), texts.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return texts[static_cast<size_t>(insn)].second.loc();
  }

  const JsonDoc& doc_;
  isa::Program p_;
  std::optional<target::Chip> chip_;
  llvm::StringMap<uint32_t> labels_;
  std::vector<JsonValue> rows_;
  std::vector<std::string> names_;
};

}  // namespace

llvm::Expected<isa::Program> readProgramDocument(llvm::StringRef json, llvm::StringRef name) {
  auto doc = JsonDoc::parse(name, json.str());
  if (!doc) return doc.takeError();
  return Reader(*doc).run();
}

llvm::Expected<isa::Program> readAnyProgram(llvm::StringRef bytes, llvm::StringRef name,
                                            std::vector<std::string>* files_read) {
  if (isObject(bytes)) return readObject(bytes, name);
  if (looksLikeJson(bytes)) return readProgramDocument(bytes, name);
  if (bytes.contains('\0'))
    return fail(Code::kWrongStage, name, "this is neither a document, nor an object file, nor text");
  return assemble(bytes, name, files_read);
}

}  // namespace tpu::assembly
