export default function () {
return ((a, b = a + 1, ...rest) => a + b + rest.length * 10)(1, undefined, 3, 4)
}
