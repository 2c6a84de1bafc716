export default function () {
return "a" + 1 + 2 + ("b" + (1 + 2))
}
