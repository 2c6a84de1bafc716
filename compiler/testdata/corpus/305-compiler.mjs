export default function () {
const log = []; const p = new Proxy({ a: 1 }, { set(t, k, v) { log.push(k); return Reflect.set(t, k, v) }, has() { log.push("has"); return 0 } }); p.b = 2; const r = "a" in p; return [log, r, p.b]
}
