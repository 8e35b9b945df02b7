// Attribute values of operations. Artifacts state every attribute; those at their defaults are left out, as
// the compiler that reads them does.
#include <cstring>

#include "import.h"
#include "llvm/ADT/StringSwitch.h"
#include "tpu/hlo/literal.h"

namespace tpu::frontend::bytecode {

using hlo::AttrKind;
using hlo::Opcode;

bool Importer::intValue(const AttrNode& node, int64_t& value) {
  switch (node.tag) {
    case AttrTag::kInteger:
      value = node[1].i();
      if (e.element(node[0].row()) == ElementType::kPred) value &= 1;
      return !e.failed();
    case AttrTag::kBool:
    case AttrTag::kEnum:
      value = static_cast<int64_t>(node[0].n);
      return true;
    case AttrTag::kUnit:
      value = 1;
      return true;
    default:
      return e.fail(node.offset, "expected an integer");
  }
}

bool Importer::literal(const AttrNode& node, hlo::Literal& literal) {
  if (node.tag != AttrTag::kElements) return e.fail(Code::kBadLiteral, node.offset, "expected constant data");
  literal.type = type(node[0].row());
  if (e.failed()) return false;
  const hlo::Type& t = m.type(literal.type);
  if (t.kind != hlo::TypeKind::kTensor || llvm::is_contained(t.dims, hlo::kDynamicDim))
    return e.fail(Code::kBadLiteral, node.offset, "a literal needs a tensor type of static shape");
  llvm::StringRef data = node[1].bytes;
  if (!literalFromBytes(literal, hlo::Type(t), std::vector<uint8_t>(data.bytes_begin(), data.bytes_end())))
    return e.fail(Code::kBadLiteral, node.offset,
                  "literal of " + llvm::Twine(data.size()) + " bytes, which do not fit its type");
  // Equal elements are one, as in text; those of pred come packed and do not show it.
  if (t.numElements() == 1) literal.splat = true;
  if (t.element == ElementType::kPred && t.numElements() > 1 && !literal.splat &&
      llvm::all_equal(literal.bytes)) {
    literal.splat = true;
    literal.bytes.resize(1);
  }
  return true;
}

bool Importer::ints(const AttrNode& node, Ints& values, hlo::Dims* dims) {
  hlo::Dims own;
  hlo::Dims& shape = dims ? *dims : own;
  if (node.tag == AttrTag::kArray) {
    for (uint64_t row : node[0].list) {
      const AttrNode* item = e.attr(static_cast<uint32_t>(row));
      int64_t number;
      if (!item || !intValue(*item, number)) return false;
      values.push_back(number);
    }
    shape.assign(1, static_cast<int64_t>(values.size()));
    return true;
  }
  if (node.tag == AttrTag::kDenseArray) {
    auto of = e.element(node[0].row());
    size_t size = of && !isFloat(*of) && !isComplex(*of) ? static_cast<size_t>(hostBytes(*of)) : 0;
    llvm::StringRef data = node[2].bytes;
    if (!size || data.size() % size) return e.fail(node.offset, "expected integers");
    for (size_t at = 0; at < data.size(); at += size)
      values.push_back(hlo::loadInt(*of, data.bytes_begin() + at));
    shape.assign(1, static_cast<int64_t>(values.size()));
    return true;
  }
  hlo::Literal data;
  if (!literal(node, data)) return false;
  const hlo::Type& t = m.type(data.type);
  if (isFloat(t.element) || isComplex(t.element))
    return e.fail(Code::kBadLiteral, node.offset, "expected integers");
  if (t.numElements() > (1 << 22))
    return e.fail(Code::kBadLiteral, node.offset, "too many elements for an attribute");
  shape = t.dims;
  for (int64_t i = 0; i < t.numElements(); ++i)
    values.push_back(hlo::loadInt(t.element, hlo::literalElement(m, data, i)));
  return true;
}

// EQ of a coded enumeration, or of "#chlo<comparison_direction EQ>".
llvm::StringRef Importer::spelling(const AttrNode& node) {
  if (node.tag == AttrTag::kEnum) return enumSpelling(node.detail, node[0].n);
  if (node.tag == AttrTag::kString) return node[0].bytes;
  if (node.tag != AttrTag::kText) return "";
  return node.text.rtrim(">").rsplit(' ').second;
}

void Importer::addExtra(OpId op, llvm::StringRef name, uint32_t row) {
  std::string all = m.getString(op, AttrKey::extra).str();
  if (!all.empty()) all += ", ";
  all += Text::attrName(name);
  const AttrNode* node = e.attr(row);
  if (node && node->tag != AttrTag::kUnit) all += " = " + text_.attr(row);
  if (!e.failed()) m.setString(op, AttrKey::extra, all);
}

bool Importer::isDefault(Opcode opcode, llvm::StringRef name, const AttrNode& node) {
  enum { kFalse, kZero, kEmpty, kPlain, kMode, kVersion, kAlways, kNever };
  int rule =
      llvm::StringSwitch<int>(name)
          .Cases("use_global_device_ids", "has_side_effect", "indices_are_sorted", "unique_indices",
                 "is_host_transfer", "is_stable", kFalse)
          .Case("lower", opcode == Opcode::cholesky ? kFalse : kNever)
          .Case("channel_id", opcode == Opcode::send || opcode == Opcode::recv ? kNever : kZero)
          .Cases("version", "index_vector_dim", kZero)
          .Cases("called_computations", "operand_layouts", "result_layouts", "output_operand_aliases",
                 "layout", "infeed_config", "outfeed_config", kEmpty)
          .Cases("backend_config", "composite_attributes", kEmpty)
          .Cases("known_expanding_dimensions", "known_nonexpanding_dimensions", kEmpty)
          .Cases("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
                 "start_indices_batching_dims", "update_window_dims", "inserted_window_dims", kEmpty)
          .Cases("lhs_batching_dimensions", "rhs_batching_dimensions", kEmpty)
          .Cases("scatter_dims_to_operand_dims", "input_batching_dims", "scatter_indices_batching_dims",
                 kEmpty)
          .Case("source_target_pairs", opcode == Opcode::send || opcode == Opcode::recv ? kEmpty : kNever)
          .Cases("precision_config", "compare_type", kPlain)
          .Case("result_accuracy", kMode)
          .Case("api_version", kVersion)
          // Read together by dotAlgorithm and manualAxes.
          .Cases("lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
                 "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation",
                 "manual_axes", kAlways)
          .Default(kNever);
  auto number = [&](int64_t expected) {
    bool is_number =
        node.tag == AttrTag::kInteger || node.tag == AttrTag::kBool || node.tag == AttrTag::kEnum;
    return is_number && node.fields.back().i() == expected;
  };
  switch (rule) {
    case kFalse:
    case kZero:
      return number(0);
    case kVersion:
      return number(1);
    case kEmpty:
      return ((node.tag == AttrTag::kArray || node.tag == AttrTag::kDict) && node[0].list.empty()) ||
             (node.tag == AttrTag::kString && node[0].bytes.empty()) ||
             (node.tag == AttrTag::kElements && node[1].bytes.empty());
    case kPlain:
      if (node.tag == AttrTag::kEnum) return node[0].n == 0;
      return node.tag == AttrTag::kArray && llvm::all_of(node[0].list, [&](uint64_t row) {
               const AttrNode* item = e.attr(static_cast<uint32_t>(row));
               return item && item->tag == AttrTag::kEnum && (*item)[0].n == 0;
             });
    case kMode: {
      const AttrNode* mode = node.tag == AttrTag::kAccuracy ? e.attr(node[3].row()) : &node;
      return mode && mode->tag == AttrTag::kEnum && (*mode)[0].n == 0;
    }
    default:
      return rule == kAlways;
  }
}

bool Importer::attribute(OpId op, llvm::StringRef name, uint32_t row) {
  Opcode opcode = m.op(op).opcode;
  const AttrNode* node = e.attr(row);
  if (!node) return false;
  if (isDefault(opcode, name, *node) || e.failed()) return !e.failed();
  if (name == "sdy.sharding") name = "result_shardings";
  if (name == "out_sharding") name = "sharding";
  if (name == "gathering_axes" || name == "slicing_axes" || name == "reduction_axes" ||
      name == "reduce_scatter_axes" || name == "params")
    name = "dim_axes";
  if (opcode == Opcode::sdy_named_computation && name == "name") name = "computation_name";
  if (name == "ragged_dot_dimension_numbers" && node->tag == AttrTag::kText) return raggedDims(op, *node);
  auto key = attrKeyOf(name, opcode);
  // A unit attribute is true where its key is a flag, else it has no value to keep.
  if (!key || (node->tag == AttrTag::kUnit && hlo::attrKind(*key) != AttrKind::kBool)) {
    addExtra(op, name, row);
    return !e.failed();
  }
  if (!value(op, *key, name, row)) return false;
  // The kind of channel is lost in artifacts; what reads them says 0.
  if (key == AttrKey::channel_id && !m.has(op, AttrKey::channel_type)) m.setInt(op, AttrKey::channel_type, 0);
  return true;
}

bool Importer::value(OpId op, AttrKey key, llvm::StringRef name, uint32_t row) {
  const AttrNode* found = e.attr(row);
  if (!found) return false;
  const AttrNode& node = *found;
  hlo::Attr attr;
  attr.key = key;
  attr.kind = hlo::attrKind(key);
  switch (attr.kind) {
    case AttrKind::kBool:
    case AttrKind::kInt:
      if (!intValue(node, attr.i)) return false;
      break;
    case AttrKind::kFloat: {
      auto of = node.tag == AttrTag::kFloat ? e.element(node[0].row()) : std::nullopt;
      if (!of || !isFloat(*of)) return e.fail(node.offset, "expected a number");
      attr.f = hlo::decodeFloat(*of, node[1].n);
      break;
    }
    case AttrKind::kInts:
    case AttrKind::kBools: {
      Ints values;
      if (!ints(node, values)) return false;
      attr.ints.assign(values.begin(), values.end());
      break;
    }
    case AttrKind::kString:
      if (auto text = text_.string(row))
        attr.str = text->str();
      else
        return e.fail(node.offset, "expected a text");
      break;
    case AttrKind::kStrings:
      if (node.tag != AttrTag::kArray) return e.fail(node.offset, "expected a list");
      for (uint64_t item_row : node[0].list) {
        const AttrNode* item = e.attr(static_cast<uint32_t>(item_row));
        if (!item) return false;
        auto text = text_.string(static_cast<uint32_t>(item_row));
        if (!text) text = spelling(*item);
        if (text->empty()) return e.fail(item->offset, "expected a word");
        attr.strs.push_back(text->str());
      }
      break;
    case AttrKind::kEnum: {
      llvm::StringRef word = spelling(node);
      if (node.tag == AttrTag::kInteger && node[1].n < hlo::enumSpellings(key).size())
        word = hlo::enumSpellings(key)[node[1].n];
      if (!llvm::is_contained(hlo::enumSpellings(key), word))
        return e.fail(node.offset, "unknown " + hlo::attrName(key) + " '" + word + "'");
      m.setString(op, key, word);
      return true;
    }
    case AttrKind::kText:
      attr.str = text_.attr(row);
      break;
    case AttrKind::kLiteral: {
      hlo::Literal data;
      if (!literal(node, data)) return false;
      attr.literal = m.addLiteral(std::move(data));
      break;
    }
    case AttrKind::kGroups: {
      if (node.tag != AttrTag::kElements) {
        addExtra(op, name, row);
        return !e.failed();
      }
      Ints values;
      hlo::Dims dims;
      if (!ints(node, values, &dims)) return false;
      attr.groups.rows = dims.empty() ? 0 : dims[0];
      attr.groups.cols = dims.size() > 1 ? dims[1] : dims.size() == 1 ? 1 : 0;
      attr.groups.ids.assign(values.begin(), values.end());
      break;
    }
    case AttrKind::kSharding:
      if (!sharding(row, attr.sharding)) return false;
      break;
    case AttrKind::kShardings: {
      Ints ids;
      if (!shardings(row, ids)) return false;
      attr.ints.assign(ids.begin(), ids.end());
      break;
    }
    case AttrKind::kAxes:
    case AttrKind::kType:
    case AttrKind::kTypes:
      addExtra(op, hlo::attrName(key), row);
      return !e.failed();
  }
  if (e.failed()) return false;
  m.setAttr(op, std::move(attr));
  return true;
}

// #chlo.ragged_dot<lhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0, 1]>, which has no coding.
bool Importer::raggedDims(OpId op, const AttrNode& node) {
  llvm::StringRef rest = node.text;
  if (!rest.consume_front("#chlo.ragged_dot<"))
    return e.fail(node.offset, "expected the dimensions of a ragged dot");
  while (rest.contains('=')) {
    auto [name, behind] = rest.split('=');
    llvm::StringRef list = behind.split('[').second.split(']').first;
    rest = behind.split(']').second.ltrim(", ");
    Ints values;
    for (list = list.trim(); !list.empty(); list = list.ltrim(", ")) {
      int64_t value;
      if (list.consumeInteger(10, value))
        return e.fail(node.offset, "expected the dimensions of a ragged dot");
      values.push_back(value);
    }
    auto key = hlo::findAttrKey(name.trim());
    if (!key || hlo::attrKind(*key) != AttrKind::kInts)
      return e.fail(node.offset, "unknown dimensions '" + name.trim() + "' of a ragged dot");
    m.setInts(op, *key, values);
  }
  return true;
}

// The parts of a dot's algorithm are stated one by one, each a type "none" where the dot has no algorithm.
bool Importer::dotAlgorithm(OpId op, const Named& named) {
  std::string text;
  for (llvm::StringRef part :
       {"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
        "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"}) {
    auto it = llvm::find_if(named, [&](const auto& entry) { return entry.first == part; });
    if (it == named.end()) return true;
    const AttrNode* node = e.attr(it->second);
    if (!node) return false;
    if (node->tag == AttrTag::kType) {
      const TypeNode* type = e.type((*node)[0].row());
      if (!type) return false;
      if (type->tag == TypeTag::kNone) return true;
    }
    std::string value = text_.attr(it->second);
    text += (text.empty() ? "<" : ", ") + part.str() + " = " + llvm::StringRef(value).split(" :").first.str();
  }
  m.setString(op, AttrKey::algorithm, text + ">");
  return !e.failed();
}

}  // namespace tpu::frontend::bytecode
