// Attributes of operations as MLIR text: flat keys are folded into the dialect's structures again.
#include "llvm/ADT/StringExtras.h"
#include "tpu/hlo/infer.h"
#include "writer.h"

namespace tpu::hlo {
namespace {

using K = AttrKey;

constexpr K kDot[] = {K::lhs_batching_dimensions, K::rhs_batching_dimensions, K::lhs_contracting_dimensions,
                      K::rhs_contracting_dimensions};
constexpr K kRaggedDot[] = {K::lhs_batching_dimensions,    K::rhs_batching_dimensions,
                            K::lhs_contracting_dimensions, K::rhs_contracting_dimensions,
                            K::lhs_ragged_dimensions,      K::rhs_group_dimensions};
constexpr K kGather[] = {K::offset_dims,           K::collapsed_slice_dims,
                         K::operand_batching_dims, K::start_indices_batching_dims,
                         K::start_index_map,       K::index_vector_dim};
constexpr K kScatter[] = {K::update_window_dims,           K::inserted_window_dims,
                          K::input_batching_dims,          K::scatter_indices_batching_dims,
                          K::scatter_dims_to_operand_dims, K::index_vector_dim};
constexpr K kConvolution[] = {
    K::input_batch_dimension,          K::input_feature_dimension,         K::input_spatial_dimensions,
    K::kernel_input_feature_dimension, K::kernel_output_feature_dimension, K::kernel_spatial_dimensions,
    K::output_batch_dimension,         K::output_feature_dimension,        K::output_spatial_dimensions};

llvm::ArrayRef<K> structOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::dot_general:
      return kDot;
    case Opcode::chlo_ragged_dot:
      return kRaggedDot;
    case Opcode::gather:
    case Opcode::dynamic_gather:
      return kGather;
    case Opcode::scatter:
      return kScatter;
    case Opcode::convolution:
    case Opcode::dynamic_conv:
      return kConvolution;
    default:
      return {};
  }
}

bool isNarrow(K key) {
  return key == K::exponent_bits || key == K::mantissa_bits || key == K::index ||
         key == K::composite_version || key == K::api_version;
}

llvm::StringRef spelledName(K key) {
  switch (key) {
    case K::composite_name:
      return "name";
    case K::composite_version:
      return "version";
    case K::mhlo_sharding:
      return "mhlo.sharding";
    case K::frontend_attributes:
      return "mhlo.frontend_attributes";
    case K::sharding_rule:
      return "sdy.sharding_rule";
    case K::result_shardings:
      return "sdy.sharding";
    case K::axes:
      return "replica_groups";
    default:
      return attrName(key);
  }
}

llvm::StringRef enumName(K key) {
  switch (key) {
    case K::compare_type:
      return "comparison_type";
    case K::transpose_a:
      return "transpose";
    default:
      return attrName(key);
  }
}

}  // namespace

void StableHloWriter::item(llvm::StringRef name) {
  os << (first_ ? " {" : ", ") << name;
  first_ = false;
}

bool StableHloWriter::inStruct(AttrKey key, Opcode opcode) {
  return llvm::is_contained(structOf(opcode), key);
}

void StableHloWriter::attrs(OpId id) {
  first_ = true;
  const Op& op = m.op(id);
  structs(id);
  for (AttrId attr_id : op.attrs) {
    const Attr& one = m.attr(attr_id);
    if (!inStruct(one.key, op.opcode)) attr(id, one);
  }
  bool grouped = op.opcode == Opcode::all_gather || op.opcode == Opcode::all_reduce ||
                 op.opcode == Opcode::reduce_scatter;
  if (m.stage == Stage::kSpmd && hasTrait(op.opcode, kCollective) && !m.has(id, K::channel_id)) {
    item("channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>");
    if (grouped && !m.has(id, K::use_global_device_ids)) item("use_global_device_ids");
  }
  if (op.opcode == Opcode::all_to_all && !m.has(id, K::split_count)) {
    item("split_count = ");
    os << groupSize(m, id) << " : i64";
  }
  if (!first_) os << '}';
}

void StableHloWriter::lists(OpId id, llvm::StringRef head, llvm::ArrayRef<AttrKey> keys) {
  item(head);
  os << '<';
  bool first = true;
  for (AttrKey key : keys) {
    const Attr* one = m.findAttr(id, key);
    // The printers of these leave out what is empty; a dot that says so says it.
    if (!one) continue;
    os << (first ? "" : ", ") << attrName(key) << " = ";
    first = false;
    if (one->kind == AttrKind::kInt) {
      os << one->i;
      continue;
    }
    os << '[';
    llvm::interleaveComma(one->ints, os);
    os << ']';
  }
  os << '>';
}

void StableHloWriter::structs(OpId id) {
  Opcode opcode = m.op(id).opcode;
  llvm::ArrayRef<AttrKey> keys = structOf(opcode);
  switch (opcode) {
    case Opcode::dot_general:
      return lists(id, "dot_dimension_numbers = #stablehlo.dot", keys);
    case Opcode::chlo_ragged_dot:
      return lists(id, "ragged_dot_dimension_numbers = #chlo.ragged_dot", keys);
    case Opcode::gather:
    case Opcode::dynamic_gather:
      return lists(id, "dimension_numbers = #stablehlo.gather", keys);
    case Opcode::scatter:
      return lists(id, "scatter_dimension_numbers = #stablehlo.scatter", keys);
    case Opcode::convolution:
    case Opcode::dynamic_conv:
      return convolution(id);
    default:
      return;
  }
}

