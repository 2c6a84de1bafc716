const probes = [0, -0, 1.5, NaN, Infinity, '5', null, 2 ** 53, 2 ** 53 - 1, -(2 ** 53 - 1), 5e-324, 1e300];
const checks = probes.map((p) => [Number.isInteger(p), Number.isSafeInteger(p), Number.isFinite(p), Number.isNaN(p), isFinite(p), isNaN(p)]);
export default function () {
  const { MAX_SAFE_INTEGER: hi, MIN_SAFE_INTEGER: lo, EPSILON, MAX_VALUE, MIN_VALUE } = Number;
  return {
    checks,
    hi, lo, EPSILON, MAX_VALUE, MIN_VALUE,
    arithmetic: [hi + 1 === hi + 2, 0.1 + 0.2 === 0.3, Math.abs(0.1 + 0.2 - 0.3) < EPSILON, MAX_VALUE * 2, MIN_VALUE / 2, -MIN_VALUE / 2],
    objects: [typeof new Number(3), new Number(3) + 4, new Number(3) == 3, new Number(3) === 3, typeof Number('3')],
    keyProtect: Object.getOwnPropertyDescriptor(Number, 'EPSILON').writable,
  };
}
