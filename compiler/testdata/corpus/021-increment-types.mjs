let counter = 0;
const next = () => counter++;
const first = [next(), next(), ++counter, counter--, --counter];
const o = { n: 5, s: '5', b: 5n, u: undefined, nil: null, t: true };
const post = {};
for (const k of Object.keys(o)) post[k] = [o[k]++, o[k]];
export default function () {
  let i = 0;
  const arr = [10, 20, 30];
  arr[i++] += i * 100;
  arr[i++] = arr[i] + i;
  const idx = i;
  let x = 1;
  x += x++ + ++x;
  let y = 5;
  y = y++ - --y;
  const obj = { get v() { return 7; }, set v(val) { this.seen = val; } };
  const r = obj.v++;
  return { first, post, arr, idx, x, y, r, seen: obj.seen, inf: [Infinity - 1, -Infinity + Infinity], safe: 2 ** 53 + 1 - 2 ** 53 };
}
