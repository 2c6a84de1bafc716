export default function () {
let n = 0; const o = { get v() { n++; return 1 }, set v(x) { n += 10 } }; o.v ??= 5; o.v ||= 5; o.v &&= 5; return n
}
