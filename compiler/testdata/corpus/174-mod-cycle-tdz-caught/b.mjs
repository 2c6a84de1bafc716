import * as ns from './a.mjs';
import dflt, { aLet, aConst, aVar, aFn, AClass } from './a.mjs';
import { fromMain } from './main.mjs';
const probe = (f) => { try { return f(); } catch (e) { return e.name; } };
export const probes = [
  probe(() => aLet), probe(() => aConst.v), probe(() => aVar), probe(() => aFn()), probe(() => new AClass()), probe(() => dflt), probe(() => typeof aLet),
  probe(() => ns.aLet), probe(() => ns.aVar), probe(() => 'aLet' in ns), probe(() => Object.keys(ns)), probe(() => Reflect.ownKeys(ns).length), probe(() => ns.missing), probe(() => fromMain), probe(() => Object.hasOwn(ns, 'aConst')),
];
export const later = () => [aLet, aConst.v, aVar, aFn(), AClass.tag, dflt, ns.aLet, fromMain];
