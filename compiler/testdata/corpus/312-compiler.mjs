export default function () {
return [Array.from({ length: 3 }, (_, i) => i * 2), Array.from("héé"), Array.from(new Set([1, 1, 2])), Array.from([1, 2, 3], function (x) { return x * this.k }, { k: 2 })]
}
