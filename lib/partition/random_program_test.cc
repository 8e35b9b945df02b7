// The generator and the property: a partitioned random program equals the whole one, bit for bit on integers.
#include <gtest/gtest.h>

#include "equality_test_util.h"
#include "random_program_test_util.h"
#include "tpu/hlo/analysis.h"
#include "tpu/hlo/print.h"
#include "tpu/hlo/verify.h"
#include "tpu/sharding/axes.h"

namespace tpu::partition {

uint64_t Random::next() {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

namespace {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::ValueId;
using Ints = llvm::SmallVector<int64_t, 6>;

class Generator {
 public:
  Generator(uint64_t seed, int num_ops)
      : r_{seed * 7919 + 17},
        num_ops_(num_ops),
        func_(m_.addFunc("main", false)),
        b_(m_, m_.func(func_).body) {
    m_.entry = func_;
    m_.name = "random";
  }

  hlo::Module make() {
    makeMesh();
    int args = 2 + static_cast<int>(r_.below(3));
    for (int i = 0; i < args; ++i) {
      ValueId v =
          m_.addArg(m_.func(func_).body, m_.tensorType(ElementType::kS32, randomDims()), hlo::LocId());
      hlo::Port p;
      if (r_.chance(80)) p.sharding = randomSharding(dims(v));
      m_.funcs[func_.v].arg_ports.push_back(p);
      pool_.push_back(v);
    }
    b_.atEnd(m_.func(func_).body);
    for (int i = 0; i < num_ops_; ++i) step();
    llvm::SmallVector<ValueId, 4> results;
    for (size_t i = 0; i < 3 && i < pool_.size(); ++i) results.push_back(pool_[pool_.size() - 1 - i]);
    b_.yield(results);
    for (ValueId v : results) {
      m_.funcs[func_.v].result_types.push_back(m_.value(v).type);
      hlo::Port p;
      // Drawn from the op count alone, so that shorter programs of a seed stay alike.
      if (r_.chance(50)) p.sharding = randomSharding(dims(v));
      m_.funcs[func_.v].result_ports.push_back(p);
    }
    return std::move(m_);
  }

 private:
  void makeMesh() {
    hlo::Mesh mesh;
    mesh.name = "mesh";
    int64_t total = 1;
    int axes = 1 + static_cast<int>(r_.below(3));
    for (int i = 0; i < axes; ++i) {
      constexpr int64_t kSizes[] = {2, 2, 3, 4, 4, 1};
      int64_t n = kSizes[r_.below(6)];
      if (total * n > 16) n = 1;
      total *= n;
      mesh.axes.push_back({std::string(1, static_cast<char>('x' + i)), n});
    }
    m_.meshes.push_back(mesh);
    m_.num_partitions = total;
  }

  Ints randomDims() {
    constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 4, 12};
    Ints d;
    for (int64_t i = 0, n = 1 + r_.below(3); i < n; ++i) d.push_back(kSizes[r_.below(11)]);
    return d;
  }

  hlo::ShardingId randomSharding(const Ints& dims) {
    hlo::Sharding s;
    s.mesh = hlo::MeshId(0);
    s.dims.resize(dims.size());
    for (uint32_t a = 0; a < m_.meshes[0].axes.size(); ++a) {
      int64_t n = m_.meshes[0].axes[a].size;
      if (n == 1 || dims.empty() || r_.chance(35)) continue;
      hlo::AxisRef ref{a, 1, n};
      if (n == 4 && r_.chance(30)) ref = r_.chance(50) ? hlo::AxisRef{a, 1, 2} : hlo::AxisRef{a, 2, 2};
      sharding::append(s.dims[r_.below(static_cast<int64_t>(dims.size()))].axes, ref);
    }
    for (hlo::DimSharding& d : s.dims) {
      d.open = r_.chance(30);
      if (d.axes.size() > 1 && r_.chance(50)) std::swap(d.axes[0], d.axes[1]);
    }
    return m_.internSharding(s);
  }

  Ints dims(ValueId v) const { return Ints(m_.typeOf(v).dims.begin(), m_.typeOf(v).dims.end()); }
  ValueId any() { return pool_[r_.below(static_cast<int64_t>(pool_.size()))]; }
  /// A value of these dims made from any other.
  ValueId ofDims(const Ints& want) {
    for (int i = 0; i < 6; ++i) {
      ValueId v = any();
      if (dims(v) == want) return v;
    }
    if (want.empty()) return scalar(r_.below(5));
    return b_.add(
        b_.iota(m_.tensorType(ElementType::kS32, want), r_.below(std::max<int64_t>(1, want.size()))),
        b_.splatInt(m_.tensorType(ElementType::kS32, want), r_.below(5)));
  }
  ValueId scalar(int64_t v) { return b_.scalarInt(ElementType::kS32, v); }
  void keep(ValueId v) {
    if (m_.typeOf(v).numElements() <= 4000) pool_.push_back(v);
  }

  void step() {
    ValueId x = any();
    Ints d = dims(x);
    int64_t rank = static_cast<int64_t>(d.size());
    switch (r_.below(26)) {
      case 0:
        return keep(b_.add(x, ofDims(d)));
      case 1:
        return keep(b_.multiply(x, ofDims(d)));
      case 2:
        return keep(b_.select(b_.compare(hlo::Comparison::kLt, x, ofDims(d)), x, ofDims(d)));
      case 3:
        return transposeStep(x, d);
      case 4:
        return reshapeStep(x, d);
      case 5:
        return sliceStep(x, d);
      case 6:
        return padStep(x, d);
      case 7:
        return concatStep(x, d);
      case 8:
        return keep(rank ? b_.reverse(x, {r_.below(rank)}) : x);
      case 9:
        return reduceStep(x, d);
      case 10:
      case 11:
        return dotStep(x, d);
      case 12:
        return broadcastStep(x, d);
      case 13:
        return constraintStep(x, d);
      case 14:
        return constraintStep(x, d);
      case 15:
        return dynamicSliceStep(x, d);
      case 16:
        return dynamicUpdateStep(x, d);
      case 17:
        return gatherStep(x, d);
      case 18:
        return scatterStep(x, d);
      case 19:
        return sortStep(x, d);
      case 20:
        return topKStep(x, d);
      case 21:
        return windowStep(x, d);
      case 22:
        return branchStep(x, d);
      case 23:
        return convolutionStep();
      case 24:
        return manualStep(x, d);
      default:
        return loopStep(x, d);
    }
  }

  void transposeStep(ValueId x, const Ints& d) {
    Ints perm;
    for (size_t i = 0; i < d.size(); ++i)
      perm.insert(perm.begin() + r_.below(static_cast<int64_t>(perm.size()) + 1), static_cast<int64_t>(i));
    keep(b_.transpose(x, perm));
  }
  void reshapeStep(ValueId x, const Ints& d) {
    int64_t n = m_.typeOf(x).numElements();
    Ints out;
    while (n > 1 && out.size() < 4) {
      int64_t f = 1 + r_.below(n);
      while (n % f != 0) f = 1 + r_.below(n);
      if (f == 1 && r_.chance(70)) continue;
      out.push_back(f);
      n /= f;
    }
    if (n > 1) out.push_back(n);
    keep(b_.reshape(x, out));
  }
  void sliceStep(ValueId x, const Ints& d) {
    Ints start(d.size(), 0), limit = d, stride(d.size(), 1);
    for (size_t i = 0; i < d.size(); ++i) {
      if (d[i] < 2 || r_.chance(40)) continue;
      start[i] = r_.below(d[i] / 2 + 1);
      limit[i] = start[i] + 1 + r_.below(d[i] - start[i]);
      stride[i] = 1 + r_.below(2);
    }
    keep(b_.slice(x, start, limit, stride));
  }
  void padStep(ValueId x, const Ints& d) {
    Ints low(d.size(), 0), high(d.size(), 0), mid(d.size(), 0);
    for (size_t i = 0; i < d.size(); ++i) {
      if (r_.chance(40)) continue;
      low[i] = r_.below(4) - (d[i] > 2 ? 1 : 0);
      high[i] = r_.below(4) - (d[i] > 2 ? 1 : 0);
      if (r_.chance(20)) mid[i] = 1;
    }
    keep(b_.pad(x, scalar(r_.below(9)), low, high, mid));
  }
  void concatStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    int64_t dim = r_.below(static_cast<int64_t>(d.size()));
    Ints other = d;
    other[dim] = 1 + r_.below(6);
    keep(b_.concatenate({x, ofDims(other)}, dim));
  }
  void reduceStep(ValueId x, const Ints& d) {
    Ints which;
    for (size_t i = 0; i < d.size(); ++i) {
      if (r_.chance(50)) which.push_back(static_cast<int64_t>(i));
    }
    constexpr Opcode kOps[] = {Opcode::add, Opcode::maximum, Opcode::minimum, Opcode::add, Opcode::xor_};
    Opcode op = kOps[r_.below(5)];
    ValueId init =
        r_.chance(70) ? *b_.identity(op, m_.tensorType(ElementType::kS32, {})) : scalar(r_.below(7));
    keep(b_.reduce(x, init, which, op));
  }
  void dotStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    int64_t k = r_.below(static_cast<int64_t>(d.size()));
    Ints other = {d[k], 1 + r_.below(8)};
    bool flip = r_.chance(50);
    if (flip) std::swap(other[0], other[1]);
    int64_t kr = flip ? 1 : 0;
    ValueId y = ofDims(other);
    bool batch = d.size() > 1 && r_.chance(25);
    if (batch) {
      int64_t bd = (k + 1) % static_cast<int64_t>(d.size());
      y = ofDims({d[bd], d[k], 1 + r_.below(5)});
      return keep(b_.dotGeneral(x, y, {{bd}, {0}, {k}, {1}}, ElementType::kS32));
    }
    keep(b_.dotGeneral(x, y, {{}, {}, {k}, {kr}}, ElementType::kS32));
  }
  void broadcastStep(ValueId x, const Ints& d) {
    Ints out, map;
    for (size_t i = 0; i <= d.size(); ++i) {
      if (r_.chance(35) && out.size() < 4) out.push_back(1 + r_.below(6));
      if (i == d.size()) break;
      map.push_back(static_cast<int64_t>(out.size()));
      out.push_back(d[i] == 1 && r_.chance(70) ? 1 + r_.below(8) : d[i]);
    }
    keep(b_.broadcastInDim(x, out, map));
  }
  void constraintStep(ValueId x, const Ints& d) {
    hlo::OpId op = b_.create(Opcode::sdy_sharding_constraint, {x}, {m_.value(x).type});
    m_.setSharding(op, AttrKey::sharding, randomSharding(d));
    keep(b_.result(op));
  }
  ValueId runTimeIndex() {
    ValueId v = any();
    Ints all;
    for (int64_t i = 0; i < m_.typeOf(v).rank(); ++i) all.push_back(i);
    ValueId sum = all.empty() ? v : b_.reduce(v, scalar(0), all, Opcode::add);
    return b_.subtract(b_.remainder(sum, scalar(11)), scalar(2));
  }
  void dynamicSliceStep(ValueId x, const Ints& d) {
    Ints sizes;
    llvm::SmallVector<ValueId, 4> starts;
    for (int64_t n : d) {
      sizes.push_back(r_.chance(40) ? n : 1 + r_.below(n));
      starts.push_back(r_.chance(50) ? runTimeIndex() : scalar(r_.below(n + 2) - 1));
    }
    keep(b_.dynamicSlice(x, starts, sizes));
  }
  void dynamicUpdateStep(ValueId x, const Ints& d) {
    Ints sizes;
    llvm::SmallVector<ValueId, 4> starts;
    for (int64_t n : d) {
      sizes.push_back(r_.chance(40) ? n : 1 + r_.below(n));
      starts.push_back(r_.chance(50) ? runTimeIndex() : scalar(r_.below(n + 2) - 1));
    }
    keep(b_.dynamicUpdateSlice(x, ofDims(sizes), starts));
  }
  ValueId indices(int64_t count, int64_t range) {
    ValueId raw = ofDims({count, 1});
    hlo::TypeId type = m_.value(raw).type;
    return b_.subtract(
        b_.remainder(b_.add(raw, b_.splatInt(type, r_.below(5))), b_.splatInt(type, range + 3)),
        b_.splatInt(type, 1));
  }
  void gatherStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    int64_t dim = r_.below(static_cast<int64_t>(d.size())), count = 1 + r_.below(8);
    ValueId idx = indices(count, d[dim]);
    Ints out, sizes = d, offset;
    sizes[dim] = 1;
    out.push_back(count);
    for (size_t i = 0; i < d.size(); ++i) {
      if (static_cast<int64_t>(i) == dim) continue;
      offset.push_back(static_cast<int64_t>(out.size()));
      out.push_back(d[i]);
    }
    hlo::OpId op = b_.create(Opcode::gather, {x, idx}, {m_.tensorType(ElementType::kS32, out)});
    m_.setInts(op, AttrKey::offset_dims, offset);
    m_.setInts(op, AttrKey::collapsed_slice_dims, {dim});
    m_.setInts(op, AttrKey::start_index_map, {dim});
    m_.setInt(op, AttrKey::index_vector_dim, 1);
    m_.setInts(op, AttrKey::slice_sizes, sizes);
    keep(b_.result(op));
  }
  void scatterStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    int64_t dim = r_.below(static_cast<int64_t>(d.size())), count = 1 + r_.below(8);
    ValueId idx = indices(count, d[dim]);
    Ints up = {count}, window;
    for (size_t i = 0; i < d.size(); ++i) {
      if (static_cast<int64_t>(i) == dim) continue;
      window.push_back(static_cast<int64_t>(up.size()));
      up.push_back(d[i]);
    }
    hlo::OpId op = b_.create(Opcode::scatter, {x, idx, ofDims(up)}, {m_.value(x).type});
    m_.setInts(op, AttrKey::update_window_dims, window);
    m_.setInts(op, AttrKey::inserted_window_dims, {dim});
    m_.setInts(op, AttrKey::scatter_dims_to_operand_dims, {dim});
    m_.setInt(op, AttrKey::index_vector_dim, 1);
    b_.combinerRegion(op, r_.chance(60) ? Opcode::add : Opcode::maximum, ElementType::kS32);
    keep(b_.result(op));
  }
  void sortStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    hlo::OpId op = b_.create(Opcode::sort, {x}, {m_.value(x).type});
    m_.setInt(op, AttrKey::dimension, r_.below(static_cast<int64_t>(d.size())));
    m_.setBool(op, AttrKey::is_stable, true);
    hlo::RegionId outer = b_.region(), body = b_.addRegion(op);
    hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {});
    ValueId a = m_.addArg(body, s32, hlo::LocId()), b = m_.addArg(body, s32, hlo::LocId());
    b_.atEnd(body);
    b_.yield({b_.compare(hlo::Comparison::kLt, a, b)});
    b_.atEnd(outer);
    keep(b_.result(op));
  }
  void topKStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    Ints out = d;
    out.back() = 1 + r_.below(d.back());
    hlo::TypeId type = m_.tensorType(ElementType::kS32, out);
    hlo::OpId op = b_.create(Opcode::chlo_top_k, {x}, {type, type});
    m_.setInt(op, AttrKey::k, out.back());
    keep(m_.op(op).results[0]);
    keep(m_.op(op).results[1]);
  }
  void windowStep(ValueId x, const Ints& d) {
    if (d.empty()) return;
    size_t dim = static_cast<size_t>(r_.below(static_cast<int64_t>(d.size())));
    Ints window(d.size(), 1), stride(d.size(), 1), padding(2 * d.size(), 0), out = d;
    window[dim] = 1 + r_.below(d[dim]);
    padding[2 * dim] = r_.below(window[dim]);
    padding[2 * dim + 1] = r_.below(3);
    stride[dim] = 1 + r_.below(2);
    out[dim] = (d[dim] + padding[2 * dim] + padding[2 * dim + 1] - window[dim]) / stride[dim] + 1;
    hlo::OpId op = b_.create(Opcode::reduce_window, {x, scalar(0)}, {m_.tensorType(ElementType::kS32, out)});
    m_.setInts(op, AttrKey::window_dimensions, window);
    m_.setInts(op, AttrKey::window_strides, stride);
    m_.setInts(op, AttrKey::padding, padding);
    b_.combinerRegion(op, Opcode::add, ElementType::kS32);
    keep(b_.result(op));
  }
  void branchStep(ValueId x, const Ints& d) {
    ValueId y = ofDims(d), index = b_.remainder(runTimeIndex(), scalar(2));
    hlo::OpId op = b_.create(Opcode::case_, {index}, {m_.value(x).type});
    hlo::RegionId outer = b_.region(), first = b_.addRegion(op), second = b_.addRegion(op);
    b_.atEnd(first);
    b_.yield({b_.add(x, y)});
    b_.atEnd(second);
    Ints all;
    for (size_t i = 0; i < d.size(); ++i) all.push_back(static_cast<int64_t>(i));
    b_.yield({b_.multiply(x, b_.broadcastScalar(b_.reduce(y, scalar(0), all, Opcode::add), d))});
    b_.atEnd(outer);
    keep(b_.result(op));
  }
  void convolutionStep() {
    int64_t n = 1 + r_.below(4), groups = r_.chance(30) ? 2 : 1, ci = groups * (1 + r_.below(2)),
            co = groups * (1 + r_.below(3));
    int64_t size = 4 + r_.below(9), k = 1 + r_.below(3), stride = 1 + r_.below(2), dilation = 1 + r_.below(2),
            low = r_.below(4), high = r_.below(4);
    int64_t out = size + low + high - ((k - 1) * dilation + 1);
    if (out < 0) return;
    out = out / stride + 1;
    hlo::OpId op =
        b_.create(Opcode::convolution, {constrained({n, size, ci}), constrained({k, ci / groups, co})},
                  {m_.tensorType(ElementType::kS32, {n, out, co})});
    auto set = [&](AttrKey key, int64_t v) { m_.setInt(op, key, v); };
    set(AttrKey::input_batch_dimension, 0), set(AttrKey::input_feature_dimension, 2),
        set(AttrKey::output_batch_dimension, 0);
    set(AttrKey::output_feature_dimension, 2), set(AttrKey::kernel_input_feature_dimension, 1),
        set(AttrKey::kernel_output_feature_dimension, 2);
    m_.setInts(op, AttrKey::input_spatial_dimensions, {1});
    m_.setInts(op, AttrKey::output_spatial_dimensions, {1});
    m_.setInts(op, AttrKey::kernel_spatial_dimensions, {0});
    m_.setInts(op, AttrKey::window_strides, {stride});
    m_.setInts(op, AttrKey::rhs_dilation, {dilation});
    m_.setInts(op, AttrKey::padding, {low, high});
    set(AttrKey::feature_group_count, groups), set(AttrKey::batch_group_count, 1);
    keep(b_.result(op));
  }
  ValueId constrained(const Ints& d) {
    hlo::OpId op =
        b_.create(Opcode::sdy_sharding_constraint, {ofDims(d)}, {m_.tensorType(ElementType::kS32, d)});
    m_.setSharding(op, AttrKey::sharding, randomSharding(d));
    return b_.result(op);
  }
  /// A body on local shapes over one axis, the other axes free: with a sum over the manual axis or without.
  void manualStep(ValueId x, const Ints& d) {
    const hlo::Mesh mesh = m_.meshes[0];
    uint32_t axis = static_cast<uint32_t>(r_.below(static_cast<int64_t>(mesh.axes.size())));
    int64_t n = mesh.axes[axis].size, dim = -1;
    for (size_t i = 0; i < d.size(); ++i) {
      if (n > 1 && d[i] % n == 0) dim = static_cast<int64_t>(i);
    }
    if (dim < 0) return;
    hlo::AxisRef ref{axis, 1, n};
    hlo::Sharding s;
    s.mesh = hlo::MeshId(0);
    s.dims.resize(d.size());
    for (hlo::DimSharding& k : s.dims) k.open = r_.chance(70);
    s.dims[dim].axes.push_back(ref);
    int64_t id = m_.internSharding(s).v;
    hlo::OpId op = b_.create(Opcode::sdy_manual_computation, {x}, {m_.value(x).type});
    auto list = [&](AttrKey key) {
      hlo::Attr a;
      a.key = key;
      a.kind = hlo::AttrKind::kShardings;
      a.ints.push_back(id);
      m_.setAttr(op, std::move(a));
    };
    list(AttrKey::in_shardings);
    list(AttrKey::out_shardings);
    m_.setAxes(op, AttrKey::manual_axes, hlo::MeshId(0), {ref});
    Ints local = d;
    local[dim] /= n;
    hlo::TypeId type = m_.tensorType(ElementType::kS32, local);
    hlo::RegionId outer = b_.region(), body = b_.addRegion(op);
    ValueId v = m_.addArg(body, type, hlo::LocId());
    b_.atEnd(body);
    if (r_.chance(60)) {
      hlo::OpId sum = b_.create(Opcode::all_reduce, {v}, {type});
      hlo::Groups groups;
      groups.cols = n;
      int64_t stride = sharding::stride(mesh, ref);
      for (int64_t device = 0; device < mesh.numDevices(); ++device) {
        if (sharding::coordinate(mesh, ref, device) != 0) continue;
        ++groups.rows;
        for (int64_t i = 0; i < n; ++i) groups.ids.push_back(device + i * stride);
      }
      m_.setGroups(sum, AttrKey::replica_groups, std::move(groups));
      m_.setInt(sum, AttrKey::channel_id, 1);
      m_.setBool(sum, AttrKey::use_global_device_ids, true);
      b_.combinerRegion(sum, Opcode::add, ElementType::kS32);
      v = b_.add(v, b_.result(sum));
    } else {
      v = b_.multiply(v, b_.add(b_.iota(type, dim), b_.splatInt(type, 2)));
    }
    b_.yield({v});
    b_.atEnd(outer);
    keep(b_.result(op));
  }
  /// acc = x; three times: acc = acc * c + y, where y comes from around the loop.
  void loopStep(ValueId x, const Ints& d) {
    ValueId y = ofDims(d);
    hlo::TypeId s32 = m_.tensorType(ElementType::kS32, {}), type = m_.value(x).type;
    hlo::OpId op = b_.create(Opcode::while_, {scalar(0), x}, {s32, type});
    hlo::RegionId outer = b_.region(), cond = b_.addRegion(op), body = b_.addRegion(op);
    ValueId ci = m_.addArg(cond, s32, hlo::LocId());
    m_.addArg(cond, type, hlo::LocId());
    b_.atEnd(cond);
    b_.yield({b_.compare(hlo::Comparison::kLt, ci, scalar(3))});
    ValueId bi = m_.addArg(body, s32, hlo::LocId()), acc = m_.addArg(body, type, hlo::LocId());
    b_.atEnd(body);
    ValueId next = b_.add(b_.multiply(acc, b_.splatInt(type, 3)), y);
    if (!d.empty() && r_.chance(50)) next = b_.reverse(next, {0});
    b_.yield({b_.add(bi, scalar(1)), next});
    b_.atEnd(outer);
    keep(m_.op(op).results[1]);
  }

  Random r_;
  int num_ops_;
  hlo::Module m_;
  hlo::FuncId func_;
  hlo::Builder b_;
  std::vector<ValueId> pool_;
};

