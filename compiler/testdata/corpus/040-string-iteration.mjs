const s = 'x\u{1F469}\u200d\u{1F4BB}y';
const viaOf = [];
for (const ch of s) viaOf.push(ch.length);
const viaIn = [];
for (const i in 'abc') viaIn.push(typeof i + i);
export default function () {
  const it = s[Symbol.iterator]();
  const steps = [it.next(), it.next().value.length, [...it].length, it.next()];
  const counts = {};
  for (const ch of 'mississippi') counts[ch] = (counts[ch] ?? 0) + 1;
  const [first, , third = 'none', ...others] = 'hello';
  return { viaOf, viaIn, steps, counts, first, third, others, tag: Object.prototype.toString.call(it), self: it[Symbol.iterator]() === it, boxed: [typeof Object('s'), Object('ab') + 'c', Object.keys(Object('ab')), Object('ab').length] };
}
