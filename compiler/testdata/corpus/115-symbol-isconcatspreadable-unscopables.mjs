const arrayLike = { length: 2, 0: 'x', 1: 'y', [Symbol.isConcatSpreadable]: true };
const solid = Object.assign([1, 2], { [Symbol.isConcatSpreadable]: false });
const joined = [0].concat(arrayLike, [[3]], 4);
export default function () {
  const c = [].concat(solid, solid);
  class Tag { get [Symbol.toStringTag]() { return 'Tagged'; } }
  const tags = [[], {}, null, undefined, 1, 'x', true, () => 1, /r/, new Map(), new Error('e'), Symbol('q'), 1n, new Tag(), (function () { return arguments; })(), JSON, new Uint8Array(1), function* () {}, Tag, { [Symbol.toStringTag]: 5 }].map((v) => Object.prototype.toString.call(v));
  const gaps = [, 1].concat([2, , 3]);
  return { joined, solid: [c.length, c[0] === solid, Array.isArray(c[1])], tags, gaps: [gaps.length, 0 in gaps, 3 in gaps], unscop: ['flat', 'at', 'push'].map((k) => Array.prototype[Symbol.unscopables][k] === true), strings: [].concat('ab', new String('cd')).map(String), matchFlag: (() => { const o = { [Symbol.match]: false }; return 'a'.includes.call('[object Object]', o); })(), split: 'abc'[Symbol.split] };
}
