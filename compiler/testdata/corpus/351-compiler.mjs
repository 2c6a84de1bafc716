export default function () {
const list = [{ n: "b", s: 2 }, { n: "a", s: 2 }, { n: "c", s: 9 }]; return list.toSorted((x, y) => y.s - x.s || (x.n < y.n ? -1 : 1)).map((x) => x.n)
}
