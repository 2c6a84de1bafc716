const html = '<b>x</b><b>y</b>';
const greedy = html.match(/<b>.*<\/b>/)[0];
const lazy = html.match(/<b>.*?<\/b>/)[0];
export default function () {
  return {
    greedy, lazy,
    counts: ['aaaa'.match(/a{2}/)[0], 'aaaa'.match(/a{2,}/)[0], 'aaaa'.match(/a{1,3}?/)[0], 'a{,3}'.match(/a{,3}/)[0]],
    alternation: [.../(a|ab)(c|bcd)(d*)/.exec('abcd')],
    resetCaptures: [.../(z)((a+)?(b+)?(c))*/.exec('zaacbbbcac')],
    emptyLoop: [.../(a*)*/.exec('b'), .../(?:a?)*?$/.exec('aab')],
    backrefs: [/(\w)\1/.exec('hello')[0], /^(a)?\1b/.test('b'), /\1(a)/.exec('aa')[0], /(?:(a)|b)\1/.exec('ba')?.[0]],
    nestedGroups: [.../((a)(b(c))?)+/.exec('abcab')],
    classes: ['a-b]c^'.match(/[\]\-^]/g), 'tab\there'.match(/[\t\s]/g).length, /[\b]/.test('\b'), /[^]/.test('\n'), /[]/.test('a')],
    octalish: [/\0/.test('\0'), /[\w-]+/.exec('a-b c')[0], /\cJ/.test('\n')],
  };
}
