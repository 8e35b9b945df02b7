// Rules that do not depend on how a program is written down.
#include "rules.h"

#include <algorithm>

#include "tpu/hlo/literal.h"

namespace tpu::frontend {

using hlo::AttrKey;
using hlo::Opcode;

std::optional<hlo::AttrKey> attrKeyOf(llvm::StringRef name, hlo::Opcode opcode) {
  if (opcode == hlo::Opcode::composite) {
    if (name == "name") return AttrKey::composite_name;
    if (name == "version") return AttrKey::composite_version;
  }
  if (opcode == hlo::Opcode::torch_index_select && name == "dim") return AttrKey::dimension;
  if (name == "mhlo.sharding") return AttrKey::mhlo_sharding;
  if (name == "mhlo.frontend_attributes") return AttrKey::frontend_attributes;
  if (name == "sdy.sharding_rule") return AttrKey::sharding_rule;
  if (name == "handle") return AttrKey::channel_id;  // of channel_handle<handle = 1, type = 1>
  if (name == "type") return AttrKey::channel_type;
  return hlo::findAttrKey(name);
}

void fillDefaults(hlo::Module& m, hlo::OpId op) {
  auto fill = [&](AttrKey key, size_t count, int64_t value) {
    if (!m.has(op, key)) m.setInts(op, key, hlo::Dims(count, value));
  };
  if (m.op(op).operands.empty()) return;
  size_t rank = m.typeOf(m.op(op).operands[0]).dims.size();
  switch (m.op(op).opcode) {
    case Opcode::convolution: {
      size_t spatial = rank < 2 ? 0 : rank - 2;
      for (AttrKey key : {AttrKey::window_strides, AttrKey::lhs_dilation, AttrKey::rhs_dilation})
        fill(key, spatial, 1);
      fill(AttrKey::padding, 2 * spatial, 0);
      fill(AttrKey::window_reversal, spatial, 0);
      return;
    }
    case Opcode::reduce_window:
      for (AttrKey key : {AttrKey::window_strides, AttrKey::base_dilations, AttrKey::window_dilations})
        fill(key, rank, 1);
      fill(AttrKey::padding, 2 * rank, 0);
      return;
    case Opcode::select_and_scatter:
      fill(AttrKey::window_strides, rank, 1);
      fill(AttrKey::padding, 2 * rank, 0);
      return;
    case Opcode::sort:
      if (!m.has(op, AttrKey::dimension)) m.setInt(op, AttrKey::dimension, -1);
      if (const int64_t dim = m.getInt(op, AttrKey::dimension); dim < 0 && dim + static_cast<int64_t>(rank) >= 0)
        m.setInt(op, AttrKey::dimension, dim + static_cast<int64_t>(rank));
      return;
    default:
      return;
  }
}

bool literalFromBytes(hlo::Literal& literal, const hlo::Type& type, std::vector<uint8_t> bytes) {
  size_t count = static_cast<size_t>(type.numElements()), size = static_cast<size_t>(hostBytes(type.element));
  if (type.element == ElementType::kPred && bytes.size() != count) {
    if (bytes.size() == 1 && count > 8) {
      literal.splat = true;
      literal.bytes.assign(1, bytes[0] != 0);
      return true;
    }
    if (bytes.size() != (count + 7) / 8) return false;
    literal.bytes.resize(count);
    for (size_t i = 0; i < count; ++i) literal.bytes[i] = (bytes[i / 8] >> (i % 8)) & 1;
    return true;
  }
  if (bytes.size() == size && count != 1)
    literal.splat = true;
  else if (count > bytes.size() || bytes.size() != count * size)
    return false;
  literal.bytes = std::move(bytes);
  // Normalise: pred to 0 or 1, small integers sign-extended.
  if (elementBits(type.element) < 8 && !isFloat(type.element))
    for (uint8_t& byte : literal.bytes) hlo::storeInt(type.element, byte, &byte);
  return true;
}

hlo::MeshId inlinedMesh(hlo::Module& m, hlo::Mesh mesh) {
  auto same_axis = [](const hlo::MeshAxis& a, const hlo::MeshAxis& b) {
    return a.name == b.name && a.size == b.size;
  };
  for (size_t i = 0; i < m.meshes.size(); ++i) {
    const hlo::Mesh& other = m.meshes[i];
    if (other.name.empty() && other.device_ids == mesh.device_ids &&
        other.maximal_device == mesh.maximal_device && std::ranges::equal(other.axes, mesh.axes, same_axis))
      return hlo::MeshId(static_cast<uint32_t>(i));
  }
  m.meshes.push_back(std::move(mesh));
  return hlo::MeshId(static_cast<uint32_t>(m.meshes.size() - 1));
}

std::string chooseEntry(hlo::Module& m, bool any) {
  m.entry = m.findFunc("main");
  if (m.entry) return "";
  for (size_t i = 0; i < m.funcs.size(); ++i) {
    if (m.funcs[i].is_private && !any) continue;
    if (m.entry && any) break;
    if (m.entry) return "several public functions and none is called @main";
    m.entry = hlo::FuncId(static_cast<uint32_t>(i));
  }
  return m.entry ? "" : "the module has no public function";
}

// [{alias = {..., parameter_number = 2 : i64}, output_index = array<i64: 1>}, ...]
void applyModuleAliases(hlo::Module& m) {
  auto& ports = m.funcs[m.entry.v].arg_ports;
  auto number = [](llvm::StringRef& text, llvm::StringRef name, int64_t& value) {
    size_t at = text.find(name);
    if (at == llvm::StringRef::npos) return false;
    text = text.substr(at + name.size());
    return !text.consumeInteger(10, value);
  };
  for (const auto& [name, value] : m.attrs) {
    if (name != "mhlo.input_output_alias") continue;
    llvm::StringRef rest = value;
    int64_t parameter, output;
    while (number(rest, "parameter_number = ", parameter) &&
           number(rest, "output_index = array<i64: ", output))
      if (parameter >= 0 && parameter < static_cast<int64_t>(ports.size()))
        ports[static_cast<size_t>(parameter)].alias = static_cast<int>(output);
  }
}

}  // namespace tpu::frontend
