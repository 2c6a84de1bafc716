export default function () {
return 1 < 2 && 3 > 2 || !(1 == 1)
}
