export default function () {
const a = [1, 2, 3, 4, 5]; return [a.splice(1, 2, "x", "y", "z"), a, a.copyWithin(0, 3), a.fill(0, 1, 2), a.at(-1), a.with(0, 9), a.toSpliced(0, 1), a.findLast((x) => x > 3)]
}
