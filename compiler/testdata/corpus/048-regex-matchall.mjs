const text = 'k1=v1; k2=v2;k3=';
const pairs = [...text.matchAll(/(?<key>\w+)=(?<val>\w*)/g)];
const summary = pairs.map((m) => [m[0], m.index, m.groups.key, m.groups.val]);
export default function () {
  const re = /\d/g;
  re.lastIndex = 3;
  const fromThree = [...'a1b2c3'.matchAll(re)].map((m) => m[0]);
  let err;
  try { 'x'.matchAll(/x/); } catch (e) { err = e.name; }
  const it = 'zz'.matchAll(/z/g);
  const steps = [it.next().value.index, it.next().done, it.next()];
  return { summary, fromThree, keptIndex: re.lastIndex, err, steps, fromString: [...'a.b.c'.matchAll('.')].length, empties: [...'ab'.matchAll(/(?:)/g)].map((m) => m.index), tag: it[Symbol.toStringTag], matchG: 'a1b2'.match(/\d/g), matchNone: 'a'.match(/\d/g) };
}
