export default function () {
return ["a" in { a: 1 }, "b" in { a: 1 }, [] instanceof Array, typeof (1 + 1), typeof undefinedName, void (0)]
}
