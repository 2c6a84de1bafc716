const csv = 'a,b,,c,';
const basic = [csv.split(','), csv.split(',', 2), csv.split(''), csv.split(), csv.split(',', 0), ''.split(','), ''.split('')];
export default function () {
  return {
    basic,
    regex: ['a1b22c'.split(/\d/), 'a1b22c'.split(/\d+/), 'a1b22c'.split(/(\d+)/), 'a1b2'.split(/(\d)|(z)/)],
    limits: ['x-y-z'.split('-', -1), 'x-y-z'.split('-', 2 ** 32 + 1), 'a,b,c'.split(/,/, 2), 'a,b,c'.split(/(,)/, 4)],
    empties: ['abc'.split(/(?:)/), 'abc'.split(/b*/), '  lead'.split(/\s/), 'tail  '.split(/\s+/)],
    surrogate: ['\u{1F600}a'.split('').length, '\u{1F600}a'.split(/(?:)/u).length, [...'\u{1F600}a'].length],
    custom: 'k=v'.split({ [Symbol.split](str, lim) { return [str.length, lim]; } }, 9),
    lookahead: 'camelCaseWordHere'.split(/(?=[A-Z])/),
    undef: 'aundefinedb'.split('undefined', undefined),
  };
}
