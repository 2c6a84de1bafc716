const list = [3, -0, 0, 7.5, -2];
const empty = [Math.max(), Math.min()];
export default function () {
  const log = [];
  const spy = (n) => ({ valueOf() { log.push(n); return n; } });
  const m = Math.max(spy(1), spy(NaN), spy(3));
  return {
    empty,
    max: Math.max(...list),
    min: Math.min(...list),
    zeros: [Math.max(-0, 0), Math.max(0, -0), Math.min(0, -0), Math.min(-0, 0)],
    nan: [Math.max(1, NaN, 2), Math.min(undefined), Math.max(null, -1), Math.max('12', 3), Math.max([5]), Math.max([1, 2]), Math.min({})],
    m,
    log,
    apply: Math.max.apply(null, { length: 3, 0: 4, 1: 9, 2: 1 }),
    lengths: [Math.max.length, Math.min.length],
    tag: [String(Math), Object.prototype.toString.call(Math)],
  };
}
