export default function () {
return [Object.is(NaN, NaN), Object.is(0, -0), Number.isInteger(5.0), Number.isFinite("5"), Number.isNaN("a"), Number.isSafeInteger(2 ** 53), Array.isArray({ length: 1 }), Number.parseFloat === parseFloat]
}
