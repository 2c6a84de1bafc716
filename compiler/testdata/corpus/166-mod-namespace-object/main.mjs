import * as ns from './lib.mjs';
import * as again from './lib.mjs';
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
const keys = Object.keys(ns);
export default function () {
  const seen = [];
  for (const k in ns) seen.push(k);
  const d = Object.getOwnPropertyDescriptor(ns, 'zeta');
  return {
    keys, seen, same: ns === again, tag: [ns[Symbol.toStringTag], Object.prototype.toString.call(ns)], proto: Object.getPrototypeOf(ns), type: typeof ns,
    has: ['zeta' in ns, 'default' in ns, 'nope' in ns, ns.nope, Reflect.has(ns, 'toString')], d, sealed: [Object.isFrozen({ ...ns }), Object.isExtensible(ns), Object.isSealed(ns)],
    errs: [err(() => { ns.zeta = 2; }), err(() => { ns.fresh = 1; }), err(() => delete ns.zeta), err(() => delete ns.absent), err(() => Object.defineProperty(ns, 'zeta', { value: 9 })), err(() => Object.setPrototypeOf(ns, {})), err(() => Object.freeze(ns)), err(() => `${ns}`)],
    refl: [Reflect.set(ns, 'zeta', 1), Reflect.deleteProperty(ns, 'zeta'), Reflect.setPrototypeOf(ns, null), Reflect.defineProperty(ns, 'zeta', { value: 1 })],
    call: [ns.alpha(), ns.default(2), ns['Beta'].v, (0, ns.self)()], spread: Object.entries({ ...ns }).map(([k, v]) => k + ':' + typeof v), json: JSON.stringify(ns), own: Reflect.ownKeys(ns).length, rest: (({ zeta, ...r }) => Object.keys(r))(ns),
  };
}
