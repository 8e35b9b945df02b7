// Error functions, gamma functions, zeta and the Bessel function of StableHLO's chlo dialect.
//
// The Chebyshev tables were fitted in 200-bit arithmetic; every other coefficient is a Bernoulli number or a
// zeta value.
#include <cmath>
#include <iterator>
#include <limits>

#include "tpu/eval/math.h"

namespace tpu::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

// Clenshaw's sum of c[0]/2 + c[1] T1(t) + ...
template <size_t N>
double chebyshev(const double (&c)[N], double t) {
  double b1 = 0, b2 = 0;
  for (size_t i = N; i-- > 1;) {
    const double b = 2 * t * b1 - b2 + c[i];
    b2 = b1;
    b1 = b;
  }
  return t * b1 - b2 + 0.5 * c[0];
}

// (1 + 2x) exp(x^2) erfc(x) over t = (x - 3.75) / (x + 3.75).
constexpr double kErfcTable[] = {
    2.3551578691348035082,      -0.0045900545806464773309,  -0.084249133366517915584,
    0.059209939998191890498,    -0.026658668435305752277,   0.0090749976707052650939,
    -0.0024131635404176081909,  0.00049077583652580863229,  -0.000069169733025012063671,
    4.1390279860730101675e-6,   7.7403830661984906686e-7,   -2.1886401049234395661e-7,
    1.0764999465670910377e-8,   4.5219598112182868979e-9,   -7.7544002088313511065e-10,
    -6.3180883408866844944e-11, 2.8687950109306698981e-11,  1.945586854577734723e-13,
    -9.6546967484334389059e-13, 3.2525481481487398415e-14,  3.3478119482868053878e-14,
    -1.8645628804193131015e-15, -1.2507950530688647085e-15, 7.418235256624043463e-17,
    5.0681489047961113168e-17,  -2.2370566594359995974e-18};

// erfc(x) for x >= 0.5.
double erfcTail(double x) {
  if (x > 27.3) return 0;
  const double scaled = chebyshev(kErfcTable, (x - 3.75) / (x + 3.75)) / (1 + 2 * x);
  const double square = x * x, low = std::fma(x, x, -square);
  return scaled * exp(-square) * (1 - low);
}

// erf(x) for |x| <= 1: Taylor series.
double erfSeries(double x) {
  const double z = x * x;
  double term = 1, sum = 0;
  for (int n = 1; n < 22; ++n) {
    term *= -z / n;
    sum += term / (2 * n + 1);
  }
  return kTwoOverSqrtPi * (x + x * sum);
}

constexpr double kStirling[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-9, 0x1.a01a01a01a01ap-11,
                                -0x1.3813813813814p-11, 0x1.b951e2b18ff23p-11, -0x1.f6ab0d9993c7dp-10,
                                0x1.a41a41a41a41ap-8,   -0x1.e4286cb0f5398p-6};
constexpr double kDigamma[] = {0x1.5555555555555p-4,  -0x1.1111111111111p-7, 0x1.0410410410410p-8,
                               -0x1.1111111111111p-8, 0x1.f07c1f07c1f08p-8,  -0x1.5995995995996p-6,
                               0x1.5555555555555p-4,  -0x1.c5e5e5e5e5e5ep-2};
constexpr double kZetaTail[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-10, 0x1.1566abc011567p-15,
                                -0x1.bbd779334ef0bp-21, 0x1.66a8f2bf70ebep-26,  -0x1.22805d644267fp-31,
                                0x1.d6db2c4e09162p-37,  -0x1.7da4e1f79955cp-42, 0x1.355871d652e9ep-47,
                                -0x1.f57d968caacf1p-53, 0x1.967e1f09c376fp-58,  -0x1.497d9033a2b5cp-63};
