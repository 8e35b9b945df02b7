// The helpers of spellings_test.cc.
#include "normal_form_test_util.h"

#include <algorithm>
#include <map>
#include <set>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/infer.h"
#include "tpu/sharding/gspmd.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ValueId;

namespace {

std::string ints(llvm::ArrayRef<int64_t> list) {
  std::string out = "[";
  for (int64_t v : list) out += (out.size() > 1 ? "," : "") + std::to_string(v);
  return out + "]";
}

class NormalForm {
 public:
  explicit NormalForm(const hlo::Module& m) : m_(m), key_(m.numValues()) {}

  std::string ports() const {
    const hlo::Func& entry = m_.func(m_.entry);
    const auto& args = m_.region(entry.body).args;
    std::string out;
    for (size_t i = 0; i < args.size(); ++i)
      out += "argument " + std::to_string(i) + ' ' + port(entry.arg_ports[i], m_.value(args[i]).type);
    for (size_t i = 0; i < entry.result_types.size(); ++i)
      out += "result " + std::to_string(i) + ' ' + port(entry.result_ports[i], entry.result_types[i]);
    return out;
  }

  std::string collectives() const {
    std::vector<std::string> lines;
    hlo::walk(m_, [&](OpId id) {
      const hlo::Op& op = m_.op(id);
      if (!hlo::hasTrait(op.opcode, hlo::kCollective)) return;
      const hlo::Type& t = m_.typeOf(op.results[0]);
      const hlo::Attr* a = m_.findAttr(id, AttrKey::axes);
      lines.push_back(hlo::opInfo(op.opcode).mnemonic.str() + ' ' + (a ? axes(m_.meshes[a->mesh.v], a->axes) : "") + ' ' +
                      std::to_string(elementBits(t.element)) + ' ' + std::to_string(t.numElements()));
    });
    std::sort(lines.begin(), lines.end());
    return llvm::join(lines, "\n");
  }

  std::string run() {
    const hlo::Func& entry = m_.func(m_.entry);
    for (auto [i, v] : llvm::enumerate(m_.region(entry.body).args)) define(v, "argument" + std::to_string(i));
    std::string head = ports();
    std::string tail = "return";
    for (ValueId v : m_.op(m_.region(entry.body).ops.back()).operands) tail += ' ' + of(v);
    std::string out = head;
    std::sort(lines_.begin(), lines_.end(), [](const std::string& a, const std::string& b) {
      return llvm::StringRef(a).split('=').second < llvm::StringRef(b).split('=').second;
    });
    for (const std::string& line : lines_) out += line + '\n';
    return out + tail + '\n';
  }

 private:
  std::string axes(const hlo::Mesh& mesh, llvm::ArrayRef<hlo::AxisRef> list) const {
    std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
    for (const hlo::AxisRef& a : list) {
      int64_t stride = sharding::stride(mesh, a);
      if (a.size == 1) continue;
      if (!steps.empty() && steps.back().first == stride * a.size) {
        steps.back() = {stride, steps.back().second * a.size};
      } else {
        steps.push_back({stride, a.size});
      }
    }
    std::string out = "{";
    for (auto [stride, size] : steps) out += (out.size() > 1 ? "," : "") + std::to_string(stride) + "x" + std::to_string(size);
    return out + "}";
  }

  std::string port(const hlo::Port& p, hlo::TypeId type) const {
    std::string out = hlo::typeText(m_, type) + " of " + hlo::typeText(m_, p.global_type);
    bool any = false;
    std::string dims;
    if (p.sharding) {
      const hlo::Sharding& s = m_.sharding(p.sharding);
      for (const hlo::DimSharding& d : s.dims) {
        dims += axes(m_.meshes[s.mesh.v], d.axes);
        any |= sharding::product(d.axes) > 1;
      }
    }
    return out + (any ? ' ' + dims : "") + '\n';
  }

  void define(ValueId v, std::string text) {
    if (key_.size() <= v.v) key_.resize(v.v + 1);
    key_[v.v] = std::move(text);
  }

  /// The value that `v` is a plain copy of.
  ValueId seenThrough(ValueId v) const {
    while (OpId def = m_.value(v).def) {
      const hlo::Op& op = m_.op(def);
      bool copy = op.opcode == Opcode::reshape || op.opcode == Opcode::broadcast_in_dim || op.opcode == Opcode::convert ||
                  op.opcode == Opcode::slice;
      if (!copy) break;
      ValueId x = op.operands[0];
      const hlo::Type &from = m_.typeOf(x), &to = m_.typeOf(v);
      if (from.element != to.element || from.numElements() != to.numElements()) break;
      if (op.opcode == Opcode::broadcast_in_dim && !llvm::is_sorted(m_.getInts(def, AttrKey::broadcast_dimensions))) break;
      v = x;
    }
    return v;
  }

  std::string of(ValueId v) {
    ValueId x = seenThrough(v);
    std::string out = plain(x);
    if (m_.typeOf(x).dims != m_.typeOf(v).dims) out += ":" + ints(m_.typeOf(v).dims);
    return out;
  }

  std::string plain(ValueId v) {
    if (key_[v.v].empty()) op(m_.value(v).def);
    return key_[v.v];
  }

