const arr = [1, 2, 3, 4];
delete arr[1];
const o = { a: 1, b: { c: 2 }, get g() { return 1; } };
const dels = [delete o.a, delete o.zzz, delete o.b.c, delete o['g'], delete o[Symbol('n')]];
const err = (f) => { try { return f(); } catch (e) { return e.name; } };
export default function () {
  const proto = { p: 1 }, child = Object.create(proto); child.p = 2;
  const chain = [child.p, delete child.p, child.p, delete child.p, child.p];
  const inChecks = ['length' in [], 1 in arr, 2 in arr, '3' in arr, 'toString' in {}, Symbol.iterator in [], 'p' in child];
  class K { #x = 1; has(o) { return #x in o && !('x' in o); } }
  return { len: arr.length, holes: [1 in arr, arr[1], arr.indexOf(undefined), arr.includes(undefined), arr.findIndex((x) => x === undefined)], o, dels, chain, inChecks, errs: [err(() => 'a' in 'abc'), err(() => 'a' in 5), err(() => delete [].length), err(() => delete 'abc'[0]), err(() => delete Object.freeze({ z: 1 }).z), err(() => delete null.x), err(() => delete (() => {}).prototype), err(() => delete function () {}.prototype)], k: [new K().has(new K()), new K().has({})], delCall: delete (() => 1)(), order: (() => { const d = { a: 1, b: 2 }; delete d.a; d.a = 3; return Object.keys(d); })(), forEachSkips: (() => { const r = []; arr.forEach((x, i) => r.push(i)); return r; })() };
}
