// Attributes of HLO instructions under the names of the operations here.
#include "build.h"
#include "tpu/hlo/sharding_mistakes.h"
#include "tpu/sharding/device_list.h"
#include "tpu/sharding/text.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

bool Build::setInts(const Instruction& i, OpId op, StringRef name, AttrKey key, bool optional) {
  Ints values;
  const StringRef text = i.get(name);
  if (text.empty() && !optional) return fail(i, "'" + i.opcode + "' without " + name + "=");
  if (!readInts(text, values)) return fail(i, "bad numbers in " + name + "=" + text);
  m.setInts(op, key, values);
  return true;
}

bool Build::setInt(const Instruction& i, OpId op, StringRef name, AttrKey key) {
  Ints values;
  if (!readInts(i.get(name), values) || values.size() != 1) return fail(i, "'" + i.opcode + "' needs one number in " + name + "=");
  m.setInt(op, key, values[0]);
  return true;
}

void Build::setBool(const Instruction& i, OpId op, StringRef name, AttrKey key, bool otherwise) {
  const StringRef text = i.get(name);
  m.setBool(op, key, text.empty() ? otherwise : text == "true");
}

bool Build::setEnum(const Instruction& i, OpId op, StringRef name, AttrKey key, StringRef otherwise) {
  const StringRef text = i.get(name).empty() ? otherwise : i.get(name);
  if (!llvm::is_contained(hlo::enumSpellings(key), text)) return fail(i, "unknown " + name + " '" + text + "'");
  m.setString(op, key, text);
  return true;
}

// window={size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}
bool Build::window(const Instruction& i, OpId op, AttrKey size, AttrKey strides, AttrKey base, AttrKey dilation, bool reversal) {
  StringRef text = i.get("window");
  text.consume_front("{");
  text.consume_back("}");
  llvm::StringMap<Ints> fields;
  llvm::SmallVector<StringRef, 8> entries;
  text.split(entries, ' ', -1, false);
  for (StringRef entry : entries) {
    const auto [key, list] = entry.split('=');
    llvm::SmallVector<StringRef, 8> numbers;
    list.split(numbers, 'x');
    for (StringRef n : numbers) {
      const auto [low, high] = n.split('_');
      int64_t value;
      if (low.getAsInteger(10, value)) return fail(i, "bad window '" + entry + "'");
      fields[key].push_back(value);
      if (key != "pad") continue;
      if (high.getAsInteger(10, value)) return fail(i, "bad window '" + entry + "'");
      fields[key].push_back(value);
    }
  }
  const size_t rank = fields["size"].size();
  const auto filled = [&](StringRef key, size_t n, int64_t otherwise) {
    Ints values = fields[key];
    return values.size() == n ? values : Ints(n, otherwise);
  };
  if (size != AttrKey::dimension) m.setInts(op, size, fields["size"]);
  m.setInts(op, strides, filled("stride", rank, 1));
  m.setInts(op, AttrKey::padding, filled("pad", 2 * rank, 0));
  if (base != AttrKey::dimension) m.setInts(op, base, filled("lhs_dilate", rank, 1));
  if (dilation != AttrKey::dimension) m.setInts(op, dilation, filled("rhs_dilate", rank, 1));
  if (reversal) m.setInts(op, AttrKey::window_reversal, filled("rhs_reversal", rank, 0));
  return true;
}

