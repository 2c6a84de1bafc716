export default function () {
let a = null, b = 0, c = 1; a ??= 5; b ||= 6; c &&= 7; a ??= 8; return [a, b, c]
}
