const log = [];
function tracked(limit) {
  let n = 0;
  return { [Symbol.iterator]() { log.push('open'); return this; }, next() { log.push('next' + n); return n < limit ? { value: n++, done: false } : { value: 'ignored', done: true }; }, return(v) { log.push('return'); return {}; } };
}
const [one] = tracked(5);
const [a1, b1, c1] = tracked(2);
const [...all] = tracked(2);
const [] = tracked(1);
export default function () {
  const mark = log.length;
  let threw;
  try { const [p = (() => { throw new Error('dflt'); })()] = tracked(0); } catch (e) { threw = e.message; }
  let t2;
  try { const [p, { q }] = (function* () { try { yield 1; yield null; } finally { log.push('gen closed'); } })(); } catch (e) { t2 = e.name; }
  let x;
  [x, ...[]] = tracked(1);
  const target = { set v(val) { log.push('set' + val); throw new RangeError('setter'); } };
  let t3;
  try { [target.v] = tracked(3); } catch (e) { t3 = e.name; }
  return { one, abc: [a1, b1, c1], all, mark, threw, t2, x, t3, log };
}
