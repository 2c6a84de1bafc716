export default function () {
let a = 1, b = 2; [a, b] = [b, a]; ({ a, b = 5 } = { a: 9 }); return [a, b]
}
