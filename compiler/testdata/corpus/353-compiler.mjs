export default function () {
const x = 10; { const x = 20; { var y = x } } return [x, y, (() => { if (true) { let y = 1; return y } })()]
}
