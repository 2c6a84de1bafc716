export default function () {
return [[3, 1, 10, 2].sort(), [3, 1, 10, 2].sort((a, b) => a - b), ["b", undefined, "a"].sort(), [1, 2, 3].reverse(), [1, [2, [3, [4]]]].flat(Infinity), [1, 2].flatMap((x) => [x, x * 2])]
}
