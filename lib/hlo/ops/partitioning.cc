// Rules of the sharding dialect: constraints, manual computations, named computations.
#include "check.h"
#include "tpu/hlo/sharding_mistakes.h"

namespace tpu::hlo {
namespace {

llvm::Error needRankOf(OpCheck& c, ShardingId id, const Type& type) {
  if (!id) return llvm::Error::success();
  if (c.m.meshes[c.m.sharding(id).mesh.v].maximal_device >= 0) return llvm::Error::success();
  size_t dims = c.m.sharding(id).dims.size();
  if (type.kind == TypeKind::kTensor && dims != type.dims.size())
    return tpu::fail(Code::kShardingMisfit, c.m.loc(c.op.loc), shardingRankText(c.m, c.m.sharding(id), type));
  return llvm::Error::success();
}

// Compares the local view of an outer type under a sharding with the type inside the body.
llvm::Error needLocal(OpCheck& c, llvm::StringRef what, const Type& outer, int64_t sharding,
                      const Type& inner) {
  ShardingId id(static_cast<uint32_t>(sharding));
  if (auto e = needRankOf(c, id, outer)) return e;
  if (outer.kind != TypeKind::kTensor) return llvm::Error::success();
  const Attr* manual = c.m.findAttr(c.id, AttrKey::manual_axes);
  llvm::ArrayRef<AxisRef> axes;
  if (manual) axes = manual->axes;
  Type local = id ? localType(c.m, outer, c.m.sharding(id), axes) : outer;
  if (compatible(local, inner)) return llvm::Error::success();
  return c.fail(what + " is " + c.text(inner) + " inside, but " + c.text(outer) +
                " under its sharding gives " + c.text(local));
}

}  // namespace

Type localType(const Module& module, const Type& global, const Sharding& sharding,
               std::optional<llvm::ArrayRef<AxisRef>> only) {
  Type local = global;
  for (size_t i = 0; i < local.dims.size() && i < sharding.dims.size(); ++i) {
    int64_t parts = 1;
    for (const AxisRef& axis : sharding.dims[i].axes) {
      bool counts = !only || llvm::any_of(*only, [&](const AxisRef& a) { return a.axis == axis.axis; });
      if (counts && __builtin_mul_overflow(parts, axis.size, &parts)) parts = INT64_MAX;
    }
    if (local.dims[i] > 0 && parts > 1) local.dims[i] = (local.dims[i] - 1) / parts + 1;
  }
  return local;
}

llvm::Error ruleShardingConstraint(OpCheck& c) {
  if (auto e = c.needTensors()) return e;
  const Attr* sharding = c.m.findAttr(c.id, AttrKey::sharding);
  if (sharding)
    if (auto e = needRankOf(c, sharding->sharding, c.in(0))) return e;
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleManualComputation(OpCheck& c) {
  if (auto e = c.needLength(AttrKey::in_shardings, c.numIn())) return e;
  const Region& body = c.region(0);
  if (body.args.size() != c.numIn())
    return c.fail("body takes " + llvm::Twine(body.args.size()) + " arguments, expected " +
                  llvm::Twine(c.numIn()));
  for (size_t i = 0; i < c.numIn(); ++i)
    if (auto e = needLocal(c, "operand " + std::to_string(i), c.in(i), c.ints(AttrKey::in_shardings)[i],
                           c.m.typeOf(body.args[i])))
      return e;
  llvm::SmallVector<TypeId, 2> yields = c.yields(0);
  if (auto e = c.needLength(AttrKey::out_shardings, yields.size())) return e;
  if (c.numOut() != yields.size())
    return c.fail("body yields " + llvm::Twine(yields.size()) + " values, expected " +
                  llvm::Twine(c.numOut()));
  for (size_t i = 0; i < c.numOut(); ++i)
    if (auto e = needLocal(c, "result " + std::to_string(i), c.out(i), c.ints(AttrKey::out_shardings)[i],
                           c.m.type(yields[i])))
      return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleNamedComputation(OpCheck& c) {
  const Region& body = c.region(0);
  if (body.args.size() != c.numIn())
    return c.fail("body takes " + llvm::Twine(body.args.size()) + " arguments, expected " +
                  llvm::Twine(c.numIn()));
  for (size_t i = 0; i < c.numIn(); ++i)
    if (!compatible(c.in(i), c.m.typeOf(body.args[i])))
      return c.fail("body argument is " + c.text(c.m.typeOf(body.args[i])) + " for an operand of " +
                    c.text(c.in(i)));
  for (TypeId type : c.yields(0)) c.yield(c.m.type(type));
  return llvm::Error::success();
}

llvm::Error ruleSameType(OpCheck& c) {
  c.yield(c.in(0));
  return llvm::Error::success();
}

llvm::Error ruleShardingGroup(OpCheck& c) { return c.needTensors(); }

}  // namespace tpu::hlo
