// Expectations inside programs: the check dialect of StableHLO's tests and its custom calls.
//
// expect_eq compares values (any NaN equals any other); expect_almost_eq takes an absolute
// difference, expect_close a number of representable values between two floats, check.eq is almost_eq for
// floats. The reader states the dialect's defaults; what a custom call leaves out has those of the
// reference's test driver.
#include "checks.h"

#include <algorithm>
#include <cmath>

#include "llvm/ADT/StringSwitch.h"
#include "tpu/eval/compare.h"
#include "tpu/eval/evaluate.h"
#include "tpu/eval/interpreter_text.h"
#include "tpu/eval/literal.h"
#include "tpu/hlo/literal.h"

namespace tpu::eval {
namespace {

enum class Kind { kEqual, kAlmost, kClose };

// An absolute difference that the type cannot resolve would ask for equal bits of functions that have no
// exact result: a relative difference of eight roundings of f32 or f64 is none.
double resolution(ElementType type) { return type == ElementType::kF64 ? 0x1p-50 : 0x1p-20; }

struct Check {
  Kind kind;
  double tolerance = 0;
  uint64_t min_ulps = 0, max_ulps = 0;
};

Check checkOf(const hlo::Module& m, hlo::OpId op, bool floats) {
  const llvm::StringRef target = m.getString(op, AttrKey::call_target_name);
  Check check{Kind::kEqual};
  if (target.starts_with("check.expect_almost_eq") || (target == "check.eq" && floats)) {
    check.kind = Kind::kAlmost;
    check.tolerance = m.getFloat(op, AttrKey::tolerance, target == "check.eq" ? 1e-4 : 1e-3);
  } else if (target == "check.expect_close") {
    check.kind = Kind::kClose;
    check.max_ulps = static_cast<uint64_t>(m.getInt(op, AttrKey::max_ulp_difference, 3));
    check.min_ulps = static_cast<uint64_t>(m.getInt(op, AttrKey::min_ulp_difference, 0));
  }
  return check;
}

// Representable values between two of a type; the largest number where one is not finite and they differ.
uint64_t ulps(ElementType type, uint64_t a, uint64_t b) {
  const double x = hlo::decodeFloat(type, a), y = hlo::decodeFloat(type, b);
  if (a == b || (x != x && y != y)) return 0;
  if (x - x != 0 || y - y != 0) return ~uint64_t{0};
  const int bits = elementBits(type);
  const uint64_t sign = uint64_t{1} << (bits - 1), low = sign - 1;
  const uint64_t m = type == ElementType::kF8E8M0FNU ? a : a & low,
                 n = type == ElementType::kF8E8M0FNU ? b : b & low;
  if (type != ElementType::kF8E8M0FNU && ((a ^ b) & sign)) return m + n;
  return m > n ? m - n : n - m;
}

double magnitude(ElementType type, const uint8_t* p) {
  const double v = hlo::decodeFloat(type, hlo::loadBits(type, p));
  return v - v == 0 ? std::fabs(v) : 0;
}

// `scale` is the size of the number that a part belongs to: a difference below its resolution is none.
bool floatsAgree(ElementType type, const uint8_t* a, const uint8_t* b, const Check& check, double scale) {
  const uint64_t x = hlo::loadBits(type, a), y = hlo::loadBits(type, b);
  if (check.kind == Kind::kClose) {
    const uint64_t distance = ulps(type, x, y);
    return distance >= check.min_ulps && distance <= check.max_ulps;
  }
  const double v = hlo::decodeFloat(type, x), w = hlo::decodeFloat(type, y);
  if (v == w) return true;
  if (v != v || w != w) return v != v && w != w;
  if (check.kind == Kind::kEqual) return false;
  return std::fabs(v - w) <= std::max(check.tolerance, resolution(type) * scale);
}

bool agree(ElementType type, const uint8_t* a, const uint8_t* b, const Check& check) {
  if (isComplex(type)) {
    const ElementType part = type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
    // The distance of a complex number is that of its further part.
    if (check.kind == Kind::kClose) {
      const int w = hostBytes(part);
      const uint64_t distance = std::max(ulps(part, hlo::loadBits(part, a), hlo::loadBits(part, b)),
                                         ulps(part, hlo::loadBits(part, a + w), hlo::loadBits(part, b + w)));
      return distance >= check.min_ulps && distance <= check.max_ulps;
    }
    const int w = hostBytes(part);
    const double scale = std::max(magnitude(part, b), magnitude(part, b + w));
    return floatsAgree(part, a, b, check, scale) && floatsAgree(part, a + w, b + w, check, scale);
  }
  if (isFloat(type)) return floatsAgree(type, a, b, check, magnitude(type, b));
  return std::equal(a, a + hostBytes(type), b);
}

}  // namespace

bool isCheck(llvm::StringRef target) {
  return llvm::StringSwitch<bool>(target)
      .Cases("check.eq", "check.expect_eq", "check.expect_eq_const", true)
      .Cases("check.expect_almost_eq", "check.expect_almost_eq_const", "check.expect_close", true)
      .Default(false);
}

llvm::Error checkHolds(const hlo::Module& m, hlo::OpId op, const HostTensor& got, const HostTensor& want) {
  const llvm::StringRef target = m.getString(op, AttrKey::call_target_name), loc = m.loc(m.op(op).loc);
  const auto broken = [&](const llvm::Twine& text) {
    return fail(Code::kEvalCheckFailed, loc, target + ": " + text, ExitStatus::kDiffers);
  };
  if (got.element != want.element || got.dims != want.dims)
    return broken("got " + typeText(got.element, got.dims) + ", expected " +
                  typeText(want.element, want.dims));
  const Check check = checkOf(m, op, isFloat(got.element) || isComplex(got.element));
  const int64_t count = got.numElements(), width = hostBytes(got.element);
  int64_t differing = 0, first = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (agree(got.element, got.bytes.data() + i * width, want.bytes.data() + i * width, check)) continue;
    if (first < 0) first = i;
    ++differing;
  }
  if (first < 0) return llvm::Error::success();
  return broken(llvm::Twine(differing) + " of " + llvm::Twine(count) + " elements differ, first at " +
                indexText(got.dims, first) + ": got " + mlirElementText(got, first, false) + ", expected " +
                mlirElementText(want, first, false));
}

}  // namespace tpu::eval
