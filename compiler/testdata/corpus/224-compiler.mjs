export default function () {
const [x = 1 + 1, , y = x * 3, ...z] = [undefined, 2, undefined, 4, 5]; return [x, y, z]
}
