const tpl = 'Hi {name}, {name}! You owe {amt}.';
const data = { name: 'Zoë', amt: '$5' };
let rendered = tpl;
for (const key in data) rendered = rendered.replaceAll(`{${key}}`, () => data[key]);
export default function () {
  const offsets = [];
  const res = 'banana'.replaceAll('an', (m, off, s) => { offsets.push([m, off, s]); return m.toUpperCase() + off; });
  let err;
  try { 'abc'.replaceAll(/b/, 'x'); } catch (e) { err = e.name; }
  return {
    rendered, res, offsets, err,
    regex: 'a.b.c'.replaceAll(/\./g, '-'),
    literal: 'a.b.c'.replaceAll('.', '$&$&'),
    empties: 'abc'.replaceAll('', '.'),
    overlapping: 'aaaa'.replaceAll('aa', 'b'),
    coerced: 'null1null'.replaceAll(null, undefined),
    custom: 'q'.replaceAll({ [Symbol.replace]: (s, r) => `${s}:${r}` }, 'rep'),
  };
}
