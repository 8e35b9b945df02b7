// Reads the llo document. Everything is checked as far as later code relies on it to be safe: ids in range,
// parents before children, registers of the right class. What the statements mean together is the verifier's
// matter.
#include <map>

#include "tpu/llo/document.h"
#include "tpu/serial/base64.h"
#include "tpu/serial/document.h"
#include "tpu/target/chip.h"

namespace tpu::llo {
namespace {

constexpr int64_t kMaxId = INT32_MAX;

template <size_t N>
int findName(llvm::StringRef name, const char* const (&names)[N]) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<int>(i);
  return -1;
}

/// "%s3" of the class: its number, or -1.
int32_t parseRegister(llvm::StringRef text, char cls) {
  int32_t number;
  if (!text.consume_front("%") || text.empty() || text[0] != cls ||
      text.drop_front().getAsInteger(10, number) || number < 0)
    return -1;
  return number;
}

class Reader {
 public:
  explicit Reader(const JsonDoc& doc) : root_(doc.root(), "llo document") {}

  llvm::Expected<Module> run() {
    ignoreHeader(&root_);
    if (llvm::Error e = head()) return e;
    if (llvm::Error e = table("buffers", "buffer row", [&](FieldReader& r) { buffer(r); })) return e;
    if (llvm::Error e = table("args", "argument row", [&](FieldReader& r) { port(r, m_.args); })) return e;
    if (llvm::Error e = table("results", "result row", [&](FieldReader& r) { port(r, m_.results); }))
      return e;
    if (llvm::Error e = kernels()) return e;
    if (llvm::Error e = table("dmas", "transfer row", [&](FieldReader& r) { dma(r); })) return e;
    if (llvm::Error e = table("code", "code row", [&](FieldReader& r) { statement(r); })) return e;
    if (llvm::Error e = root_.finish()) return e;
    return std::move(m_);
  }

 private:
  template <class F>
  llvm::Error table(llvm::StringRef name, llvm::StringRef what, F&& row) {
    for (JsonValue v : root_.requiredArray(name)) {
      if (!root_.ok()) break;
      FieldReader r(v, what);
      row(r);
      if (llvm::Error e = r.finish()) return e;
    }
    return root_.ok() ? llvm::Error::success() : root_.finish();
  }

  llvm::Error head() {
    m_.target = root_.requiredString("target").str();
    m_.chip_json = root_.optionalString("chip").str();
    if (m_.chip_json.empty() && root_.ok()) {
      llvm::Expected<target::Target> target = target::targetFromDocument(m_.target, "");
      if (!target) return target.takeError();
      m_.chip_json = target->chip.json;
    }
    m_.devices = root_.requiredInt("devices", 1, 1 << 24);
    llvm::SmallVector<int64_t, 8> order;
    root_.requiredInts("device_order", &order);
    m_.device_order.assign(order.begin(), order.end());
    for (JsonValue v : root_.requiredArray("options")) {
      std::string pair[2];
      int k = 0;
      for (JsonValue s : v.elements())
        if (k < 2 && s.isString()) pair[k++] = s.asString()->str();
      if (k != 2 || v.size() != 2)
        return fail(tpu::Code::kBadField, v.loc(), "an option is a pair of strings");
      m_.options.push_back({pair[0], pair[1]});
    }
    if (std::optional<JsonValue> v = root_.required("required")) {
      FieldReader r(*v, "required");
      m_.required_flops = r.requiredInt("flops");
      m_.required_hbm_bytes = r.requiredInt("hbm_bytes");
      m_.required_ici_bytes = r.requiredInt("ici_bytes");
      if (llvm::Error e = r.finish()) return e;
    }
    m_.num_sems = static_cast<int32_t>(root_.requiredInt("sems", 0, 65535));
    m_.device_table_words = root_.requiredInt("device_table_words", 0, 1 << 20);
    for (JsonValue v : root_.requiredArray("device_table")) {
      llvm::SmallVector<uint32_t, 16> row;
      if (!uints(v, row) || static_cast<int64_t>(row.size()) != m_.device_table_words)
        return fail(tpu::Code::kBadField, v.loc(), "a row of device_table has device_table_words words");
      m_.device_table.insert(m_.device_table.end(), row.begin(), row.end());
    }
    for (JsonValue v : root_.requiredArray("locs")) {
      if (!v.isString()) return fail(tpu::Code::kBadField, v.loc(), "a location is a string");
      m_.locs.push_back(v.asString()->str());
    }
    for (JsonValue v : root_.requiredArray("call_locs")) {
      llvm::SmallVector<uint32_t, 16> row;
      if (!uints(v, row))
        return fail(tpu::Code::kBadField, v.loc(), "a row of call_locs is an array of rows of locs");
      m_.call_locs.emplace_back(row.begin(), row.end());
    }
    return root_.ok() ? llvm::Error::success() : root_.finish();
  }

