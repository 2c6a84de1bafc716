const prices = 'cost $42 and €37, also $108 or 99';
const dollars = prices.match(/(?<=\$)\d+/g);
const nonDollars = prices.match(/(?<![\$\d])\d+/g);
const commas = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
export default function () {
  return {
    dollars, nonDollars,
    commas: [1, 123, 1234, 1234567890].map(commas),
    password: ['abc', 'abcD1', 'ABCDEF12', 'Passw0rd'].map((p) => /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{6,}$/.test(p)),
    behindCapture: 'abc123'.match(/(?<=([a-z]+))\d+/).slice(),
    behindGreedy: [.../(?<=(\d+)(\d+))$/.exec('1053')],
    backrefBehind: /(?<=\1(a))b/.exec('aab')?.[0] ?? null,
    aheadCapture: [.../(?=(a+))a*b\1/.exec('baaabac')],
    negative: 'foobar foobaz'.replace(/foo(?!bar)/g, 'X'),
  };
}
