// Sharing of instructions with unchanging sources.
#include "vec.h"

#include <algorithm>

namespace tpu::lower::emit {

Vec::Vec(llo::Code& code, const target::Chip& chip) : code_(code), body_(code), front_(front_code_), chip_(chip) {
  // A machine with few registers is better off making constants where they are used.
  shared_limit_ = chip.vector_regs >= 32 ? chip.vector_regs / 2 : 0;
  for (int i = 0; i < std::max(1, chip.xlus); ++i) units_.push_back(body_.newXlu());
}

void Vec::finish() {
  llo::Block& body = code_.body;
  body.insert(body.begin(), std::make_move_iterator(front_code_.body.begin()),
              std::make_move_iterator(front_code_.body.end()));
}

V Vec::share(V v) {
  if (static_cast<int>(invariant_.size()) <= v.id) invariant_.resize(v.id + 1, false);
  invariant_[v.id] = true;
  ++shared_count_;
  return v;
}

void Vec::append(llo::CodeBuilder& to, Opcode op, V d, Sources s) {
  if (s.b >= 0) to.emit(op, {d, V{s.a}, V{s.b}});
  else if (s.a >= 0 && s.imm >= 0) to.emit(op, {d, V{s.a}, s.imm});
  else if (s.a >= 0) to.emit(op, {d, V{s.a}});
  else to.emit(op, {d});
}

S Vec::largest(V numbers) {
  V most = unary(Opcode::vcvt_s32_f32, existing ? select(*existing, numbers, bits(0)) : numbers);
  most = xlu(Opcode::vmax_xlane_f32, most);
  for (int n : {4, 2, 1}) most = binary(Opcode::vmax_f32, most, withImm(Opcode::vrot_sublane, most, n));
  body_.emit(Opcode::vtos, {unary(Opcode::vcvt_f32_s32, most)});
  return body_.s(Opcode::spop, {});
}

V Vec::plain(Opcode op, Sources s) {
  if (invariant(s.a) && invariant(s.b) && shared_limit_ > 0) {
    auto [it, is_new] = shared_.try_emplace({op, s}, V{});
    if (!is_new) return it->second;
    if (shared_count_ < shared_limit_) {
      it->second = share(body_.newV());
      append(front_, op, it->second, s);
      return it->second;
    }
    shared_.erase(it);
  }
  const V d = body_.newV();
  append(body_, op, d, s);
  return d;
}

V Vec::bits(uint32_t value) {
  const Sources key{-1, -1, static_cast<int>(value)};
  if (shared_limit_ > 0) {
    auto [it, is_new] = shared_.try_emplace({Opcode::vimm, key}, V{});
    if (!is_new) return it->second;
    if (shared_count_ < shared_limit_) {
      it->second = share(body_.newV());
      front_.emit(Opcode::vimm, {it->second, value});
      return it->second;
    }
    shared_.erase(it);
  }
  return body_.vimm(value);
}

V Vec::eup(Opcode op, V a) {
  if (invariant(a.id) && shared_limit_ > 0) {
    auto [it, is_new] = shared_.try_emplace({op, Sources{a.id, -1, -1}}, V{});
    if (!is_new) return it->second;
    if (shared_count_ < shared_limit_) {
      it->second = share(body_.newV());
      front_.emit(op, {a});
      front_.emit(Opcode::vpop_eup, {it->second});
      return it->second;
    }
    shared_.erase(it);
  }
  body_.emit(op, {a});
  return body_.v(Opcode::vpop_eup, {});
}

V Vec::xluPop(llvm::function_ref<void(llo::XluUnit)> push) {
  const llo::XluUnit unit = xluUnit();
  push(unit);
  return body_.v(Opcode::vpop_xlu, {unit});
}

S Vec::scalarParam(int word) {
  auto [it, is_new] = scalar_params_.try_emplace(word, S{});
  if (is_new) {
    const S address = body_.newS();
    it->second = body_.newS();
    llo::Stmt st;
    st.kind = llo::StmtKind::kPseudo;
    st.pseudo = llo::PseudoKind::kParam;
    st.reg = address.id;
    st.index = word;
    front_code_.body.push_back(std::move(st));
    front_.emit(Opcode::sld, {it->second, Addr{address, 0}});
  }
  return it->second;
}

V Vec::splatParam(int word) {
  const S s = scalarParam(word);
  if (shared_limit_ == 0) return splat(s);
  auto [it, is_new] = splat_params_.try_emplace(word, V{});
  if (is_new) {
    it->second = share(body_.newV());
    front_.emit(Opcode::vsplat, {it->second, s});
  }
  return it->second;
}

}  // namespace tpu::lower::emit
