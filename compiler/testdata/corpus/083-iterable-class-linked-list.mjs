class List {
  #head = null; #size = 0;
  static from(it) { const l = new this(); for (const x of [...it].reverse()) l.unshift(x); return l; }
  unshift(v) { this.#head = { v, next: this.#head }; return ++this.#size; }
  *[Symbol.iterator]() { for (let n = this.#head; n; n = n.next) yield n.v; }
  get size() { return this.#size; }
  reverse() { let prev = null, n = this.#head; while (n) [n.next, prev, n] = [prev, n, n.next]; this.#head = prev; return this; }
  map(f) { return List.from([...this].map(f)); }
  toJSON() { return { list: [...this] }; }
  static merge(a, b) { const out = []; const ai = a[Symbol.iterator](), bi = b[Symbol.iterator](); let x = ai.next(), y = bi.next(); while (!x.done || !y.done) { if (y.done || (!x.done && x.value <= y.value)) { out.push(x.value); x = ai.next(); } else { out.push(y.value); y = bi.next(); } } return List.from(out); }
}
const base = List.from([3, 5, 9]);
base.unshift(1);
export default function () {
  const [first, ...rest] = base;
  return { spread: [...base], size: base.size, first, rest, rev: [...List.from('abc').reverse()].join(''), json: JSON.stringify(base.map((x) => x * 2)), merged: [...List.merge(base, List.from([2, 4, 10]))], empty: [...new List()], max: Math.max(...base), has: Array.from(base).includes(5), twice: [[...base].length, [...base].length] };
}
