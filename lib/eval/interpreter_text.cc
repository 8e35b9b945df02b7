// MLIR's spelling of types, numbers and value names.
//
// Floats are printed with six digits after the point where that reads back as the same value, else with as
// many significant digits as the format needs, else as bits; infinities and NaNs as bits.
#include "tpu/eval/interpreter_text.h"

#include <algorithm>

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "tpu/hlo/literal.h"

namespace tpu::eval {
namespace {

const uint8_t* elementAt(const HostTensor& t, int64_t i) { return t.bytes.data() + i * hostBytes(t.element); }

std::string floatText(ElementType type, const uint8_t* p) {
  const uint64_t bits = hlo::loadBits(type, p);
  const double value = hlo::decodeFloat(type, bits);
  const auto hex = [&] {
    return "0x" + llvm::utohexstr(bits, false, static_cast<unsigned>((elementBits(type) + 3) / 4));
  };
  if (value - value != 0) return hex();
  const llvm::APFloat number(value);
  llvm::SmallString<40> text;
  const auto reads_back = [&] {
    llvm::APFloat back(0.0);
    auto status = back.convertFromString(text, llvm::APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return false;
    }
    return hlo::encodeFloat(type, back.convertToDouble()) == bits;
  };
  number.toString(text, 6, 0, false);
  if (reads_back()) return std::string(text);
  text.clear();
  number.toString(text);
  return reads_back() ? std::string(text) : hex();
}

void nested(llvm::raw_ostream& os, const HostTensor& t, size_t dim, int64_t& next, int indent) {
  const std::string pad(static_cast<size_t>(indent), ' ');
  os << pad << '[';
  if (dim + 1 == t.dims.size()) {
    for (int64_t i = 0; i < t.dims[dim]; ++i) os << (i ? ", " : "") << mlirElementText(t, next++, true);
    os << ']';
    return;
  }
  const int64_t count = t.dims[dim];
  for (int64_t i = 0; i < count; ++i) {
    os << (i ? ",\n" : "\n");
    nested(os, t, dim + 1, next, indent + 2);
  }
  if (count) os << '\n' << pad;
  os << ']';
}

void flat(llvm::raw_ostream& os, const HostTensor& t, size_t dim, int64_t& next) {
  if (dim == t.dims.size()) {
    os << mlirElementText(t, next++, false);
    return;
  }
  os << '[';
  for (int64_t i = 0; i < t.dims[dim]; ++i) {
    if (i) os << ", ";
    flat(os, t, dim + 1, next);
  }
  os << ']';
}

// Numbers values in the order in which MLIR prints them, until the wanted one is met.
class Namer {
 public:
  Namer(const hlo::Module& module, hlo::ValueId wanted) : m_(module), wanted_(wanted) {}

  bool region(hlo::RegionId id) {
    const int64_t number = number_, arg = arg_;
    for (hlo::ValueId v : m_.region(id).args) {
      const std::string name = "%arg" + std::to_string(arg_++);
      if (v == wanted_) return found(name);
    }
    for (hlo::OpId op : m_.region(id).ops)
      if (this->op(op)) return true;
    if (m_.region(id).parent_op) {
      number_ = number;
      arg_ = arg;
    }
    return false;
  }
  std::string name;

 private:
  bool found(std::string text) {
    name = std::move(text);
    return true;
  }

  bool op(hlo::OpId id) {
    const hlo::Op& op = m_.op(id);
    std::string base;
    if (op.opcode == hlo::Opcode::constant && !op.results.empty()) {
      const ElementType e = m_.typeOf(op.results[0]).element;
      const bool integer = isInteger(e) || e == ElementType::kPred;
      int64_t& uses = integer ? integers_ : others_;
      base = integer ? "%c" : "%cst";
      if (uses++) base += "_" + std::to_string(suffix_++);
    } else if (!op.results.empty()) {
      base = "%" + std::to_string(number_++);
    }
    for (size_t i = 0; i < op.results.size(); ++i)
      if (op.results[i] == wanted_)
        return found(op.results.size() == 1 ? base : base + "#" + std::to_string(i));
    for (hlo::RegionId r : op.regions)
      if (region(r)) return true;
    return false;
  }

  const hlo::Module& m_;
  const hlo::ValueId wanted_;
  int64_t number_ = 0, arg_ = 0, integers_ = 0, others_ = 0, suffix_ = 0;
};

}  // namespace

std::string mlirTypeText(const hlo::Module& module, const hlo::Type& type) {
  if (type.kind == hlo::TypeKind::kToken) return "!stablehlo.token";
  std::string text;
  if (type.kind == hlo::TypeKind::kTuple) {
    for (hlo::TypeId t : type.elements)
      text += (text.empty() ? "" : ", ") + mlirTypeText(module, module.type(t));
    return "tuple<" + text + ">";
  }
  text = "tensor<";
  for (int64_t d : type.dims) text += (d == hlo::kDynamicDim ? std::string("?") : std::to_string(d)) + "x";
  const bool quantized = llvm::StringRef(type.encoding).starts_with("!quant");
  text += quantized ? type.encoding : elementTypeMlirName(type.element).str();
  if (!quantized && !type.encoding.empty()) text += ", " + type.encoding;
  return text + ">";
}

std::string mlirElementText(const HostTensor& t, int64_t index, bool brackets) {
  const uint8_t* p = elementAt(t, index);
  if (t.element == ElementType::kPred) return *p ? "true" : "false";
  if (isComplex(t.element)) {
    const ElementType part = t.element == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    const std::string re = floatText(part, p), im = floatText(part, p + hostBytes(part));
    return brackets ? "[" + re + ", " + im + "]" : "(" + re + "," + im + ")";
  }
  if (isFloat(t.element)) return floatText(t.element, p);
  const int64_t value = hlo::loadInt(t.element, p);
  return isUnsigned(t.element) ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

void printInterpreted(llvm::raw_ostream& os, llvm::StringRef type, const HostTensor& t) {
  os << type << " {";
  int64_t next = 0;
  if (t.dims.empty()) {
    os << mlirElementText(t, 0, true) << '}';
    return;
  }
  os << '\n';
  nested(os, t, 0, next, 2);
  os << "\n}";
}

void printDense(llvm::raw_ostream& os, llvm::StringRef type, const HostTensor& t) {
  const size_t width = static_cast<size_t>(hostBytes(t.element));
  bool splat = !t.bytes.empty();
  for (size_t i = width; splat && i < t.bytes.size(); i += width)
    splat = std::equal(t.bytes.begin(), t.bytes.begin() + width, t.bytes.begin() + i);
  os << "dense<";
  int64_t next = 0;
  if (splat) {
    os << mlirElementText(t, 0, false);
  } else if (t.numElements()) {
    flat(os, t, 0, next);
  }
  os << "> : " << type;
}

std::string printedName(const hlo::Module& module, hlo::ValueId value) {
  const hlo::Value& v = module.value(value);
  const hlo::RegionId inside = v.def ? module.op(v.def).parent : v.region;
  Namer namer(module, value);
  namer.region(module.func(module.region(inside).func).body);
  return namer.name;
}

}  // namespace tpu::eval
