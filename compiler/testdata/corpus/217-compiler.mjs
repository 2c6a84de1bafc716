export default function () {
return [1, 2, 3].map((x) => x * 2).filter((x) => x > 2 && x !== 4).reduce((a, b) => a + b, 0)
}
