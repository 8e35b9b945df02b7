// chlo.scan: the body runs once per position of a dimension, on the inputs' slices there and the carried
// values; it gives a slice of every output and the next carried values.
#include "interpreter.h"
#include "values.h"

namespace tpu::eval {
namespace {

Tensor sliceAt(const Tensor& t, int64_t dim, int64_t at) {
  Dims start(t->dims.size(), 0), limit = t->dims;
  start[dim] = at;
  limit[dim] = at + 1;
  Dims dims = t->dims;
  dims.erase(dims.begin() + dim);
  return reshaped(sliced(t, start, limit, {}), dims);
}

}  // namespace

LanesOutcome Interpreter::runScan(hlo::OpId id, LaneList in, const Team& team) {
  const hlo::Op& op = module_.op(id);
  const llvm::ArrayRef<int64_t> segments = module_.getInts(id, AttrKey::operandSegmentSizes);
  if (segments.size() != 2 || segments[0] < 1 || segments[0] + segments[1] != static_cast<int64_t>(in.size()))
    return fail(Code::kEvalBadOperand, locOf(id), "chlo.scan does not say which operands are carried");
  const size_t inputs = static_cast<size_t>(segments[0]), carries = static_cast<size_t>(segments[1]);
  const size_t outputs = op.results.size() - carries;
  const int64_t dim = module_.getInt(id, AttrKey::dimension);
  const int64_t count = in[0].at(team.devices.front())->dims[dim];
  LaneList carried(in.begin() + inputs, in.end()), out(outputs);
  for (int64_t step = 0; step < count; ++step) {
    const int64_t at = module_.getBool(id, AttrKey::is_reverse) ? count - 1 - step : step;
    LaneList args;
    for (size_t i = 0; i < inputs; ++i) {
      Lanes slice = in[i];
      for (Tensor& t : slice.copies)
        if (t) t = sliceAt(t, dim, at);
      args.push_back(std::move(slice));
    }
    for (Lanes& lanes : carried) args.push_back(std::move(lanes));
    LanesOutcome made = runRegion(op.regions[0], std::move(args), team);
    if (!made) return made;
    for (size_t i = 0; i < outputs; ++i) {
      if (out[i].copies.empty()) out[i].copies.resize(devices_);
      for (int64_t d : team.devices) {
        const Tensor part = (*made)[i].at(d);
        Tensor& whole = out[i].copies[d];
        if (!whole) {
          Dims dims = part->dims;
          dims.insert(dims.begin() + dim, count);
          whole = makeTensor(part->element, dims);
        }
        const std::vector<int64_t> strides = rowMajorStrides(whole->dims);
        Dims dims = part->dims;
        dims.insert(dims.begin() + dim, 1);
        const int width = hostBytes(part->element);
        stridedCopy(dims, width, part->bytes.data(), rowMajorStrides(dims),
                    whole->bytes.data() + at * strides[dim] * width, strides);
      }
    }
    carried.assign(std::make_move_iterator(made->begin() + outputs), std::make_move_iterator(made->end()));
  }
  if (count == 0)
    for (size_t i = 0; i < outputs; ++i) {
      const hlo::Type& type = module_.typeOf(op.results[i]);
      out[i] = Lanes(makeTensor(type.element, type.dims));
    }
  if (devices_ == 1)
    for (Lanes& lanes : out) lanes = Lanes(lanes.at(0));
  for (Lanes& lanes : carried) out.push_back(std::move(lanes));
  return out;
}

}  // namespace tpu::eval
