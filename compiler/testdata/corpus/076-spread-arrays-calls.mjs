const parts = [1, 2];
const joined = [0, ...parts, ...'ab', ...new Map([['k', 'v']]), ...[], ...(function* () { yield 'g'; })(), 9];
const holes = [...[, 1, ,]].map((x) => x === undefined);
export default function () {
  const f = (...a) => a.join('-');
  class P { constructor(...args) { this.args = args; } }
  let errs = [];
  for (const bad of [() => [...5], () => [...{}], () => f(...undefined), () => [...null]]) try { bad(); errs.push('none'); } catch (e) { errs.push(e.name); }
  const iterable = { *[Symbol.iterator]() { yield* [3, 1, 2]; } };
  const order = [];
  const t = (n) => (order.push(n), [n]);
  f(...t(1), t(2)[0], ...t(3));
  return { joined, holes, call: f(...parts, 'mid', ...parts), made: new P(...iterable).args, max: Math.max(...iterable, ...[7, 5]), errs, order, copyIndep: (() => { const c = [...parts]; c.push(3); return parts.length; })(), apply: String.fromCharCode(...[72, 105]), matrix: Array(2).fill().map(() => [...Array(2).keys()]), unique: [...new Set('hello')].join('') };
}
