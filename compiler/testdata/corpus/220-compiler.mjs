export default function () {
return [1, 2, 3].filter(function (x) { return x > this.n }, { n: 1 })
}
