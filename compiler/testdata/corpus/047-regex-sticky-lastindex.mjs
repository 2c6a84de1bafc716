const g = /o/g;
const gSteps = [];
for (let i = 0; i < 4; i++) gSteps.push([g.test('foo'), g.lastIndex]);
const y = /a/y;
const ySteps = ['ba', 'ab', 'aa'].map((s) => [y.test(s), y.lastIndex]);
export default function () {
  const tokens = [];
  const re = /\s*(?:(\d+)|(\w+)|(.))/y;
  const src = 'x1 = 42 + foo*7';
  let m;
  while (re.lastIndex < src.length && (m = re.exec(src))) tokens.push(m[1] ? ['n', +m[1]] : m[2] ? ['id', m[2]] : ['op', m[3]]);
  const plain = /b/;
  plain.lastIndex = 5;
  plain.test('abc');
  y.lastIndex = 2;
  const at2 = y.exec('bba')?.index;
  g.lastIndex = 99;
  const beyond = [g.exec('foo'), g.lastIndex];
  return { gSteps, ySteps, tokens, last: re.lastIndex, plain: plain.lastIndex, at2, beyond, yReplace: 'aaba'.replace(/a/gy, 'X'), flags: [/a/gimsuy.flags, y.sticky, g.global] };
}