// zeta(k) - 1, k = 2, 3, ...; beyond the table it is 2^-k to working precision.
constexpr double kZetaMinusOne[] = {
    0x1.4a34cc4a60fa6p-1,  0x1.9dd002780310ap-3,  0x1.51322ac7d8483p-4,  0x1.2e831d94f99b7p-5,
    0x1.1c26130249124p-6,  0x1.1196d0a679c47p-7,  0x1.0b36af86396e9p-8,  0x1.073e7b02d6ae0p-9,
    0x1.04b8ce96ee5f8p-10, 0x1.0318df2459954p-11, 0x1.020a5b2cd3042p-12, 0x1.01593a1177bd6p-13,
    0x1.00e4af2b4e156p-14, 0x1.0097bcbf11bedp-15, 0x1.0064cdeb22f0fp-16, 0x1.0043073686681p-17,
    0x1.002c9953744ccp-18, 0x1.001db08f9ba4ap-19, 0x1.0013c594466eap-20, 0x1.000d2bab28121p-21,
    0x1.0008c66cec77dp-22, 0x1.0005d8f13858cp-23, 0x1.0003e59ffde12p-24, 0x1.000298ea55633p-25,
    0x1.0001bb316ccdap-26, 0x1.0001276b90845p-27, 0x1.0000c4ed05ae3p-28, 0x1.0000834601a87p-29};
constexpr double kEuler = 0x1.2788cfc6fb619p-1;

// log gamma(2 + z), |z| <= 0.5: z (1 - euler) + sum (zeta(k) - 1) (-z)^k / k.
double lgammaNearTwo(double z) {
  double sum = 0, power = -z;
  for (int k = 2; k < 30; ++k) {
    power *= -z;
    sum += kZetaMinusOne[k - 2] * power / k;
  }
  return z * (1 - kEuler) + sum;
}

double lgammaPositive(double x) {
  if (x < 1e-17) return -log(x);
  if (x < 0.5) return lgammaPositive(x + 2) - log(x) - log1p(x);
  if (x < 1.5) return lgammaNearTwo(x - 1) - log1p(x - 1);
  if (x <= 2.5) return lgammaNearTwo(x - 2);
  if (x < 12) {
    double product = 1;
    for (; x > 2.5; x -= 1) product *= x - 1;
    return log(product) + lgammaNearTwo(x - 2);
  }
  const double w = 1 / x, z = w * w;
  double tail = 0;
  for (size_t i = std::size(kStirling); i-- > 0;) tail = tail * z + kStirling[i];
  return (x - 0.5) * log(x) - x + 0x1.d67f1c864beb5p-1 + tail * w;
}

// sin(pi x) by exact reduction.
double sinPi(double x) {
  const double r = x - 2 * roundHalfEven(0.5 * x);  // in [-1, 1]
  if (std::fabs(r) <= 0.25) return sin(kPi * r);
  if (std::fabs(r) <= 0.75) return std::copysign(cos(kPi * (std::fabs(r) - 0.5)), r);
  return std::copysign(sin(kPi * (1 - std::fabs(r))), r);
}

double cosPi(double x) {
  const double r = std::fabs(x - 2 * roundHalfEven(0.5 * x));
  return sinPi(0.5 - r);
}

}  // namespace

double erf(double x) {
  if (x != x) return x;
  const double a = std::fabs(x);
  return a <= 1 ? erfSeries(x) : std::copysign(1 - erfcTail(a), x);
}

double erfc(double x) {
  if (x != x) return x;
  if (x < 0.5) return x >= -1 ? 1 - erfSeries(x) : 2 - erfcTail(-x);
  return erfcTail(x);
}

