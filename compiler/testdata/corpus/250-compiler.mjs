export default function () {
return [Math.max(1, 2 + 1), Math.min(...[3, 2]), Math.abs(-5) + Math.floor(2.5), Math.round(1.5 * 2), Math.sqrt(16) ** 2]
}
