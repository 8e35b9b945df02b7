// Printing attributes and types in the form of MLIR's text.
#include "text.h"

#include <cstring>

#include "../parser.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "tpu/hlo/literal.h"

namespace tpu::frontend::bytecode {
namespace {

// Entries can share parts, so a small file can print very long: of one attribute, and of all together.
constexpr size_t kMaxText = 16 << 20, kMaxAllText = 256 << 20;

const llvm::fltSemantics* semanticsOf(ElementType type) {
  switch (type) {
    case ElementType::kBF16:
      return &llvm::APFloat::BFloat();
    case ElementType::kF16:
      return &llvm::APFloat::IEEEhalf();
    case ElementType::kF32:
      return &llvm::APFloat::IEEEsingle();
    case ElementType::kF64:
      return &llvm::APFloat::IEEEdouble();
    default:
      return nullptr;
  }
}

// Six digits where these say it all, else as many as it takes, else the bits.
std::string floatText(ElementType type, uint64_t bits) {
  const llvm::fltSemantics* semantics = semanticsOf(type);
  if (!semantics) {
    semantics = &llvm::APFloat::IEEEdouble();
    double value = hlo::decodeFloat(type, bits);
    std::memcpy(&bits, &value, 8);
  }
  llvm::APFloat value(*semantics, llvm::APInt(llvm::APFloat::getSizeInBits(*semantics), bits));
  if (value.isFinite()) {
    llvm::SmallString<32> text;
    value.toString(text, 6, 0, false);
    if (llvm::APFloat(*semantics, text).bitwiseIsEqual(value)) return text.str().str();
    text.clear();
    value.toString(text);
    if (llvm::StringRef(text).contains('.')) return text.str().str();
  }
  return "0x" + llvm::utohexstr(bits, false, static_cast<unsigned>(elementBits(type)) / 4);
}

std::string factorName(uint64_t index) {
  if (index < 18) return std::string(1, static_cast<char>('i' + index));
  return "z_" + std::to_string(index - 17);
}

}  // namespace

std::string Text::take() {
  std::string text;
  if (!e_.failed()) text = out_;
  all_ += text.size();
  out_.clear();
  return text;
}

std::string Text::attr(uint32_t row) {
  print(row);
  return take();
}

std::string Text::type(uint32_t row) {
  printType(row);
  return take();
}

std::string Text::dict(uint32_t row) {
  if (const AttrNode* node = e_.attr(row)) printDict(*node);
  return take();
}

std::string Text::axes(llvm::ArrayRef<uint64_t> rows) {
  printAxes(rows);
  return take();
}

std::string Text::attrName(llvm::StringRef name) {
  bool plain = !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_');
  for (char c : name) plain = plain && (llvm::isAlnum(c) || c == '_' || c == '$' || c == '.');
  return plain ? name.str() : quotedText(name);
}

std::optional<llvm::StringRef> Text::string(uint32_t row) {
  const AttrNode* node = e_.attr(row);
  if (node && node->tag == AttrTag::kSymbol) node = e_.attr((*node)[0].row());
  if (!node || node->tag != AttrTag::kString) return std::nullopt;
  return (*node)[0].bytes;
}

bool Text::enter(uint64_t offset) {
  if (e_.failed()) return false;
  if (depth_ >= kMaxDepth) return e_.fail(Code::kTooDeep, offset, "attributes nest too deeply");
  if (out_.size() > kMaxText || all_ + out_.size() > kMaxAllText)
    return e_.fail(Code::kTooDeep, offset, "an attribute is too long");
  ++depth_;
  return true;
}

void Text::quoted(llvm::StringRef text) { os_ << quotedText(text); }

void Text::printDict(const AttrNode& node) {
  if (node.tag != AttrTag::kDict) {
    e_.fail(node.offset, "expected a dictionary");
    return;
  }
  const auto& rows = node[0].list;
  for (size_t i = 0; i < rows.size() && !e_.failed(); i += 2) {
    auto name = string(static_cast<uint32_t>(rows[i]));
    const AttrNode* value = e_.attr(static_cast<uint32_t>(rows[i + 1]));
    if (!name || !value) {
      e_.fail(node.offset, "an entry of a dictionary has no name");
      return;
    }
    os_ << (i ? ", " : "") << attrName(*name);
    if (value->tag == AttrTag::kUnit) continue;
    os_ << " = ";
    print(static_cast<uint32_t>(rows[i + 1]));
  }
}

void Text::print(uint32_t row) {
  const AttrNode* found = e_.attr(row);
  if (!found || !enter(found->offset)) return;
  const AttrNode& node = *found;
  switch (node.tag) {
    case AttrTag::kText:
      os_ << node.text;
      break;
    case AttrTag::kArray:
      os_ << '[';
      llvm::interleaveComma(node[0].list, os_, [&](uint64_t item) { print(static_cast<uint32_t>(item)); });
      os_ << ']';
      break;
    case AttrTag::kDict:
      os_ << '{';
      printDict(node);
      os_ << '}';
      break;
    case AttrTag::kString:
      quoted(node[0].bytes);
      break;
    case AttrTag::kSymbol:
      if (auto name = string(row)) {
        os_ << '@' << attrName(*name);
        break;
      }
      e_.fail(node.offset, "a symbol has no name");
      break;
    case AttrTag::kType:
      printType(node[0].row());
      break;
    case AttrTag::kUnit:
      os_ << "unit";
      break;
    case AttrTag::kBool:
      os_ << (node[0].n ? "true" : "false");
      break;
    case AttrTag::kInteger: {
      auto of = e_.element(node[0].row());
      if (of == ElementType::kPred) {
        os_ << (node[1].n & 1 ? "true" : "false");
        break;
      }
      if (of && isUnsigned(*of))
        os_ << node[1].n;
      else
        os_ << node[1].i();
      os_ << " : ";
      printType(node[0].row());
      break;
    }
    case AttrTag::kFloat:
      if (auto of = e_.element(node[0].row())) os_ << floatText(*of, node[1].n) << " : ";
      printType(node[0].row());
      break;
    case AttrTag::kElements:
      printElements(node);
      break;
    case AttrTag::kDenseArray: {
      os_ << "array<";
      printType(node[0].row());
      auto of = e_.element(node[0].row());
      size_t size = of ? static_cast<size_t>(hostBytes(*of)) : 0;
      if (!size || node[2].bytes.size() % size) {
        e_.fail(node.offset, "an array does not fit its type");
        break;
      }
      for (size_t at = 0; at < node[2].bytes.size(); at += size) {
        os_ << (at ? ", " : ": ");
        printElement(node[0].row(), node[2].bytes.bytes_begin() + at);
      }
      os_ << '>';
      break;
    }
    case AttrTag::kEnum:
      os_ << enumSpelling(node.detail, node[0].n);
      break;
    case AttrTag::kBounds:
      os_ << "#stablehlo.bounds<";
      llvm::interleaveComma(node[0].list, os_, [&](uint64_t item) {
        if (static_cast<int64_t>(item) == hlo::kDynamicDim)
          os_ << '?';
        else
          os_ << static_cast<int64_t>(item);
      });
      os_ << '>';
      break;
    case AttrTag::kOutputAlias: {
      auto list = [&](llvm::StringRef name, const Field& field) {
        os_ << name << " = [";
        llvm::interleaveComma(field.list, os_, [&](uint64_t item) { os_ << static_cast<int64_t>(item); });
        os_ << ']';
      };
      os_ << "#stablehlo.output_operand_alias<";
      list("output_tuple_indices", node[0]);
      os_ << ", operand_index = " << node[1].i() << ", ";
      list("operand_tuple_indices", node[2]);
      os_ << '>';
      break;
    }
    case AttrTag::kAccuracy: {
      const AttrNode* mode = e_.attr(node[3].row());
      if (!mode || mode->tag != AttrTag::kEnum) {
        e_.fail(node.offset, "a result accuracy has no mode");
        break;
      }
      // Fields at their defaults are not printed.
      os_ << "#stablehlo.result_accuracy<";
      if (node[0].n) os_ << "atol = " << floatText(ElementType::kF64, node[0].n) << ", ";
      if (node[1].n) os_ << "rtol = " << floatText(ElementType::kF64, node[1].n) << ", ";
      if (node[2].n) os_ << "ulps = " << node[2].i() << ", ";
      os_ << "mode = #stablehlo.result_accuracy_mode<" << enumSpelling(mode->detail, (*mode)[0].n) << ">>";
      break;
    }
    case AttrTag::kSharding:
      os_ << "#sdy.sharding";
      printSharding(node);
      break;
    case AttrTag::kShardingPerValue:
      os_ << "#sdy.sharding_per_value<[";
      llvm::interleaveComma(node[0].list, os_, [&](uint64_t item) {
        const AttrNode* sharding = e_.attr(static_cast<uint32_t>(item));
        if (sharding) printSharding(*sharding);
      });
      os_ << "]>";
      break;
    case AttrTag::kAxisRefList:
      printAxes(node[0].list);
      break;
    case AttrTag::kAxisRefLists:
    case AttrTag::kAllToAllParams:
      os_ << '[';
      llvm::interleaveComma(node[0].list, os_, [&](uint64_t item) { print(static_cast<uint32_t>(item)); });
      os_ << ']';
      break;
    case AttrTag::kAllToAllParam:
      printAxes(node[0].list);
      os_ << ": " << node[1].i() << "->" << node[2].i();
      break;
    case AttrTag::kShardingRule:
      printRule(node);
      break;
    case AttrTag::kMesh:
      os_ << "#sdy.mesh<[";
      llvm::interleaveComma(node[0].list, os_, [&](uint64_t item) { print(static_cast<uint32_t>(item)); });
      os_ << ']';
      if (!node[1].list.empty()) {
        os_ << ", device_ids=[";
        llvm::interleaveComma(node[1].list, os_, [&](uint64_t item) { os_ << static_cast<int64_t>(item); });
        os_ << ']';
      }
      os_ << '>';
      break;
    case AttrTag::kMeshAxis:
      quoted(node[0].bytes);
      os_ << '=' << node[1].i();
      break;
    default:
      e_.fail(Code::kUnsupportedFormat, node.offset, "an attribute of a kind that does not stand here");
      break;
  }
  --depth_;
}

void Text::printAxis(uint32_t row) {
  const AttrNode* node = e_.attr(row);
  if (!node) return;
  if (node->tag != AttrTag::kAxisRef) {
    e_.fail(node->offset, "expected an axis");
    return;
  }
  quoted((*node)[0].bytes);
  if ((*node)[1].n == kAbsent) return;
  const AttrNode* sub = e_.attr((*node)[1].row());
  if (sub && sub->tag == AttrTag::kSubAxis)
    os_ << ":(" << (*sub)[0].i() << ')' << (*sub)[1].i();
  else
    e_.fail(node->offset, "expected a sub-axis");
}

void Text::printAxes(llvm::ArrayRef<uint64_t> rows) {
  os_ << '{';
  llvm::interleaveComma(rows, os_, [&](uint64_t row) { printAxis(static_cast<uint32_t>(row)); });
  os_ << '}';
}

void Text::printDim(const AttrNode& dim) {
  os_ << '{';
  llvm::interleaveComma(dim[0].list, os_, [&](uint64_t row) { printAxis(static_cast<uint32_t>(row)); });
  if (!dim[1].n) os_ << (dim[0].list.empty() ? "?" : ", ?");
  os_ << '}';
  if (dim[2].n != kAbsent) os_ << 'p' << dim[2].n;
}

void Text::printSharding(const AttrNode& node) {
  if (node.tag != AttrTag::kSharding) {
    e_.fail(node.offset, "expected a sharding");
    return;
  }
  os_ << '<';
  const AttrNode* mesh = e_.attr(node[0].row());
  if (mesh && mesh->tag == AttrTag::kMesh) {
    size_t before = out_.size();
    print(node[0].row());
    if (!e_.failed()) out_.erase(before, llvm::StringRef("#sdy.").size());
  } else {
    print(node[0].row());
  }
  os_ << ", [";
  llvm::interleaveComma(node[1].list, os_, [&](uint64_t row) {
    const AttrNode* dim = e_.attr(static_cast<uint32_t>(row));
    if (dim && dim->tag == AttrTag::kDimSharding)
      printDim(*dim);
    else
      e_.fail(node.offset, "expected the sharding of a dimension");
  });
  os_ << ']';
  if (!node[2].list.empty()) {
    os_ << ", replicated=";
    printAxes(node[2].list);
  }
  if (node.fields.size() > 3 && !node[3].list.empty()) {
    os_ << ", unreduced=";
    printAxes(node[3].list);
  }
  os_ << '>';
}

void Text::printMappings(llvm::ArrayRef<uint64_t> rows) {
  os_ << '(';
  llvm::interleaveComma(rows, os_, [&](uint64_t row) {
    const AttrNode* tensor = e_.attr(static_cast<uint32_t>(row));
    if (!tensor || tensor->tag != AttrTag::kTensorMapping) return;
    os_ << '[';
    llvm::interleaveComma((*tensor)[0].list, os_, [&](uint64_t dim_row) {
      const AttrNode* dim = e_.attr(static_cast<uint32_t>(dim_row));
      if (!dim || dim->tag != AttrTag::kDimMapping) return;
      for (uint64_t factor : (*dim)[0].list) os_ << factorName(factor);
    });
    os_ << ']';
  });
  os_ << ')';
}

void Text::printFactors(llvm::StringRef name, llvm::ArrayRef<uint64_t> factors) {
  if (factors.empty()) return;
  os_ << ' ' << name << "={";
  llvm::interleaveComma(factors, os_, [&](uint64_t factor) { os_ << factorName(factor); });
  os_ << '}';
}

void Text::printRule(const AttrNode& node) {
  os_ << "#sdy.op_sharding_rule<";
  printMappings(node[1].list);
  os_ << "->";
  printMappings(node[2].list);
  os_ << " {";
  for (size_t i = 0; i < node[0].list.size(); ++i)
    os_ << (i ? ", " : "") << factorName(i) << '=' << static_cast<int64_t>(node[0].list[i]);
  os_ << '}';
  printFactors("reduction", node[3].list);
  printFactors("need_replication", node[4].list);
  printFactors("permutation", node[5].list);
  printFactors("blocked_propagation", node[6].list);
  os_ << (node[7].n ? ", custom>" : ">");
}

void Text::printElement(uint32_t type, const uint8_t* bytes) {
  auto of = e_.element(type);
  if (!of) {  // index
    int64_t value;
    std::memcpy(&value, bytes, 8);
    os_ << value;
  } else if (*of == ElementType::kPred) {
    os_ << (bytes[0] ? "true" : "false");
  } else if (isFloat(*of)) {
    os_ << floatText(*of, hlo::loadBits(*of, bytes));
  } else if (isUnsigned(*of)) {
    os_ << static_cast<uint64_t>(hlo::loadInt(*of, bytes));
  } else if (isInteger(*of)) {
    os_ << hlo::loadInt(*of, bytes);
  } else {
    os_ << hlo::elementText(*of, bytes);
  }
}

// dense<[1, 0]> : tensor<2xindex>; nested lists as the shape says.
void Text::printElements(const AttrNode& node) {
  const TypeNode* type = e_.type(node[0].row());
  if (!type) return;
  if (type->tag != TypeTag::kTensor) {
    e_.fail(node.offset, "constant data without the type of a tensor");
    return;
  }
  uint32_t element_row = (*type)[1].row();
  const TypeNode* element_type = e_.type(element_row);
  auto of = e_.element(element_row);
  size_t size = of ? static_cast<size_t>(hostBytes(*of)) : 8;
  if (!element_type || (!of && element_type->tag != TypeTag::kIndex)) {
    e_.fail(node.offset, "constant data of a type that has none");
    return;
  }
  const auto& dims = (*type)[0].list;
  uint64_t count = 1;
  for (uint64_t dim : dims)
    if (__builtin_mul_overflow(count, dim, &count)) count = ~uint64_t{0};
  llvm::StringRef data = node[1].bytes;
  os_ << "dense<";
  if (data.size() == size && count >= 1) {
    printElement(element_row, data.bytes_begin());
  } else if (data.size() != count * size || data.size() / size != count || count > (1 << 22)) {
    e_.fail(node.offset, "constant data does not fit its type");
  } else if (count) {
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t inner = 1;
      size_t open = 0, close = 0;
      for (size_t d = dims.size(); d-- > 0;) {
        inner *= dims[d];
        open += i % inner == 0;
        close += (i + 1) % inner == 0;
      }
      if (i) os_ << ", ";
      for (size_t k = 0; k < open; ++k) os_ << '[';
      printElement(element_row, data.bytes_begin() + i * size);
      for (size_t k = 0; k < close; ++k) os_ << ']';
    }
  }
  os_ << "> : ";
  printType(node[0].row());
}

