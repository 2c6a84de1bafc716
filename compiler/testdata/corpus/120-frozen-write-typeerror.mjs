const defaults = Object.freeze({ rate: 0.5, tags: ['a'] });
const tuned = { ...defaults, rate: 0.75 };
defaults.tags.push('b');
export default function () {
  const seen = [defaults.tags.length, tuned.rate];
  for (const target of [tuned, defaults]) { target.rate += 1; seen.push(target.rate); }
  return seen;
}