double erfInv(double x) {
  const double a = std::fabs(x);
  if (!(a <= 1)) return kNan;
  if (a == 1) return std::copysign(kInf, x);
  if (a < 0x1p-30) return x / kTwoOverSqrtPi;
  // Winitzki's approximation, then Halley's steps on erf, or on erfc where 1 - |x| has the digits.
  const double rest = 1 - a, l = log(rest * (1 + a)), t = 2 / (kPi * 0.147) + 0.5 * l;
  double y = std::sqrt(std::sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 3; ++i) {
    const double error = a < 0.5 ? erf(y) - a : rest - erfc(y);
    const double step = error / (kTwoOverSqrtPi * exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

double lgamma(double x) {
  if (x != x) return x;
  if (std::fabs(x) == kInf) return kInf;
  if (x > 0) return lgammaPositive(x);
  if (x == floor(x)) return kInf;
  return log(kPi / std::fabs(sinPi(x))) - lgammaPositive(1 - x);
}

double digamma(double x) {
  if (x != x || x == kInf) return x;
  if (x <= 0 && x == floor(x)) return kNan;
  if (x < -1) return digamma(1 - x) - kPi * cosPi(x) / sinPi(x);
  double below = 0;
  for (; x < 12; x += 1) below += 1 / x;
  const double w = 1 / x, z = w * w;
  double tail = 0;
  for (size_t i = std::size(kDigamma); i-- > 0;) tail = (tail + kDigamma[i]) * z;
  return log(x) - 0.5 * w - tail - below;
}

double zeta(double s, double q) {
  if (s != s || q != q || s < 1) return kNan;
  if (s == 1) return kInf;
  if (q <= 0) {
    if (q == floor(q)) return s == floor(s) && fmod(s, 2) == 0 ? kInf : kNan;
    if (s != floor(s)) return kNan;
  }
  // Euler and Maclaurin: terms up to q + n >= 10, then the integral, half a term and Bernoulli's corrections.
  double sum = 0;
  for (int n = 0; n < 10 || q < 10; ++n) {
    const double term = pow(q, -s);
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) return sum;
    q += 1;
  }
  const double power = pow(q, -s);
  sum += power * q / (s - 1) + 0.5 * power;
  double factor = s * power / q, k = s;
  for (double b : kZetaTail) {
    sum += factor * b;
    factor *= (k + 1) * (k + 2) / (q * q);
    k += 2;
  }
  return sum;
}

double polygamma(double n, double x) {
  if (n != floor(n) || n < 0) return kNan;
  if (n == 0) return digamma(x);
  const double sign = fmod(n, 2) == 1 ? 1.0 : -1.0;
  return sign * exp(lgamma(n + 1)) * zeta(n + 1, x);
}

// exp(-x) I1(x) / x on [0, 8] over t = x/4 - 1, and sqrt(x) exp(-x) I1(x) beyond over t = 16/x - 1.
constexpr double kI1Small[] = {
    0.25258718644363365482,     -0.17641651835783405515,    0.10264365868984709538,
    -0.052945981208094991427,   0.024726449030626516828,    -0.010564084894626198156,
    0.0041564229443128881567,   -0.001513572450631253149,   0.0005122859561685757729,
    -0.00016176081582589674559, 0.000047815651075500542264, -0.000013273163656039435828,
    3.4702513081376784767e-6,   -8.5687202646954547407e-7,  2.0032947535521352623e-7,
    -4.4450591287963280807e-8,  9.3815373864957717839e-9,   -1.8872497517228292879e-9,
    3.625590281552117037e-10,   -6.6634897235020277422e-11, 1.1736186298890901631e-11,
    -1.9839743977649437152e-12, 3.2237933659455747098e-13,  -5.0421855047279116871e-14,
    7.6006842947354069341e-15,  -1.105596947735386308e-15,  1.5536319577362004689e-16,
    -2.1114212143581660782e-17, 2.7779141127610463705e-18};
constexpr double kI1Large[] = {
    0.77857623501828012047,     -0.0097610974913614684078,  -0.00011058893876262371629,
    -3.8825648088776903935e-6,  -2.5122362378702089253e-7,  -2.6314688468895195068e-8,
    -3.835380385964237022e-9,   -5.5897434621965838069e-10, -1.8974958123505412345e-11,
    3.2526035830154882386e-11,  1.4125807436613781332e-11,  2.0356285441470895072e-12,
    -7.1985517762459085121e-13, -4.0835511110921973182e-13, -2.101541842772664313e-14,
    4.2724400167119513543e-14,  1.0420276984128802764e-14,  -3.8144030724370078048e-15,
    -1.8803547755107824485e-15, 3.3082023109209282827e-16,  2.9626289976459501391e-16,
    -3.2095259219934239588e-17, -4.6503053684893583256e-17, 4.4143483230717079499e-18,
    7.5172963108421048054e-18,  -9.3141788673268833757e-19, -1.2421932751948909561e-18};

double besselI1e(double x) {
  if (x != x) return x;
  const double a = std::fabs(x);
  if (a == kInf) return std::copysign(0.0, x);
  const double v =
      a <= 8 ? a * chebyshev(kI1Small, a / 4 - 1) : chebyshev(kI1Large, 16 / a - 1) / std::sqrt(a);
  return std::copysign(v, x);
}

}  // namespace tpu::math
