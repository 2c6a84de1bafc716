export default function () {
var x = 1, y = (x = x + 1, x * 2); { let x = 9; y += x } return [x, y]
}