  static bool uints(JsonValue v, llvm::SmallVectorImpl<uint32_t>& out) {
    llvm::SmallVector<int64_t, 16> values;
    if (!v.readInts(&values)) return false;
    for (int64_t x : values) {
      if (x < 0 || x > UINT32_MAX) return false;
      out.push_back(static_cast<uint32_t>(x));
    }
    return true;
  }

  ElementType element(FieldReader& r) {
    const llvm::StringRef name = r.requiredString("dtype");
    const std::optional<ElementType> type = parseElementType(name);
    if (!type && r.ok()) r.bad("dtype", "unknown element type '" + name + "'");
    return type.value_or(ElementType::kF32);
  }
  isa::Space space(FieldReader& r) {
    static constexpr const char* kNames[] = {"hbm", "vmem", "smem", "cmem", "host"};
    const int k = findName(r.requiredString("space"), kNames);
    if (k < 0 && r.ok()) r.bad("space", "expected hbm, vmem, smem, cmem or host");
    return static_cast<isa::Space>(std::max(k, 0));
  }
  void layout(FieldReader& r, isa::Layout* out) {
    const std::optional<JsonValue> v = r.required("layout");
    if (!v) return;
    if (v->isString() && *v->asString() == "dense") {
      out->dense = true;
      return;
    }
    llvm::SmallVector<int64_t, 2> form;
    if (!v->readInts(&form) || form.size() != 2 || form[0] < 1 || form[0] > 64 || form[1] < 1 || form[1] > 8)
      return r.bad("layout", "expected \"dense\" or [tile rows, packing]");
    out->tile_rows = static_cast<int>(form[0]);
    out->packing = static_cast<int>(form[1]);
  }
  void dims(FieldReader& r, llvm::StringRef name, llvm::SmallVector<int64_t, 6>* out) {
    r.requiredInts(name, out);
  }

  void buffer(FieldReader& r) {
    static constexpr const char* kRoles[] = {"temp", "argument", "result", "constant"};
    Buffer b;
    sequentialId(r, m_.buffers.size());
    b.name = r.requiredString("name").str();
    b.space = space(r);
    const int role = findName(r.requiredString("role"), kRoles);
    if (role < 0 && r.ok()) r.bad("role", "expected temp, argument, result or constant");
    b.role = static_cast<Role>(std::max(role, 0));
    b.port = static_cast<int>(r.optionalInt("port", -1, 0, kMaxId));
    b.element = element(r);
    dims(r, "dims", &b.dims);
    layout(r, &b.layout);
    b.bytes = r.requiredInt("bytes", 0);
    b.real_bytes = r.requiredInt("real_bytes", 0);
    b.alias = static_cast<int32_t>(r.optionalInt("alias", -1, 0, kMaxId));
    b.loc = static_cast<uint32_t>(r.optionalInt("loc", 0, 0, kMaxId));
    data(r, &b);
    m_.buffers.push_back(std::move(b));
  }

