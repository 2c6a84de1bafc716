const changes = [];
const observe = (o, path = []) => new Proxy(o, { get(t, k, r) { const v = Reflect.get(t, k, r); return Object(v) === v ? observe(v, [...path, k]) : v; }, set(t, k, v, r) { changes.push([...path, k].join('.') + '=' + v); return Reflect.set(t, k, v, r); }, deleteProperty(t, k) { changes.push('-' + [...path, k].join('.')); return delete t[k]; } });
const state = observe({ user: { name: 'a', tags: ['x'] }, n: 0 });
state.n++; state.user.name = 'b'; state.user.tags.push('y'); delete state.n;
const defaults = (o, d) => new Proxy(o, { get: (t, k) => (k in t ? t[k] : d) });
export default function () {
  const neg = new Proxy([1, 2, 3], { get: (t, k, r) => Reflect.get(t, typeof k === 'string' && /^-\d+$/.test(k) ? t.length + +k : k, r) });
  const range = new Proxy({}, { has: (_, k) => +k >= 1 && +k <= 10 });
  const chain = (path = []) => new Proxy(function () {}, { get: (_, k) => chain([...path, k]), apply: (_, __, args) => path.join('/') + '(' + args + ')' });
  const typed = new Proxy({}, { set(t, k, v) { if (typeof v !== 'number') throw new TypeError(k); t[k] = v; return true; } });
  let tErr; typed.a = 1; try { typed.b = 's'; } catch (e) { tErr = [e.name, e.message]; }
  const counts = defaults({}, 0); for (const c of 'abca') counts[c]++;
  const hidden = new Proxy({ _secret: 1, open: 2 }, { ownKeys: (t) => Reflect.ownKeys(t).filter((k) => k[0] !== '_'), has: (t, k) => k[0] !== '_' && k in t });
  const recv = []; const pr = new Proxy({}, { get(t, k, r) { recv.push(r === child); return k; } }); const child = Object.create(pr); child.foo;
  const virtual = new Proxy({}, { ownKeys: () => ['v1', 'v2'], getOwnPropertyDescriptor: (_, k) => ({ value: k + '!', enumerable: true, configurable: true }), get: (_, k) => k + '?' });
  return { changes, neg: [neg[-1], neg[-3], neg[0], neg.length], range: [5 in range, 11 in range], chain: [chain().a.b.c(1, 2), chain().x()], tErr, counts: { ...counts }, hidden: [Object.keys(hidden), '_secret' in hidden, hidden._secret], recv, virtual: { ...virtual }, snapshot: JSON.stringify(state) };
}
