const date = /(?<year>\d{4})-(?<month>\d\d)(?:-(?<day>\d\d))?/;
const m1 = date.exec('on 2024-05-06!');
const m2 = '1999-12'.match(date);
const { groups: { year, month, day = 'none' } } = m2;
export default function () {
  const dup = /(?<q>['"])(?<body>.*?)\k<q>/.exec(`say "it's" now`);
  return {
    m1: [...m1], index: m1.index, input: m1.input, groups: { ...m1.groups },
    year, month, day,
    dup: { ...dup.groups },
    proto: Object.getPrototypeOf(m1.groups),
    keys: Object.keys(m2.groups),
    none: /(\d)/.exec('5').groups,
    unicodeName: /(?<$λ_1>x)/u.exec('x').groups.$λ_1,
    noMatch: date.exec('nope'),
    hasDay: ['day' in m2.groups, m2.groups.day, m2.length],
  };
}