void Text::printType(uint32_t row) {
  const TypeNode* found = e_.type(row);
  if (!found || !enter(found->offset)) return;
  const TypeNode& node = *found;
  switch (node.tag) {
    case TypeTag::kText:
      os_ << node.text;
      break;
    case TypeTag::kElement:
    case TypeTag::kInteger:
    case TypeTag::kComplex:
      if (auto of = e_.element(row))
        os_ << elementTypeMlirName(*of);
      else
        e_.fail(Code::kUnknownType, node.offset, "unknown element type");
      break;
    case TypeTag::kTf32:
      os_ << "tf32";
      break;
    case TypeTag::kIndex:
      os_ << "index";
      break;
    case TypeTag::kNone:
      os_ << "none";
      break;
    case TypeTag::kToken:
      os_ << "!stablehlo.token";
      break;
    case TypeTag::kTensor:
    case TypeTag::kEncodedTensor: {
      size_t shape = node.tag == TypeTag::kTensor ? 0 : 1;
      os_ << "tensor<";
      for (uint64_t dim : node[shape].list) {
        if (static_cast<int64_t>(dim) == hlo::kDynamicDim)
          os_ << "?x";
        else
          os_ << static_cast<int64_t>(dim) << 'x';
      }
      printType(node[shape + 1].row());
      if (shape) {
        os_ << ", ";
        print(node[0].row());
      }
      os_ << '>';
      break;
    }
    case TypeTag::kTuple:
      os_ << "tuple<";
      llvm::interleaveComma(node[0].list, os_,
                            [&](uint64_t item) { printType(static_cast<uint32_t>(item)); });
      os_ << '>';
      break;
    case TypeTag::kQuantized:
    case TypeTag::kQuantizedPerAxis:
      printQuantized(node);
      break;
    case TypeTag::kFunction:
      e_.fail(Code::kUnknownType, node.offset, "the type of a function does not stand here");
      break;
  }
  --depth_;
}

