const xs = [0, -0, 1, -1, 2 ** 31, 2 ** 31 - 1, -(2 ** 31), 2 ** 32, 2 ** 32 + 5, 2 ** 53, 1e20, -1e20, 1.9, -1.9, NaN, Infinity];
const rows = xs.map((x) => [x | 0, x >>> 0, ~x, x << 1, x >> 1, x >>> 1, x & 0xff, x ^ 0xff]);
const shiftCounts = [];
for (let s = -2; s <= 34; s += 4) shiftCounts.push([1 << s, -8 >> s, -8 >>> s]);
export default function () {
  let hash = 0;
  for (const ch of 'bit operators') hash = (hash << 5) - hash + ch.charCodeAt(0) | 0;
  let a = 0b1100;
  a ^= 0b1010; a |= 1; a <<= 4; a &= ~0x20; a >>= 1; a >>>= 1;
  return { rows, shiftCounts, hash, a, strings: ['7' & '3', '0x10' | 0, 'abc' | 0, null ^ 5, undefined >>> 0, [9] << 1], doubleNot: [~~3.7, ~~-3.7, ~~'12.5'] };
}
