const log = [];
const src = (name, n = 3) => ({ [Symbol.iterator]() { let i = 0; return { next: () => (log.push(`${name}${i}`), { value: i++, done: i > n }), return: () => (log.push(`${name} closed`), {}) }; } });
for (const x of src('break')) if (x === 1) break;
for (const x of src('full', 1)) log.push('body');
outer: for (const x of src('out')) for (const y of src('in')) { if (x === 1) break outer; if (y === 1) continue outer; }
const found = (() => { for (const x of src('ret')) return x + 100; })();
export default function () {
  let caught;
  try { for (const x of src('thr')) throw new Error('body'); } catch (e) { caught = e.message; }
  new Map();
  try { new Map(src('map')); } catch (e) { log.push(e.name); }
  try { new Set(src('set', 2)).size; Array.from(src('from'), (v) => { if (v === 1) throw new Error('mapper'); }); } catch (e) { log.push(e.message); }
  const bad = { [Symbol.iterator]: () => ({ next: () => 5 }) };
  const badRet = { [Symbol.iterator]: () => ({ next: () => ({ done: false }), return: () => 1 }) };
  const errs = [() => [...bad], () => { for (const x of badRet) break; }, () => { for (const x of { [Symbol.iterator]: 1 }) ; }].map((f) => { try { f(); return 'ok'; } catch (e) { return e.name; } });
  return { found, caught, errs, log };
}
