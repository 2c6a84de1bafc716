class Account {
  #balance = 0; #log = [];
  static #count = 0;
  static #audit(a) { return a.#log.length; }
  static get count() { return Account.#count; }
  static isAccount(o) { return #balance in o; }
  constructor(start) { this.#balance = start; Account.#count++; }
  #record(kind, n) { this.#log.push(`${kind}:${n}`); return this; }
  get #half() { return this.#balance / 2; }
  set #half(v) { this.#balance = v * 2; }
  deposit(n) { this.#balance += n; return this.#record('d', n); }
  doubleHalf() { this.#half = this.#half + 1; return this.#half; }
  same(other) { return other.#balance === this.#balance; }
  get entries() { return [...this.#log]; }
  audit() { return Account.#audit(this); }
  tryWrite() { try { this.#record = 1; } catch (e) { return e.name; } }
  readFrom(o) { return o?.#balance; }
}
const acc = new Account(10).deposit(5).deposit(7);
export default function () {
  const b = new Account(24);
  const err = (f) => { try { return f(); } catch (e) { return e.name; } };
  return { half: acc.doubleHalf(), same: acc.same(b), entries: acc.entries, audit: acc.audit(), count: Account.count, is: [Account.isAccount(acc), Account.isAccount({}), err(() => Account.isAccount(1))], keys: Object.keys(acc), json: JSON.stringify(acc), write: acc.tryWrite(), read: [acc.readFrom(b), acc.readFrom(null), err(() => acc.readFrom({}))], proxy: err(() => new Proxy(acc, {}).doubleHalf()), detached: err(acc.deposit) };
}
