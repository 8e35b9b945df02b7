// Parses the text of one instruction. The row of the table says what each operand must be, so the parser is
// one cursor and one function per operand form; error texts are only built on failure.
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "tpu/isa/isa.h"

namespace tpu::isa {
namespace {

bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; }

struct Parser {
  llvm::StringRef text;
  llvm::function_ref<std::string(size_t)> locate;
  std::vector<std::string>* labels;
  size_t at = 0;

  char peek() const { return at < text.size() ? text[at] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  }
  llvm::StringRef name() {
    const size_t begin = at;
    while (at < text.size() && isNameChar(text[at])) ++at;
    return text.slice(begin, at);
  }

  llvm::Error failAt(size_t position, const llvm::Twine& message, Code code = Code::kBadOperand) const {
    return fail(code, locate(position), message);
  }

  // Decimal or 0x number with sign; false where none stands here or it is beyond 64 bits.
  bool number(int64_t* value) {
    bool negative = false;
    while (peek() == '-' || peek() == '+') negative ^= text[at++] == '-';
    const bool hex = peek() == '0' && at + 1 < text.size() && (text[at + 1] | 32) == 'x';
    if (hex) at += 2;
    const size_t begin = at;
    uint64_t v = 0;
    for (;; ++at) {
      const unsigned digit = hex ? llvm::hexDigitValue(peek()) : static_cast<unsigned>(peek() - '0');
      if (digit >= (hex ? 16u : 10u)) break;
      if (v > (uint64_t{1} << 58)) return false;
      v = v * (hex ? 16 : 10) + digit;
    }
    *value = negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
    return at > begin && !isNameChar(peek());
  }

  // "s3", "%s3"; letter is the class's. Restores the cursor where no register stands.
  bool registerName(char letter, int32_t* reg, bool* virt) {
    const size_t begin = at;
    *virt = take('%');
    int64_t value = -1;
    if (take(letter) && llvm::isDigit(peek()) && number(&value) && value < (*virt ? INT32_MAX : 1000)) {
      *reg = static_cast<int32_t>(value);
      return true;
    }
    at = begin;
    return false;
  }

  llvm::Error parseRegister(RegClass cls, int limit, Operand* o) {
    static constexpr const char* kNames[] = {"scalar register s", "vector register v", "mask register m",
                                             "predicate register p"};
    const size_t begin = at;
    const char* kind = kNames[static_cast<int>(cls)];
    if (!registerName("svmp"[static_cast<int>(cls)], &o -> reg, &o -> virt))
      return failAt(begin, llvm::Twine("expected a ") + kind + "N");
    if (!o->virt && o->reg >= limit)
      return failAt(
          begin,
          llvm::Twine(kind) + llvm::Twine(o->reg) + " does not exist; the last is " + llvm::Twine(limit - 1),
          Code::kFieldRange);
    o->kind = Operand::kReg;
    o->cls = cls;
    return llvm::Error::success();
  }

  llvm::Error parseUnit(llvm::StringRef prefix, Operand* o) {
    const size_t begin = at;
    o->kind = Operand::kUnit;
    o->virt = take('%');
    int64_t value = -1;
    if (!text.substr(at).starts_with(prefix)) return failAt(begin, "expected a unit " + prefix + "N");
    at += prefix.size();
    if (!llvm::isDigit(peek()) || !number(&value)) return failAt(begin, "expected a unit " + prefix + "N");
    if (value > (o->virt ? INT32_MAX : 7))
      return failAt(begin, prefix + llvm::Twine(value) + " does not exist", Code::kFieldRange);
    o->reg = static_cast<int32_t>(value);
    return llvm::Error::success();
  }

