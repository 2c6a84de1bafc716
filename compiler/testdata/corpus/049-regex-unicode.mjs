const s = '\u{1F600}x\u{1F601}';
const dotPlain = s.match(/./g).length;
const dotU = s.match(/./gu).length;
export default function () {
  return {
    dotPlain, dotU,
    ranges: [/[\u{1F600}-\u{1F64F}]/u.test(s), /^[^x]$/u.test('\u{1F600}'), /^[^x]$/.test('\u{1F600}')],
    escapes: [/\u{61}/u.test('a'), /\u{61}/.test('a'), /\u{3}/.test('uuu'), /\ud83d/.test('\u{1F600}'), /\ud83d/u.test('\u{1F600}')],
    props: ['aéß', 'ABC', '123', 'кот', '漢字', '!?'].map((t) => [/^\p{L}+$/u.test(t), /^\p{Lu}+$/u.test(t), /\p{Script=Cyrillic}/u.test(t), /\P{L}/u.test(t), /^\p{Nd}+$/u.test(t)]),
    ignoreCase: [/\u{10400}/ui.test('\u{10428}'), /[^x]/iu.test('X'), /ſ/i.test('s'), /ſ/iu.test('s')],
    word: [/\w/iu.test('ſ'), /\w/i.test('ſ'), /\bé/.test('é')],
    bad: (() => { try { return new RegExp('\\-', 'u'); } catch (e) { return e.name; } })(),
  };
}
