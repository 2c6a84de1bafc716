export default function () {
return [[NaN].includes(NaN), [NaN].indexOf(NaN), [-0].includes(0), [0].includes(-0), [1, 2, 3].includes(3, -1), [1, 2].includes(1, 1), [undefined].includes(), [, 1].includes(undefined), ["1"].includes(1)]
}