  llvm::Error parseMem(int unit, Operand* o) {
    if (!take('[')) return failAt(at, "expected an address [sN+offset]");
    o->kind = Operand::kMem;
    skipSpace();
    const size_t begin = at;
    o->has_base = registerName('s', &o->reg, &o->virt);
    if (o->has_base && !o->virt && o->reg > 31)
      return failAt(begin, "scalar register s" + llvm::Twine(o->reg) + " does not exist; the last is 31",
                    Code::kFieldRange);
    skipSpace();
    const size_t offset = at;
    if (!o->has_base || peek() == '+' || peek() == '-') {
      if (o->has_base && at + 1 < text.size() && text[at + 1] == ' ')
        return failAt(at, "no space may follow the sign");
      if (!number(&o->imm)) return failAt(offset, "expected an offset in bytes");
    }
    skipSpace();
    if (!take(']')) return failAt(at, "expected ']'");
    if (o->imm % unit)
      return failAt(offset, "offset " + llvm::Twine(o->imm) + " is not a multiple of " + llvm::Twine(unit),
                    Code::kFieldRange);
    const int64_t units = o->imm / unit;
    if (!o->virt && (o->has_base ? !llvm::isInt<18>(units) : !llvm::isUInt<18>(units)))
      return failAt(offset, "offset " + llvm::Twine(o->imm) + " does not fit its field of 18 bits",
                    Code::kFieldRange);
    return llvm::Error::success();
  }

  // A decimal fraction such as 1.5 or 1e-3 where a 32-bit word is wanted: the bits of the nearest f32.
  bool fraction(int64_t* value) {
    const size_t begin = at;
    if (peek() == '-') ++at;
    const size_t digits = at;
    while (llvm::isDigit(peek()) || peek() == '.' || (peek() | 32) == 'e' ||
           ((peek() == '-' || peek() == '+') && (text[at - 1] | 32) == 'e'))
      ++at;
    const llvm::StringRef token = text.slice(digits, at);
    llvm::APFloat f(llvm::APFloat::IEEEsingle());
    if (token.find_first_of(".eE") != llvm::StringRef::npos && llvm::isDigit(token[0]) &&
        !isNameChar(peek())) {
      auto status = f.convertFromString(token, llvm::APFloat::rmNearestTiesToEven);
      if (status) {
        if (begin != digits) f.changeSign();
        *value = static_cast<int64_t>(f.bitcastToAPInt().getZExtValue());
        return true;
      }
      llvm::consumeError(status.takeError());
    }
    at = begin;
    return false;
  }

  llvm::Error parseImmediate(OperandKind kind, Operand* o) {
    const size_t begin = at;
    o->kind = Operand::kImm;
    if (kind == OperandKind::U32 && fraction(&o->imm)) return llvm::Error::success();
    if (!number(&o->imm)) return failAt(begin, "expected a number");
    if (kind == OperandKind::SI || kind == OperandKind::U32) {
      if (!llvm::isInt<32>(o->imm) && !llvm::isUInt<32>(o->imm))
        return failAt(begin, "the number does not fit 32 bits", Code::kFieldRange);
      o->imm = kind == OperandKind::SI ? int64_t{static_cast<int32_t>(o->imm)}
                                       : static_cast<int64_t>(static_cast<uint32_t>(o->imm));
      return llvm::Error::success();
    }
    const int bits = kind == OperandKind::S16 ? 16 : fieldBits(kind);
    if (!llvm::isUIntN(bits, static_cast<uint64_t>(o->imm)))
      return failAt(begin, llvm::Twine(o->imm) + " does not fit " + llvm::Twine(bits) + " unsigned bits",
                    Code::kFieldRange);
    return llvm::Error::success();
  }

  llvm::Error parseLabel(Operand* o) {
    const size_t begin = at;
    const llvm::StringRef label = name();
    if (label.empty() || llvm::isDigit(label[0])) return failAt(begin, "expected a label");
    if (!labels) return failAt(begin, "no label may stand here");
    o->kind = Operand::kLabel;
    for (size_t i = labels->size(); i-- > 0;) {
      if ((*labels)[i] != label) continue;
      o->imm = static_cast<int64_t>(i);
      return llvm::Error::success();
    }
    o->imm = static_cast<int64_t>(labels->size());
    labels->push_back(label.str());
    return llvm::Error::success();
  }

