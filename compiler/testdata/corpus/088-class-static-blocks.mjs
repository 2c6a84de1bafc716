const log = [];
class Registry {
  static #items = new Map();
  static table;
  static { for (const [k, v] of [['a', 1], ['b', 2]]) this.#items.set(k, v); log.push(this.#items.size); }
  static total = [...this.#items.values()].reduce((x, y) => x + y);
  static { try { this.table = Object.fromEntries(this.#items); var local = 'scoped'; throw new Error('in block'); } catch ({ message }) { log.push(message + local); } finally { log.push('fin'); } }
  static { var local2 = typeof local; log.push(local2); }
  static lookup = (k) => this.#items.get(k) ?? super.toString.name;
}
let readPrivate;
class Friend { #x; constructor(x) { this.#x = x; } static { readPrivate = (f) => f.#x; } }
export default function () {
  class Sub extends Registry { static own = super.total + 1; static { this.viaSuper = super.lookup('a'); } }
  const Named = class Inner { static me = Inner.name; static { log.push(Inner === this); } };
  return { log, total: Registry.total, table: Registry.table, lookup: [Registry.lookup('b'), Registry.lookup('zz')], friend: readPrivate(new Friend('secret')), sub: [Sub.own, Sub.viaSuper, Object.keys(Sub)], named: [Named.me, Named.name] };
}
