const xs = [-2.5, -1.5, -0.5, -0.2, -0, 0, 0.2, 0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370495.5, NaN, Infinity, -Infinity];
const fns = ['round', 'floor', 'ceil', 'trunc', 'sign', 'abs'];
const results = Object.fromEntries(fns.map((f) => [f, xs.map((x) => Math[f](x))]));
export default function () {
  return {
    results,
    fround: [0.1, 5.5, 1e40, -0, 16777217].map(Math.fround),
    clz: [0, 1, -1, 0.5, 2 ** 31, 2 ** 32, 1000, NaN].map(Math.clz32),
    imul: [Math.imul(0xffffffff, 5), Math.imul(0xfffffffe, 5), Math.imul(65536, 65536), Math.imul(123456789, 987654321), Math.imul(1.9, -2.9)],
    sqrt: [0, -0, 2, 16, 1e-4, -1, Infinity].map(Math.sqrt),
    roundTo: [1.005, 2.675, -1.235].map((v) => Math.round(v * 100) / 100),
  };
}
