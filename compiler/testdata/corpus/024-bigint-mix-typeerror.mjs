const weights = [1n, 2n, 3n];
const scale = 2;
let total = 0n;
for (const w of weights) total += w * BigInt(scale);
export default function () {
  const label = `total=${total}`;
  return [label, weights.map((w) => w * scale)];
}