  void data(FieldReader& r, Buffer* b) {
    if (const std::optional<JsonValue> splat = r.optional("splat")) {
      const std::optional<uint64_t> word = splat->asUint();
      if (!word || *word > UINT32_MAX) return r.bad("splat", "expected a 32-bit word");
      const int64_t words = r.requiredInt("words", 0, b->bytes / 4);
      for (int64_t i = 0; i < words; ++i)
        for (int k = 0; k < 4; ++k) b->data.push_back(static_cast<uint8_t>(*word >> (8 * k)));
      return;
    }
    const llvm::StringRef text = r.optionalString("base64");
    if (text.empty()) return;
    std::optional<std::vector<uint8_t>> bytes = decodeBase64(text);
    if (!bytes) return r.bad("base64", "not canonical base64");
    b->data = std::move(*bytes);
  }

  void sequentialId(FieldReader& r, size_t expected) {
    const int64_t id = r.requiredInt("id", 0, kMaxId);
    if (r.ok() && id != static_cast<int64_t>(expected))
      r.bad("id", "rows come in order of id; expected " + std::to_string(expected));
  }

  void port(FieldReader& r, std::vector<Port>& ports) {
    Port p;
    p.name = r.requiredString("name").str();
    p.buffer = static_cast<int32_t>(r.requiredInt("buffer", 0, static_cast<int64_t>(m_.buffers.size()) - 1));
    p.signature.name = r.optionalString("as", p.name).str();
    p.signature.element = element(r);
    dims(r, "global", &p.signature.global_dims);
    dims(r, "local", &p.signature.local_dims);
    for (JsonValue dim : r.optionalArray("shards")) {
      auto& factors = p.signature.shards.emplace_back();
      for (JsonValue f : dim.elements()) {
        llvm::SmallVector<int64_t, 2> pair;
        if (!f.readInts(&pair) || pair.size() != 2 || pair[0] < 1 || pair[1] < 1)
          return r.bad("shards", "a factor is [stride, size]");
        factors.push_back({pair[0], pair[1]});
      }
    }
    layout(r, &p.signature.layout);
    p.signature.space = space(r);
    p.signature.alias = static_cast<int>(r.optionalInt("alias", -1, 0, kMaxId));
    p.signature.loc = r.optionalString("loc").str();
    ports.push_back(std::move(p));
  }

  void codeHead(FieldReader& r, Code* code) {
    llvm::SmallVector<int64_t, 4> regs, units, locs;
    r.requiredInts("regs", &regs);
    r.requiredInts("units", &units);
    r.optionalInts("op_locs", &locs);
    auto count = [&](llvm::ArrayRef<int64_t> v, size_t i) {
      return i < v.size() && v[i] >= 0 && v[i] <= (1 << 24) ? static_cast<int32_t>(v[i]) : -1;
    };
    if (!r.ok()) return;
    int32_t n[6] = {count(regs, 0), count(regs, 1),  count(regs, 2),
                    count(regs, 3), count(units, 0), count(units, 1)};
    if (regs.size() != 4 || *std::min_element(n, n + 4) < 0)
      return r.bad("regs", "expected four counts: scalar, vector, mask, predicate");
    if (units.size() != 2 || n[4] < 0 || n[5] < 0) return r.bad("units", "expected two counts: mxu, xlu");
    code->num_s = n[0], code->num_v = n[1], code->num_m = n[2], code->num_p = n[3], code->num_mxu = n[4],
    code->num_xlu = n[5];
    for (int64_t l : locs) code->op_locs.push_back(static_cast<uint32_t>(l));
  }

