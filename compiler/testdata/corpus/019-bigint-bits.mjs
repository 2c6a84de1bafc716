const m = 0xffff_ffff_ffff_ffffn;
const table = [5n, -5n, m, -m, 1n << 70n].map((x) => [x & 0xffn, x | 1n, x ^ -1n, ~x, x >> 3n, x << 3n, x >> 100n, x << -2n]);
let fnv = 0xcbf29ce484222325n;
for (const ch of 'corpus') fnv = BigInt.asUintN(64, (fnv ^ BigInt(ch.charCodeAt(0))) * 0x100000001b3n);
export default function () {
  const wraps = [];
  for (const x of [0n, 127n, 128n, 255n, 256n, -1n, -129n]) wraps.push([BigInt.asIntN(8, x), BigInt.asUintN(8, x), BigInt.asIntN(0, x)]);
  let x = 6n;
  x <<= 2n; x |= 1n; x ^= 8n; x &= 0x1fn; x >>= 1n; x++; x--;
  return { table, fnv: fnv.toString(16), wraps, x, bits: (2n ** 100n - 1n).toString(2).length };
}
