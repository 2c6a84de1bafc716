class Counting extends RegExp {
  static made = 0;
  constructor(...args) { super(...args); Counting.made++; }
  exec(s) { const r = super.exec(s); this.calls = (this.calls ?? 0) + 1; return r; }
}
const c = new Counting('\\d', 'g');
const replaced = 'a1b2'.replace(c, '#');
const afterReplace = c.calls;
export default function () {
  const dual = { [Symbol.match]: (s) => `m:${s}`, [Symbol.search]: (s) => s.length, [Symbol.replace]: (s, r) => r + s, [Symbol.split]: (s) => [...s] };
  const re = /x/;
  re[Symbol.match] = false;
  return {
    replaced, afterReplace,
    test: [c.test('7'), c.calls, c.lastIndex],
    split: ['1a2'.split(c), Counting.made],
    dual: ['abc'.match(dual), 'abc'.search(dual), 'abc'.replace(dual, 'r'), 'abc'.split(dual)],
    notRegex: '/x/'.startsWith(re),
    instance: [c instanceof RegExp, c instanceof Counting, Object.prototype.toString.call(c)],
    fakeExec: RegExp.prototype.test.call({ exec: () => ({}) }, 'q'),
  };
}