  llvm::Error kernels() {
    if (llvm::Error e = table("kernels", "kernel row", [&](FieldReader& r) { kernel(r); })) return e;
    if (llvm::Error e = table("blocks", "block row", [&](FieldReader& r) { pipelineBlock(r); })) return e;
    if (llvm::Error e = table("transfers", "block transfer row", [&](FieldReader& r) { transfer(r); }))
      return e;
    if (llvm::Error e = table("companions", "companion row", [&](FieldReader& r) {
          Companion c;
          sequentialId(r, m_.companions.size());
          c.name = r.requiredString("name").str();
          c.done = reg(r, "done", 'p');
          codeHead(r, &c.step);
          m_.companions.push_back(std::move(c));
        }))
      return e;
    int drivers = 0;
    if (llvm::Error e = table("drivers", "driver row", [&](FieldReader& r) {
          ++drivers;
          codeHead(r, &m_.driver);
        }))
      return e;
    return drivers == 1 ? llvm::Error::success()
                        : fail(tpu::Code::kBadField, "", "the table drivers has one row");
  }

  void kernel(FieldReader& r) {
    static constexpr const char* kKinds[] = {"hbm", "smem", "vmem", "word"};
    Kernel k;
    sequentialId(r, m_.kernels.size());
    k.name = r.requiredString("name").str();
    llvm::SmallVector<int64_t, 4> grid, scratch;
    r.requiredInts("grid", &grid);
    k.grid.assign(grid.begin(), grid.end());
    for (JsonValue v : r.requiredArray("params")) {
      FieldReader p(v, "kernel parameter");
      const int kind = findName(p.requiredString("kind"), kKinds);
      KernelParam param{static_cast<KernelParam::Kind>(std::max(kind, 0)), p.requiredString("name").str()};
      if (llvm::Error e = p.finish()) {
        r.bad("params", takeDiagnostics(std::move(e))[0].text);
      } else if (kind < 0) {
        r.bad("params", "expected hbm, smem, vmem or word");
      }
      k.params.push_back(std::move(param));
    }
    r.requiredInts("scratch", &scratch);
    k.scratch.assign(scratch.begin(), scratch.end());
    k.vmem_budget = r.requiredInt("vmem_budget");
    k.flops = r.requiredInt("flops");
    codeHead(r, &k.code);
    m_.kernels.push_back(std::move(k));
  }

  Kernel* kernelOf(FieldReader& r) {
    const int64_t k = r.requiredInt("kernel", 0, static_cast<int64_t>(m_.kernels.size()) - 1);
    return r.ok() ? &m_.kernels[k] : nullptr;
  }

  void pipelineBlock(FieldReader& r) {
    Kernel* k = kernelOf(r);
    if (!k) return;
    PipelineBlock b;
    sequentialId(r, k->blocks.size());
    b.name = r.requiredString("name").str();
    b.param = static_cast<int32_t>(r.requiredInt("param", 0, static_cast<int64_t>(k->params.size()) - 1));
    const llvm::StringRef dir = r.requiredString("dir");
    if (r.ok() && dir != "in" && dir != "out") r.bad("dir", "expected in or out");
    b.direction = dir == "out" ? Direction::kOut : Direction::kIn;
    b.bytes = r.requiredInt("bytes", 0);
    llvm::SmallVector<int64_t, 4> step;
    r.requiredInts("step", &step);
    b.step.assign(step.begin(), step.end());
    k->blocks.push_back(std::move(b));
  }

  void transfer(FieldReader& r) {
    Kernel* k = kernelOf(r);
    if (!k) return;
    const int64_t block = r.requiredInt("block", 0, static_cast<int64_t>(k->blocks.size()) - 1);
    Transfer t;
    t.hbm_offset = r.requiredInt("hbm_offset");
    t.vmem_offset = r.requiredInt("vmem_offset");
    t.run = r.requiredInt("run", 0);
    const int64_t last = static_cast<int64_t>(k->grid.size()) - 1;
    t.run_edge_grid = static_cast<int32_t>(r.optionalInt("run_edge_grid", -1, 0, last));
    t.run_edge = r.optionalInt("run_edge", 0, 0);
    int i = 0;
    for (JsonValue v : r.requiredArray("dims")) {
      if (i == 3) return r.bad("dims", "a transfer has three outer dimensions");
      FieldReader d(v, "transfer dimension");
      TransferDim& dim = t.dims[i++];
      dim.count = d.requiredInt("count", 0);
      dim.hbm_stride = d.requiredInt("hbm");
      dim.vmem_stride = d.requiredInt("vmem");
      dim.edge_grid = static_cast<int32_t>(d.optionalInt("edge_grid", -1, 0, last));
      dim.edge_count = d.optionalInt("edge", 0, 0);
      if (llvm::Error e = d.finish()) return r.bad("dims", takeDiagnostics(std::move(e))[0].text);
    }
    if (r.ok()) k->blocks[block].transfers.push_back(t);
  }

