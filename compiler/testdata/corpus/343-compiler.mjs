export default function () {
return ["b" + "a" + +"a" + "a", [] + [], [] + {}, 1 + null, 1 + undefined, "5" - 2, "5" + 2, true + true, [1, 2] + 3, 1 + 1 + "1", "1" + 1 + 1]
}
