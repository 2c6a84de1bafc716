export default function () {
const o = { n: 1, list: [1, 2] }; o.n += 1; o["n"] *= 5; o.list[1 - 1] -= 3; o.list[o.list.length - 1] **= 3; return o
}
