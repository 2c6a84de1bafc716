const million = 1_000_000;
const mask = 0xFF_FF;
const pieces = [0b1111_0000, 0o755, 0XaB, 0B11, 0O17, 1e3, 1E-3, .25, 5., 1_0.0_1, 0.0e10, 0x7fffffff, 0xffffffffffff];
const sum = pieces.reduce((a, b) => a + b, 0);
const bigs = [1_000n, 0xffn, 0b11n, 0o17n, 123456789012345678901234567890n];
export default function () {
  return {
    million, mask, pieces, bigs,
    sumIsFinite: sum > 2 ** 47,
    keys: Object.keys({ 0x10: 1, 1e2: 2, .5: 3, 0b11: 4, 1n: 5, 1_0: 6 }),
    member: [1.5.toFixed(1), 1.0.constructor === Number, 2..toString(), 3 .toString()],
    precision: [9007199254740993, 0.1 * 3, 1.1 + 2.2, 123456789.123456789],
  };
}