  std::string literal(const hlo::Literal& l) const {
    if (l.splat) return "splat " + llvm::toHex(l.bytes);
    size_t width = std::max<size_t>(1, l.bytes.size() / std::max<int64_t>(1, m_.type(l.type).numElements()));
    bool same = true;
    for (size_t i = width; i < l.bytes.size(); ++i) same &= l.bytes[i] == l.bytes[i - width];
    if (same) return "splat " + llvm::toHex(llvm::ArrayRef<uint8_t>(l.bytes).take_front(width));
    return "hash " + llvm::utohexstr(llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(l.bytes)));
  }

  std::string attrs(OpId id) const {
    std::map<std::string, std::string> parts;
    for (hlo::AttrId a : m_.op(id).attrs) {
      const hlo::Attr& attr = m_.attr(a);
      std::string text;
      if (!attr.axes.empty()) text = axes(m_.meshes[attr.mesh.v], attr.axes);
      if (attr.literal) text = literal(m_.literal(attr.literal));
      if (!attr.ints.empty()) text = ints(attr.ints);
      if (!attr.groups.ids.empty()) text = ints(attr.groups.ids);
      if (attr.i) text = std::to_string(attr.i);
      if (attr.f != 0) text = std::to_string(attr.f);
      if (!attr.str.empty()) text = attr.str;
      for (const std::string& s : attr.strs) {
        if (s != "DEFAULT") text += (text.empty() ? "" : ",") + s;
      }
      bool says = attr.key != AttrKey::compare_type && attr.key != AttrKey::extra && attr.key != AttrKey::channel_id &&
                  attr.key != AttrKey::channel_type;
      if (says && !text.empty()) parts[std::to_string(static_cast<int>(attr.key))] = text;
    }
    std::string out;
    for (const auto& [key, text] : parts) out += ' ' + key + '=' + text;
    return out;
  }

  /// A broadcast of a scalar constant is a constant; unit dimensions are no source of a broadcast.
  bool broadcast(OpId id) {
    const hlo::Op& op = m_.op(id);
    if (op.opcode != Opcode::broadcast_in_dim) return false;
    const hlo::Type& to = m_.typeOf(op.results[0]);
    ValueId x = seenThrough(op.operands[0]);
    OpId def = m_.value(x).def;
    if (def && m_.op(def).opcode == Opcode::constant && m_.typeOf(x).numElements() == 1) {
      emit(id, "constant " + hlo::typeText(m_, to) + ' ' + literal(m_.literal(m_.findAttr(def, AttrKey::value)->literal)));
      return true;
    }
    llvm::SmallVector<int64_t, 4> from, dims;
    for (auto [i, d] : llvm::enumerate(m_.getInts(id, AttrKey::broadcast_dimensions))) {
      if (m_.typeOf(op.operands[0]).dims[i] == 1) continue;
      from.push_back(m_.typeOf(op.operands[0]).dims[i]);
      dims.push_back(d);
    }
    emit(id, "broadcast " + plain(x) + ints(from) + " dims " + ints(dims) + ' ' + hlo::typeText(m_, to));
    return true;
  }

  void emit(OpId id, const std::string& text) {
    std::string name = "%" + llvm::utohexstr(llvm::xxh3_64bits(text));
    if (known_.insert(name).second) lines_.push_back(name + " = " + text);
    const auto& results = m_.op(id).results;
    for (size_t i = 0; i < results.size(); ++i) define(results[i], results.size() == 1 ? name : name + "#" + std::to_string(i));
  }

  void op(OpId id) {
    const hlo::Op& op = m_.op(id);
    if (broadcast(id)) return;
    if (op.opcode == Opcode::constant)
      return emit(id, "constant " + hlo::typeText(m_, m_.value(op.results[0]).type) + ' ' +
                          literal(m_.literal(m_.findAttr(id, AttrKey::value)->literal)));
    std::vector<std::string> in;
    for (ValueId v : op.operands) in.push_back(of(v));
    if (hlo::hasTrait(op.opcode, hlo::kCommutative)) std::sort(in.begin(), in.end());
    std::string text = hlo::opInfo(op.opcode).mnemonic.str();
    for (const std::string& s : in) text += ' ' + s;
    text += attrs(id) + " :";
    for (ValueId v : op.results) text += ' ' + hlo::typeText(m_, m_.value(v).type);
    for (hlo::RegionId r : op.regions) {
      const hlo::Region& region = m_.region(r);
      ++depth_;
      for (size_t i = 0; i < region.args.size(); ++i)
        define(region.args[i], "a" + std::to_string(depth_) + '.' + std::to_string(i));
      text += " {";
      for (ValueId v : m_.op(region.ops.back()).operands) text += ' ' + of(v);
      text += " }";
      --depth_;
    }
    emit(id, text);
  }

  const hlo::Module& m_;
  std::vector<std::string> key_;
  std::set<std::string> known_;
  std::vector<std::string> lines_;
  int depth_ = 0;
};

}  // namespace

std::string normalForm(const hlo::Module& m) { return NormalForm(m).run(); }

std::string communicationForm(const hlo::Module& m) {
  NormalForm form(m);
  return form.ports() + form.collectives();
}

}  // namespace tpu::partition
