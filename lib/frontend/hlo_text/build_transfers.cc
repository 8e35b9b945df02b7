// Transfers to and from the host and between devices:
//
//   infeed = ((f32[4], s32[]), token[]) infeed(token), infeed_config="..."
//   outfeed = token[] outfeed(values, token), outfeed_shape=(f32[4], s32[])
//   send = (f32[4], u32[], token[]) send(value, token), channel_id=1, is_host_transfer=true
//   send-done = token[] send-done(send), channel_id=1
//   recv = (f32[4], u32[], token[]) recv(token), channel_id=2, is_host_transfer=true
//   recv-done = (f32[4], token[]) recv-done(recv), channel_id=2
//
// A start and its done are one operation, which stands where the start does.
#include "build.h"

namespace tpu::frontend::hlo_text {

using llvm::StringRef;

Build::Val Build::resultsOf(OpId op, const Shape& shape) {
  const llvm::SmallVector<ValueId, 8> made(m.op(op).results.begin(), m.op(op).results.end());
  llvm::ArrayRef<ValueId> rest(made);
  return assemble(shape, rest);
}

// Channel types are 1 between devices, 2 device to host, 3 host to device.
bool Build::channel(const Instruction& i, OpId op, int64_t to_or_from_host) {
  int64_t id;
  if (i.get("channel_id").getAsInteger(10, id)) return fail(i, "'" + i.opcode + "' needs a number in channel_id=");
  const bool host = i.get("is_host_transfer") == "true";
  m.setInt(op, AttrKey::channel_id, id);
  m.setInt(op, AttrKey::channel_type, host ? to_or_from_host : 1);
  m.setBool(op, AttrKey::is_host_transfer, host);
  return true;
}

bool Build::buildInfeed(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 2> token;
  if (!leavesOf(frame, i, &token)) return false;
  if (i.shape.kind != Shape::kTuple || token.size() != 1) return fail(i, "'infeed' takes a token and gives data and a token");
  std::vector<const Shape*> shapes;
  leaves(i.shape, shapes);
  llvm::SmallVector<hlo::TypeId, 4> types;
  for (const Shape* s : shapes) types.push_back(typeOf(*s));
  const OpId op = b.create(Opcode::infeed, token, types);
  m.setString(op, AttrKey::infeed_config, unquoted(i.get("infeed_config")));
  *out = resultsOf(op, i.shape);
  return true;
}

bool Build::buildOutfeed(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 4> values;
  if (!leavesOf(frame, i, &values)) return false;
  if (values.empty()) return fail(i, "'outfeed' takes data and a token");
  const OpId op = b.create(Opcode::outfeed, values, {m.tokenType()});
  m.setString(op, AttrKey::outfeed_config, unquoted(i.get("outfeed_config")));
  out->v = b.result(op);
  return true;
}

bool Build::buildSend(Frame& frame, const Instruction& i, Val* out) {
  Vals in;
  if (!someOperands(frame, i, 2, &in)) return false;
  llvm::SmallVector<ValueId, 4> values;
  if (!leavesOf(frame, i, &values)) return false;
  const OpId op = b.create(Opcode::send, values, {m.tokenType()});
  if (!channel(i, op, 2)) return false;
  out->tuple = true;
  out->elements = {in[0]};
  out->done = std::make_shared<Val>();
  out->done->v = b.result(op);
  return true;
}

bool Build::buildRecv(Frame& frame, const Instruction& i, Val* out) {
  llvm::SmallVector<ValueId, 2> token;
  if (!leavesOf(frame, i, &token)) return false;
  if (i.shape.kind != Shape::kTuple || i.shape.elements.empty() || token.size() != 1)
    return fail(i, "'recv' takes a token and gives data, a context and a token");
  Shape given;
  given.kind = Shape::kTuple;
  given.elements = {i.shape.elements[0], Shape()};
  given.elements[1].kind = Shape::kToken;
  std::vector<const Shape*> shapes;
  leaves(given, shapes);
  llvm::SmallVector<hlo::TypeId, 4> types;
  for (const Shape* s : shapes) types.push_back(typeOf(*s));
  const OpId op = b.create(Opcode::recv, token, types);
  if (!channel(i, op, 3)) return false;
  const Val received = resultsOf(op, given);
  out->tuple = true;
  out->elements = {received.elements[0]};
  out->done = std::make_shared<Val>(received);
  return true;
}

}  // namespace tpu::frontend::hlo_text
