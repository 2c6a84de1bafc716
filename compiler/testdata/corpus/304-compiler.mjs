export default function () {
const p = new Proxy({}, { get: (t, k) => "got " + String(k), has: (t, k) => k === "yes", deleteProperty: () => true, ownKeys: () => ["z"], set(t, k, v) { t[k] = v * 2; return true } }); p.a = 5; return ["yes" in p, "no" in p, p.x, delete p.q]
}
