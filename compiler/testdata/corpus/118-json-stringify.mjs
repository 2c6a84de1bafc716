const v = { n: 1.50, s: 'q"\\\n\u2028\ud800', u: undefined, f() {}, nul: null, nan: NaN, neg: -0, arr: [undefined, () => 1, Symbol('s'), , 2], nested: { toJSON(k) { return 'J' + k; } }, date: { toJSON: 5 }, bool: new Boolean(false), num: new Number(3), str: new String('x') };
const plain = JSON.stringify(v);
const indent = JSON.stringify({ a: [1, { b: 2 }], e: [], o: {} }, null, 2);
export default function () {
  const log = [];
  const rep = JSON.stringify({ a: 1, b: [2, 'x'], c: { d: 4 } }, function (k, val) { log.push([k, Array.isArray(this)]); return typeof val === 'number' ? val * 10 : val; });
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const cyc = { name: 'c' }; cyc.self = cyc;
  class P { #h = 1; pub = 2; get g() { return 3; } }
  return { plain, indent, rep, log, list: JSON.stringify({ a: 1, b: 2, 1: 'one', c: { a: 5, z: 6 } }, ['c', 'a', 1, 'a']), indents: [JSON.stringify([1], null, '--'), JSON.stringify([1], null, 20), JSON.stringify({ a: 1 }, null, 'abcdefghijklmnop'), JSON.stringify([1], null, 0.9), JSON.stringify([1], null, new Number(1))], roots: [JSON.stringify(undefined), JSON.stringify(() => 1), JSON.stringify(null), JSON.stringify('é\u007f\u0001\b\f\t'), JSON.stringify(Infinity), JSON.stringify(Object('s'))], cyc: err(() => JSON.stringify(cyc)), big: err(() => JSON.stringify([1n])), map: JSON.stringify([new Map([[1, 2]]), new Set([1]), /x/, new P(), new Uint8Array([1, 2])]), dropped: JSON.stringify({ a: 1, b: 2 }, (k, x) => (k === 'a' ? undefined : x)), rootRep: JSON.stringify(1, () => ({ toJSON: 1 }.x)), sym: JSON.stringify({ [Symbol('k')]: 1 }), jsonKeys: JSON.stringify({ '': 1, 'a b': 2, '"': 3 }) };
}
