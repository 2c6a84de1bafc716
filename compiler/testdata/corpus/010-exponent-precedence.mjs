const base = 2;
const chain = base ** 3 ** 2;
const grouped = (base ** 3) ** 2;
let e = 3;
e **= 2;
e **= 0.5;
export default function () {
  return {
    chain,
    grouped,
    e,
    neg: [(-2) ** 2, -(2 ** 2), (-2) ** 3, 2 ** -1, 2 ** -2 * 4],
    mixed: [2 * 3 ** 2, 10 - 2 ** 3 % 3, 2 ** 3 / 4, 1 + 2 ** 2 << 1],
    edge: [NaN ** 0, 1 ** Infinity, 0 ** 0, 0 ** -1, (-0) ** -1, (-0) ** -2, Infinity ** -1, (-8) ** (1 / 3), 0 ** Infinity],
    update: ((x) => [x++ ** 2, x, ++x ** 2, x-- ** 2, x])(3),
    big: [2n ** 64n, (-3n) ** 3n, 0n ** 0n],
  };
}