  llvm::Error parseOperand(OperandKind kind, Opcode op, Operand* o) {
    switch (kind) {
      case OperandKind::kNone:
        return llvm::Error::success();
      case OperandKind::Vd:
      case OperandKind::Va:
      case OperandKind::Vb:
      case OperandKind::Vc:
      case OperandKind::Vx:
        return parseRegister(RegClass::kVector, 64, o);
      case OperandKind::Sd:
      case OperandKind::Sa:
      case OperandKind::Sb:
      case OperandKind::Sc:
        return parseRegister(RegClass::kScalar, 32, o);
      case OperandKind::Md:
      case OperandKind::Ma:
      case OperandKind::Mb:
        return parseRegister(RegClass::kMask, 16, o);
      case OperandKind::Pd:
      case OperandKind::Pa:
      case OperandKind::Pb:
        return parseRegister(RegClass::kPred, 16, o);
      case OperandKind::SI:
      case OperandKind::S16:
        if (peek() == 's' || peek() == '%') return parseRegister(RegClass::kScalar, 32, o);
        return parseImmediate(kind, o);
      case OperandKind::Mem:
        return parseMem(memUnit(op), o);
      case OperandKind::Mxu:
        return parseUnit("mxu", o);
      case OperandKind::Xlu:
        return parseUnit("xlu", o);
      case OperandKind::Label:
        return parseLabel(o);
      case OperandKind::I1:
      case OperandKind::I2:
      case OperandKind::I3:
      case OperandKind::I4:
      case OperandKind::I7:
      case OperandKind::I8:
      case OperandKind::U32:
        return parseImmediate(kind, o);
    }
    return llvm::Error::success();
  }

  llvm::Error parsePredicate(Instruction* insn) {
    skipSpace();
    if (!take('@')) return llvm::Error::success();
    insn->pred_neg = take('!');
    Operand o;
    if (llvm::Error error = parseRegister(RegClass::kPred, 16, &o)) return error;
    insn->pred = o.reg;
    insn->pred_virt = o.virt;
    if (peek() != ' ' && peek() != '\t') return failAt(at, "expected a space after the predicate");
    skipSpace();
    return llvm::Error::success();
  }

  llvm::Error parseInstruction(Instruction* insn) {
    if (llvm::Error error = parsePredicate(insn)) return error;
    const size_t begin = at;
    const llvm::StringRef mnemonic = name();
    const std::optional<Opcode> op = findOpcode(mnemonic);
    if (!op)
      return failAt(begin,
                    mnemonic.empty() ? llvm::Twine("expected an instruction")
                                     : "unknown instruction '" + mnemonic + "'",
                    Code::kUnknownMnemonic);
    insn->op = *op;
    const InstructionInfo& row = info(*op);
    insn->num_operands = row.num_operands;
    for (int i = 0; i < row.num_operands; ++i) {
      skipSpace();
      if (i && !take(','))
        return failAt(at, "expected ','; " + row.mnemonic + " takes " + llvm::Twine(int{row.num_operands}) +
                              " operands");
      skipSpace();
      if (llvm::Error error = parseOperand(row.operands[i], *op, &insn->operands[i])) return error;
      if (isDef(row.operands[i]) && insn->operands[i].cls == RegClass::kPred && !insn->operands[i].virt &&
          insn->operands[i].reg == kAlways)
        return failAt(at - 1, "p15 is always true and cannot be written");
    }
    skipSpace();
    if (at != text.size()) return failAt(at, "unexpected text after the operands of " + row.mnemonic);
    return llvm::Error::success();
  }
};

}  // namespace

llvm::Expected<Instruction> parse(llvm::StringRef text, llvm::function_ref<std::string(size_t)> locate,
                                  std::vector<std::string>* labels) {
  Instruction insn;
  Parser parser{text, locate, labels};
  if (llvm::Error error = parser.parseInstruction(&insn)) return error;
  return insn;
}

llvm::Expected<Instruction> parse(llvm::StringRef text, llvm::StringRef loc,
                                  std::vector<std::string>* labels) {
  return parse(
      text,
      [&](size_t offset) { return (loc + (loc.empty() ? "column " : ":") + llvm::Twine(offset + 1)).str(); },
      labels);
}

}  // namespace tpu::isa
