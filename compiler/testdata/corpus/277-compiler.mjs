export default function () {
let x = 1; const r = [x++ + ++x, x-- - --x, x += x++, x]; return r
}
