const s = 'a\u{1F600}é\u{10FFFF}z';
const units = Array.from({ length: s.length }, (_, i) => s.charCodeAt(i));
const points = Array.from(s, (c) => c.codePointAt(0));
export default function () {
  const lone = '\ud83d';
  return {
    units, points,
    at: [s.codePointAt(1), s.codePointAt(2), s.codePointAt(99), s.charCodeAt(99)],
    from: [String.fromCodePoint(0x61, 0x1f600), String.fromCharCode(0x1f600, 97), String.fromCodePoint().length],
    lens: [s.length, [...s].length, [...(lone + 'x')].length, [...('\ude00\ud83d')].length],
    reversed: [...s].reverse().join(''),
    pair: lone + '\ude00' === '\u{1F600}',
    escapes: ['\x41', '\u0042', '\u{43}', '\u{000044}', '\0'.length, '\
joined'],
    entries: Object.entries('hi\u{1F600}').map(([k, v]) => k + v.length),
    badPoint: (() => { try { return String.fromCodePoint(0x110000); } catch (e) { return e.name; } })(),
  };
}
