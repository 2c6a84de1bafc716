const made = [Array.from('h\u{1F600}i'), Array.from({ length: 3 }), Array.from({ length: 2, 0: 'a', 1: 'b' }, (v, i) => v + i), Array.from(new Map([[1, 2]])), Array.from([1, , 3]), Array.of(7), Array.of(), Array.from(new Set([1, 1, 2]), (x) => x * 2)];
const range = (a, b, s = 1) => Array.from({ length: Math.max(0, Math.ceil((b - a) / s)) }, (_, i) => a + i * s);
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  class Bag { constructor(n) { this.n = n; } }
  const bag = Array.from.call(Bag, { length: 2, 0: 'p', 1: 'q' }), bag2 = Array.of.call(Bag, 1, 2, 3), bag3 = Array.from.call(Bag, 'xy');
  const both = Array.from({ length: 5, 0: 'no', *[Symbol.iterator]() { yield 'iter wins'; } });
  return { made, ranges: [range(0, 5), range(3, 0), range(1, 10, 4), range(5, 0, -2)], bag: { ...bag }, bag2: { ...bag2 }, bag3: [bag3.n, bag3.length, bag3[1]], both, thisArg: Array.from([1], function (x) { return this.k + x; }, { k: 10 }), errs: [err(() => Array.from(null)), err(() => Array.from([1], 5)), err(() => Array.from({ length: -1 }).length), err(() => Array.from(5).length), err(() => Array.from({ [Symbol.iterator]: 1 }))], isArr: [Array.isArray([]), Array.isArray({ length: 0 }), Array.isArray(new Proxy([], {})), Array.isArray(Array.prototype), Array.isArray(new Uint8Array(1))], grid: Array.from({ length: 2 }, (_, r) => Array.from({ length: 3 }, (_, c) => r * 3 + c)), keys: [...Array(3).keys()], fnCall: [Array(1, 2), Array(2).length, new Array('2')], zip: [1, 2].map((x, i) => [x, 'ab'[i]]) };
}
