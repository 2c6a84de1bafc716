export default function () {
const { length, [length - 1]: last, ...rest } = "abc"; return [length, last, rest]
}
