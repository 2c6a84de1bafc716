export default function () {
const tag = (strings, ...values) => strings.raw.join('|') + values.join(); return tag`x${1 + 1}\ny${2}` + (1 + 1)
}