std::string problemOf(uint64_t seed, int ops) {
  return compareModules(randomProgram(seed, ops), {}, seed, 0).problem;
}

TEST(RandomPrograms, EqualTheWholeProgram) {
  const char* count = std::getenv("PROGRAMS");
  const char* first = std::getenv("SEED");
  uint64_t begin = first ? std::strtoull(first, nullptr, 10) : 1;
  int programs = count ? std::atoi(count) : 400, failures = 0;
  for (uint64_t seed = begin; seed < begin + programs && failures < 5; ++seed) {
    int ops = 5 + static_cast<int>(seed % 20);
    std::string problem = problemOf(seed, ops);
    if (problem.empty()) continue;
    ++failures;
    while (ops > 0 && !problemOf(seed, ops - 1).empty()) --ops;
    Comparison c = compareModules(randomProgram(seed, ops), {}, seed, 0);
    ADD_FAILURE() << "seed " << seed << " with " << ops << " ops: " << c.problem
                  << hlo::toText(randomProgram(seed, ops)) << hlo::toText(c.partitioned);
  }
}

/// The property must be able to fail: sums over devices turned into maxima are noticed.
TEST(RandomPrograms, SeededFaultsAreSeen) {
  int faults = 0, seen = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    hlo::Module whole = randomProgram(seed, 12);
    Comparison c = compareModules(whole, {}, seed, 0);
    bool changed = false;
    hlo::walk(c.partitioned, [&](hlo::OpId id) {
      if (c.partitioned.op(id).opcode != Opcode::all_reduce) return;
      for (hlo::OpId inner : c.partitioned.region(c.partitioned.op(id).regions[0]).ops) {
        if (c.partitioned.op(inner).opcode != Opcode::add) continue;
        c.partitioned.op(inner).opcode = Opcode::maximum;
        changed = true;
      }
    });
    if (!changed) continue;
    ++faults;
    seen += !compareRuns(whole, c.partitioned, seed, 0).empty();
  }
  EXPECT_GT(faults, 5);
  EXPECT_GT(seen, faults / 2);
}

}  // namespace

hlo::Module randomProgram(uint64_t seed, int num_ops) { return Generator(seed, num_ops).make(); }

}  // namespace tpu::partition