  // ---- code

  Code* codeOf(FieldReader& r) {
    const llvm::StringRef name = r.requiredString("fn");
    if (!r.ok()) return nullptr;
    if (name == "driver") return &m_.driver;
    llvm::StringRef rest = name;
    size_t n;
    if (rest.consume_front("kernel ") && !rest.getAsInteger(10, n) && n < m_.kernels.size())
      return &m_.kernels[n].code;
    rest = name;
    if (rest.consume_front("companion ") && !rest.getAsInteger(10, n) && n < m_.companions.size())
      return &m_.companions[n].step;
    r.bad("fn", "no function '" + name + "'");
    return nullptr;
  }

  int32_t reg(FieldReader& r, llvm::StringRef field, char cls) {
    const llvm::StringRef text = r.requiredString(field);
    const int32_t n = parseRegister(text, cls);
    if (n < 0 && r.ok()) r.bad(field, "'" + text + "' is not a register of class " + llvm::Twine(cls));
    return std::max(n, 0);
  }

  int32_t optionalReg(FieldReader& r, llvm::StringRef field) {
    const std::optional<JsonValue> v = r.optional(field);
    if (!v) return -1;
    const int32_t n = v->isString() ? parseRegister(*v->asString(), 's') : -1;
    if (n < 0) r.bad(field, "expected a scalar register");
    return n;
  }

  Scalar scalarValue(FieldReader& r, llvm::StringRef field, JsonValue v) {
    Scalar s;
    if (std::optional<int64_t> imm = v.asInt()) {
      s.imm = *imm;
    } else if (v.isString() && parseRegister(*v.asString(), 's') >= 0) {
      s.is_reg = true;
      s.reg = parseRegister(*v.asString(), 's');
    } else {
      r.bad(field, "expected an integer or a scalar register such as \"%s3\"");
    }
    return s;
  }
  Scalar scalar(FieldReader& r, llvm::StringRef field) {
    const std::optional<JsonValue> v = r.required(field);
    return v ? scalarValue(r, field, *v) : Scalar{};
  }

  Place place(FieldReader& r, llvm::StringRef field) {
    static constexpr const char* kKinds[] = {"buffer", "param", "block", "scratch"};
    Place p;
    const std::optional<JsonValue> v = r.required(field);
    if (!v) return p;
    FieldReader f(*v, "place");
    bool found = false;
    for (int k = 0; k < 4; ++k) {
      const int64_t index = f.optionalInt(kKinds[k], -1, 0, kMaxId);
      if (index < 0) continue;
      p.kind = static_cast<Place::Kind>(k);
      p.index = static_cast<int32_t>(index);
      found = true;
    }
    p.offset = f.optionalInt("offset", 0);
    for (JsonValue x : f.optionalArray("plus")) {
      const int32_t n = x.isString() ? parseRegister(*x.asString(), 's') : -1;
      if (n < 0) f.bad("plus", "expected scalar registers");
      p.regs.push_back(std::max(n, 0));
    }
    if (!found && f.ok()) f.bad(field, "expected buffer, param, block or scratch");
    if (llvm::Error e = f.finish()) r.bad(field, takeDiagnostics(std::move(e))[0].text);
    return p;
  }

