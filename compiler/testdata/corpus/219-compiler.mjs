export default function () {
return [[1, 2, 3].some((x) => x > 2), [1, 2].every((x) => x > 1), [1, 2].findIndex((x) => x == 2), [1].filter(Boolean)]
}
