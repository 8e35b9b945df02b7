// Attributes one by one.
#include "op_key.h"

#include <cstring>

#include "tpu/sharding/reducer.h"

namespace tpu::partition {

void OpKey::put(int64_t v) { text.append(reinterpret_cast<const char*>(&v), sizeof v); }
void OpKey::put(llvm::StringRef s) {
  put(static_cast<int64_t>(s.size()));
  text.append(s.data(), s.size());
}

void OpKey::put(const hlo::Module& m, const hlo::Attr& a) {
  put(static_cast<int64_t>(a.key));
  put(a.i);
  int64_t bits;
  std::memcpy(&bits, &a.f, sizeof bits);
  put(bits);
  for (int64_t v : a.ints) put(v);
  put(llvm::StringRef(a.str));
  for (const std::string& s : a.strs) put(llvm::StringRef(s));
  if (a.literal) {
    const hlo::Literal& l = m.literal(a.literal);
    put(l.splat);
    put(llvm::StringRef(reinterpret_cast<const char*>(l.bytes.data()), l.bytes.size()));
  }
  put(a.type.v);
  put(a.sharding.v);
  for (const hlo::AxisRef& r : a.axes) {
    put(r.axis);
    put(r.pre);
    put(r.size);
  }
  put(a.groups.rows);
  for (int64_t v : a.groups.ids) put(v);
}

void OpKey::put(const hlo::Module& m, hlo::OpId id) {
  put(static_cast<int64_t>(m.op(id).opcode));
  for (hlo::AttrId a : m.op(id).attrs) put(m, m.attr(a));
  for (hlo::RegionId r : m.op(id).regions) put(static_cast<int64_t>(*sharding::reducerOf(m, r)));
}

}  // namespace tpu::partition
