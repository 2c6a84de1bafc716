export default function () {
return [null == 0, null >= 0, undefined == null, NaN == NaN, "1" == 1, [1] == 1, "a" < "b", "10" < "9", 10 < "9", null == false, [] == false, [] == ![]]
}
