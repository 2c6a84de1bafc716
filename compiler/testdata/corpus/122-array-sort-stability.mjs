const people = Array.from({ length: 40 }, (_, i) => ({ id: i, g: (i * 7) % 5, s: 'abc'[(i * 11) % 3] }));
const byGroup = [...people].sort((a, b) => a.g - b.g).map((p) => p.id);
const byTwo = people.toSorted((a, b) => (a.s < b.s ? -1 : a.s > b.s ? 1 : b.g - a.g)).map((p) => p.id);
const allEqual = people.toSorted(() => 0).every((p, i) => p.id === i);
export default function () {
  const a = [5, undefined, 1, , 30, 4, undefined]; 
  const ret = a.sort();
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const desc = [3, 1, 2].sort((x, y) => y - x), bools = [3, 1, 2].sort((x, y) => x > y ? 1 : -1);
  const nums = [10, 9, 100, 1, -5, 0, -0].sort(), numeric = [10, 9, 100, 1, -5].sort((x, y) => x - y);
  let sawUndef = 0; [3, undefined, 1].sort((x, y) => { if (x === undefined || y === undefined) sawUndef++; return x - y; });
  return { byGroup, byTwo, allEqual, sorted: Array.from(a), len: a.length, hole: 6 in a, same: ret === a, desc, bools, nums, numeric, sawUndef, errs: [err(() => [1].sort(null)), err(() => [1].sort({})), err(() => [1, 2].sort(() => { throw new RangeError(); }))], undefCmp: [2, 1].sort(undefined), mixed: ['b', 'a', 'C', 1, null, [2], true].sort().map(String), like: Array.prototype.sort.call({ length: 3, 0: 'c', 1: 'a', 2: 'b' }), bigs: [3n, 1, 2n].sort((x, y) => (x < y ? -1 : 1)), nan: [NaN, 1, 0].sort((x, y) => (x === x ? 0 : 1) - (y === y ? 0 : 1)) };
}