// dim_labels=b01f_01io->b01f
bool Build::convolutionLabels(const Instruction& i, OpId op) {
  const StringRef text = i.get("dim_labels");
  const auto [in, rest] = text.split('_');
  const auto [kernel, out] = rest.split("->");
  const auto one = [&](StringRef labels, char label, AttrKey key) {
    const size_t at = labels.find(label);
    if (at == StringRef::npos) return false;
    m.setInt(op, key, static_cast<int64_t>(at));
    return true;
  };
  const auto spatial = [&](StringRef labels, AttrKey key) {
    Ints dims;
    for (char digit = '0'; digit <= '9'; ++digit) {
      const size_t at = labels.find(digit);
      if (at == StringRef::npos) break;
      dims.push_back(static_cast<int64_t>(at));
    }
    m.setInts(op, key, dims);
    return dims.size() + 2 == labels.size();
  };
  return (one(in, 'b', AttrKey::input_batch_dimension) && one(in, 'f', AttrKey::input_feature_dimension) &&
          spatial(in, AttrKey::input_spatial_dimensions) && one(kernel, 'i', AttrKey::kernel_input_feature_dimension) &&
          one(kernel, 'o', AttrKey::kernel_output_feature_dimension) && spatial(kernel, AttrKey::kernel_spatial_dimensions) &&
          one(out, 'b', AttrKey::output_batch_dimension) && one(out, 'f', AttrKey::output_feature_dimension) &&
          spatial(out, AttrKey::output_spatial_dimensions)) ||
         fail(i, "bad dim_labels '" + text + "'");
}

// Groups that a short text stands for are spelled out: not more of them than memory holds.
bool Build::mayList(const Instruction& i, int64_t devices) {
  constexpr int64_t kMost = int64_t{1} << 26;  // half a gigabyte
  listed_ += std::min(devices, kMost + 1);
  return listed_ <= kMost || fail(i, "the replica_groups of this program list more than 2^26 devices in all");
}

// mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}: the devices along the listed axes of a mesh.
bool Build::meshGroups(const Instruction& i, OpId op, StringRef text) {
  const auto bad = [&](llvm::Error why) {
    return fail(i, "bad replica_groups '" + text + "': " + takeDiagnostics(std::move(why)).front().text);
  };
  StringRef rest = text;
  auto mesh = sharding::parseNamedMesh(rest, "");
  if (!mesh) return bad(mesh.takeError());
  auto axes = sharding::parseAxes(*mesh, rest, "");
  if (!axes) return bad(axes.takeError());
  if (!mayList(i, mesh->numDevices())) return false;
  m.setGroups(op, AttrKey::replica_groups, hlo::groupsAlong(*mesh, *axes));
  return true;
}

// replica_groups={{0,1},{2,3}}, {}, [2,4]<=[4,2]T(1,0), or along the axes of a mesh
bool Build::groups(const Instruction& i, OpId op) {
  StringRef text = i.get("replica_groups");
  hlo::Groups groups;
  if (text.starts_with("mesh[")) return meshGroups(i, op, text);
  if (text.starts_with("[")) {
    const auto [shape, source] = text.split("<=");
    const auto [dims_text, perm_text] = source.split('T');
    Ints sizes, dims, perm;
    const auto list = [](StringRef part, char open, char close, Ints& into) {
      part = part.trim();
      return part.consume_front(StringRef(&open, 1)) && part.consume_back(StringRef(&close, 1)) && readInts(part, into);
    };
    if (!list(shape, '[', ']', sizes) || !list(dims_text, '[', ']', dims) || sizes.size() != 2 ||
        (!perm_text.empty() && !list(perm_text, '(', ')', perm)))
      return fail(i, "bad replica_groups '" + text + "'");
    if (perm.empty())
      for (size_t d = 0; d < dims.size(); ++d) perm.push_back(static_cast<int64_t>(d));
    int64_t total = 1;
    for (int64_t d : dims)
      if (d < 1 || __builtin_mul_overflow(total, d, &total) || total > int64_t{1} << 24) return fail(i, "bad replica_groups '" + text + "'");
    if (perm.size() != dims.size() || !hlo::permutationText(perm).empty() || sizes[0] <= 0 || sizes[1] <= 0 || sizes[0] * sizes[1] != total)
      return fail(i, "bad replica_groups '" + text + "'");
    if (!mayList(i, total)) return false;
    groups.rows = sizes[0];
    groups.cols = sizes[1];
    // A shape without dimensions has one device.
    for (int64_t id : sharding::devicesOf({dims, perm, {0}})) groups.ids.push_back(id);
    m.setGroups(op, AttrKey::replica_groups, std::move(groups));
    return true;
  }
  std::vector<Ints> rows;
  for (StringRef row : splitList(text))
    if (!readInts(row, rows.emplace_back())) return fail(i, "bad replica_groups '" + text + "'");
  if (rows.empty()) {  // all devices are one group
    if (!mayList(i, m.num_partitions * m.num_replicas)) return false;
    rows.emplace_back();
    for (int64_t d = 0; d < m.num_partitions * m.num_replicas; ++d) rows[0].push_back(d);
  }
  groups.rows = static_cast<int64_t>(rows.size());
  for (const Ints& row : rows) groups.cols = std::max(groups.cols, static_cast<int64_t>(row.size()));
  for (const Ints& row : rows) {
    groups.ids.insert(groups.ids.end(), row.begin(), row.end());
    groups.ids.resize(groups.ids.size() + static_cast<size_t>(groups.cols) - row.size(), -1);
  }
  m.setGroups(op, AttrKey::replica_groups, std::move(groups));
  return true;
}

