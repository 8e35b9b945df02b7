// Attributes of ops: known keys are read into flat (key, value) pairs, structured ones are flattened, unknown
// ones are kept as balanced text.
#include <cstring>

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "parser.h"
#include "rules.h"

namespace tpu::frontend {

using hlo::AttrKind;

namespace {

bool isStruct(llvm::StringRef name) {
  return name == "dimension_numbers" || name == "dot_dimension_numbers" ||
         name == "scatter_dimension_numbers" || name == "ragged_dot_dimension_numbers" ||
         name == "channel_handle";
}

}  // namespace

void Parser::addExtra(OpId op, llvm::StringRef text) {
  std::string all = m.getString(op, AttrKey::extra).str();
  if (!all.empty()) all += ", ";
  all += text;
  m.setString(op, AttrKey::extra, all);
}

bool Parser::attrName(std::string& name) {
  if (c.peek() == '"') {
    if (!c.string(name)) return false;
  } else {
    name = c.word().str();
  }
  return !name.empty() || c.error("expected an attribute name");
}

bool Parser::attrEntries(OpId op, char close) {
  if (c.accept(close)) return true;
  do {
    std::string name;
    if (!attrName(name)) return false;
    if (!attrEntry(op, name)) return false;
  } while (c.accept(','));
  return c.expect(close);
}

bool Parser::attrEntry(OpId op, const std::string& name) {
  Opcode opcode = m.op(op).opcode;
  if (!c.accept('=')) {  // a unit attribute
    auto key = attrKeyOf(name, opcode);
    if (key && hlo::attrKind(*key) == AttrKind::kBool)
      m.setBool(op, *key, true);
    else
      addExtra(op, name);
    return true;
  }
  if (name == "sdy.sharding") return resultShardings(op);
  if (isStruct(name)) return structAttr(op);
  if (auto key = attrKeyOf(name, opcode)) return attrValue(op, *key);
  c.blanks();
  llvm::StringRef text = c.balanced();
  if (c.failed()) return false;
  addExtra(op, name + " = " + text.str());
  return true;
}

bool Parser::intValue(int64_t& value) {
  c.blanks();
  if (c.acceptWord("true")) {
    value = 1;
    return maybeTypeSuffix();
  }
  if (c.acceptWord("false")) {
    value = 0;
    return maybeTypeSuffix();
  }
  return c.integer(value) && maybeTypeSuffix();
}

bool Parser::ints(Ints& values, hlo::Dims* dims) {
  hlo::Dims own;
  hlo::Dims& shape = dims ? *dims : own;
  c.blanks();
  if (*c.p == 'd') return denseInts(values, shape);
  bool array = false;
  if (c.acceptWord("array")) {
    array = true;
    if (!c.expect('<')) return false;
    c.word();  // the element type
    if (!c.accept(':')) return c.expect('>');
  } else if (!c.expect('[')) {
    return false;
  }
  if (!c.accept(array ? '>' : ']')) {
    do {
      c.blanks();
      if (*c.p == '[') {  // rows of a nested list, flattened
        if (++nesting_ > kMaxDepth) return c.error(Code::kTooDeep, c.p, "lists nest too deeply");
        if (!ints(values)) return false;
        --nesting_;
        continue;
      }
      int64_t value;
      if (!intValue(value)) return false;
      values.push_back(value);
    } while (c.accept(','));
    if (!c.expect(array ? '>' : ']')) return false;
  }
  shape.assign(1, static_cast<int64_t>(values.size()));
  return true;
}

bool Parser::enumWord(llvm::StringRef& word) {
  c.blanks();
  if (*c.p == '"') return c.rawString(word) && maybeTypeSuffix();
  if (*c.p == '#') {
    ++c.p;
    c.word();
    if (!c.expect('<')) return false;
    c.word();  // which enum
    word = c.word();
    return c.expect('>');
  }
  word = c.word();
  return !word.empty() || c.error("expected a word");
}

bool Parser::setEnum(OpId op, AttrKey key, llvm::StringRef spelling, const char* at) {
  if (!llvm::is_contained(hlo::enumSpellings(key), spelling))
    return c.error(Code::kSyntaxError, at, "unknown " + hlo::attrName(key) + " '" + spelling + "'");
  m.setString(op, key, spelling);
  return true;
}

bool Parser::strings(std::vector<std::string>& values) {
  if (!c.expect('[')) return false;
  if (c.accept(']')) return true;
  do {
    std::string text;
    c.blanks();
    if (*c.p == '"') {
      if (!c.string(text)) return false;
    } else if (*c.p == '@') {
      if (!symbol(text)) return false;
    } else {
      llvm::StringRef word;
      if (!enumWord(word)) return false;
      text = word.str();
    }
    values.push_back(std::move(text));
  } while (c.accept(','));
  return c.expect(']');
}

bool Parser::attrValue(OpId op, AttrKey key) {
  c.blanks();
  const char* at = c.p;
  hlo::Attr attr;
  attr.key = key;
  attr.kind = hlo::attrKind(key);
  switch (attr.kind) {
    case AttrKind::kBool:
    case AttrKind::kInt:
      if (key == AttrKey::max_ulp_difference || key == AttrKey::min_ulp_difference) {
        if (!unsignedValue(attr.i)) return false;
      } else if (!intValue(attr.i)) {
        return false;
      }
      break;
    case AttrKind::kFloat: {
      uint8_t bytes[8];
      if (!number(ElementType::kF64, bytes)) return false;
      std::memcpy(&attr.f, bytes, 8);
      c.blanks();
      const char* type = c.p;
      if (!maybeTypeSuffix()) return false;
      // The digits of an f32 stand for the nearest one.
      if (llvm::StringRef(type, static_cast<size_t>(c.p - type)).contains("f32"))
        attr.f = static_cast<float>(attr.f);
      break;
    }
    case AttrKind::kInts:
    case AttrKind::kBools: {
      Ints values;
      bools_ = attr.kind == AttrKind::kBools;
      const bool read = ints(values);
      bools_ = false;
      if (!read) return false;
      attr.ints.assign(values.begin(), values.end());
      break;
    }
    case AttrKind::kString:
      if (*c.p == '@') {
        if (!symbol(attr.str)) return false;
      } else if (!c.string(attr.str) || !maybeTypeSuffix()) {
        return false;
      }
      break;
    case AttrKind::kStrings:
      if (key == AttrKey::programs) return programGrid(op);
      if (!strings(attr.strs)) return false;
      break;
    case AttrKind::kEnum: {
      llvm::StringRef word;
      return enumWord(word) && setEnum(op, key, word, at);
    }
    case AttrKind::kText:
      if (in_keyword_) {  // "algorithm = <...> : (t, t) -> t"
        if (c.accept('#')) c.word();
        if (isLetter(*c.p))
          c.word();
        else if (!c.skipGroup())
          return false;
        attr.str = std::string(at, c.p);
      } else {
        attr.str = c.balanced().str();
      }
      // The pretty form leaves the name of the structure out.
      if (llvm::StringRef text = attr.str;
          key == AttrKey::algorithm && text.consume_front("#stablehlo.dot_algorithm"))
        attr.str = text.str();
      break;
    case AttrKind::kLiteral: {
      hlo::Literal value;
      if (isDigit(*c.p) || *c.p == '-') {  // chlo.constant_like: "7 : i32"
        Cursor ahead = c;
        ahead.accept('-');
        ahead.word();
        hlo::Type scalar;
        scalar.element = ElementType::kS64;
        if (const bool typed = ahead.accept(':')) {
          auto element = parseElementType(ahead.word());
          if (!typed || !element) return c.error(Code::kUnknownType, at, "unknown type of the value");
          scalar.element = *element;
        }
        value.type = m.tensorType(scalar.element, {});
        value.bytes.resize(static_cast<size_t>(hostBytes(scalar.element)));
        if (isComplex(scalar.element) || !number(scalar.element, value.bytes.data()))
          return c.error("expected a number");
        c.p = ahead.p;
      } else if (!literal(value)) {
        return false;
      }
      attr.literal = m.addLiteral(std::move(value));
      break;
    }
    case AttrKind::kGroups: {
      Ints values;
      hlo::Dims dims;
      if (*c.p == '#') {
        addExtra(op, hlo::attrName(key).str() + " = " + c.balanced().str());
        return !c.failed();
      }
      if (!ints(values, &dims)) return false;
      attr.groups.rows = dims.empty() ? 0 : dims[0];
      attr.groups.cols = dims.size() > 1 ? dims[1] : dims.size() == 1 ? 1 : 0;
      attr.groups.ids.assign(values.begin(), values.end());
      break;
    }
    case AttrKind::kSharding:
      if (!sharding(attr.sharding)) return false;
      break;
    case AttrKind::kShardings: {
      Ints ids;
      if (c.acceptWord("#sdy.sharding_per_value") && !c.expect('<')) return false;
      bool wrapped = c.p != at;
      if (!shardingList(ids) || (wrapped && !c.expect('>'))) return false;
      attr.ints.assign(ids.begin(), ids.end());
      break;
    }
    case AttrKind::kAxes:
    case AttrKind::kType:
    case AttrKind::kTypes:
      addExtra(op, hlo::attrName(key).str() + " = " + c.balanced().str());
      return !c.failed();
  }
  if (c.failed()) return false;
  m.setAttr(op, std::move(attr));
  return true;
}

bool Parser::structAttr(OpId op) {
  if (++nesting_ > kMaxDepth) return c.error(Code::kTooDeep, c.p, "attributes nest too deeply");
  bool done = structFields(op);
  --nesting_;
  return done;
}

bool Parser::structFields(OpId op) {
  if (!c.expect('#')) return false;
  llvm::StringRef name = c.word();
  if (!c.expect('<')) return false;
  if (name.ends_with(".conv") && c.peek() == '[') return convolutionDims(op) && c.expect('>');
  c.acceptWord("raw");
  if (c.accept('>')) return true;
  do {
    llvm::StringRef field = c.word();
    if (field.empty() || c.peek() != '=' || !attrEntry(op, field.str())) return c.error("expected a field");
  } while (c.accept(','));
  return c.expect('>');
}

// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]": the role of each dimension of input, kernel and output.
bool Parser::convolutionDims(OpId op) {
  struct Side {
    const char* first_role;
    const char* second_role;
    AttrKey first, second, spatial;
  };
  const Side kSides[] = {{"b", "f", AttrKey::input_batch_dimension, AttrKey::input_feature_dimension,
                          AttrKey::input_spatial_dimensions},
                         {"i", "o", AttrKey::kernel_input_feature_dimension,
                          AttrKey::kernel_output_feature_dimension, AttrKey::kernel_spatial_dimensions},
                         {"b", "f", AttrKey::output_batch_dimension, AttrKey::output_feature_dimension,
                          AttrKey::output_spatial_dimensions}};
  for (size_t side = 0; side < 3; ++side) {
    if (side == 1 && !c.expectWord("x")) return false;
    if (side == 2 && !c.expect("->")) return false;
    if (!c.expect('[')) return false;
    Ints spatial;
    int64_t position = 0;
    do {
      c.blanks();
      const char* at = c.p;
      llvm::StringRef role = c.word();
      int64_t number;
      if (role == kSides[side].first_role)
        m.setInt(op, kSides[side].first, position);
      else if (role == kSides[side].second_role)
        m.setInt(op, kSides[side].second, position);
      else if (!role.getAsInteger(10, number) && number >= 0 && number < 64) {
        if (spatial.size() <= static_cast<size_t>(number))
          spatial.resize(static_cast<size_t>(number) + 1, -1);
        spatial[static_cast<size_t>(number)] = position;
      } else {
        return c.error(Code::kSyntaxError, at, "unknown dimension role");
      }
      ++position;
    } while (c.accept(','));
    if (!c.expect(']')) return false;
    m.setInts(op, kSides[side].spatial, spatial);
  }
  return true;
}

// "{stride = [1, 1], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [2, 2], reverse = [false,
// false]}"
bool Parser::windowAttr(OpId op) {
  if (!c.expect('{')) return false;
  if (c.accept('}')) return true;
  do {
    llvm::StringRef name = c.word();
    auto key = llvm::StringSwitch<std::optional<AttrKey>>(name)
                   .Case("stride", AttrKey::window_strides)
                   .Case("pad", AttrKey::padding)
                   .Case("lhs_dilate", AttrKey::lhs_dilation)
                   .Case("rhs_dilate", AttrKey::rhs_dilation)
                   .Case("reverse", AttrKey::window_reversal)
                   .Default(std::nullopt);
    if (!key) return c.error("expected a window field");
    Ints values;
    if (!c.expect('=') || !ints(values)) return false;
    m.setInts(op, *key, values);
  } while (c.accept(','));
  return c.expect('}');
}

}  // namespace tpu::frontend
