export default function () {
return [JSON.stringify({ a: 1 + 1 }), parseInt("1" + "2") + 1, Number("3") * 2, String(1 + 1), isNaN(0 / 0)]
}