  void dma(FieldReader& r) {
    Code* code = codeOf(r);
    if (!code) return;
    Dma d;
    sequentialId(r, code->dmas.size());
    d.src = place(r, "src");
    d.dst = place(r, "dst");
    d.run = r.requiredInt("run", 0);
    int i = 0;
    for (JsonValue v : r.requiredArray("dims")) {
      llvm::SmallVector<int64_t, 3> dim;
      if (i == 3 || !v.readInts(&dim) || dim.size() != 3)
        return r.bad("dims", "expected three times [count, source stride, destination stride]");
      d.dims[i++] = {dim[0], dim[1], dim[2]};
    }
    if (const std::optional<JsonValue> v = r.optional("device")) {
      d.remote = true;
      d.device = scalarValue(r, "device", *v);
    }
    d.src_sem = static_cast<int32_t>(r.optionalInt("src_sem", -1, 0, 65534));
    d.dst_sem = static_cast<int32_t>(r.optionalInt("dst_sem", -1, 0, 65534));
    d.src_sem_plus = optionalReg(r, "src_sem_plus");
    d.dst_sem_plus = optionalReg(r, "dst_sem_plus");
    code->dmas.push_back(std::move(d));
  }

  /// Where statements of a function go: the open loops and branches, outermost first.
  struct Open {
    int64_t id;
    Stmt* stmt;
  };
  struct Cursor {
    int64_t next = 0;
    std::vector<Open> open;
  };

  void statement(FieldReader& r) {
    Code* code = codeOf(r);
    if (!code) return;
    Cursor& cursor = cursors_[code];
    sequentialId(r, cursor.next);
    const int64_t parent = r.optionalInt("parent", -1, 0, cursor.next);
    const int64_t arm = r.optionalInt("arm", 0, 0, 1);
    while (!cursor.open.empty() && cursor.open.back().id != parent) cursor.open.pop_back();
    if (parent >= 0 && cursor.open.empty())
      return r.bad("parent", "is not a loop or branch that is still open");
    Block* block = parent < 0 ? &code->body : nullptr;
    if (!block) {
      std::vector<Block>& arms = cursor.open.back().stmt->blocks;
      if (arm >= static_cast<int64_t>(arms.size()))
        return r.bad("arm", "the parent has " + std::to_string(arms.size()) + " arms");
      block = &arms[arm];
    }
    Stmt s;
    s.op = static_cast<uint32_t>(r.optionalInt("op", 0, 0, kMaxId));
    if (const std::optional<JsonValue> insn = r.optional("insn"))
      instruction(r, *insn, &s);
    else
      other(r, &s);
    if (!r.ok()) return;
    block->push_back(std::move(s));
    const int64_t id = cursor.next++;
    if (!block->back().blocks.empty()) cursor.open.push_back({id, &block->back()});
  }

  void instruction(FieldReader& r, JsonValue v, Stmt* s) {
    const std::optional<llvm::StringRef> text = v.asString();
    if (!text) return r.bad("insn", "expected a string");
    std::vector<std::string> labels;
    llvm::Expected<isa::Instruction> insn = isa::parse(
        *text, [&](size_t) { return std::string(); }, &labels);
    if (!insn) return r.bad("insn", takeDiagnostics(insn.takeError())[0].text);
    if (!labels.empty()) return r.bad("insn", "llo has no labels");
    s->insn = *insn;
  }

