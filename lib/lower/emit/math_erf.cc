// Error function and its inverse.
#include "math.h"

namespace tpu::lower::emit {

F errorFunction(F x) {
  const F t = min(abs(x), 4.0f);
  const F s = t * t;
  const F near = t + t * horner(s, {0.128379166f, -0.376126319f, 0.112836875f, -0.0268589426f, 0.00519990968f,
                                    -0.00081300392f, 8.31686193e-05f});
  // erfc(t) = exp(-t (1 + R(t)))
  const F r = horner(t, {0.12854144f, 0.635673165f, 0.105169438f, -0.0225755535f, 0.00286908261f, -2.74211907e-05f,
                         -4.99432426e-05f, 5.29723047e-06f});
  const F far = 1.0f - exponential(-(t * r + t));
  const F y = select(lt(t, 0.92f), near, far);
  return select(ne(x, x), x, withSign(y, signBit(x)));
}

// M. Giles, "Approximating the erfinv function": polynomials in w = -log(1 - x^2).
F inverseErrorFunction(F x) {
  const F w = -logOnePlus(-(x * x));
  const F near = horner(w - 2.5f, {1.50140941f, 0.246640727f, -0.00417768164f, -0.00125372503f, 0.00021858087f,
                                   -4.39150654e-06f, -3.5233877e-06f, 3.43273939e-07f, 2.81022636e-08f});
  const F far = horner(squareRoot(w) - 3.0f, {2.83297682f, 1.00167406f, 0.00943887047f, -0.0076224613f, 0.00573950773f,
                                              -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f});
  const F y = x * select(lt(w, 5.0f), near, far);
  return select(eq(abs(x), 1.0f), x * __builtin_inff(), y);
}

}  // namespace tpu::lower::emit
