const rows = [['ann', 'dev', 30, 100], ['bob', 'ops', 25, 80], ['cat', 'dev', 35, 120], ['dan', 'hr', 41, 70], ['eve', 'ops', 29, 95]].map(([name, team, age, pay]) => ({ name, team, age, pay }));
const bucket = (xs, f) => xs.reduce((m, x) => { const k = f(x); (m.get(k) ?? m.set(k, []).get(k)).push(x); return m; }, new Map());
const teams = bucket(rows, (r) => r.team);
const sum = (xs, f) => xs.reduce((s, x) => s + f(x), 0);
export default function () {
  const stats = Object.fromEntries([...teams].map(([t, rs]) => [t, { n: rs.length, avg: sum(rs, (r) => r.pay) / rs.length, oldest: rs.reduce((a, b) => (b.age > a.age ? b : a)).name }]));
  const index = new Map(rows.map((r, i) => [r.name, i]));
  const join = [['dev', 'Building A'], ['hr', 'Annex']].flatMap(([t, where]) => (teams.get(t) ?? []).map((r) => `${r.name}@${where}`));
  const pivot = rows.reduce((p, { team, age }) => { const b = age < 30 ? 'young' : 'senior'; p[team] ??= {}; p[team][b] = (p[team][b] ?? 0) + 1; return p; }, {});
  const part = (xs, p) => xs.reduce(([a, b], x) => (p(x) ? [[...a, x.name], b] : [a, [...b, x.name]]), [[], []]);
  const median = (xs) => { const s = xs.toSorted((a, b) => a - b), h = s.length >> 1; return s.length % 2 ? s[h] : (s[h - 1] + s[h]) / 2; };
  const running = rows.map(((acc) => (r) => (acc += r.pay))(0));
  return { stats, keys: [...teams.keys()], idx: index.get('dan'), join, pivot, part: part(rows, (r) => r.pay > 90), median: [median(rows.map((r) => r.age)), median([4, 1, 3, 2])], running, ranked: rows.toSorted((a, b) => b.pay - a.pay).map((r, i) => `${i + 1}.${r.name}`), byMulti: rows.toSorted((a, b) => (a.team < b.team ? -1 : +(a.team > b.team)) || b.age - a.age).map((r) => r.name) };
}
