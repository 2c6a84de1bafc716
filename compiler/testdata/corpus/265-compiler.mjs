export default function () {
return ["a" in { a: 1 } in { true: 1 }, [] instanceof Array instanceof Object, 1 in [1, 2] == true]
}
