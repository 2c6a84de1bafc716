import { LispError } from './errors.mjs';
export { LispError };
const globals = new Map(Object.entries({ '+': (...a) => a.reduce((x, y) => x + y, 0), '-': (a, b) => a - b, '*': (...a) => a.reduce((x, y) => x * y, 1), '<': (a, b) => a < b, list: (...a) => a }));
const special = {
  quote: (_, x) => x, if: (env, c, t, e) => evaluate(evaluate(c, env) ? t : e, env),
  define: (_, s, v) => { globals.set(s.description, evaluate(v)); return s; }, lambda: (env, ps, body) => (...args) => evaluate(body, ps.reduce((m, p, i) => m.set(p.description, args[i]), new Map(env))),
  let: (env, binds, body) => { const e = new Map(env); for (const [s, v] of binds) e.set(s.description, evaluate(v, e)); return evaluate(body, e); },
};
export function evaluate(x, env = new Map()) {
  if (typeof x === 'symbol') { const k = x.description; if (env.has(k)) return env.get(k); if (globals.has(k)) return globals.get(k); throw new LispError('unbound ' + k); }
  if (!Array.isArray(x)) return x;
  const [head, ...rest] = x;
  if (typeof head === 'symbol' && Object.hasOwn(special, head.description)) return special[head.description](env, ...rest);
  const f = evaluate(head, env);
  if (typeof f !== 'function') throw new LispError('not a function: ' + String(f));
  return f(...rest.map((r) => evaluate(r, env)));
}