// #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
void StableHloWriter::convolution(OpId id) {
  item("dimension_numbers = #stablehlo.conv<");
  side(id, "b", K::input_batch_dimension, "f", K::input_feature_dimension, K::input_spatial_dimensions);
  os << 'x';
  side(id, "i", K::kernel_input_feature_dimension, "o", K::kernel_output_feature_dimension,
       K::kernel_spatial_dimensions);
  os << "->";
  side(id, "b", K::output_batch_dimension, "f", K::output_feature_dimension, K::output_spatial_dimensions);
  os << '>';
}

void StableHloWriter::side(OpId id, llvm::StringRef first_role, AttrKey first, llvm::StringRef second_role,
                           AttrKey second, AttrKey spatial) {
  llvm::ArrayRef<int64_t> dims = m.getInts(id, spatial);
  os << '[';
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()) + 2; ++i) {
    os << (i ? ", " : "");
    if (i == m.getInt(id, first))
      os << first_role;
    else if (i == m.getInt(id, second))
      os << second_role;
    else
      os << llvm::find(dims, i) - dims.begin();
  }
  os << ']';
}

void StableHloWriter::ints(const Attr& attr) {
  if (attr.key == K::padding) {
    size_t rows = attr.ints.size() / 2;
    os << "dense<";
    if (rows) os << '[';
    for (size_t i = 0; i < rows; ++i)
      os << (i ? ", [" : "[") << attr.ints[2 * i] << ", " << attr.ints[2 * i + 1] << ']';
    if (rows) os << ']';
    os << "> : tensor<" << rows << "x2xi64>";
    return;
  }
  bool flags = attr.kind == AttrKind::kBools;
  os << (flags ? "array<i1" : "array<i64");
  for (size_t i = 0; i < attr.ints.size(); ++i) {
    os << (i ? ", " : ": ");
    if (flags)
      os << (attr.ints[i] ? "true" : "false");
    else
      os << attr.ints[i];
  }
  os << '>';
}

void StableHloWriter::groups(const Groups& groups) {
  os << "dense<";
  if (!groups.ids.empty()) {
    os << '[';
    for (int64_t row = 0; row < groups.rows; ++row) {
      os << (row ? ", [" : "[");
      for (int64_t col = 0; col < groups.cols; ++col)
        os << (col ? ", " : "") << groups.ids[static_cast<size_t>(row * groups.cols + col)];
      os << ']';
    }
    os << ']';
  }
  os << "> : tensor<" << groups.rows << 'x' << groups.cols << "xi64>";
}

void StableHloWriter::attr(OpId id, const Attr& attr) {
  const Op& op = m.op(id);
  Opcode opcode = op.opcode;
  llvm::StringRef dialect = opInfo(opcode).name.starts_with("chlo.") ? "#chlo<" : "#stablehlo<";
  if (attr.key == K::extra) return item(attr.str);
  if (attr.key == K::channel_type) return;
  if (attr.key == K::channel_id) {
    item("channel_handle = #stablehlo.channel_handle<handle = ");
    os << attr.i << ", type = " << m.getInt(id, K::channel_type) << '>';
    return;
  }
  if (attr.key == K::use_global_device_ids) {
    if (attr.i) item("use_global_device_ids");
    return;
  }
  if (attr.key == K::result_shardings && m.stage == Stage::kSpmd) return;
  item(spelledName(attr.key));
  os << " = ";
  switch (attr.kind) {
    case AttrKind::kBool:
      os << (attr.i ? "true" : "false");
      break;
    case AttrKind::kInt:
      os << attr.i << (isNarrow(attr.key) ? " : i32" : " : i64");
      break;
    case AttrKind::kFloat: {
      uint8_t bytes[4];
      float value = static_cast<float>(attr.f);
      static_assert(sizeof value == sizeof bytes);
      __builtin_memcpy(bytes, &value, sizeof bytes);
      element(ElementType::kF32, bytes);
      os << " : f32";
      break;
    }
    case AttrKind::kInts:
    case AttrKind::kBools:
      ints(attr);
      break;
    case AttrKind::kString:
      if (attr.key == K::callee || attr.key == K::decomposition)
        symbol(attr.str);
      else
        quoted(attr.str);
      break;
    case AttrKind::kStrings:
      os << '[';
      llvm::interleaveComma(attr.strs, os, [&](const std::string& text) {
        if (attr.key == K::precision_config)
          os << dialect << "precision " << text << '>';
        else
          symbol(text);
      });
      os << ']';
      break;
    case AttrKind::kEnum:
      os << dialect << enumName(attr.key) << ' ' << attr.str << '>';
      break;
    case AttrKind::kText:
      if (attr.key == K::algorithm && llvm::StringRef(attr.str).starts_with("<"))
        os << "#stablehlo.dot_algorithm";
      os << attr.str;
      break;
    case AttrKind::kLiteral:
      literal(m.literal(attr.literal));
      break;
    case AttrKind::kGroups:
      groups(attr.groups);
      break;
    case AttrKind::kAxes:
      groups(attr.mesh ? groupsAlong(m.meshes[attr.mesh.v], attr.axes) : Groups());
      break;
    case AttrKind::kSharding:
      os << "#sdy.sharding";
      sharding(attr.sharding, op.operands.empty() ? 0 : m.typeOf(op.operands[0]).rank());
      break;
    case AttrKind::kShardings:
      os << "#sdy.sharding_per_value<";
      shardings(attr.ints, attr.key == K::in_shardings ? llvm::ArrayRef<ValueId>(op.operands) : llvm::ArrayRef<ValueId>(op.results));
      os << '>';
      break;
    case AttrKind::kType:
    case AttrKind::kTypes:
      break;  // no operation of StableHLO has any
  }
}

}  // namespace tpu::hlo
