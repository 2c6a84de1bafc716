export default function () {
return [1 < 2 < 3, 3 > 2 > 1, 1 < 2 == true, 5 >= 4 >= 1, 1 < (2 < 3), (1 < 2) < (3 > 2)]
}
