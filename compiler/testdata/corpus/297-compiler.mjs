export default function () {
return [[1, 2, 1].lastIndexOf(1), [1, 2, 1].lastIndexOf(1, -2), [1, 2].indexOf(2, -1), [].indexOf(1), [null].indexOf(undefined), [1, 2, 3].lastIndexOf(1, -5)]
}
