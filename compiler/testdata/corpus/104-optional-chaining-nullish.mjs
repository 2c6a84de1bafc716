const data = { a: { b: [{ c: () => 'deep' }], zero: 0, empty: '', f: false, nul: null }, m() { return this?.a ? 'this ok' : 'lost'; } };
const hits = [];
const side = (v) => (hits.push(v), v);
const top = [data?.a?.b?.[0]?.c?.(), data.x?.y.z.w(side(1)), data.x?.[side(2)], data.nope?.(side(3)), data?.['m'](), (data?.m)(), data.a.nul?.x];
export default function () {
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  const n = null; let u;
  const cfg = { retries: 0, name: '', opt: null };
  cfg.retries ??= 5; cfg.opt ??= 'filled'; cfg.name ||= 'anon'; cfg.retries ||= 3; cfg.extra &&= side(9); cfg.name &&= cfg.name + '!';
  const frozen = Object.freeze({ v: 1 });
  frozen.v ??= side(8); frozen.v ||= side(7);
  const setLog = []; const o = { get p() { setLog.push('get'); return 1; }, set p(v) { setLog.push('set' + v); } };
  o.p ||= 2; o.p &&= 3; o.p ??= 4;
  return { top, hits, nullish: [0 ?? 1, '' ?? 1, null ?? undefined ?? 'end', (n || u) ?? 'x', false ?? true, NaN ?? 0], errs: [err(() => n.x), err(() => data.a.zero()), err(() => data.a.zero?.()), err(() => (n?.x).y), err(() => u?.[0][1][2])], del: [delete data?.a?.b, delete n?.x, 'b' in data.a], cfg, setLog, frozenErr: err(() => { frozen.v &&= 2; }), tern: [1?.5:0, n?.[0] ?? 'q'], name: (u ??= function () {}, u.name), tmpl: `${data?.a.nul?.b}` };
}
