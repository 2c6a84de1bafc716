export default function () {
const sq = (f, ...a) => f.apply(null, a) + f.call(null, ...a) + f.bind(null, ...a)(); return sq((x, y = 2) => x * y, 3)
}
