const hints = [];
const p = { [Symbol.toPrimitive](h) { hints.push(h); return h === 'number' ? 42 : h === 'string' ? 'str' : 'dflt'; } };
const used = [+p, `${p}`, p + '', p * 2, p + 1, p == 'dflt', p < 50, [p].join(), ({ str: 'key' })[p], Math.abs(p), String(p), Number(p), isNaN(p), p ** 2, -p];
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const log = [];
  const o = { toString() { log.push('s'); return '7'; }, valueOf() { log.push('v'); return 3; } };
  const vals = [o + 1, `${o}`, o * 2, o + '', o > 2, o == 3, ['x'][o - 3], { 7: 'seven' }[o], '5' - o, [o] + 'z', o | 8];
  const fallback = { valueOf() { return {}; }, toString() { return '9'; } }, rev = { toString: () => [], valueOf: () => 4 };
  const bad = { valueOf: () => ({}), toString: () => ({}) };
  return { used, hints, vals, log: log.join(''), fallback: [fallback * 2, fallback + 1], rev: `${rev}`, errs: [err(() => bad + 1), err(() => `${Object.create(null)}`), err(() => +{ [Symbol.toPrimitive]: 5 }), err(() => +{ [Symbol.toPrimitive]: () => ({}) })], undef: +{ [Symbol.toPrimitive]: undefined, valueOf: () => 8 }, big: [{ valueOf: () => 5n } + 1n, BigInt({ valueOf: () => '0x10' }), 10n < { valueOf: () => 11 }], objs: [[] + {}, [] == '', [0] == false, [1, 2] == '1,2', {} + [], [[]] + 1, [null] + 'n', [undefined, null] + ''], unboxed: [new Number(3) + new String('x'), new Boolean(false) ? 1 : 0] };
}
