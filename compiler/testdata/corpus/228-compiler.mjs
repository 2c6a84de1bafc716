export default function () {
let s = ""; outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b > a) continue outer; s += a + "" + b + "," } } return s
}
