const log = [];
class Emitter { #l = new Map(); on(e, f) { this.#l.set(e, [...(this.#l.get(e) ?? []), f]); return () => this.#l.set(e, this.#l.get(e).filter((g) => g !== f)); } emit(e, ...a) { let n = 0; for (const f of this.#l.get(e) ?? []) { f(...a); n++; } return n; } }
const em = new Emitter();
const off = em.on('x', (v) => log.push('1:' + v)); em.on('x', (v) => { log.push('2:' + v); if (v === 'a') em.on('x', () => log.push('late')); });
em.emit('x', 'a'); off(); em.emit('x', 'b');
const reducer = (s = { n: 0, log: [] }, { type, by = 1 } = {}) => { switch (type) { case 'inc': return { ...s, n: s.n + by, log: [...s.log, type] }; case 'reset': return reducer(undefined, {}); default: return s; } };
export default function () {
  const history = [{ type: 'inc' }, { type: 'inc', by: 5 }, { type: 'nope' }, { type: 'reset' }, { type: 'inc', by: -2 }].reduce((h, a) => [...h, reducer(h.at(-1), a)], [reducer()]);
  const mw = [(next) => (x) => next(x + 1), (next) => (x) => next(x * 10) + '!', (next) => (x) => (x > 50 ? 'short' : next(x))];
  const handle = mw.reduceRight((n, m) => m(n), (x) => 'end' + x);
  const lens = (k) => ({ get: (o) => o[k], set: (v, o) => ({ ...o, [k]: v }) });
  const over = (l, f) => (o) => l.set(f(l.get(o)), o);
  const comp = (a, b) => ({ get: (o) => b.get(a.get(o)), set: (v, o) => a.set(b.set(v, a.get(o)), o) });
  const src = { a: { b: 1 }, c: 2 };
  const Maybe = (v) => ({ map: (f) => (v == null ? Maybe(null) : Maybe(f(v))), or: (d) => v ?? d });
  const cmds = []; const undo = []; const exec = (s, d) => { undo.push(() => (s.v -= d)); s.v += d; cmds.push(s.v); }; const st = { v: 0 }; exec(st, 3); exec(st, 4); while (undo.length) cmds.push(undo.pop()());
  return { log, ns: history.map((h) => h.n), same: history[2] === history[3], logs: history.at(-1).log, mw: [handle(1), handle(9)], lens: over(comp(lens('a'), lens('b')), (x) => x + 41)(src), src, maybe: [Maybe(4).map((x) => x * 2).or(0), Maybe(4).map(() => null).map((x) => x.y).or('none')], cmds };
}
