export default function () {
let s = 0, i = 5; while (i-- > 0) s += i; do { s -= 1 } while (s > 5 && s != 3); return s
}
