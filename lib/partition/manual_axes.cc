// Axes of manual computations are taken inside of them, and lead where they shard a value at the border: then what stands
// inside is one part, and what is left of the sharding divides that part.
#include "context.h"
#include "tpu/sharding/text.h"

namespace tpu::partition {

using hlo::AttrKey;
using hlo::Opcode;
using hlo::OpId;
using hlo::ShardingId;
using sharding::Axes;
using sharding::AxesRef;
using sharding::AxisRef;

namespace {

class ManualAxesCheck {
 public:
  ManualAxesCheck(const hlo::Module& m, const hlo::Mesh& mesh) : m_(m), mesh_(mesh) {}

  llvm::Error region(hlo::RegionId r, AxesRef manual, llvm::StringRef where) {
    for (OpId id : m_.region(r).ops) {
      const hlo::Op& op = m_.op(id);
      if (!manual.empty() && (op.opcode == Opcode::sdy_sharding_constraint || op.opcode == Opcode::sdy_reshard)) {
        if (llvm::Error e = inside(id, m_.value(op.results[0]).sharding, manual, where)) return e;
      }
      Axes inner(manual.begin(), manual.end());
      std::string here = where.str();
      if (op.opcode == Opcode::sdy_manual_computation) {
        if (const hlo::Attr* a = m_.findAttr(id, AttrKey::manual_axes)) {
          if (llvm::Error e = borders(id, a->axes)) return e;
          inner.append(a->axes.begin(), a->axes.end());
          here = m_.loc(op.loc).str();
        }
      }
      for (hlo::RegionId child : op.regions) {
        if (llvm::Error e = region(child, inner, here)) return e;
      }
    }
    return llvm::Error::success();
  }

 private:
  std::string nameOf(const AxisRef& a) const { return mesh_.axes[a.axis].name; }

  /// A sharding inside of a manual region by an axis that is manual there.
  llvm::Error inside(OpId id, ShardingId sharding, AxesRef manual, llvm::StringRef where) const {
    if (!sharding) return llvm::Error::success();
    hlo::Sharding left = m_.sharding(sharding);
    const AxisRef* taken = nullptr;
    for (hlo::DimSharding& d : left.dims) {
      for (const AxisRef& a : m_.sharding(sharding).dims[&d - left.dims.data()].axes) {
        if (!taken && sharding::overlaps(a, manual)) taken = &a;
      }
      llvm::erase_if(d.axes, [&](const AxisRef& a) { return sharding::overlaps(a, manual); });
    }
    if (!taken) return llvm::Error::success();
    return fail(Code::kManualNested, m_.loc(m_.op(id).loc),
                "axis '" + nameOf(*taken) + "' is manual in the region at " + where + ", where values are parts along it already; write " +
                    sharding::print(mesh_, left));
  }

  /// Free axes in front of manual ones.
  llvm::Error borders(OpId id, AxesRef manual) const {
    for (AttrKey key : {AttrKey::in_shardings, AttrKey::out_shardings}) {
      const hlo::Attr* a = m_.findAttr(id, key);
      for (size_t i = 0; a && i < a->ints.size(); ++i) {
        const ShardingId s(static_cast<uint32_t>(a->ints[i]));
        if (!s) continue;
        for (const hlo::DimSharding& d : m_.sharding(s).dims) {
          const AxisRef* free = nullptr;
          for (const AxisRef& axis : d.axes) {
            if (!sharding::overlaps(axis, manual)) {
              free = &axis;
            } else if (free) {
              return fail(Code::kManualNested, m_.loc(m_.op(id).loc),
                          "manual axis '" + nameOf(axis) + "' stands behind '" + nameOf(*free) + "' in " +
                              (key == AttrKey::in_shardings ? "in" : "out") + "_shardings[" + llvm::Twine(i) +
                              "]; manual axes lead a dimension: write '" + nameOf(axis) + "' first");
            }
          }
        }
      }
    }
    return llvm::Error::success();
  }

  const hlo::Module& m_;
  const hlo::Mesh& mesh_;
};

}  // namespace

llvm::Error checkManualAxes(const hlo::Module& m, const Context& ctx) {
  if (!ctx.mesh) return llvm::Error::success();
  return ManualAxesCheck(m, ctx.meshOf(m)).region(m.func(m.entry).body, {}, "");
}

}  // namespace tpu::partition
