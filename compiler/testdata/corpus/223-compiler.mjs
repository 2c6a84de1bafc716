export default function () {
const { a = 1 + 1, b: { c = 2 * 2 } = {}, ...rest } = { d: 4, e: 5 }; return [a, c, rest]
}
