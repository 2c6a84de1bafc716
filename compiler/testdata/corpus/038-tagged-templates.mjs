const tag = (strings, ...vals) => ({ strings: [...strings], raw: [...strings.raw], vals });
const top = tag`a${1}\n${2}c`;
const seen = [];
function site(strings) { seen.push(strings); return strings; }
const get = () => site`same`;
export default function () {
  const upper = (s, ...v) => s.reduce((acc, str, i) => acc + str + (i < v.length ? String(v[i]).toUpperCase() : ''), '');
  const obj = { pre: '>', tag(s, x) { return this.pre + s.join('|') + x; } };
  const curried = (s1) => (s2, v) => [s1[0], s2.join('_'), v];
  return {
    top,
    cached: [get() === get(), site`same` === site`same`, seen.length],
    frozen: [Object.isFrozen(seen[0]), Object.isFrozen(seen[0].raw), Array.isArray(seen[0])],
    upper: upper`hello ${'world'} and ${'more'}!`,
    method: obj.tag`x${5}y`,
    curried: curried`one``two${2}three`,
    invalidEscape: tag`\unicode and \xerxes \u{${0}`.strings,
    invalidRaw: tag`\u00zz`.raw,
  };
}
