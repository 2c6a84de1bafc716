const ws = '\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff';
const trimmed = [(ws + 'a b' + ws).trim(), (ws + 'x').trimStart(), ('x' + ws).trimEnd(), '\u200bz\u200b'.trim().length];
const s = 'abcdefgh';
export default function () {
  return {
    wsLen: ws.length,
    trimmed,
    slice: [s.slice(2), s.slice(-3), s.slice(2, -2), s.slice(5, 2), s.slice(NaN, 3), s.slice(-100, 2), s.slice(undefined, undefined)],
    substring: [s.substring(2), s.substring(-3), s.substring(5, 2), s.substring(NaN, 3), s.substring(3, Infinity)],
    substr: [s.substr(2, 3), s.substr(-3, 2), s.substr(-100, 2), s.substr(2)],
    at: [s.at(0), s.at(-1), s.at(99), s.at(-9), s.at(1.9)],
    charAt: [s.charAt(2), s.charAt(-1), s[2], s[-1], s[99], s['1'], 'length' in Object(s), '2' in Object(s)],
  };
}
