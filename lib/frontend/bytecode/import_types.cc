// Types and locations.
#include "import.h"
#include "tpu/hlo/quantized.h"

namespace tpu::frontend::bytecode {

hlo::TypeId Importer::type(uint32_t row) {
  if (types_[row] || e.failed()) return types_[row];
  const TypeNode* node = e.type(row);
  if (!node) return {};
  auto unknown = [&] {
    e.fail(Code::kUnknownType, node->offset,
           "a type that is no tensor, token or tuple of known element types");
    return TypeId();
  };
  TypeId id;
  switch (node->tag) {
    case TypeTag::kToken:
      id = m.tokenType();
      break;
    case TypeTag::kText:
      if (node->text != "!stablehlo.token") return unknown();
      id = m.tokenType();
      break;
    case TypeTag::kTensor:
    case TypeTag::kEncodedTensor:
      id = tensor(*node);
      break;
    case TypeTag::kTuple: {
      // A tuple that is still open is inside itself; more than any program nests is refused as well.
      if (types_open_[row] || type_depth_ >= kMaxDepth) {
        e.fail(Code::kTooDeep, node->offset, "types nest too deeply");
        return {};
      }
      types_open_[row] = 1;
      ++type_depth_;
      hlo::Type tuple;
      tuple.kind = hlo::TypeKind::kTuple;
      for (uint64_t element : (*node)[0].list) tuple.elements.push_back(type(static_cast<uint32_t>(element)));
      --type_depth_;
      types_open_[row] = 0;
      if (e.failed()) return {};
      id = m.internType(tuple);
      if (tuple_parts_.tooMany(m, id)) {
        e.fail(Code::kTooDeep, node->offset, "tuple of too many parts");
        return {};
      }
      break;
    }
    default:
      return unknown();
  }
  if (e.failed()) return {};
  return types_[row] = id;
}

hlo::TypeId Importer::tensor(const TypeNode& node) {
  size_t shape = node.tag == TypeTag::kTensor ? 0 : 1;
  hlo::Type t;
  auto fail = [&](const llvm::Twine& text) {
    e.fail(Code::kUnknownType, node.offset, text);
    return TypeId();
  };
  if (node[shape].list.size() > kMaxRank) return fail("tensor has too many dimensions");
  int64_t count = 1;
  for (uint64_t bits : node[shape].list) {
    int64_t dim = static_cast<int64_t>(bits);
    if (dim < 0 && dim != hlo::kDynamicDim) return fail("tensor with a dimension below 0");
    if (dim != hlo::kDynamicDim && __builtin_mul_overflow(count, dim, &count))
      return fail("tensor has more elements than can be counted");
    t.dims.push_back(dim);
  }
  uint32_t of = node[shape + 1].row();
  const TypeNode* element_node = e.type(of);
  if (!element_node) return {};
  if (element_node->tag == TypeTag::kQuantized || element_node->tag == TypeTag::kQuantizedPerAxis) {
    std::string why;
    const auto quantization = hlo::parseQuantization(text_.type(of), &why);
    if (!quantization) return fail("bad quantized type: " + why);
    t.encoding = hlo::quantizationText(*quantization);
    of = (*element_node)[1].row();
  }
  auto element = e.element(of);
  if (!element) return fail("unknown element type");
  t.element = *element;
  if (shape) t.encoding = text_.attr(node[0].row());
  if (e.failed()) return {};
  return t.encoding.empty() ? m.tensorType(t.element, t.dims) : m.internType(t);
}

hlo::LocId Importer::locId(uint32_t row) {
  Location loc = row == kNone ? Location() : location(row);
  return loc.file ? loc.file : m.internLoc(base_);
}

// The same two things are kept as of locations in text: the innermost file position and a name.
Importer::Location Importer::location(uint32_t row) {
  auto it = locations_.find(row);
  if (it != locations_.end()) return it->second;
  if (location_depth_ >= kMaxLocDepth) {
    e.fail(Code::kTooDeep, f.offsetOf(f.attrs[row].data), "locations nest too deeply");
    return {};
  }
  locations_[row] = Location();  // what a location sees that is inside itself
  const AttrNode* node = e.attr(row);
  if (!node) return {};
  ++location_depth_;
  Location loc = readLocation(*node);
  --location_depth_;
  locations_[row] = loc;
  return loc;
}

hlo::LocId Importer::fileLoc(uint32_t file, uint64_t line, uint64_t column) {
  auto name = text_.string(file);
  if (!name) return {};
  // "-" is the text that was serialised: its lines are not the user's, and the artifact stands for it.
  bool printed = *name == "-";
  saw_file_loc_ |= !printed;
  std::string place = (printed ? base_ : name->str()) + ":" + std::to_string(line);
  if (column > 0) place += ":" + std::to_string(column);  // 0 stands for none, as in text
  return m.internLoc(place);
}

Importer::Location Importer::readLocation(const AttrNode& node) {
  Location loc;
  switch (node.tag) {
    case AttrTag::kFileLoc:
      loc.file = fileLoc(node[0].row(), node[1].n, node[2].n);
      break;
    case AttrTag::kFileRange: {
      const auto& places = node[1].list;
      loc.file = fileLoc(node[0].row(), places.empty() ? 0 : places[0], places.size() < 2 ? 0 : places[1]);
      break;
    }
    case AttrTag::kCallSite:
      loc = location(node[0].row());
      if (!loc.file) loc = location(node[1].row());
      break;
    case AttrTag::kNamedLoc:
      loc.file = location(node[1].row()).file;
      loc.name = text_.string(node[0].row()).value_or("");
      break;
    case AttrTag::kFused:
      for (uint64_t row : node[0].list) {
        Location part = location(static_cast<uint32_t>(row));
        if (!loc.file) loc.file = part.file;
        if (loc.name.empty()) loc.name = part.name;
      }
      break;
    case AttrTag::kUnknownLoc:
      break;
    default:
      e.fail(node.offset, "expected a location");
  }
  return loc;
}

}  // namespace tpu::frontend::bytecode
