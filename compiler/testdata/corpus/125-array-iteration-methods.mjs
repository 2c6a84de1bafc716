const a = [3, 1, 4, 1, 5];
const basic = { map: a.map((x, i, arr) => x * i + arr.length), filter: a.filter((x) => x > 2), reduce: a.reduce((s, x) => s + x), right: a.reduceRight((s, x, i) => s + x + ':' + i + ' ', ''), every: [a.every((x) => x > 0), [].every(() => false)], some: [a.some((x) => x > 4), [].some(() => true)] };
const visited = [];
[1, 2, 3, 4].forEach((x, i, arr) => { visited.push(x); if (i === 0) { arr.push(99); arr[1] = 'mod'; delete arr[2]; } });
export default function () {
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const sparse = [1, , 3]; let calls = 0; sparse.map(() => calls++);
  const mapHoles = sparse.map((x) => x);
  const thisArg = [1].map(function () { return this.k; }, { k: 'ctx' });
  const early = []; [1, 2, 3].some((x) => (early.push(x), x === 2)); [1, 2, 3].every((x) => (early.push(x), x < 2));
  return { basic, visited, calls, hole: 1 in mapHoles, thisArg, early, errs: [err(() => [].reduce((x) => x)), err(() => [].reduceRight((x) => x)), err(() => [1].map(5)), err(() => [].forEach()), err(() => [].reduce(1, 2))], single: [[7].reduce(() => 'never'), [].reduce(() => 'never', 'init'), [, 5, ,].reduce(() => 'never')], undefInit: [1].reduce((acc, x) => [acc, x], undefined), generic: Array.prototype.map.call('abc', (c) => c + c), likeFilter: Array.prototype.filter.call({ length: '2', 0: 1, 1: 0, 2: 9 }, Boolean), forEachRet: a.forEach((x) => x), findHoles: [, 1].find((x) => x === undefined) === undefined, findIndexHole: [1, , 2].findIndex((x) => x === undefined), chain: a.filter((x) => x & 1).map((x) => x ** 2).reduce((m, x) => Math.max(m, x), -Infinity), index: a.map((x, i) => a.indexOf(x) === i), counts: a.reduce((m, x) => ({ ...m, [x]: (m[x] ?? 0) + 1 }), {}) };
}
