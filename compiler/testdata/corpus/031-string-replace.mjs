const src = 'John Smith, Jane Doe';
const swapped = src.replace(/(\w+) (\w+)/, '$2 $1');
const all = src.replace(/(\w+) (\w+)/g, '$2, $1');
export default function () {
  const calls = [];
  const viaFn = 'a1b2c3'.replace(/([a-z])(\d)/g, (m, l, d, off, whole) => { calls.push([m, l, d, off, whole.length]); return l.repeat(+d); });
  const named = '2024-05-06'.replace(/(?<y>\d+)-(?<m>\d+)-(?<d>\d+)/, '$<d>/$<m>/$<y>');
  const namedFn = 'x=1'.replace(/(?<k>\w)=(?<v>\d)/, (...args) => JSON.stringify(args.at(-1)));
  return {
    swapped, all, viaFn, calls, named, namedFn,
    patterns: ['abc'.replace('b', "[$`|$&|$'|$$|$1]"), 'abc'.replace(/(b)/, '$01$10$2$0'), 'abc'.replace('b', '$<x>')],
    firstOnly: 'aaa'.replace('a', 'b'),
    empty: ['abc'.replace('', '_'), 'abc'.replace(/(?:)/g, '_'), 'abc'.replace(/x*/g, '-')],
    undef: 'xyz'.replace('y'),
    unmatchedGroup: 'ab'.replace(/(a)|(b)/g, '[$1$2]'),
  };
}
