// Rules of transfers to and from the host or another device, and of composites: results that only their
// statement tells, with a token at the end. HLO text returns payload and token as one tuple.
#include "check.h"

namespace tpu::hlo {
namespace {

// The types that an op returns, a lone tuple opened (HLO nests the payload in a tuple of its own).
llvm::SmallVector<TypeId, 4> returned(OpCheck& c) {
  llvm::SmallVector<TypeId, 4> types;
  for (ValueId v : c.op.results) types.push_back(c.m.value(v).type);
  if (types.size() == 1 && c.m.type(types[0]).kind == TypeKind::kTuple) {
    const auto& elements = c.m.type(types[0]).elements;
    types.assign(elements.begin(), elements.end());
  }
  return types;
}

llvm::Error needPayloadAndToken(OpCheck& c, size_t first) {
  const bool tuple = c.numOut() == 1 && c.out(0).kind == TypeKind::kTuple;
  const llvm::SmallVector<TypeId, 4> types = returned(c);
  if (types.empty()) return c.fail(C(first), "has no results, expected a token");
  for (size_t i = 0; !tuple && i + 1 < types.size(); ++i)
    if (c.m.type(types[i]).kind != TypeKind::kTensor)
      return c.fail(C(first + 1),
                    "result " + llvm::Twine(i) + " is " + typeText(c.m, types[i]) + ", expected a tensor");
  for (size_t i = 0; !tuple && i + 1 < types.size(); ++i)
    if (auto e = c.needStaticResult(i, O(1))) return e;
  if (c.m.type(types.back()).kind == TypeKind::kToken) return llvm::Error::success();
  return c.fail(C(first + 2), "the last result is " + typeText(c.m, types.back()) + ", expected a token");
}

// Channel types are 1 between devices, 2 device to host, 3 host to device.
llvm::Error needChannelType(OpCheck& c, int64_t to_or_from_host) {
  if (!c.has(AttrKey::channel_type)) return llvm::Error::success();
  const int64_t type = c.num(AttrKey::channel_type);
  const bool host = c.num(AttrKey::is_host_transfer) != 0;
  if (type == (host ? to_or_from_host : 1)) return llvm::Error::success();
  constexpr const char* kNames[] = {"", "DEVICE_TO_DEVICE", "DEVICE_TO_HOST", "HOST_TO_DEVICE"};
  const std::string name = type > 0 && type < 4 ? kNames[type] : std::to_string(type);
  return c.fail(
      C(1), "is_host_transfer = " + llvm::Twine(host ? "true" : "false") + " over a channel of type " + name);
}

}  // namespace

llvm::Error ruleInfeed(OpCheck& c) {
  if (auto e = c.needToken(0, I(1))) return e;
  if (auto e = needPayloadAndToken(c, 1)) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleRecv(OpCheck& c) {
  if (auto e = c.needToken(0, I(1))) return e;
  if (auto e = c.needAttr(AttrKey::channel_id, I(2))) return e;
  if (auto e = needChannelType(c, 3)) return e;
  if (auto e = needPayloadAndToken(c, 2)) return e;
  c.yieldGiven();
  return llvm::Error::success();
}

llvm::Error ruleOutfeed(OpCheck& c) {
  c.resultsBy(O(1), O(1));
  if (auto e = c.needToken(c.numIn() - 1, I(2))) return e;
  return ruleToken(c);
}

llvm::Error ruleSend(OpCheck& c) {
  c.resultsBy(O(1), O(1));
  if (auto e = c.needToken(c.numIn() - 1, I(2))) return e;
  if (auto e = c.needAttr(AttrKey::channel_id, I(3))) return e;
  if (auto e = needChannelType(c, 2)) return e;
  return ruleToken(c);
}

llvm::Error ruleComposite(OpCheck& c) {
  const llvm::StringRef name = c.m.getString(c.id, AttrKey::composite_name);
  const llvm::StringRef of = c.m.getString(c.id, AttrKey::decomposition);
  const auto [space, own] = name.split('.');
  if (c.has(AttrKey::composite_name) && (space.empty() || own.empty()))
    return c.fail(C(1), "name '" + name + "' has no namespace, expected one as in 'my.op'");
  const FuncId callee = c.m.findFunc(of);
  if (!callee)
    return c.has(AttrKey::decomposition) ? c.fail(C(2), "decomposition @" + of + " is not defined")
                                         : ruleOpaque(c);
  const Func& func = c.m.func(callee);
  const Region& body = c.m.region(func.body);
  auto misfit = [&](Label label, const llvm::Twine& what, size_t found, size_t expected) {
    return c.fail(label, "has " + llvm::Twine(found) + " " + what + ", decomposition @" + of + " has " +
                             llvm::Twine(expected));
  };
  if (c.numIn() != body.args.size()) return misfit(C(3), "operands", c.numIn(), body.args.size());
  for (size_t i = 0; i < c.numIn(); ++i)
    if (!compatible(c.in(i), c.m.typeOf(body.args[i])))
      return c.fail(C(3), "operand " + llvm::Twine(i) + " is " + c.text(c.in(i)) + ", decomposition @" + of +
                              " takes " + c.text(c.m.typeOf(body.args[i])));
  if (c.numOut() != func.result_types.size())
    return misfit(C(4), "results", c.numOut(), func.result_types.size());
  for (size_t i = 0; i < c.numOut(); ++i)
    if (!compatible(c.out(i), c.m.type(func.result_types[i])))
      return c.fail(C(4), "result " + llvm::Twine(i) + " is " + c.text(c.out(i)) + ", decomposition @" + of +
                              " gives " + typeText(c.m, func.result_types[i]));
  c.yieldGiven();
  return llvm::Error::success();
}

}  // namespace tpu::hlo