// !quant.uniform<i8:f32, 2.000000e+00:15>; with <min:max> behind the storage type where the range is
// narrowed.
void Text::printQuantized(const TypeNode& node) {
  bool per_axis = node.tag == TypeTag::kQuantizedPerAxis;
  bool is_signed = node[0].n & 1;
  auto storage = e_.element(node[1].row());
  if (!storage || !isInteger(*storage) || elementBits(*storage) > 32) {
    e_.fail(Code::kUnknownType, node.offset, "a quantized type is not stored as integers");
    return;
  }
  int bits = elementBits(*storage);
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  int64_t min = node[per_axis ? 4 : 5].i(), max = node[per_axis ? 5 : 6].i();
  os_ << "!quant.uniform<" << (is_signed ? "i" : "u") << bits;
  if (min != low || max != high) os_ << '<' << min << ':' << max << '>';
  os_ << ':';
  printType(node[2].row());
  if (!per_axis) {
    os_ << ", " << floatText(ElementType::kF64, node[3].n);
    if (node[4].n) os_ << ':' << node[4].i();
  } else {
    os_ << ':' << node[3].n << ", {";
    const auto &scales = node[6].list, &zeros = node[7].list;
    for (size_t i = 0; i < scales.size(); ++i) {
      os_ << (i ? "," : "") << floatText(ElementType::kF64, scales[i]);
      if (i < zeros.size() && zeros[i]) os_ << ':' << static_cast<int64_t>(zeros[i]);
    }
    os_ << '}';
  }
  os_ << '>';
}

}  // namespace tpu::frontend::bytecode
