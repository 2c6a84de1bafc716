export default function () {
return `a${1 + 1}b${`c${2 * 2}` + "d"}`
}
