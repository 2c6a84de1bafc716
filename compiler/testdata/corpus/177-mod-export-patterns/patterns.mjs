const source = { a: 1, b: { deep: [10, 20] }, c: 3, d: 4 };
export const { a, b: { deep: [, b] }, ...rest } = source;
export const [first, ...[, last = 'dflt']] = 'xy';
export let x, y = 2;
x = y * 50; y++;
export function* gen(n) { while (n) yield n-- * x; }
export class K { #p; constructor(p) { this.#p = p; } get v() { return this.#p + y; } }
export var fn = () => fn.name + typeof K;
export const computed = ((n) => { let s = 0; for (let i = 0; i <= n; i++) s += i; return s; })(100), nested = { computed, x };
export default { a, last }
