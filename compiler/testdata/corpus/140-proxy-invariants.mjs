const frozen = Object.freeze({ k: 1 });
const noExt = Object.preventExtensions({ e: 1 });
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
const lie = (t, h) => new Proxy(t, h);
const top = err(() => lie(frozen, { get: () => 2 }).k);
export default function () {
  const rev = Proxy.revocable({ a: 1 }, {});
  const before = rev.proxy.a; rev.revoke(); rev.revoke();
  return [
    top, err(() => lie({ k: 1 }, { get: () => 2 }).k), err(() => lie(frozen, { has: () => false }) && 'k' in lie(frozen, { has: () => false })),
    err(() => Object.keys(lie(frozen, { ownKeys: () => [] }))), err(() => Object.keys(lie({}, { ownKeys: () => ['x', 'x'] }))), err(() => Object.keys(lie({}, { ownKeys: () => [1] }))),
    err(() => Object.keys(lie({}, { ownKeys: () => ['ghost'] }))), err(() => Reflect.ownKeys(lie({}, { ownKeys: () => ['ghost'] }))), err(() => Object.keys(lie({}, { ownKeys: () => ['g'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }) }))),
    err(() => { lie({}, { set: () => false }).x = 1; }), err(() => { lie(frozen, { set: () => true }).k = 5; }), err(() => delete lie({}, { deleteProperty: () => false }).x), err(() => delete lie(frozen, { deleteProperty: () => true }).k),
    err(() => Object.getPrototypeOf(lie({}, { getPrototypeOf: () => 1 }))), err(() => Object.getPrototypeOf(lie(noExt, { getPrototypeOf: () => null }))), err(() => Object.isExtensible(lie({}, { isExtensible: () => false }))), err(() => Object.preventExtensions(lie({}, { preventExtensions: () => true }))),
    err(() => Object.defineProperty(lie(noExt, { defineProperty: () => true }), 'n', { value: 1 })), err(() => Reflect.defineProperty(lie({}, { defineProperty: () => false }), 'n', {})), err(() => Object.defineProperty(lie({}, { defineProperty: () => false }), 'n', {})),
    err(() => new (lie(function () {}, { construct: () => 1 }))()), err(() => lie({}, { apply: () => 1 })()), err(() => lie({}, { get: 5 }).x), err(() => new Proxy(1, {})), err(() => Proxy({}, {})), err(() => lie({}, { get: null }).x),
    before, err(() => rev.proxy.a), typeof rev.proxy, err(() => Array.isArray(rev.proxy)), err(() => Object.keys(rev.proxy)), err(() => Object.prototype.toString.call(lie([], {}))), err(() => new Map(lie(new Map([[1, 2]]), {}))), err(() => lie(new Holder(), {}).t),
  ];
}
class Holder { get t() { return 'ok'; } }
