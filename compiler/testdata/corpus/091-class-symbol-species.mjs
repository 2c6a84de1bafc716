class Vec extends Array {
  static get [Symbol.species]() { return Array; }
  sum() { return this.reduce((a, b) => a + b, 0); }
}
class Stack extends Array { get top() { return this.at(-1); } }
const v = Vec.from([1, 2, 3]);
const s = Stack.of(4, 5, 6);
const m = s.map((x) => x * 2);
export default function () {
  class Weird extends Array { static get [Symbol.species]() { return function (n) { this.made = n; this.length = 0; }; } }
  const w = Weird.from([1, 2]).map((x) => x + 1);
  class Sized extends Array { constructor(...a) { super(...a); this.tag = 't' + a.length; } }
  return { vec: [v instanceof Vec, v.map((x) => x) instanceof Vec, v.sum(), v.length, Array.isArray(v)], stack: [m instanceof Stack, m.top, s.filter((x) => x > 4).constructor.name, s.slice(1).top, s.concat([9]).top, s.toSorted().constructor.name, [...s].constructor.name], weird: [w.made, w[0], w[1], Array.isArray(w)], sized: [new Sized(3).length, new Sized(1, 2).tag, Sized.of(7).tag, new Sized(1, 2).map(String).tag], len: (() => { const q = new Stack(); q[4] = 1; q.length = 2; return [q.length, 4 in q]; })(), json: JSON.stringify(s), species: [Map, Set, RegExp, Array].map((C) => C[Symbol.species] === C) };
}
