import { a, b, rest, first, last, x, y, gen, K, fn, computed, nested as n } from './patterns.mjs';
import def, * as everything from './patterns.mjs';
const collected = [...gen(3)];
export default function () {
  return { a, b, rest, first, last, x, y, collected, k: new K(5).v, fn: fn(), computed, n, def, keys: Object.keys(everything), sync: everything.y === y };
}
