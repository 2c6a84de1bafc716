export default function () {
return [3, 1, 2].sort((a, b) => a - b).find((x) => x >= 2)
}
