const pairs = [[5, 3], [-5, 3], [5, -3], [-5, -3], [5.5, 2], [-5.5, 2], [0, 5], [-0, 5], [5, 0], [5, Infinity], [-5, Infinity], [Infinity, 5], [1e17, 7], [0.3, 0.1], [-4, 2]];
const rem = pairs.map(([a, b]) => a % b);
const div = pairs.map(([a, b]) => a / b);
const floorMod = (a, b) => ((a % b) + b) % b;
export default function () {
  const signs = rem.map((r) => (Object.is(r, -0) ? '-0' : r > 0 ? '+' : r < 0 ? '-' : Number.isNaN(r) ? 'NaN' : '0')).join(' ');
  let acc = 1000;
  acc %= 77;
  acc /= 2;
  acc -= 0.25;
  return { rem, div, signs, floor: [[-1, 5], [-7, 3], [7, -3]].map(([a, b]) => floorMod(a, b)), acc, wrap: Array.from({ length: 8 }, (_, i) => floorMod(i - 4, 3)) };
}