bool Build::attributes(const Instruction& i, OpId op) {
  const auto precision = [&] {
    std::vector<std::string> names;
    for (StringRef p : splitList(i.get("operand_precision"))) names.push_back(p.upper());
    if (names.empty()) names = {"DEFAULT", "DEFAULT"};
    m.setStrings(op, AttrKey::precision_config, names);
  };
  const auto channel = [&] {
    int64_t id;
    if (i.get("channel_id").getAsInteger(10, id)) return;
    m.setInt(op, AttrKey::channel_id, id);
    m.setInt(op, AttrKey::channel_type, 1);
  };
  const auto grouped = [&] {
    channel();
    if (m.op(op).opcode != Opcode::collective_broadcast) m.setBool(op, AttrKey::use_global_device_ids, i.get("use_global_device_ids") == "true");
    return groups(i, op);
  };
  switch (m.op(op).opcode) {
    case Opcode::broadcast_in_dim: return setInts(i, op, "dimensions", AttrKey::broadcast_dimensions);
    case Opcode::transpose: return setInts(i, op, "dimensions", AttrKey::permutation);
    case Opcode::reverse:
    case Opcode::reduce:
    case Opcode::map: return setInts(i, op, "dimensions", AttrKey::dimensions);
    case Opcode::concatenate: return setInt(i, op, "dimensions", AttrKey::dimension);
    case Opcode::get_dimension_size:
    case Opcode::set_dimension_size: return setInt(i, op, "dimensions", AttrKey::dimension);
    case Opcode::iota: return i.get("iota_dimension").empty() ? (m.setInt(op, AttrKey::iota_dimension, 0), true) : setInt(i, op, "iota_dimension", AttrKey::iota_dimension);
    case Opcode::compare: {
      const ElementType element = m.typeOf(m.op(op).operands[0]).element;
      const StringRef type = isFloat(element) || isComplex(element) ? "FLOAT" : isSigned(element) ? "SIGNED" : "UNSIGNED";
      return setEnum(i, op, "type", AttrKey::compare_type, type) && setEnum(i, op, "direction", AttrKey::comparison_direction, "");
    }
    case Opcode::slice: {
      Ints start, limit, strides;
      for (StringRef part : splitList(i.get("slice"))) {
        part.consume_front("[");
        part.consume_back("]");
        llvm::SmallVector<StringRef, 3> numbers;
        part.split(numbers, ':');
        int64_t values[3] = {0, 0, 1};
        for (size_t k = 0; k < numbers.size() && k < 3; ++k)
          if (numbers[k].trim().getAsInteger(10, values[k])) return fail(i, "bad slice '" + part + "'");
        start.push_back(values[0]);
        limit.push_back(values[1]);
        strides.push_back(values[2]);
      }
      m.setInts(op, AttrKey::start_indices, start);
      m.setInts(op, AttrKey::limit_indices, limit);
      m.setInts(op, AttrKey::strides, strides);
      return true;
    }
    case Opcode::pad: {
      Ints low, high, interior;
      llvm::SmallVector<StringRef, 8> dims;
      if (!i.get("padding").empty()) i.get("padding").split(dims, 'x');
      for (StringRef dim : dims) {
        llvm::SmallVector<StringRef, 3> numbers;
        dim.split(numbers, '_');
        int64_t values[3] = {0, 0, 0};
        for (size_t k = 0; k < numbers.size() && k < 3; ++k)
          if (numbers[k].trim().getAsInteger(10, values[k])) return fail(i, "bad padding '" + dim + "'");
        low.push_back(values[0]);
        high.push_back(values[1]);
        interior.push_back(values[2]);
      }
      m.setInts(op, AttrKey::edge_padding_low, low);
      m.setInts(op, AttrKey::edge_padding_high, high);
      m.setInts(op, AttrKey::interior_padding, interior);
      return true;
    }
    case Opcode::dot_general:
      precision();
      return setInts(i, op, "lhs_batch_dims", AttrKey::lhs_batching_dimensions) && setInts(i, op, "rhs_batch_dims", AttrKey::rhs_batching_dimensions) &&
             setInts(i, op, "lhs_contracting_dims", AttrKey::lhs_contracting_dimensions) && setInts(i, op, "rhs_contracting_dims", AttrKey::rhs_contracting_dimensions);
    case Opcode::chlo_ragged_dot:
      precision();
      return setInts(i, op, "lhs_batch_dims", AttrKey::lhs_batching_dimensions) && setInts(i, op, "rhs_batch_dims", AttrKey::rhs_batching_dimensions) &&
             setInts(i, op, "lhs_contracting_dims", AttrKey::lhs_contracting_dimensions) && setInts(i, op, "rhs_contracting_dims", AttrKey::rhs_contracting_dimensions) &&
             setInts(i, op, "lhs_ragged_dims", AttrKey::lhs_ragged_dimensions) && setInts(i, op, "rhs_group_dims", AttrKey::rhs_group_dimensions);
    case Opcode::convolution:
      precision();
      for (const auto& [name, key] : {std::pair<StringRef, AttrKey>{"feature_group_count", AttrKey::feature_group_count}, {"batch_group_count", AttrKey::batch_group_count}}) {
        int64_t count = 1;
        i.get(name).getAsInteger(10, count);
        m.setInt(op, key, count);
      }
      return window(i, op, AttrKey::dimension, AttrKey::window_strides, AttrKey::lhs_dilation, AttrKey::rhs_dilation, true) && convolutionLabels(i, op);
    case Opcode::reduce_window: return window(i, op, AttrKey::window_dimensions, AttrKey::window_strides, AttrKey::base_dilations, AttrKey::window_dilations, false);
    case Opcode::select_and_scatter: return window(i, op, AttrKey::window_dimensions, AttrKey::window_strides, AttrKey::dimension, AttrKey::dimension, false);
    case Opcode::gather:
      setBool(i, op, "indices_are_sorted", AttrKey::indices_are_sorted);
      return setInts(i, op, "offset_dims", AttrKey::offset_dims) && setInts(i, op, "collapsed_slice_dims", AttrKey::collapsed_slice_dims) &&
             setInts(i, op, "operand_batching_dims", AttrKey::operand_batching_dims) && setInts(i, op, "start_indices_batching_dims", AttrKey::start_indices_batching_dims) &&
             setInts(i, op, "start_index_map", AttrKey::start_index_map) && setInt(i, op, "index_vector_dim", AttrKey::index_vector_dim) &&
             setInts(i, op, "slice_sizes", AttrKey::slice_sizes);
    case Opcode::scatter:
      setBool(i, op, "indices_are_sorted", AttrKey::indices_are_sorted);
      setBool(i, op, "unique_indices", AttrKey::unique_indices);
      return setInts(i, op, "update_window_dims", AttrKey::update_window_dims) && setInts(i, op, "inserted_window_dims", AttrKey::inserted_window_dims) &&
             setInts(i, op, "input_batching_dims", AttrKey::input_batching_dims) && setInts(i, op, "scatter_indices_batching_dims", AttrKey::scatter_indices_batching_dims) &&
             setInts(i, op, "scatter_dims_to_operand_dims", AttrKey::scatter_dims_to_operand_dims) && setInt(i, op, "index_vector_dim", AttrKey::index_vector_dim);
    case Opcode::sort:
      setBool(i, op, "is_stable", AttrKey::is_stable);
      return setInt(i, op, "dimensions", AttrKey::dimension);
    case Opcode::chlo_top_k:
      if (i.get("largest") == "false") return fail(i, "'topk' of the smallest is not read", Code::kUnsupportedFormat);
      return setInt(i, op, "k", AttrKey::k);
    case Opcode::cholesky: return setBool(i, op, "lower", AttrKey::lower), true;
    case Opcode::triangular_solve:
      setBool(i, op, "left_side", AttrKey::left_side);
      setBool(i, op, "lower", AttrKey::lower);
      setBool(i, op, "unit_diagonal", AttrKey::unit_diagonal);
      return setEnum(i, op, "transpose_a", AttrKey::transpose_a, "NO_TRANSPOSE");
    case Opcode::fft: return setEnum(i, op, "fft_type", AttrKey::fft_type, "") && setInts(i, op, "fft_length", AttrKey::fft_length);
    case Opcode::batch_norm_grad:
    case Opcode::batch_norm_inference:
    case Opcode::batch_norm_training: {
      double epsilon = 0;
      if (i.get("epsilon").getAsDouble(epsilon)) return fail(i, "bad epsilon");
      hlo::Attr attr;
      attr.key = AttrKey::epsilon;
      attr.kind = hlo::AttrKind::kFloat;
      attr.f = epsilon;
      m.setAttr(op, attr);
      return setInt(i, op, "feature_index", AttrKey::feature_index);
    }
    case Opcode::reduce_precision: return setInt(i, op, "exponent_bits", AttrKey::exponent_bits) && setInt(i, op, "mantissa_bits", AttrKey::mantissa_bits);
    case Opcode::rng_bit_generator: {
      const StringRef text = i.get("algorithm");
      const StringRef name = text == "rng_three_fry" ? "THREE_FRY" : text == "rng_philox" ? "PHILOX" : text == "rng_default" || text.empty() ? "DEFAULT" : "";
      if (name.empty()) return fail(i, "unknown algorithm '" + text + "'");
      m.setString(op, AttrKey::rng_algorithm, name);
      return true;
    }
    case Opcode::all_gather: return grouped() && setInt(i, op, "dimensions", AttrKey::all_gather_dim);
    case Opcode::reduce_scatter: return grouped() && setInt(i, op, "dimensions", AttrKey::scatter_dimension);
    case Opcode::all_reduce:
    case Opcode::collective_broadcast: return grouped();
    case Opcode::collective_permute: {
      channel();
      hlo::Groups pairs;
      for (StringRef pair : splitList(i.get("source_target_pairs"))) {
        Ints two;
        if (!readInts(pair, two) || two.size() != 2) return fail(i, "bad source_target_pairs");
        pairs.ids.insert(pairs.ids.end(), two.begin(), two.end());
        ++pairs.rows;
      }
      pairs.cols = 2;
      m.setGroups(op, AttrKey::source_target_pairs, std::move(pairs));
      return true;
    }
    default: return true;
  }
}

}  // namespace tpu::frontend::hlo_text
