export default function () {
const o = { a: { b: () => 5 } }; return [o?.a?.b?.() + 1, o.x?.y.z, o?.["a"].b(), (o?.a).b() * 2, o.x?.[1 + 1] ?? "none"]
}