  void other(FieldReader& r, Stmt* s) {
    static constexpr const char* kPseudos[] = {"grid", "param",   "block",  "scratch",    "smem",
                                               "vmem", "hbm_row", "device", "device_word"};
    static constexpr const char* kKinds[] = {"loop",       "while",   "if",       "call", "dma",  "sem.wait",
                                             "sem.signal", "sem.add", "sem.read", "hook", "drain"};
    const llvm::StringRef what = r.requiredString("do");
    if (!r.ok()) return;
    if (const int k = findName(what, kPseudos); k >= 0) {
      s->kind = StmtKind::kPseudo;
      s->pseudo = static_cast<PseudoKind>(k);
      s->reg = reg(r, "to", 's');
      s->index = static_cast<int32_t>(r.requiredInt("index", 0, kMaxId));
      return;
    }
    const int k = findName(what, kKinds);
    if (k < 0) return r.bad("do", "unknown statement '" + what + "'");
    s->kind = static_cast<StmtKind>(k + static_cast<int>(StmtKind::kLoop));
    switch (s->kind) {
      case StmtKind::kLoop:
        s->reg = reg(r, "to", 's');
        s->amount = scalar(r, "trip");
        s->blocks.resize(1);
        return;
      case StmtKind::kWhile:
      case StmtKind::kIf: {
        llvm::StringRef pred = r.requiredString("pred");
        s->pred_neg = pred.consume_front("!");
        s->reg = parseRegister(pred, 'p');
        if (s->reg < 0 && r.ok()) r.bad("pred", "expected a predicate register such as \"%p1\" or \"!%p1\"");
        s->blocks.resize(s->kind == StmtKind::kIf ? r.optionalInt("arms", 2, 1, 2) : 2);
        return;
      }
      case StmtKind::kCall:
        return call(r, s);
      case StmtKind::kDma:
        s->index = static_cast<int32_t>(r.requiredInt("dma", 0, kMaxId));
        return;
      case StmtKind::kSemRead:
        s->reg = reg(r, "to", 's');
        semaphore(r, s);
        return;
      case StmtKind::kHook:
        return;
      case StmtKind::kDrain:
        s->index = static_cast<int32_t>(
            r.requiredInt("companion", 0, static_cast<int64_t>(m_.companions.size()) - 1));
        return;
      default:
        semaphore(r, s);
        s->amount = scalar(r, "amount");
        if (s->kind == StmtKind::kSemSignal) s->device = scalar(r, "device");
        return;
    }
  }

  void semaphore(FieldReader& r, Stmt* s) {
    s->index = static_cast<int32_t>(r.requiredInt("sem", 0, 65534));
    s->sem_plus = optionalReg(r, "plus");
  }

  void call(FieldReader& r, Stmt* s) {
    s->index = static_cast<int32_t>(r.requiredInt("kernel", 0, static_cast<int64_t>(m_.kernels.size()) - 1));
    for (JsonValue v : r.requiredArray("args")) {
      FieldReader f(v, "call argument");
      CallArg a;
      a.buffer =
          static_cast<int32_t>(f.optionalInt("buffer", -1, 0, static_cast<int64_t>(m_.buffers.size()) - 1));
      a.is_buffer = a.buffer >= 0;
      const llvm::StringRef field = a.is_buffer ? "offset" : "word";
      if (const std::optional<JsonValue> x = a.is_buffer ? f.optional(field) : f.required(field))
        a.offset = scalarValue(f, field, *x);
      if (llvm::Error e = f.finish()) return r.bad("args", takeDiagnostics(std::move(e))[0].text);
      s->args.push_back(a);
    }
    llvm::SmallVector<int64_t, 4> companions;
    if (r.optionalInts("companions", &companions))
      for (int64_t c : companions) {
        if (c < 0 || c >= static_cast<int64_t>(m_.companions.size()))
          return r.bad("companions", "no companion " + std::to_string(c));
        s->companions.push_back(static_cast<int32_t>(c));
      }
    s->call_locs =
        static_cast<int32_t>(r.optionalInt("locs", -1, 0, static_cast<int64_t>(m_.call_locs.size()) - 1));
  }

  FieldReader root_;
  Module m_;
  std::map<Code*, Cursor> cursors_;
};

}  // namespace

llvm::Expected<Module> readDocument(std::string json, llvm::StringRef name) {
  if (llvm::Error e = expectDocument(json, name, {"llo"})) return e;
  llvm::Expected<JsonDoc> doc = JsonDoc::parse(name, std::move(json));
  if (!doc) return doc.takeError();
  llvm::Expected<DocumentHeader> header = readDocumentHeader(*doc, {"llo"});
  if (!header) return header.takeError();
  return Reader(*doc).run();
}

}  // namespace tpu::llo
