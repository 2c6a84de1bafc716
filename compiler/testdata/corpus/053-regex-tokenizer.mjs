const spec = { num: '\\d+(?:\\.\\d+)?', id: '[a-z_]\\w*', str: '"(?:\\\\.|[^"\\\\])*"', op: '=>|[-+*/=()<>]', ws: '\\s+' };
const re = new RegExp(Object.entries(spec).map(([k, v]) => `(?<${k}>${v})`).join('|'), 'giy');
function* lex(src) {
  re.lastIndex = 0;
  while (re.lastIndex < src.length) {
    const at = re.lastIndex;
    const m = re.exec(src);
    if (!m) { yield ['bad', src[at], at]; re.lastIndex = at + 1; continue; }
    const [type, text] = Object.entries(m.groups).find(([, v]) => v !== undefined);
    if (type !== 'ws') yield [type, text, at];
  }
}
const program = 'let f = (x) => x * 2.5 + "a\\"b" ? 1';
const tokens = [...lex(program)];
export default function () {
  return { source: re.source.length, tokens, kinds: tokens.reduce((acc, [t]) => ({ ...acc, [t]: (acc[t] || 0) + 1 }), {}), empty: [...lex('')], second: [...lex('a b')].length };
}
